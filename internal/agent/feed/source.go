package feed

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// source is what a reader reads: the events of a session, or of one of its threads.
type source interface {
	// look returns the run that is in progress, "" for none, and whether no event comes any more
	// after those on record.
	look(ctx context.Context) (now run.ID, over bool, err error)
	// after returns up to limit events after one, oldest first.
	after(ctx context.Context, seq int64, limit int) ([]session.Event, error)
}

type ofSession struct {
	store session.Store
	s     *session.Session
}

func (o ofSession) look(ctx context.Context) (run.ID, bool, error) {
	now, err := o.store.Get(ctx, o.s.Tenant, o.s.ID)
	if err != nil {
		return "", false, err
	}
	return now.Run, now.Archived(), nil
}

func (o ofSession) after(ctx context.Context, seq int64, limit int) ([]session.Event, error) {
	return o.store.After(ctx, o.s.Tenant, o.s.ID, seq, limit)
}

type ofThread struct {
	store session.Store
	t     *session.Thread
}

func (o ofThread) look(ctx context.Context) (run.ID, bool, error) {
	now, err := o.store.Thread(ctx, o.t.Tenant, o.t.Session, o.t.ID)
	if err != nil || !now.EndedAt.IsZero() {
		return "", err == nil, err
	}
	if now.Status != session.ThreadRunning {
		return "", false, nil
	}
	last, err := o.store.ThreadAfter(ctx, now, now.Events-1, 1)
	if err != nil || len(last) == 0 {
		return run.OfThread(now.ID), false, err
	}
	return last[0].Run, false, nil // a thread that has waited continues in another run
}

func (o ofThread) after(ctx context.Context, seq int64, limit int) ([]session.Event, error) {
	return o.store.ThreadAfter(ctx, o.t, seq, limit)
}
