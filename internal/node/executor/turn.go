package executor

import (
	"context"
	"reflect"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// turn is a sandbox that the jobs of one turn share, one after the other.
type turn struct {
	name   string
	tenant string
	busy   chan struct{} // has a token while a job has the turn

	users int         // guarded by Executor.mu; jobs that have it or wait for it
	room  bool        // guarded by Executor.mu; it is one of those that may have a sandbox
	idle  *time.Timer // guarded by Executor.mu; ends it; nil while it has users
	since time.Time   // guarded by Executor.mu; when it had its last user

	// Of the job that has the turn; under Executor.mu when no job has it.
	sandbox Claimed           // nil before the first job, and after it died
	noted   bool              // sandbox's journal says that the turn keeps it
	made    setting           // what sandbox was made for
	trusts  bool              // sandbox was made with bound secrets, and trusts the authority that they need
	window  window            // of sandbox
	skills  map[string]string // versions of the skills whose folders sandbox has, by their names
}

// setting is what a sandbox is made of.
type setting struct {
	image  string
	limits runtime.Limits
	env    map[string]string
	rules  runtime.Permissions
	mounts []storage.Mount
	bound  []execution.BoundSecret
}

func settingOf(job *execution.Job) setting {
	return setting{job.Image, job.Limits, job.BaseEnv, job.Permissions, job.Mounts, job.BoundSecrets}
}

// join makes a job one of its turn's. x.mu is held.
func (x *Executor) join(job *execution.Job) (*turn, error) {
	t := x.turns[job.Turn]
	switch {
	case t == nil:
		t = &turn{name: job.Turn, tenant: job.Tenant, busy: make(chan struct{}, 1)}
		x.turns[job.Turn] = t
	case t.tenant != job.Tenant:
		return nil, fault.New(fault.Forbidden, "this turn is another tenant's")
	}
	t.users++
	if t.idle != nil {
		t.idle.Stop()
		t.idle = nil
	}
	x.metrics.turns.Set(float64(len(x.turns)))
	return t, nil
}

// roomEvery is how often the first of the turns that wait for a sandbox looks for room.
const roomEvery = 20 * time.Millisecond

// takeRoom waits until the turn may have a sandbox: until fewer than Config.Turns have
// one, or one of them has not been used for Config.TurnKeep. Turns get room in the order
// in which they ask.
func (x *Executor) takeRoom(ctx context.Context, t *turn) error {
	x.mu.Lock()
	has := t.room
	x.mu.Unlock()
	if has {
		return nil
	}
	got := func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !t.room && (x.rooms < x.cfg.Turns || x.makeRoom()) {
			t.room = true
			x.rooms++
		}
		return t.room
	}
	select {
	case x.roomLine <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-x.roomLine }()
	for !got() {
		select {
		case <-time.After(roomEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// makeRoom ends the turn that has been idle for longest, if there is one that has been
// for a while. x.mu is held.
func (x *Executor) makeRoom() bool {
	var oldest *turn
	for _, t := range x.turns {
		if t.users == 0 && time.Since(t.since) >= x.cfg.TurnKeep && (oldest == nil || t.since.Before(oldest.since)) {
			oldest = t
		}
	}
	if oldest == nil {
		return false
	}
	x.drop(oldest)
	return true
}

// take waits until the turn is the caller's, who has to give it back.
func (t *turn) take(ctx context.Context) error {
	select {
	case t.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turn) give() { <-t.busy }

// reuse takes the turn's sandbox if it can be used, and reports that. One that
// has died, or was made for something else, is replaced. Other secrets that are bound to
// hosts are put in the place of those there were.
func (t *task) reuse() bool {
	u := t.turn
	t.sandbox, u.sandbox = u.sandbox, nil
	was, now := u.made, settingOf(&t.job)
	u.made = now
	if t.sandbox == nil {
		u.trusts = len(now.bound) > 0
		return false
	}
	before, bound := was.bound, now.bound
	was.bound, now.bound = nil, nil
	fits := reflect.DeepEqual(was, now) && (reflect.DeepEqual(before, bound) || t.rebind(bound))
	select {
	case <-t.sandbox.Done():
		fits = false
	default:
	}
	if err := t.sandbox.Check(); fits && err != nil { // one that was taken over
		t.x.cfg.Log.Warn("replacing the sandbox of a turn", "trace_id", t.job.TraceID, "error", err)
		fits = false
	}
	if !fits {
		t.discard()
		u.trusts = len(bound) > 0
	}
	return fits
}

// rebind gives the turn's sandbox other bound secrets, if it can have them.
func (t *task) rebind(bound []execution.BoundSecret) bool {
	if t.job.Permissions.Network.Blocked() {
		return true // they have no effect
	}
	b, ok := t.sandbox.(Binder)
	return ok && t.turn.trusts && b.Bind(bound) == nil
}

// turnEnded reports whether EndTurn was called for the job's turn.
func (t *task) turnEnded() bool {
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	return t.x.turns[t.turn.name] != t.turn
}

// leaveTurn is called when a job is done with its turn.
func (t *task) leaveTurn() {
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	t.x.leave(t.turn)
}

// leave makes a turn idle that no job uses any more. x.mu is held.
func (x *Executor) leave(t *turn) {
	if t.users--; t.users > 0 {
		return
	}
	if t.sandbox == nil || x.turns[t.name] != t {
		x.drop(t)
		return
	}
	t.since = time.Now()
	var timer *time.Timer
	timer = time.AfterFunc(max(x.cfg.TurnIdle, t.window.end().Sub(t.since)), func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if t.idle == timer {
			x.drop(t)
		}
	})
	t.idle = timer
}

// drop ends a turn that no job uses. x.mu is held.
func (x *Executor) drop(t *turn) {
	if t.idle != nil {
		t.idle.Stop()
		t.idle = nil
	}
	if t.sandbox != nil {
		x.destroy("", t.sandbox, t.noted)
		t.sandbox, t.noted = nil, false
	}
	if t.room {
		t.room = false
		x.rooms--
	}
	if x.turns[t.name] != t {
		return // ended before, and there may be another of its name
	}
	delete(x.turns, t.name)
	x.metrics.turns.Set(float64(len(x.turns)))
	if p := x.presence; p != nil {
		x.cleanup.Go(func() { x.releaseTurn(p, t.name) })
	}
}

// releaseTurn lets the next job of a turn go anywhere, unless one has come here
// meanwhile.
func (x *Executor) releaseTurn(p Presence, name string) {
	again := func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.turns[name] != nil
	}
	if again() {
		return
	}
	p.ReleaseTurn(name)
	if again() {
		if err := p.HoldTurn(x.stopped, name); err != nil {
			x.cfg.Log.Warn("another executor continues a turn", "error", err)
		}
	}
}

// EndTurn ends a turn: its sandbox goes as soon as no job uses it, and a later
// job of the turn begins with a fresh one.
func (x *Executor) EndTurn(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.turns[name]
	switch {
	case t == nil:
	case t.users == 0:
		x.drop(t)
	default:
		delete(x.turns, name) // its last user drops it
		x.metrics.turns.Set(float64(len(x.turns)))
	}
}

// EndTurnsOf is EndTurn for all turns of a tenant.
func (x *Executor) EndTurnsOf(tenant string) {
	x.mu.Lock()
	var names []string
	for name, t := range x.turns {
		if t.tenant == tenant {
			names = append(names, name)
		}
	}
	x.mu.Unlock()
	for _, name := range names {
		x.EndTurn(name)
	}
}

// endTurns ends all turns, or leaves those to the next process whose sandboxes it can take
// over. No job may be under way.
func (x *Executor) endTurns() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.turns {
		if x.cfg.Detach && t.noted && t.sandbox != nil {
			if err := t.sandbox.Detach(); err != nil {
				x.cfg.Log.Error("cannot release a turn's sandbox", "error", err)
			}
			t.sandbox = nil
		}
		x.drop(t)
	}
}
