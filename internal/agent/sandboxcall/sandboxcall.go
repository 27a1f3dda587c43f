// Package sandboxcall is the part that all paths from a run to a sandbox share. Package sandboxtool
// starts executions, package pooltool calls the tools of named sandboxes, and package interpreter runs
// code in contexts.
//
// It names calls so that a process that takes over a run finds the work of another one, ends work with
// its run, counts charges, and renders output and rejections for the model.
package sandboxcall

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Callers returns the principal that started a run; *tenant.Authority implements it.
type Callers interface {
	Entrant(ctx context.Context, t tenant.ID, key, environment string) (tenant.Principal, error)
}

// Caller returns the principal with a key in an environment. It returns a Forbidden fault if the key
// lacks the scope.
func Caller(ctx context.Context, from Callers, t tenant.ID, key, environment string, scope tenant.Scope) (*tenant.Principal, error) {
	p, err := from.Entrant(ctx, t, key, environment)
	if err != nil {
		return nil, err
	}
	if !p.May(scope) {
		return nil, fault.New(fault.Forbidden, "this key lacks the scope %q; ask an administrator to add it", scope)
	}
	return &p, nil
}

// Key identifies a call in all processes that drive its run. It is the idempotency key of an execution
// and the key of code in a context.
func Key(c *loop.Call) string { return fmt.Sprintf("%s/%d", c.Run.ID, c.Number) }

// Name is Key in the form of a process id.
func Name(c *loop.Call) string {
	return fmt.Sprintf("%s-%d", strings.TrimPrefix(string(c.Run.ID), "run_"), c.Number)
}

// Detach returns a context for work that another process can continue. When ctx ends, it ends with the
// cause left if another process takes over the run, else with the cause ended; nil means the cause of
// ctx. The caller must call stop.
func Detach(ctx context.Context, left, ended error) (work context.Context, stop func()) {
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, loop.ErrLeft):
			end(left)
		case ended != nil:
			end(ended)
		default:
			end(cause)
		}
	})
	return work, func() {
		release()
		end(nil)
	}
}

// Rejection says why permissions or limits rejected a call.
type Rejection struct {
	Why string
	// Limit is the exhausted limit; "" for another reason.
	Limit     string
	Exhausted bool
}

// Rejected converts an error of a call. It returns nil if ctx ended or the server failed: then the
// call has no outcome.
func Rejected(ctx context.Context, err error) *Rejection {
	if ctx.Err() != nil || fault.KindOf(err) == fault.Internal {
		return nil
	}
	r := &Rejection{Why: err.Error()}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		r.Why = f.Msg
		if r.Exhausted = f.Kind == fault.Exhausted; r.Exhausted {
			r.Limit = f.Dimension
		}
	}
	return r
}

// Mark marks an outcome as that of a rejected call. If ends is true, the run ends, because the model
// cannot meet the limit.
func (r *Rejection) Mark(out *loop.Outcome, ends bool) *loop.Outcome {
	out.Refused = true
	if ends {
		out.Ends = &run.End{Status: run.Failed, Reason: run.QuotaExceeded, Message: r.Why}
	}
	return out
}
