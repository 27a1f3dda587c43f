// Package turns begins the turns of sessions that waited for those before them, and ends the
// waits for clients that took too long.
package turns

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store has what waits; a session.Store does.
type Store interface {
	Ready(ctx context.Context, limit int) ([]session.Queued, error)
	Window(ctx context.Context, id session.ID, until int64) (after int64, err error)
	Total(ctx context.Context, t tenant.ID, id session.ID) (run.Total, error)
	Expired(ctx context.Context, limit int) ([]session.Session, error)
	After(ctx context.Context, t tenant.ID, id session.ID, seq int64, limit int) ([]session.Event, error)
	Calls(ctx context.Context, t tenant.ID, id session.ID) ([]session.Call, error)
	Answer(ctx context.Context, s *session.Session, answers []run.Answer, done bool) error
}

// Config of Turns.
type Config struct {
	Store Store
	// Begin begins a run, as loop.Loop does.
	Begin func(ctx context.Context, r *run.Run, q *run.Request, limit int, cause error) (<-chan struct{}, error)
	// Speak has a turn asked of the agent that speaks by now; nil where no other one can.
	Speak func(ctx context.Context, q *session.Queued) error
	// Approvals ends the waits of responses for approvals; nil for none.
	Approvals interface {
		Expire(ctx context.Context, limit int) (int, error)
	}
	Limit int    // of the runs of a tenant under way
	Told  func() // a wait for a client was ended; nil for none
	Log   *slog.Logger
}

// Turns begins turns. Those that other processes have ended, or begun and left, it finds by
// looking.
type Turns struct {
	cfg  Config
	wake chan struct{}
}

const (
	lookEvery = 2 * time.Second
	atOnce    = 64 // turns that are read at a time
)

// New returns Turns that begin none before Run.
func New(cfg Config) *Turns { return &Turns{cfg, make(chan struct{}, 1)} }

// Wake says that a turn may be ready.
func (t *Turns) Wake() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run begins turns until ctx ends.
func (t *Turns) Run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for ctx.Err() == nil {
		if err := errors.Join(t.expire(ctx), t.begin(ctx)); err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("queued turns of sessions wait longer", "error", err)
		}
		select {
		case <-t.wake:
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

func (t *Turns) begin(ctx context.Context) error {
	ready, err := t.cfg.Store.Ready(ctx, atOnce)
	if err != nil {
		return err
	}
	var errs []error
	for i := range ready {
		errs = append(errs, t.one(ctx, &ready[i]))
	}
	return errors.Join(errs...)
}

func (t *Turns) one(ctx context.Context, q *session.Queued) (err error) {
	turn := q.Request.Turn
	if turn.After, err = t.cfg.Store.Window(ctx, session.ID(turn.Session), turn.Until); err != nil {
		return err
	}
	if turn.Spent, err = t.cfg.Store.Total(ctx, q.Run.Tenant, session.ID(turn.Session)); err != nil {
		return err
	}
	if t.cfg.Speak != nil && q.Now != q.Speaker {
		if err := t.cfg.Speak(ctx, q); err != nil {
			return err
		}
	}
	_, err = t.cfg.Begin(ctx, &q.Run, &q.Request, t.cfg.Limit, nil)
	if err == nil {
		return nil
	}
	switch fault.KindOf(err) {
	case fault.Conflict, fault.NotFound, fault.Exhausted: // another process was faster, it is gone, or it waits for room
		return nil
	}
	return err
}
