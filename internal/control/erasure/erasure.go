// Package erasure deletes tenants with all their data. It keeps no progress: each attempt deletes the
// data that it finds, so another process can finish after a crash.
package erasure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
)

const (
	// lookEvery is how often Run polls for deleted tenants without a wake-up, such as those of a
	// process that has crashed. retryEvery is the pause before another attempt.
	lookEvery  = 30 * time.Second
	retryEvery = time.Second
	// tellEvery is how often the log repeats why a deletion waits.
	tellEvery = time.Minute
	// batch limits the rows that one transaction deletes, so that it does not block writers for long.
	batch = 1000
	// threadPage limits the threads in one page of the list.
	threadPage = 100
)

// Executions cancels and deletes tenants' executions; a *gateway.Gateway implements it.
type Executions interface {
	CancelTenant(ctx context.Context, id tenant.ID) error
	ForgetTenant(ctx context.Context, id tenant.ID) error
}

// Runs drives model runs; a *loop.Loop implements it.
type Runs interface {
	Wake()                            // looks for runs that were cancelled
	Expire(ctx context.Context) error // deletes expired runs with their events
}

// Threads lists and deletes saved homes; a *thread.Catalog implements it.
type Threads interface {
	List(ctx context.Context, f thread.Filter) (page []*thread.Thread, next string, err error)
	Delete(ctx context.Context, tenant, id string) error
}

// Config of an Eraser.
type Config struct {
	Store      tenant.ErasureStore
	Executions Executions
	Runs       Runs
	Threads    Threads
	// Tell tells every process that a tenant is being deleted.
	Tell func(id tenant.ID) error
	// Contents deletes a tenant's data outside the database, by a name for the log.
	Contents map[string]func(ctx context.Context, id tenant.ID) error
	// Settle is how long after the request other processes may still accept the tenant's keys.
	Settle time.Duration
	Log    *slog.Logger
}

// Eraser deletes tenants.
type Eraser struct {
	cfg  Config
	wake chan struct{}
	told map[tenant.ID]time.Time // when the log last reported why a tenant's deletion waits
}

// New returns an Eraser.
func New(cfg Config) *Eraser {
	return &Eraser{cfg: cfg, wake: make(chan struct{}, 1), told: map[tenant.ID]time.Time{}}
}

// Wake makes Run look for deleted tenants now.
func (e *Eraser) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run deletes tenants until ctx ends.
func (e *Eraser) Run(ctx context.Context) {
	for {
		wait := lookEvery
		if left, err := e.eraseAll(ctx); err != nil && ctx.Err() == nil {
			e.cfg.Log.WarnContext(ctx, "cannot look for deleted tenants; retrying", "error", err)
		} else if left {
			wait = retryEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		case <-time.After(wait):
		}
	}
}

// eraseAll makes one attempt at each deleted tenant and reports whether any remain.
func (e *Eraser) eraseAll(ctx context.Context) (left bool, err error) {
	all, err := e.cfg.Store.Deleted(ctx)
	if err != nil {
		return false, err
	}
	for i := range all {
		t := &all[i]
		if err := e.erase(ctx, t); err != nil {
			left = true
			e.tell(ctx, t, err)
			continue
		}
		delete(e.told, t.ID)
		e.cfg.Log.InfoContext(ctx, "tenant deleted", "tenant", t.ID, "name", t.Name)
	}
	return left, nil
}

// errWaiting is the reason why a deletion waits.
type errWaiting string

func (e errWaiting) Error() string { return string(e) }

// tell logs from time to time why a tenant still exists.
func (e *Eraser) tell(ctx context.Context, t *tenant.Tenant, err error) {
	last, told := e.told[t.ID]
	if !told {
		e.told[t.ID] = time.Now()
		last = time.Now()
	}
	_, waiting := errors.AsType[errWaiting](err)
	if ctx.Err() != nil || waiting && time.Since(last) < tellEvery {
		return
	}
	e.told[t.ID] = time.Now()
	e.cfg.Log.WarnContext(ctx, "cannot finish deleting a tenant yet; retrying", "tenant", t.ID, "name", t.Name, "reason", err)
}

// erase deletes all data of a tenant. It first stops everything that could create more of it. It
// returns nil once the tenant is gone.
func (e *Eraser) erase(ctx context.Context, t *tenant.Tenant) error {
	settled := t.DeletedAt != nil && time.Since(*t.DeletedAt) >= e.cfg.Settle
	for _, step := range []struct {
		name string
		do   func(context.Context, tenant.ID) error
	}{
		{"tell the servers", func(_ context.Context, id tenant.ID) error { return e.cfg.Tell(id) }},
		{"halt it", e.cfg.Store.Halt},
		{"cancel its executions", e.cancel},
		{"wait for running programs", e.idle},
		{"delete its threads", e.threads},
		{"delete its responses", e.runs},
		{"delete its executions", e.cfg.Executions.ForgetTenant},
		{"delete its contents", e.contents},
		{"delete its records", e.records},
	} {
		if err := step.do(ctx, t.ID); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if !settled {
		return errWaiting("requests in progress may still create data")
	}
	return e.cfg.Store.Finish(ctx, t.ID)
}

func (e *Eraser) cancel(ctx context.Context, id tenant.ID) error {
	e.cfg.Runs.Wake()
	return e.cfg.Executions.CancelTenant(ctx, id)
}

func (e *Eraser) idle(ctx context.Context, id tenant.ID) error {
	r, err := e.cfg.Store.Remains(ctx, id)
	if err != nil || !r.Any() {
		return err
	}
	waiting := fmt.Sprintf("%d executions, %d responses and %d sandboxes", r.Executions, r.Runs, r.Sandboxes)
	if r.Executor != "" {
		waiting += ", some on the server " + r.Executor
	}
	return errWaiting(waiting)
}

func (e *Eraser) threads(ctx context.Context, id tenant.ID) error {
	for {
		page, _, err := e.cfg.Threads.List(ctx, thread.Filter{Tenant: id, Limit: threadPage})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, t := range page {
			if err := e.cfg.Threads.Delete(ctx, id, t.ID); err != nil {
				return err // a thread in use becomes free when its lease expires
			}
		}
	}
}

func (e *Eraser) runs(ctx context.Context, id tenant.ID) error {
	if err := e.cfg.Store.ExpireRuns(ctx, id); err != nil {
		return err
	}
	return e.cfg.Runs.Expire(ctx)
}

func (e *Eraser) contents(ctx context.Context, id tenant.ID) error {
	for name, remove := range e.cfg.Contents {
		if err := remove(ctx, id); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (e *Eraser) records(ctx context.Context, id tenant.ID) error {
	for {
		n, err := e.cfg.Store.Erase(ctx, id, batch)
		if err != nil || n == 0 {
			return err
		}
	}
}
