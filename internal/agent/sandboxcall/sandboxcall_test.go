package sandboxcall

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestNames(t *testing.T) {
	c := &loop.Call{Run: &run.Run{ID: "run_abc"}, Number: 3}
	if Key(c) != "run_abc/3" || Name(c) != "abc-3" {
		t.Errorf("%q, %q", Key(c), Name(c))
	}
}

func TestDetach(t *testing.T) {
	left, ended, other := errors.New("left"), errors.New("ended"), errors.New("other")
	for _, c := range []struct{ cause, ended, want error }{
		{loop.ErrLeft, ended, left}, {loop.ErrLeft, nil, left}, {other, ended, ended}, {other, nil, other},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		work, stop := Detach(ctx, left, c.ended)
		if work.Err() != nil {
			t.Error("the work ended before its run")
		}
		cancel(c.cause)
		<-work.Done()
		if got := context.Cause(work); !errors.Is(got, c.want) {
			t.Errorf("after %v the work ended with %v, want %v", c.cause, got, c.want)
		}
		stop()
	}
	work, stop := Detach(t.Context(), left, ended)
	stop()
	if !errors.Is(context.Cause(work), context.Canceled) {
		t.Errorf("after stop the work ended with %v", context.Cause(work))
	}
}

// callers returns a principal with its scopes.
type callers []tenant.Scope

func (c callers) Entrant(context.Context, tenant.ID, string, string) (tenant.Principal, error) {
	return tenant.Principal{Key: tenant.Key{Scopes: c}}, nil
}

func TestCaller(t *testing.T) {
	if p, err := Caller(t.Context(), callers{tenant.ScopeTools}, "ten_1", "key_1", "env_1", tenant.ScopeTools); err != nil || p == nil {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := Caller(t.Context(), callers{}, "ten_1", "key_1", "env_1", tenant.ScopeTools); fault.KindOf(err) != fault.Forbidden || !strings.Contains(err.Error(), `"tools"`) {
		t.Error(err)
	}
}

func TestRejected(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Rejected(gone, fault.New(fault.Invalid, "no")); r != nil {
		t.Errorf("after the run: %+v", r)
	}
	if r := Rejected(t.Context(), errors.New("disk")); r != nil {
		t.Errorf("a failure of the server: %+v", r)
	}
	r := Rejected(t.Context(), fault.Limit("monthly_credits", time.Time{}, "spent"))
	if r == nil || r.Why != "spent" || !r.Exhausted || r.Limit != "monthly_credits" {
		t.Fatalf("%+v", r)
	}
	if out := r.Mark(new(loop.Outcome), false); !out.Refused || out.Ends != nil {
		t.Errorf("%+v", out)
	}
	if out := r.Mark(new(loop.Outcome), true); out.Ends == nil || out.Ends.Reason != run.QuotaExceeded || out.Ends.Message != "spent" {
		t.Errorf("%+v", out.Ends)
	}
	if r := Rejected(t.Context(), fault.New(fault.Forbidden, "no")); r == nil || r.Exhausted || r.Limit != "" {
		t.Errorf("%+v", r)
	}
}
