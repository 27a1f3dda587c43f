package pooltool

import (
	"cmp"
	"context"
	"encoding/json"
	"io"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// named are the file tools that package tools lacks, by name.
var named = func() map[string]sandboxtool.Named {
	m := map[string]sandboxtool.Named{}
	for _, n := range sandboxtool.NamedTools() {
		m[n.Name()] = n
	}
	return m
}()

// Added reports whether agents have a tool that clients cannot call. An agent's own tool of
// that name replaces it.
func Added(name string) bool {
	_, ok := named[name]
	return ok
}

// file makes a call of a file tool.
func (h *Pool) file(ctx context.Context, c *loop.Call, by *tools.Caller, n sandboxtool.Named) (*loop.Outcome, error) {
	in, call, err := n.Parse(c.Call.Arguments)
	if err != nil {
		return nil, err
	}
	in = cmp.Or(in, sandbox.Default)
	if !n.Shares() {
		a, err := h.Set.File(ctx, by, n.Name(), in, call)
		if err != nil {
			return nil, err
		}
		return n.Outcome(c, call, a, nil), nil
	}
	var kept *execution.Execution
	there := *call
	there.Beside = "" // the sandbox is read, and gives nothing back
	a, err := h.Set.Share(ctx, by, n.Name(), in, &there, func(ctx context.Context, content io.Reader, secrets []string) (err error) {
		kept, err = n.Keep(ctx, h.Keeper, by.Principal, c, call, by.TraceID, content, secrets)
		return err
	})
	if err != nil {
		return nil, err
	}
	return n.Outcome(c, call, a, kept), nil
}

// sandboxOf returns the name of the sandbox that a call uses.
func sandboxOf(c *loop.Call) string {
	var in struct {
		Sandbox string `json:"sandbox"`
	}
	_ = json.Unmarshal([]byte(c.Call.Arguments), &in) // what is none is refused when the call is made
	return cmp.Or(in.Sandbox, sandbox.Default)
}
