package gateway_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TestExpected compares the job that is expected from a record with the job that an
// executor got, and has rights end in between.
func TestExpected(t *testing.T) {
	w := gatewaytest.Open(t)
	jobs := make(chan execution.Job, 1)
	w.Executor.Program("show", func(r *gatewaytest.Run) int { jobs <- r.Job; return 0 })
	p := w.Principal(t, "a", "enterprise", func(p *tenant.Principal) {
		p.Tenant.NetworkEnabled = true
		p.Environment.Limits.Memory = 1 << 30
		p.Environment.Env = map[string]string{"NAME": "value"}
		p.Environment.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"example.com"}}
	})
	req := gatewaytest.Request("show")
	req.Thread = "notes"
	e, err := w.Execute(t.Context(), p, req, inline)
	if err != nil {
		t.Fatal(err)
	}
	ran := <-jobs
	uses, err := w.DB.Executions().Recent(t.Context(), time.Hour, 10)
	if err != nil || len(uses) != 1 || !uses[0].Thread || !uses[0].Last.Equal(e.CompletedAt) {
		t.Fatalf("in use were %+v: %v", uses, err)
	}
	caller, err := w.Holder(t.Context(), uses[0].Tenant, uses[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	job, err := w.Expected(&caller, uses[0])
	if err != nil {
		t.Fatal(err)
	}
	if job.Thread == nil || ran.Thread == nil {
		t.Errorf("expected with the thread %v, run with %v", job.Thread, ran.Thread)
	}
	for _, j := range []*execution.Job{&job, &ran} { // what no sandbox depends on
		j.TraceID, j.Code, j.Timeout, j.Thread, j.StartBy = "", "", 0, nil, time.Time{}
	}
	if !reflect.DeepEqual(job, ran) {
		t.Errorf("expected %+v\nbut ran %+v", job, ran)
	}

	for name, c := range map[string]struct {
		change func(*tenant.Principal)
		want   fault.Kind
	}{
		"no right to run code":  {func(p *tenant.Principal) { p.Key.Scopes = []tenant.Scope{tenant.ScopeRead} }, fault.Forbidden},
		"another environment":   {func(p *tenant.Principal) { p.Environment.ID = "env_other" }, fault.Conflict},
		"no environment":        {func(p *tenant.Principal) { p.Environment = tenant.Environment{} }, fault.Conflict},
		"more memory than plan": {func(p *tenant.Principal) { p.Plan.MaxMemory = 1 << 20 }, fault.Exhausted},
	} {
		changed := caller
		c.change(&changed)
		if _, err := w.Expected(&changed, uses[0]); err == nil || fault.KindOf(err) != c.want {
			t.Errorf("%s: %v, want kind %v", name, err, c.want)
		}
	}
	if n := len(rows(t, w, p, "")); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}
