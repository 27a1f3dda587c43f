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
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// Fork makes copies of p's sandbox, with its files, processes and memory as they
// are at one moment, and returns them; either all are made or none. They are
// called after it, with a number. The sandbox itself goes on; while it is copied
// it stands still, and conversations with it end, which can be followed on by
// their cursors. Connections through the network are its own alone.
func (m *Manager) Fork(ctx context.Context, p *tenant.Principal, session, nameOrID string, count int) ([]*sandbox.Sandbox, error) {
	if count < 1 || count > sandbox.MaxForks {
		return nil, fault.New(fault.Invalid, "count: want 1 to %d copies", sandbox.MaxForks)
	}
	e, err := m.find(p, session, nameOrID)
	if err != nil {
		return nil, err
	}
	if err := m.cfg.Disk(); err != nil {
		return nil, err
	}
	ctx, span := trace.Start(ctx, "sandbox.fork", trace.String("atoll.sandbox_id", string(e.id)))
	defer span.End()
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	parent, err := m.alike(ctx, e, p)
	if err == nil && !m.remembers(parent) {
		err = fault.New(fault.Conflict, "the sandbox %q sleeps without processes, so there is nothing to copy them from (%s); use it once, and copy it then", parent.Name, parent.Detail)
	}
	if err != nil {
		e.unlock()
		return nil, err
	}
	// From here on the caller's going away changes nothing.
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
	defer cancel()
	if parent.Sleep == sandbox.Stored {
		if err := m.unstore(work, e); err != nil {
			e.unlock()
			return nil, err
		}
		parent.Stored = nil
	}
	twins, err := m.reserveForks(work, p, parent, count)
	if err == nil {
		begun := m.begin(work, parent, twins) // while the memory is written
		err = m.copies(work, e, func() error {
			if err := begun(); err != nil {
				return err
			}
			return m.copyAll(work, e, twins)
		})
		if waited := begun(); err == nil {
			err = waited
		}
	}
	e.unlock()
	if err == nil {
		err = m.wakeAll(work, p, twins)
	}
	if err != nil {
		span.Fail(err)
		return nil, errors.Join(err, m.withdraw(work, twins))
	}
	var out []*sandbox.Sandbox
	for _, twin := range twins {
		m.mu.Lock()
		out = append(out, twin.sb.Clone())
		m.mu.Unlock()
		twin.unlock()
	}
	m.cfg.Engine.KeepStandby(parent.ID, recipeOf(parent), count)
	m.cfg.Log.InfoContext(ctx, "named sandbox forked", "sandbox_id", string(parent.ID), "count", count)
	return out, nil
}

// remembers reports whether a sandbox that may sleep has the memory of its processes.
func (m *Manager) remembers(sb *sandbox.Sandbox) bool {
	switch sb.Sleep {
	case sandbox.OnDisk:
		return m.cfg.Engine.HasCheckpoint(sb.ID)
	case sandbox.Stored:
		return sb.Stored.Checkpoint
	}
	return true
}

// alike is e's sandbox, if p can have others like it. The turn at e is held.
func (m *Manager) alike(ctx context.Context, e *entry, p *tenant.Principal) (*sandbox.Sandbox, error) {
	if err := m.there(ctx, e); err != nil {
		return nil, err
	}
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	switch {
	case sb.State == sandbox.Lost:
		return nil, m.lostError(e)
	case live != nil && ended(live):
		return nil, m.perished(ctx, e)
	}
	if err := m.share(ctx, e, p); err != nil {
		return nil, err
	}
	return m.current(e), nil
}

