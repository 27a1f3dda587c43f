package thread_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/thread"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// exhausted sends requests until one is refused for a rate, and returns how many
// were not.
func exhausted(t *testing.T, s http.Handler, dimension, method, path, body string, headers ...string) (n int) {
	t.Helper()
	for ; n < 1000; n++ {
		w := httpapitest.Ask(s, method, path, body, headers...)
		if w.Code != http.StatusTooManyRequests {
			continue
		}
		var refusal httpapi.ErrorResponse
		if err := json.Unmarshal(w.Body.Bytes(), &refusal); err != nil {
			t.Fatal(err)
		}
		if refusal.Error != "rate_limited" || refusal.Dimension != dimension || !strings.Contains(refusal.Message, "the plan slow allows this") ||
			refusal.ResetsAt == nil || time.Until(*refusal.ResetsAt) > 10*time.Second || w.Header().Get("Retry-After") == "" {
			t.Fatalf("got %s, Retry-After %q", w.Body, w.Header().Get("Retry-After"))
		}
		return n
	}
	t.Fatal("no request was refused")
	return n
}

// Requests and bytes are counted for keys and tenants, those to signed URLs for who
// made them; another tenant is not refused.
func TestRates(t *testing.T) {
	s := newThreadServer(t)
	plan := tenant.Plan{Name: "slow", MaxOutput: 1 << 20, MaxRequestRate: 2, MaxUploadRate: 1 << 20}
	if err := s.DB.Tenants().PutPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	s.Principal(t, "slow", "slow")
	slow, anonymous := []string{"Authorization", "Bearer " + gatewaytest.Token("slow")}, []string{"Authorization", ""}

	large := strings.Repeat("x", 5<<20)
	httpapitest.Answers(t, s, 200, "", "PUT", "/v1/threads/a/files/x", large, slow...)
	var put thread.SignedURL
	if err := json.Unmarshal([]byte(httpapitest.Answers(t, s, 200, "url", "POST", "/v1/threads/a/signed_urls", `{"path":"y","method":"PUT"}`, slow...)), &put); err != nil {
		t.Fatal(err)
	}
	if n := exhausted(t, s, "tenant_upload_bytes", "PUT", put.URL, large, anonymous...); n != 0 && n != 1 {
		t.Errorf("%d more uploads of 5 MiB", n)
	}
	began := time.Now()
	back := func() int { return int(2 * time.Since(began).Seconds()) } // what a slow machine gets back
	if n := exhausted(t, s, "tenant_requests", "GET", "/v1/threads", "", slow...); n < 10 || n > 20+back() {
		t.Errorf("%d more requests", n)
	}
	if n := exhausted(t, s, "tenant_requests", "PUT", put.URL, "", anonymous...); n > 2+back() {
		t.Errorf("%d more requests to a signed URL", n)
	}
	httpapitest.Answers(t, s, 200, "", "GET", "/v1/threads", "")
	if m := httpapitest.Ask(s, "GET", "/metrics", "").Body.String(); !strings.Contains(m, `atoll_http_rate_limited_total{dimension="tenant_upload_bytes"} 1`) {
		t.Error("the refusals are not counted")
	}
	plan.MaxKeyRequestRate, plan.MaxRequestRate = 1, 0
	if err := s.DB.Tenants().PutPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if n := exhausted(t, s, "key_requests", "GET", "/v1/threads", "", slow...); n < 9 || n > 15+back() {
		t.Errorf("%d requests of a key", n)
	}
}
