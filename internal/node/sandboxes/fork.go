package sandboxes

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// Fork makes copies of grant's sandbox, with its files, processes and memory as they
// are at one moment, and returns them; either all are made or none. They are
// called after it, with a number. The sandbox itself goes on; while it is copied
// it stands still, and connections to its guest daemon end, which can be followed on by
// their cursors. Connections through the network are its own alone.
func (m *Manager) Fork(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, count int) ([]*sandbox.Sandbox, error) {
	if count < 1 || count > sandbox.MaxForks {
		return nil, fault.New(fault.Invalid, "count: want 1 to %d copies", sandbox.MaxForks)
	}
	e, err := m.find(grant, session, nameOrID)
	if err != nil {
		return nil, err
	}
	if err := m.cfg.AdmitDisk(); err != nil {
		return nil, err
	}
	ctx, span := trace.Start(ctx, "sandbox.fork", trace.String("atoll.sandbox_id", string(e.id)))
	defer span.End()
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	parent, err := m.forkable(ctx, e, grant)
	if err == nil && !m.hasCheckpoint(parent) {
		err = fault.New(fault.Conflict, "cannot fork %q: it is asleep with no saved processes (%s). Wake it first, then fork", parent.Name, parent.Detail)
	}
	if err != nil {
		e.unlock()
		return nil, err
	}
	// From here on the caller's going away changes nothing.
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
	defer cancel()
	if parent.Sleep == sandbox.Stored {
		if err := m.moveToDisk(work, e); err != nil {
			e.unlock()
			return nil, err
		}
		parent.Stored = nil
	}
	forks, err := m.reserveForks(work, grant, parent, count)
	if err == nil {
		begun := m.prepareForks(work, parent, forks) // while the memory is written
		err = m.withCheckpoint(work, e, func() error {
			if err := begun(); err != nil {
				return err
			}
			return m.forkAll(work, e, forks)
		})
		if waited := begun(); err == nil {
			err = waited
		}
	}
	e.unlock()
	if err == nil {
		err = m.startForks(work, grant, forks)
	}
	if err != nil {
		span.Fail(err)
		return nil, errors.Join(err, m.undoForks(work, forks))
	}
	var out []*sandbox.Sandbox
	for _, fork := range forks {
		m.mu.Lock()
		out = append(out, fork.sb.Clone())
		m.mu.Unlock()
		fork.unlock()
	}
	m.cfg.Engine.KeepStandby(parent.ID, recipeOf(parent), count)
	m.cfg.Log.InfoContext(ctx, "named sandbox forked", "sandbox_id", string(parent.ID), "count", count)
	return out, nil
}

// hasCheckpoint reports whether a sandbox that may sleep has a checkpoint of its processes.
func (m *Manager) hasCheckpoint(sb *sandbox.Sandbox) bool {
	switch sb.Sleep {
	case sandbox.OnDisk:
		return m.cfg.Engine.HasCheckpoint(sb.ID)
	case sandbox.Stored:
		return sb.Stored.Checkpoint
	}
	return true
}

// forkable is e's sandbox, if grant can have others like it. e is locked.
func (m *Manager) forkable(ctx context.Context, e *entry, grant *sandbox.Grant) (*sandbox.Sandbox, error) {
	if err := m.ensureOpen(ctx, e); err != nil {
		return nil, err
	}
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	switch {
	case sb.State == sandbox.Lost:
		return nil, m.lostError(e)
	case live != nil && hasEnded(live):
		return nil, m.exitError(ctx, e)
	}
	if err := m.limitStorage(ctx, e, grant); err != nil {
		return nil, err
	}
	return m.current(e), checkRoot(grant, m.current(e))
}

// reserveForks records count copies of a sandbox, which are yet to be made; the
// turn at each is held. Those recorded are returned with an error, too.
func (m *Manager) reserveForks(ctx context.Context, grant *sandbox.Grant, parent *sandbox.Sandbox, count int) (forks []*entry, err error) {
	base := parent.Name[:min(len(parent.Name), 56)]
	for number := 1; len(forks) < count; number++ {
		now := time.Now().UTC()
		sb := parent.Clone()
		sb.ID, sb.Name, sb.Key = runtime.NewID(), fmt.Sprintf("%s-%d", base, number), grant.Key
		sb.State, sb.Sleep, sb.Detail = sandbox.Creating, "", ""
		sb.CreatedAt, sb.UsedAt, sb.MeteredAt = now, now, now
		if err := setTimeout(grant, sb, 0, now); err != nil {
			return forks, err
		}
		e := newEntry(sb)
		e.sem <- struct{}{}
		there, err := m.reserve(e)
		if err != nil {
			return forks, err
		}
		if there {
			continue
		}
		recorded := sb.Clone() // others see sb by now
		elsewhere, err := m.cfg.Records.Create(ctx, grant, recorded)
		if err != nil || elsewhere != nil {
			m.unregister(e)
			if err != nil {
				return forks, err
			}
			continue
		}
		m.publish(e, recorded)
		forks = append(forks, e)
	}
	return forks, nil
}

