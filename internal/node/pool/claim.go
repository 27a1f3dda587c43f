package pool

import (
	"context"
	"time"
)

// Reservation is a claim to one item. Item is called to take it, or Cancel.
type Reservation[K comparable, I Item] struct {
	// Ready says that the item was ready when it was claimed.
	Ready bool
	// Kept says whether any of its kind were kept ready then.
	Kept bool

	pool *Pool[K, I]
	kind *kind[K, I]
	wait chan result[I] // with room for one; it has the item from the start if Ready
}

// Claim returns an item that belongs to the caller from then on, and whether it
// was ready at once. Otherwise it waits for one to be made.
func (p *Pool[K, I]) Claim(ctx context.Context, key K) (item I, ready bool, err error) {
	r, err := p.Reserve(key)
	if err != nil {
		return item, false, err
	}
	item, err = r.Item(ctx)
	return item, r.Ready, err
}

// Reserve claims an item of a kind: one that is ready, or else the next one made,
// after those that earlier claims wait for.
func (p *Pool[K, I]) Reserve(key K) (*Reservation[K, I], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	k := p.kind(key)
	r := &Reservation[K, I]{Kept: k.target() > 0, pool: p, kind: k, wait: make(chan result[I], 1)}
	now := time.Now()
	p.pace.claimed(now)
	for !r.Ready && len(k.idle) > 0 && len(k.waiters) == 0 {
		e := k.idle[0]
		k.idle = k.idle[1:]
		close(e.claimed)
		select {
		case <-e.item.Done():
			p.destroy(e.item)
		default:
			r.Ready, p.served = true, true
			r.wait <- result[I]{item: e.item, use: e.use}
		}
	}
	if !r.Ready {
		k.waiters = append(k.waiters, r.wait)
	}
	k.claimed(r.Ready, len(k.idle)-len(k.waiters), now)
	p.report(k)
	if p.cfg.Metrics != nil {
		p.cfg.Metrics.Claimed(key, r.Ready)
	}
	p.schedule()
	return r, nil
}

// Item waits for the item, which belongs to the caller from then on. If ctx ends
// first, the claim is cancelled.
func (r *Reservation[K, I]) Item(ctx context.Context) (item I, err error) {
	select {
	case got := <-r.wait:
		return got.item, got.err
	default:
	}
	select {
	case got := <-r.wait:
		return got.item, got.err
	case <-ctx.Done():
		r.Cancel()
		return item, context.Cause(ctx)
	}
}

// Cancel gives the claim up. An item that was there for it serves the next one. After
// Close it is destroyed before Cancel returns, because Close has not waited for it.
func (r *Reservation[K, I]) Cancel() {
	if item, ok := r.cancel(); ok {
		r.pool.end(item)
	}
}

// cancel returns the item that Cancel is to destroy, if there is one.
func (r *Reservation[K, I]) cancel() (item I, ok bool) {
	p, k := r.pool, r.kind
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range k.waiters {
		if k.waiters[i] == r.wait {
			k.waiters = append(k.waiters[:i], k.waiters[i+1:]...)
			k.replaced()
			p.trim(k)
			return item, false
		}
	}
	select {
	case got := <-r.wait: // served meanwhile
		switch {
		case got.err != nil:
		case p.closed:
			return got.item, true
		default:
			p.offer(k, got.item, got.use)
		}
	default: // taken
	}
	return item, false
}

// Hold has the pool make less ahead until release is called, because a program that
// was claimed for needs the processors: see Config.RefillDelay.
func (p *Pool[K, I]) Hold() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace.holds++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pace.holds--
		p.schedule()
	}
}
