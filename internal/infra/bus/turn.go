package bus

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// turn is a turn this executor has, or is about to.
type turn struct {
	key      string
	claimed  chan struct{} // closed once the outcome of the claim is known
	owner    string        // the other executor that has it, if one does
	err      error         // why it is not known who has it
	sub      *nats.Subscription
	starting int  // jobs that the handler has not answered for
	held     bool // the handler has taken one on
}

// enter makes sure that this executor has the turn before a job of it is taken
// on, or tells who has. It is followed by entered when it gives a turn.
func (x *Executor) enter(ctx context.Context, name string) (t *turn, owner string, err error) {
	x.mu.Lock()
	t, known := x.turns[name]
	if !known {
		t = &turn{key: turnKey(name), claimed: make(chan struct{})}
		x.turns[name] = t
	}
	t.starting++
	x.mu.Unlock()
	if known {
		<-t.claimed
	} else {
		t.owner, t.err = x.claim(ctx, t.key)
		if t.err == nil && t.owner == "" {
			t.err = x.listen(t)
		}
		close(t.claimed)
	}
	if t.err != nil || t.owner != "" {
		x.entered(name, t, false)
		return nil, t.owner, t.err
	}
	return t, "", nil
}

// entered says what came of a job of the turn. A turn of which the handler has
// taken on no job is let go.
func (x *Executor) entered(name string, t *turn, taken bool) {
	x.mu.Lock()
	t.starting--
	t.held = t.held || taken
	gone := !t.held && t.starting == 0 && x.turns[name] == t
	if gone {
		delete(x.turns, name)
		x.unsubscribe(&t.sub)
	}
	x.mu.Unlock()
	if gone && t.owner == "" && t.err == nil {
		x.unclaim(t.key)
	}
}

// claim makes this executor the turn's owner, or tells who is.
func (x *Executor) claim(ctx context.Context, key string) (owner string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout/2)
	defer cancel()
	for {
		_, err = x.b.turns.Create(ctx, key, []byte(x.id))
		if err == nil {
			return "", nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return "", unavailable(err)
		}
		entry, err := x.b.turns.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue // it has just been let go
		}
		if err != nil {
			return "", unavailable(err)
		}
		if owner := string(entry.Value()); owner != x.id {
			return owner, nil
		}
		return "", nil // ours, from before a restart
	}
}

// unclaim gives a turn up. If that fails any executor may take it when the lease
// ends.
func (x *Executor) unclaim(key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), aliveTimeout)
	defer cancel()
	if err := x.b.turns.Delete(ctx, key); err != nil {
		x.log.Warn("cannot release a turn; its lease expires soon", "error", err)
	}
}

func (x *Executor) listen(t *turn) error {
	sub, err := x.b.ctl.ChanSubscribe(x.b.names.turn+t.key, x.inbox)
	if err != nil {
		return unavailable(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	t.sub = sub
	if x.draining {
		x.unsubscribe(&t.sub)
	}
	return nil
}

// HoldTurn makes the jobs of a turn come here whose sandbox was taken over from
// an earlier process; a turn whose first job came by Start is held. It fails
// with a Conflict fault if another executor has the turn by now.
func (x *Executor) HoldTurn(ctx context.Context, name string) error {
	t, owner, err := x.enter(ctx, name)
	if err != nil {
		return err
	}
	if owner != "" {
		return execution.ErrTurnElsewhere
	}
	x.entered(name, t, true)
	return nil
}

// ReleaseTurn lets the next job of the turn go anywhere; its sandbox is gone.
// A job of it that is just being taken on keeps it here.
func (x *Executor) ReleaseTurn(name string) {
	x.mu.Lock()
	t := x.turns[name]
	if t != nil {
		t.held = false
		t.starting++
	}
	x.mu.Unlock()
	if t != nil {
		x.entered(name, t, false)
	}
}

// renew keeps the leases of the turns that are held.
func (x *Executor) renew() {
	x.mu.Lock()
	held := map[string]*turn{}
	for name, t := range x.turns {
		if t.held {
			held[name] = t
		}
	}
	x.mu.Unlock()
	for name, t := range held {
		x.renewOne(name, t)
	}
}

func (x *Executor) renewOne(name string, t *turn) {
	ctx, cancel := context.WithTimeout(x.ctx, aliveTimeout)
	defer cancel()
	owner, err := x.claim(ctx, t.key) // a lease that has ended is taken again
	if err == nil && owner == "" {
		var entry jetstream.KeyValueEntry
		if entry, err = x.b.turns.Get(ctx, t.key); err == nil {
			_, err = x.b.turns.Update(ctx, t.key, []byte(x.id), entry.Revision())
		}
	}
	switch {
	case owner != "":
		x.log.Error("another executor took over a turn after its lease expired", "owner", owner)
		x.mu.Lock()
		if x.turns[name] == t {
			delete(x.turns, name)
			x.unsubscribe(&t.sub)
		}
		x.mu.Unlock()
	case err != nil && x.ctx.Err() == nil:
		x.log.Warn("cannot renew a turn's lease", "error", err)
	}
}
