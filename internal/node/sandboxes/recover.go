package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/cleanup"
)

const (
	maxOpens = 8 // sandboxes that are taken over at the same time
	openTime = 30 * time.Second
)

// Recover takes over the sandboxes that an earlier process of this installation
// had, and reaps what is left of others. Those that are gone are lost.
func (m *Manager) Recover(ctx context.Context) error {
	finish, err := m.BeginRecovery(ctx)
	if err != nil {
		return err
	}
	return finish(ctx)
}

// BeginRecovery makes the sandboxes of an earlier process known, each locked until finish
// has taken it over: calls of it wait, and the server can serve others already.
func (m *Manager) BeginRecovery(ctx context.Context) (finish func(context.Context) error, err error) {
	held, err := m.cfg.Records.ListByExecutor(ctx, m.cfg.Executor)
	if err != nil {
		return nil, fmt.Errorf("list named sandboxes: %w", err)
	}
	if err := m.cfg.Snapshots.AbandonAll(ctx, m.cfg.Executor); err != nil { // what was copied for them is reaped
		return nil, fmt.Errorf("forget snapshots that were being made: %w", err)
	}
	m.discardUnmade(ctx, held)
	var entries []*entry
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, sb := range held {
		if sb.State == sandbox.Creating {
			continue
		}
		e := newEntry(sb)
		e.usedAt, e.endings, e.recovering = sb.UsedAt, sb.Endings, true
		e.sem <- struct{}{}
		m.register(e)
		entries = append(entries, e)
	}
	m.recovering = len(entries)
	return func(ctx context.Context) error { return m.finishRecovery(ctx, entries) }, nil
}

// discardUnmade removes sandboxes that were being made: their callers have had no answer.
func (m *Manager) discardUnmade(ctx context.Context, held []*sandbox.Sandbox) {
	var g errgroup.Group
	g.SetLimit(maxOpens)
	for _, sb := range held {
		if sb.State != sandbox.Creating {
			continue
		}
		g.Go(func() error {
			m.cfg.Cleanup.Try(ctx, cleanup.Named, string(sb.ID), func(ctx context.Context) error {
				return errors.Join(m.cfg.Engine.Remove(ctx, sb.ID), m.cfg.Records.Delete(ctx, sb.ID))
			})
			return nil
		})
	}
	_ = g.Wait() // each is retried separately
}

// Recovering returns how many sandboxes of an earlier process are still to be taken over.
func (m *Manager) Recovering() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recovering
}

