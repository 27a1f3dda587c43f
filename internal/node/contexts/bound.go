package contexts

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// Of returns the contexts of a sandbox that is being used.
func (c *Contexts) Of(u *Use) codecontext.Contexts { return ofSandbox{c, u} }

// ofSandbox is Contexts for one sandbox.
type ofSandbox struct {
	c *Contexts
	u *Use
}

// Create implements codecontext.Contexts.
func (b ofSandbox) Create(ctx context.Context, language execution.Language, dir string) (*codecontext.Context, error) {
	return b.c.Create(ctx, b.u, language, dir)
}

// List implements codecontext.Contexts.
func (b ofSandbox) List(ctx context.Context) ([]*codecontext.Context, error) {
	return b.c.List(ctx, b.u)
}

// Get implements codecontext.Contexts.
func (b ofSandbox) Get(ctx context.Context, id codecontext.ID) (*codecontext.Context, error) {
	return b.c.Get(ctx, b.u, id)
}

// Run implements codecontext.Contexts.
func (b ofSandbox) Run(ctx context.Context, id codecontext.ID, req codecontext.Request, sink codecontext.Sink) (*codecontext.Result, error) {
	return b.c.Run(ctx, b.u, id, req, sink)
}

// Collect implements codecontext.Contexts.
func (b ofSandbox) Collect(ctx context.Context, id codecontext.ID, req codecontext.Request, sink codecontext.Sink) (*codecontext.Result, error) {
	return b.c.Collect(ctx, b.u, id, req, sink)
}

// Interrupt implements codecontext.Contexts.
func (b ofSandbox) Interrupt(ctx context.Context, id codecontext.ID) error {
	return b.c.Interrupt(ctx, b.u, id)
}

// Restart implements codecontext.Contexts.
func (b ofSandbox) Restart(ctx context.Context, id codecontext.ID) (*codecontext.Context, error) {
	return b.c.Restart(ctx, b.u, id)
}

// Delete implements codecontext.Contexts.
func (b ofSandbox) Delete(ctx context.Context, id codecontext.ID) error {
	return b.c.Delete(ctx, b.u, id)
}
