// Package share divides the resources of one process among tenants.
//
// A Pool admits claims up to a capacity, and refuses a tenant that would hold more than is left
// for the others. An Order picks the tenant that is served next. Both know no resource: streams,
// bytes of request bodies, places in a queue and builds all use them.
package share

import (
	"context"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Again is how long a refused caller is asked to wait.
const Again = time.Second

// Level is one caller that a claim counts for, beside its tenant: a key or a token.
type Level struct {
	Dimension string // names the limit in refusals, such as "key_streams"
	ID        string // "" is not counted
	Max       int64  // 0 for no limit
	Who       string // "this key"
}

// Pool is a resource with a capacity.
//
// A tenant may hold as much as is left afterwards: alone half of the capacity, next to one other
// greedy tenant a third. So a tenant that holds nothing always finds room, with no limits to
// configure and none of the capacity reserved for tenants that are idle.
type Pool struct {
	noun      string // "streams"
	dimension string // "tenant_streams"
	capacity  int64

	mu      sync.Mutex
	total   int64               // guarded by mu
	held    map[string]int64    // guarded by mu: by tenant, and by dimension and id
	waiting map[string][]waiter // guarded by mu: by tenant, the oldest first
}

type waiter struct {
	amount int64
	in     chan struct{} // closed when the claim is admitted
}

// NewPool returns a Pool of a capacity. Refusals call the resource noun, and name dimension.
func NewPool(dimension, noun string, capacity int64) *Pool {
	return &Pool{noun: noun, dimension: dimension, capacity: max(1, capacity), held: map[string]int64{}, waiting: map[string][]waiter{}}
}

// Take admits a claim until release is called, or refuses it. Above a Level's limit or the
// tenant's share the error is an Exhausted fault. It is an Unavailable one if other tenants hold
// everything.
func (p *Pool) Take(tenant string, amount int64, levels ...Level) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range levels {
		if held := p.held[key(l)]; l.ID != "" && l.Max > 0 && held+amount > l.Max {
			return nil, fault.Limit(l.Dimension, time.Now().Add(Again), "%s uses %d %s, and its limit is %d. Use fewer at a time, or retry in a few seconds", l.Who, held, p.noun, l.Max)
		}
	}
	switch {
	case p.fits(tenant, amount):
	case p.held[tenant] > 0:
		return nil, fault.Limit(p.dimension, time.Now().Add(Again), "this tenant uses its full share of the server's %s, %d of %d; the others are reserved for other tenants. Use fewer at a time, or retry in a few seconds", p.noun, p.held[tenant], p.capacity)
	default:
		return nil, fault.New(fault.Unavailable, "the server has no free %s; nothing was started. Retry in a few seconds", p.noun)
	}
	p.take(tenant, amount, levels)
	return sync.OnceFunc(func() { p.release(tenant, amount, levels) }), nil
}

// Wait is Take that waits for room until ctx ends. The claims of a tenant are admitted in order;
// those of a tenant above its share do not delay other tenants.
func (p *Pool) Wait(ctx context.Context, tenant string, amount int64) (release func(), err error) {
	release = sync.OnceFunc(func() { p.release(tenant, amount, nil) })
	p.mu.Lock()
	if len(p.waiting[tenant]) == 0 && p.fits(tenant, amount) {
		p.take(tenant, amount, nil)
		p.mu.Unlock()
		return release, nil
	}
	w := waiter{amount, make(chan struct{})}
	p.waiting[tenant] = append(p.waiting[tenant], w)
	p.mu.Unlock()
	select {
	case <-w.in:
		return release, nil
	case <-ctx.Done():
	}
	if !p.leave(tenant, w) { // it was admitted at that moment
		release()
	}
	return nil, context.Cause(ctx)
}

// leave removes a waiter; false if it was admitted.
func (p *Pool) leave(tenant string, w waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.waiting[tenant] {
		if other.in == w.in {
			if p.waiting[tenant] = append(p.waiting[tenant][:i:i], p.waiting[tenant][i+1:]...); len(p.waiting[tenant]) == 0 {
				delete(p.waiting, tenant)
			}
			p.admit() // it may have been in the way of those behind it
			return true
		}
	}
	return false
}

// Held returns how much a tenant holds.
func (p *Pool) Held(tenant string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[tenant]
}

// fits reports whether a tenant may take an amount. mu is held. A claim above the whole capacity
// fits while nothing else is held.
func (p *Pool) fits(tenant string, amount int64) bool {
	left := p.capacity - p.total - amount
	held := p.held[tenant]
	return p.total == 0 || left >= 0 && (held == 0 || held+amount <= left)
}

func (p *Pool) take(tenant string, amount int64, levels []Level) {
	p.total += amount
	p.held[tenant] += amount
	for _, l := range levels {
		if l.ID != "" {
			p.held[key(l)] += amount
		}
	}
}

func (p *Pool) release(tenant string, amount int64, levels []Level) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total -= amount
	p.drop(tenant, amount)
	for _, l := range levels {
		if l.ID != "" {
			p.drop(key(l), amount)
		}
	}
	p.admit()
}

func (p *Pool) drop(who string, amount int64) {
	if p.held[who] -= amount; p.held[who] <= 0 {
		delete(p.held, who)
	}
}

// admit admits those that wait, those of the tenant that holds least first. mu is held.
func (p *Pool) admit() {
	for {
		least, found := "", false
		for t, queue := range p.waiting {
			if p.fits(t, queue[0].amount) && (!found || p.held[t] < p.held[least]) {
				least, found = t, true
			}
		}
		if !found {
			return
		}
		w := p.waiting[least][0]
		if p.waiting[least] = p.waiting[least][1:]; len(p.waiting[least]) == 0 {
			delete(p.waiting, least)
		}
		p.take(least, w.amount, nil)
		close(w.in)
	}
}

// key is under which name a level is held; no tenant's id has a NUL.
func key(l Level) string { return l.Dimension + "\x00" + l.ID }