// finishRecovery takes over sandboxes and unlocks each. A sandbox that cannot be taken over does not
// keep the others, and the server, from their work. Once ctx ends the rest is left as it is.
func (m *Manager) finishRecovery(ctx context.Context, entries []*entry) error {
	grants := &grantCache{grants: m.cfg.Grants}
	var g errgroup.Group
	g.SetLimit(maxOpens)
	for _, e := range entries {
		g.Go(func() error {
			defer m.recovered(e)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := m.recoverOne(ctx, e, grants)
			if err == nil {
				return nil
			}
			if ctx.Err() != nil {
				return fmt.Errorf("take over sandbox %s: %w", e.id, err)
			}
			// One sandbox does not stop the others, or the server.
			m.cfg.Cleanup.Later(cleanup.Named, string(e.id), err, func(ctx context.Context) error { return m.recoverAgain(ctx, e) })
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	reaped, err := m.Reap(ctx)
	if err != nil {
		m.cfg.Log.Warn("cannot remove all orphaned sandboxes", "error", err)
	}
	if len(entries)+len(reaped) > 0 {
		m.cfg.Log.Info("took over named sandboxes", "count", len(entries), "orphans_reaped", len(reaped))
	}
	return nil
}

// recovered unlocks a sandbox that was taken over, or could not be.
func (m *Manager) recovered(e *entry) {
	m.mu.Lock()
	e.recovering = false
	m.recovering--
	m.mu.Unlock()
	e.unlock()
}

// recoverOne takes over one recorded sandbox. e is locked.
func (m *Manager) recoverOne(ctx context.Context, e *entry, grants *grantCache) error {
	sb := m.current(e)
	switch {
	case sb.State == sandbox.Sleeping && sb.Sleep == sandbox.OnDisk:
		return m.endProcesses(ctx, e) // it may have been ending
	case sb.State == sandbox.Sleeping && sb.Sleep == sandbox.Stored:
		return m.cfg.Engine.Remove(ctx, sb.ID) // it may have been moving
	}
	if !sb.Resident() {
		return nil
	}
	live, asleep, err := m.takeOver(ctx, sb)
	if asleep {
		return m.saveAsleep(ctx, e)
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		if errors.Is(err, runtime.ErrNotFound) {
			return m.lose(ctx, e, "its machine or its process ended while no server watched it")
		}
		m.cfg.Log.Warn("cannot take over a named sandbox; its next use retries", "sandbox_id", string(sb.ID), "error", err)
		m.cfg.Cleanup.Count(cleanup.Named, string(sb.ID), err)
		return nil
	}
	m.mu.Lock()
	e.live, e.usedAt = live, time.Now() // it could not be used meanwhile
	m.mu.Unlock()
	if err := m.clearStored(ctx, e); err != nil {
		return err
	}
	// Its connections go on and its previews are served only if a key that used it is still
	// valid. Otherwise it has neither until a valid key uses it.
	p, err := m.validGrant(ctx, e, grants)
	m.mu.Lock()
	e.authorization.valid.Confirm()
	e.authorization.noValidKey = err != nil
	m.mu.Unlock()
	if err != nil {
		m.cfg.Log.Warn("a recovered sandbox has no network until its next use", "sandbox_id", string(sb.ID), "error", err)
		return nil
	}
	m.enforce(ctx, e, p)
	return nil
}

// recoverAgain retries recoverOne for a sandbox that it could not handle, unless a caller
// has used or destroyed it since.
func (m *Manager) recoverAgain(ctx context.Context, e *entry) error {
	if err := e.lock(ctx); err != nil {
		return err
	}
	defer e.unlock()
	m.mu.Lock()
	settled, now := e.removed || e.live != nil || m.closed, e.sb
	m.mu.Unlock()
	switch {
	case settled || now.State != sandbox.Sleeping:
		return nil // the next use opens it
	case now.Sleep == sandbox.OnDisk:
		return m.endProcesses(ctx, e)
	case now.Sleep == sandbox.Stored:
		return m.cfg.Engine.Remove(ctx, e.id)
	}
	return nil
}

// endProcesses ends what may run of a sandbox that is asleep on disk.
func (m *Manager) endProcesses(ctx context.Context, e *entry) error {
	if err := m.cfg.Engine.EndProcesses(ctx, recipeOf(m.current(e))); err != nil {
		return err
	}
	kept := m.cfg.Engine.CheckpointSize(e.id)
	m.mu.Lock()
	defer m.mu.Unlock()
	e.checkpointBytes = kept
	return nil
}

// grantCache asks for each grant once.
type grantCache struct {
	grants sandbox.Grants
	mu     sync.Mutex
	known  map[keyIn]*sandbox.Grant // guarded by mu
}

// keyIn is a key in an environment.
type keyIn struct{ key, environment string }

func (c *grantCache) get(ctx context.Context, tenantID tenant.ID, key, environment string) (*sandbox.Grant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := keyIn{key, environment}
	if g := c.known[in]; g != nil {
		return g, nil
	}
	g, err := c.grants.Grant(ctx, tenantID, key, environment)
	if err != nil {
		return nil, err
	}
	if c.known == nil {
		c.known = map[keyIn]*sandbox.Grant{}
	}
	c.known[in] = g
	return g, nil
}

// closeTime bounds Close, whatever is left of the time that running executions
// were given.
const closeTime = 30 * time.Second

// Close lets go of all sandboxes, or ends them if they are not to be left for the
// next process. Nothing can be used any more.
func (m *Manager) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	m.mu.Lock()
	m.closed = true
	var all []*entry
	for _, e := range m.byID {
		all = append(all, e)
	}
	m.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(maxOpens)
	for _, e := range all {
		g.Go(func() error {
			if err := e.lock(ctx); err != nil {
				return err
			}
			defer e.unlock()
			m.mu.Lock()
			live, gone := e.live, e.removed
			m.mu.Unlock()
			switch {
			case gone:
				return nil
			case !m.cfg.Detach:
				return m.end(ctx, e, "the server ended, with on_exit: destroy")
			case live == nil:
				return nil
			}
			m.charge(ctx, e, time.Now())
			err := m.save(ctx, e, func(*sandbox.Sandbox) error { return nil }) // when it was used
			m.mu.Lock()
			e.live = nil
			m.mu.Unlock()
			return errors.Join(err, live.Detach())
		})
	}
	return g.Wait()
}
