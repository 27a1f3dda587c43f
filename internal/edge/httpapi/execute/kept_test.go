package execute_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi/usage"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestKeptOutputs fills what a plan lets a tenant keep: it is refused, others on the plan
// are not, and retention makes room.
func TestKeptOutputs(t *testing.T) {
	s := httpapitest.New(t)
	if err := s.DB.Tenants().PutPlan(t.Context(), tenant.Plan{Name: "tiny", MaxOutput: 1 << 20, MaxOutputs: 10}); err != nil {
		t.Fatal(err)
	}
	holder := func(name string) []string {
		s.Principal(t, name, "tiny")
		return []string{"Authorization", "Bearer " + gatewaytest.Token(name)}
	}
	full, other := holder("full"), holder("other")
	run(t, s, `{"code":"print short"}`, full...)
	last := run(t, s, `{"code":"print to the bound"}`, full...) // it may pass the bound
	w := httpapitest.Post(s, `{"code":"print more"}`, full...)
	httpapitest.Refused(t, w, 429, "rate_limited", "stored outputs use 19 B of 10 B (max_outputs). Delete executions and responses that you do not need, or wait until the oldest expire. Your plan is tiny; upgrade to free for 10 GiB of kept outputs.")
	body := decoded[struct {
		Dimension string
		ResetsAt  time.Time `json:"resets_at"`
	}](t, w)
	wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
	if err != nil || body.Dimension != "outputs" || time.Until(body.ResetsAt) < 29*24*time.Hour || (time.Until(body.ResetsAt)-time.Duration(wait)*time.Second).Abs() > time.Minute {
		t.Errorf("got %s, Retry-After %q", w.Body, w.Header().Get("Retry-After"))
	}
	if w := httpapitest.Ask(s, "GET", "/v1/executions", "", full...); strings.Count(w.Body.String(), `"trace_id"`) != 2 {
		t.Errorf("a refused execution has a record: %s", w.Body)
	}
	run(t, s, `{"code":"print other"}`, other...)
	used := func(bytes int64) {
		t.Helper()
		got := decoded[usage.Usage](t, httpapitest.Ask(s, "GET", "/v1/usage", "", full...)).Outputs
		if got.Bytes != bytes || got.Limit == nil || *got.Limit != 10 || got.ResetsAt == nil {
			t.Errorf("the use is told as %+v, want %d bytes", got, bytes)
		}
	}
	used(19)
	if w := httpapitest.Ask(s, "DELETE", "/v1/executions/"+last, "", full...); w.Code != 204 {
		t.Errorf("delete: %d %s", w.Code, w.Body)
	}
	used(6)
	run(t, s, `{"code":"print after"}`, full...) // there is room again
	run(t, s, `{"code":"print more"}`, other...)
	if _, err := s.Gateway.Purge(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	run(t, s, `{"code":"print again"}`, full...)
}
