package codecontext

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Contexts are the code contexts of one sandbox that is in use.
type Contexts interface {
	// Create starts a context. dir is its working directory, "" for the home.
	Create(ctx context.Context, language execution.Language, dir string) (*Context, error)
	// List lists the contexts, oldest first.
	List(ctx context.Context) ([]*Context, error)
	Get(ctx context.Context, id ID) (*Context, error)
	// Run runs a piece of code in a context, and returns when it has ended, been
	// interrupted, or ended its interpreter; then the context must be restarted. One runs
	// at a time, a second one is a Conflict. When ctx ends or sink fails, the code is
	// interrupted, unless ErrDetached is the cause.
	Run(ctx context.Context, id ID, req Request, sink Sink) (*Result, error)
	// Collect waits for the end of a run that Run has begun under req.Key, also for another
	// caller or server, and passes on what is still known of its events. req.Timeout is
	// from now on. It returns ErrNotBegun when Run may be called, and ErrNoTrace when the
	// context, or what it has kept of its output, is gone.
	Collect(ctx context.Context, id ID, req Request, sink Sink) (*Result, error)
	// Interrupt interrupts what a context runs. It does not wait for it to end.
	Interrupt(ctx context.Context, id ID) error
	// Restart ends a context and starts it anew, with nothing defined.
	Restart(ctx context.Context, id ID) (*Context, error)
	// Delete ends a context, whatever it does.
	Delete(ctx context.Context, id ID) error
}
