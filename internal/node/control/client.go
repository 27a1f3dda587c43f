// Package control asks gateways for the data of an executor without a database: the records of its
// sandboxes and snapshots, grants, skills, files and settings.
package control

import (
	"context"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// defaultPatience spans the restart of a gateway.
const defaultPatience = 5 * time.Second

const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// Config configures a Client.
type Config struct {
	Gateways remote.Caller // sends calls to any gateway
	Log      *slog.Logger
	// Patience is how long a call is repeated while no gateway answers; 0 for 5 seconds. Each
	// repetition can take as long as its context allows.
	Patience time.Duration
}

// Client asks gateways. It is safe for concurrent use.
//
// A gateway may have acted on a call whose answer was lost. Repeating a call has no further effect, so
// the Client repeats calls while gateways are Unavailable, for its patience. It repeats
// Records.ListByExecutor, Snapshots.AbandonAll and AwaitSandboxCA, with which an executor starts, until
// their context ends.
type Client struct {
	cfg    Config
	passes passes
}

// New returns a Client.
func New(cfg Config) *Client {
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
	}
	return &Client{cfg: cfg}
}

// repeat makes a call until a gateway answers, or the patience or ctx ends.
func repeat[In, Out any](ctx context.Context, c *Client, call remote.Call[In, Out], in In) (Out, error) {
	return repeatFor(ctx, c, call, in, c.cfg.Patience)
}

// await makes a call until a gateway answers, or ctx ends.
func await[In, Out any](ctx context.Context, c *Client, call remote.Call[In, Out], in In) (Out, error) {
	return repeatFor(ctx, c, call, in, 1<<62)
}

func repeatFor[In, Out any](ctx context.Context, c *Client, call remote.Call[In, Out], in In, patience time.Duration) (Out, error) {
	began := time.Now()
	told := began
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		out, err := call.Do(ctx, c.cfg.Gateways, in)
		if fault.KindOf(err) != fault.Unavailable || time.Since(began)+pause > patience {
			return out, err
		}
		if time.Since(told) > defaultPatience {
			told = time.Now()
			c.cfg.Log.WarnContext(ctx, "no gateway answers; the executor waits. Check that a gateway runs with the same NATS server", "call", string(call), "error", err)
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(pause):
		}
	}
}

// done drops the result of a call without one.
func done(_ remote.None, err error) error { return err }
