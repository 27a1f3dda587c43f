package atoll

import (
	"context"
	"iter"
	"net/http"
)

// Contexts lists the code contexts of a sandbox.
func (c *Client) Contexts(ctx context.Context, ref SandboxRef) ([]CodeContext, error) {
	all, err := call[CodeContexts](ctx, c, http.MethodGet, ref.path("contexts"), ref.query(), nil)
	return all.Data, err
}

// CreateContext starts an interpreter in a sandbox.
func (c *Client) CreateContext(ctx context.Context, ref SandboxRef, in NewContext) (CodeContext, error) {
	return create[CodeContext](ctx, c, ref.path("contexts"), ref.query(), in)
}

// Context returns a code context.
func (c *Client) Context(ctx context.Context, ref SandboxRef, id string) (CodeContext, error) {
	return call[CodeContext](ctx, c, http.MethodGet, ref.path("contexts", id), ref.query(), nil)
}

// RunCode runs code in a context and returns the result. The contexts python, node and bash are
// the default ones of these languages. Code that fails is not an error. If ctx ends first, RunCode
// interrupts the code; the context keeps its variables.
func (c *Client) RunCode(ctx context.Context, ref SandboxRef, id string, in RunCode) (CodeResult, error) {
	return perform[CodeResult](ctx, c, ref.path("contexts", id, "run"), ref.query(), in)
}

// StreamCode runs code in a context and yields its output and values as they arrive; the last
// event has the type result. If ctx ends first, or the caller leaves the loop, StreamCode
// interrupts the code.
func (c *Client) StreamCode(ctx context.Context, ref SandboxRef, id string, in RunCode) iter.Seq2[CodeEvent, error] {
	return events(ctx, c, source[CodeEvent]{
		first:  &request{method: http.MethodPost, path: ref.path("contexts", id, "run"), query: ref.query(), in: in, accept: mediaNDJSON},
		hidden: func(ev *CodeEvent) bool { return ev.Type == keepalive },
		ends:   func(ev *CodeEvent) bool { return ev.Type == "result" },
	})
}

// InterruptContext interrupts the running code of a context, like Ctrl-C.
func (c *Client) InterruptContext(ctx context.Context, ref SandboxRef, id string) error {
	return c.do(ctx, http.MethodPost, ref.path("contexts", id, "interrupt"), ref.query())
}

// RestartContext restarts the interpreter of a context, which loses its variables.
func (c *Client) RestartContext(ctx context.Context, ref SandboxRef, id string) (CodeContext, error) {
	return call[CodeContext](ctx, c, http.MethodPost, ref.path("contexts", id, "restart"), ref.query(), nil)
}

// DeleteContext deletes a context.
func (c *Client) DeleteContext(ctx context.Context, ref SandboxRef, id string) error {
	return c.do(ctx, http.MethodDelete, ref.path("contexts", id), ref.query())
}