// prepareForks has kernels start for copies of a sandbox; what it returns waits for them.
func (m *Manager) prepareForks(ctx context.Context, parent *sandbox.Sandbox, forks []*entry) (begun func() error) {
	var g errgroup.Group
	done := make(chan error, 1)
	g.SetLimit(goruntime.GOMAXPROCS(0))
	go func() { // ends with PrepareFork, which ends with ctx
		for _, fork := range forks {
			g.Go(func() error { return m.cfg.Engine.PrepareFork(ctx, parent.ID, recipeOf(fork.sb)) })
		}
		done <- g.Wait()
	}()
	return sync.OnceValue(func() error { return <-done })
}

// withCheckpoint stops e's sandbox where it is, with its checkpoint on disk, does something
// with that, and has it go on as before. e is locked.
func (m *Manager) withCheckpoint(ctx context.Context, e *entry, do func() error) (err error) {
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	if live == nil {
		return do() // it sleeps on disk
	}
	m.beginExclusive(e, true)
	defer m.endExclusive(e)
	undo := context.WithoutCancel(ctx) // it goes on, however late it is
	again := func() error {
		if sb.State == sandbox.Sleeping {
			return live.Freeze(undo)
		}
		return nil
	}
	if err := live.Checkpoint(ctx); err != nil {
		if cannot, ok := errors.AsType[*runtime.SaveError](err); ok {
			err = fault.Wrap(fault.Conflict, err, fmt.Sprintf("the memory of the sandbox %q cannot be copied as it is now: %s", sb.Name, cannot.Reason))
		}
		return errors.Join(err, again())
	}
	err = do()
	return errors.Join(err, live.Resume(undo), again())
}

// forkAll makes sandboxes that are asleep of e's.
func (m *Manager) forkAll(ctx context.Context, e *entry, forks []*entry) error {
	var g errgroup.Group
	g.SetLimit(goruntime.GOMAXPROCS(0))
	for _, fork := range forks {
		m.addSecrets(fork, m.addSecrets(e, nil)) // its programs have what this one's have
		g.Go(func() error {
			if err := m.cfg.AdmitDisk(); err != nil { // the others may have filled it
				return err
			}
			return m.cfg.Engine.Fork(ctx, e.id, fork.id)
		})
	}
	return g.Wait()
}

// startForks has new sandboxes run for the first time.
func (m *Manager) startForks(ctx context.Context, grant *sandbox.Grant, forks []*entry) error {
	var g errgroup.Group
	g.SetLimit(2 * goruntime.GOMAXPROCS(0)) // each waits half of the time
	for _, fork := range forks {
		g.Go(func() error {
			live, err := m.cfg.Engine.Restore(ctx, recipeOf(fork.sb))
			if errors.Is(err, ErrCheckpoint) {
				return fault.Wrap(fault.Conflict, err, fmt.Sprintf("the sandbox cannot be copied as it is now: %v; use it once, and copy it then", err))
			}
			if err != nil {
				return err
			}
			m.mu.Lock()
			fork.live, fork.usedAt = live, time.Now()
			m.mu.Unlock()
			if err := m.applyNetwork(grant, fork, live); err != nil {
				return err
			}
			return m.save(ctx, fork, func(sb *sandbox.Sandbox) error { return sb.Move(sandbox.Running, "") })
		})
	}
	return g.Wait()
}

// undoForks removes sandboxes that no caller was told of.
func (m *Manager) undoForks(ctx context.Context, forks []*entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	var errs []error
	for _, fork := range forks {
		m.mu.Lock()
		state := fork.sb.State
		m.mu.Unlock()
		if state == sandbox.Running {
			errs = append(errs, m.end(ctx, fork, "another copy could not be made"))
		} else {
			m.unregister(fork)
			m.mu.Lock()
			live := fork.live
			m.mu.Unlock()
			if live != nil {
				errs = append(errs, live.Destroy(ctx))
			} else {
				errs = append(errs, m.cfg.Engine.Remove(ctx, fork.sb.ID))
			}
			errs = append(errs, m.cfg.Records.Delete(ctx, fork.sb.ID))
		}
		fork.unlock()
	}
	return errors.Join(errs...)
}