// reserveForks records count copies of a sandbox, which are yet to be made; the
// turn at each is held. Those recorded are returned with an error, too.
func (m *Manager) reserveForks(ctx context.Context, p *tenant.Principal, parent *sandbox.Sandbox, count int) (twins []*entry, err error) {
	base := parent.Name[:min(len(parent.Name), 56)]
	for number := 1; len(twins) < count; number++ {
		now := time.Now().UTC()
		sb := parent.Clone()
		sb.ID, sb.Name, sb.Key = runtime.NewID(), fmt.Sprintf("%s-%d", base, number), p.Key.ID
		sb.State, sb.Sleep, sb.Detail = sandbox.Creating, "", ""
		sb.CreatedAt, sb.UsedAt, sb.MeteredAt = now, now, now
		if err := setTimeout(p, sb, 0, now); err != nil {
			return twins, err
		}
		e := &entry{id: sb.ID, sem: make(chan struct{}, 1), sb: sb}
		e.sem <- struct{}{}
		there, err := m.reserve(e)
		if err != nil {
			return twins, err
		}
		if there {
			continue
		}
		recorded := sb.Clone() // others see sb by now
		elsewhere, err := m.cfg.Store.Create(ctx, recorded, quotaOf(p))
		if err != nil || elsewhere != nil {
			m.drop(e)
			if err != nil {
				return twins, err
			}
			continue
		}
		m.show(e, recorded)
		twins = append(twins, e)
	}
	return twins, nil
}

// begin has kernels start for copies of a sandbox; what it returns waits for them.
func (m *Manager) begin(ctx context.Context, parent *sandbox.Sandbox, twins []*entry) (begun func() error) {
	var g errgroup.Group
	done := make(chan error, 1)
	g.SetLimit(goruntime.GOMAXPROCS(0))
	go func() { // ends with Twin, which ends with ctx
		for _, twin := range twins {
			g.Go(func() error { return m.cfg.Engine.PrepareFork(ctx, parent.ID, recipeOf(twin.sb)) })
		}
		done <- g.Wait()
	}()
	return sync.OnceValue(func() error { return <-done })
}

// copies stops e's sandbox where it is, with its memory on disk, does something
// with that, and has it go on as before. The turn at e is held.
func (m *Manager) copies(ctx context.Context, e *entry, do func() error) (err error) {
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	if live == nil {
		return do() // it sleeps on disk
	}
	m.hold(e, true)
	defer m.let(e)
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

// copyAll makes sandboxes that are asleep of e's.
func (m *Manager) copyAll(ctx context.Context, e *entry, twins []*entry) error {
	var g errgroup.Group
	g.SetLimit(goruntime.GOMAXPROCS(0))
	for _, twin := range twins {
		m.learn(twin, m.learn(e, nil)) // its programs have what this one's have
		g.Go(func() error {
			if err := m.cfg.Disk(); err != nil { // the others may have filled it
				return err
			}
			return m.cfg.Engine.Fork(ctx, e.id, twin.id)
		})
	}
	return g.Wait()
}

// wakeAll has new sandboxes run for the first time.
func (m *Manager) wakeAll(ctx context.Context, p *tenant.Principal, twins []*entry) error {
	var g errgroup.Group
	g.SetLimit(2 * goruntime.GOMAXPROCS(0)) // each waits half of the time
	for _, twin := range twins {
		g.Go(func() error {
			live, err := m.cfg.Engine.Restore(ctx, recipeOf(twin.sb))
			if errors.Is(err, ErrCheckpoint) {
				return fault.Wrap(fault.Conflict, err, fmt.Sprintf("the sandbox cannot be copied as it is now: %v; use it once, and copy it then", err))
			}
			if err != nil {
				return err
			}
			m.mu.Lock()
			twin.live, twin.used = live, time.Now()
			m.mu.Unlock()
			if err := m.connect(p, twin, live); err != nil {
				return err
			}
			return m.record(ctx, twin, func(sb *sandbox.Sandbox) error { return sb.Move(sandbox.Running, "") })
		})
	}
	return g.Wait()
}

// withdraw removes sandboxes that nobody was told of.
func (m *Manager) withdraw(ctx context.Context, twins []*entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	var errs []error
	for _, twin := range twins {
		m.mu.Lock()
		state := twin.sb.State
		m.mu.Unlock()
		if state == sandbox.Running {
			errs = append(errs, m.end(ctx, twin, "another copy could not be made"))
		} else {
			m.drop(twin)
			m.mu.Lock()
			live := twin.live
			m.mu.Unlock()
			if live != nil {
				errs = append(errs, live.Destroy(ctx))
			} else {
				errs = append(errs, m.cfg.Engine.Remove(ctx, twin.sb.ID))
			}
			errs = append(errs, m.cfg.Store.Delete(ctx, twin.sb.ID))
		}
		twin.unlock()
	}
	return errors.Join(errs...)
}
