package tools

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// leastShare is the number of bytes of each text at which Fit gives up.
const leastShare = 1 << 10

// Fit returns an output as JSON of at most bound bytes, as size counts them. bound gets the size of the whole
// output and returns 0 for no limit. Fit cuts texts of the output; it returns a TooLarge fault if that
// is not enough.
func Fit(out any, size func(raw []byte) int, bound func(size int) int) (_ any, raw []byte, err error) {
	if raw, err = encode(out); err != nil {
		return nil, nil, err
	}
	most := bound(size(raw))
	for share := most / 2; most > 0 && size(raw) > most; share = share * 3 / 4 {
		var shorter bool
		if out, shorter = Shorten(out, share); !shorter && share < leastShare {
			return nil, nil, fault.New(fault.TooLarge, "the output is larger than the %d bytes that this client reads at once: ask for less of it", most)
		}
		if raw, err = encode(out); err != nil {
			return nil, nil, err
		}
	}
	return out, raw, nil
}

func encode(out any) ([]byte, error) {
	raw, err := json.Marshal(out, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("write the output: %w", err)
	}
	return raw, nil
}

// cancelTime limits how long Abandon waits.
const cancelTime = 10 * time.Second

// Remote calls tools for clients of MCP.
type Remote struct {
	Tools interface {
		Call(ctx context.Context, name string, c *Caller, input []byte) (any, error)
		CallApart(ctx context.Context, c *Caller, input []byte) (any, error)
	}
	Cancel func(ctx context.Context, tenantID, traceID string) error // ends an execution
	Log    *slog.Logger
}

// Call calls a tool, also sandbox_execute.
func (r *Remote) Call(ctx context.Context, name string, c *Caller, input []byte) (any, error) {
	scope := tenant.ScopeTools
	if name == SandboxExecuteName {
		scope = tenant.ScopeExecute
	}
	if !c.Principal.May(scope) { // a key may have lost it since its session was opened
		return nil, fault.New(fault.Forbidden, "this key lacks the scope %q; ask an administrator to add it", scope)
	}
	if name == SandboxExecuteName {
		return r.Tools.CallApart(ctx, c, input)
	}
	return r.Tools.Call(ctx, name, c, input)
}

// Abandon ends the execution of a call that was cancelled. An execution continues without its client, who can
// ask for its result later; the caller of a tool cannot.
func (r *Remote) Abandon(ctx context.Context, name string, c *Caller) {
	if ctx.Err() == nil || name != ExecuteCodeName && name != SandboxExecuteName {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	err := r.Cancel(ctx, c.Principal.Tenant.ID, c.TraceID)
	if kind := fault.KindOf(err); err != nil && kind != fault.NotFound && kind != fault.Conflict { // it has not begun, or has ended
		r.Log.WarnContext(ctx, "a cancelled execution may continue", "trace_id", c.TraceID, "error", err)
	}
}
