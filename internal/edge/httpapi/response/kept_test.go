package response_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestKept has responses count for max_outputs: full, none that is kept begins, until some
// are deleted.
func TestKept(t *testing.T) {
	s := open(t)
	if err := s.DB.Tenants().PutPlan(t.Context(), tenant.Plan{Name: "tiny", MaxOutputs: 1500}); err != nil {
		t.Fatal(err)
	}
	s.Principal(t, "full", "tiny")
	key := []string{"Authorization", "Bearer " + gatewaytest.Token("full")}
	create := func(status int, body, says string) string {
		t.Helper()
		return httpapitest.Answers(t, s, status, says, http.MethodPost, "/v1/responses", body, key...)
	}
	first := create(200, `{"model":"echo","input":"hello"}`, `"completed"`)
	create(200, `{"model":"echo","input":"hello again"}`, `"completed"`)
	create(429, `{"model":"echo","input":"more"}`, `(max_outputs). Delete executions and responses`)
	create(429, `{"model":"echo","input":"more"}`, `"dimension":"outputs"`)
	httpapitest.Refused(t, httpapitest.Post(s, `{"code":"x"}`, key...), 429, "rate_limited", "max_outputs")
	create(200, `{"model":"echo","input":"more","store":false}`, `"completed"`) // is not kept
	create(429, `{"model":"echo","input":"more","background":true}`, `"dimension":"outputs"`)
	httpapitest.Answers(t, s, 200, `"completed"`, http.MethodPost, "/v1/responses", `{"model":"echo","input":"of another tenant"}`)

	_, id, _ := strings.Cut(first, `"id":"resp_`)
	httpapitest.Answers(t, s, 200, "", http.MethodDelete, "/v1/responses/resp_"+id[:32], "", key...)
	create(200, `{"model":"echo","input":"more"}`, `"completed"`)
}
