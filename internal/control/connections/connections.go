// Package connections limits the open connections of a server, and shares them among tenants.
package connections

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Connections hold the open connections of a server. When there are as many as may be, one on which no
// key was shown makes room for the next: a client that opens connections without a key
// cannot keep out callers who have one. But some are left to those, so that a new caller
// has time to show a key: the tenant that has most makes room for them, as long as it has
// more than what would be its share with one tenant more. So a tenant that has none always
// gets some, and the only connection of a tenant is not closed.
type Connections struct {
	Max    int // 0 for any number
	Closed prometheus.Counter

	mu    sync.Mutex
	open  map[net.Conn]*connection
	held  map[tenant.ID]int // guarded by mu: how many of open are whose; those of several are ""'s
	owned int               // guarded by mu: the sum of held
}

// connection is one of them.
type connection struct {
	all   *Connections
	state http.ConnState // guarded by Connections.mu
	since time.Time      // when it took its state; guarded by Connections.mu
	gone  bool           // it no longer counts; guarded by Connections.mu
	// owner is whose keys its requests had: nil before there was one, "" for several
	// tenants. It is stored under Connections.mu.
	owner atomic.Pointer[tenant.ID]
}

type connectionKey struct{}

// Context is an [http.Server]'s ConnContext.
func (a *Connections) Context(ctx context.Context, c net.Conn) context.Context {
	one := &connection{all: a, since: time.Now()}
	a.mu.Lock()
	if a.open == nil {
		a.open, a.held = map[net.Conn]*connection{}, map[tenant.ID]int{}
	}
	var victim net.Conn
	if a.Max > 0 && len(a.open) >= a.Max {
		most, greedy := a.greedy()
		ofMost := func(c *connection) bool { owner := c.owner.Load(); return owner != nil && *owner == most }
		if len(a.open)-a.owned < a.reserve() && greedy {
			victim = a.idlest(ofMost)
		} else {
			victim = a.idlest(func(c *connection) bool { return c.owner.Load() == nil })
		}
		if victim == nil {
			victim = c
		}
		a.remove(victim)
	}
	if victim != c {
		a.open[c] = one
	}
	a.mu.Unlock()
	if victim != nil {
		a.Closed.Inc()
		_ = victim.Close()
	}
	return context.WithValue(ctx, connectionKey{}, one)
}

// remove forgets a connection. a.mu is held.
func (a *Connections) remove(c net.Conn) {
	one := a.open[c]
	if one == nil {
		return
	}
	delete(a.open, c)
	one.gone = true
	if owner := one.owner.Load(); owner != nil {
		a.count(*owner, -1)
	}
}

// count counts a connection of a tenant, or one less. a.mu is held.
func (a *Connections) count(t tenant.ID, n int) {
	a.owned += n
	if a.held[t] += n; a.held[t] <= 0 {
		delete(a.held, t)
	}
}

// reserve is how many connections are left to callers who have shown no key yet.
func (a *Connections) reserve() int { return max(1, a.Max/16) }

// greedy is the tenant that has most connections; ok is false where it has no more than
// its share. a.mu is held.
func (a *Connections) greedy() (most tenant.ID, ok bool) {
	n := 0
	for t, has := range a.held {
		if has > n {
			most, n = t, has
		}
	}
	return most, n > max(1, a.Max/(len(a.held)+1))
}

// sample is how many connections are compared to find one that can be spared: to look at
// all of them for each new one would slow the listener down.
const sample = 64

// idlest returns a connection that can be spared: of some of those that may be, the one
// that waits for a request rather than having one, for the longest; nil for none. a.mu is
// held.
func (a *Connections) idlest(mayBe func(*connection) bool) (victim net.Conn) {
	var least *connection
	seen := 0
	for c, one := range a.open { // begins at a random one
		if !mayBe(one) {
			continue
		}
		if least == nil || one.spared(least) {
			victim, least = c, one
		}
		if seen++; seen == sample {
			break
		}
	}
	return victim
}

// spared reports whether a connection can be spared sooner than another.
func (c *connection) spared(other *connection) bool {
	if busy := c.state == http.StateActive; busy != (other.state == http.StateActive) {
		return !busy
	}
	return c.since.Before(other.since)
}

// Track is an [http.Server]'s ConnState.
func (a *Connections) Track(c net.Conn, state http.ConnState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		a.remove(c)
		return
	}
	if one := a.open[c]; one != nil {
		one.state, one.since = state, time.Now()
	}
}

// CloseUnused closes connections that have brought no request yet. Go's client and browsers
// open a connection and then send the request on another that becomes free first;
// [http.Server.Shutdown] would wait 5 seconds for each of them.
func (a *Connections) CloseUnused() {
	var unused []net.Conn
	a.mu.Lock()
	for c, one := range a.open {
		if one.state == http.StateNew {
			unused = append(unused, c)
		}
	}
	a.mu.Unlock()
	for _, c := range unused {
		_ = c.Close() // with TLS this tells the other end
	}
}

// Trust notes that the request of a context had a valid key of a tenant, or what stands for one: its
// connection is not closed to make room for those without.
func Trust(ctx context.Context, of tenant.ID) {
	one, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	known := func(owner *tenant.ID) bool { return owner != nil && (*owner == of || *owner == "") }
	if known(one.owner.Load()) {
		return
	}
	one.all.mu.Lock()
	defer one.all.mu.Unlock()
	switch owner := one.owner.Load(); {
	case one.gone || known(owner):
	case owner == nil:
		one.owner.Store(&of)
		one.all.count(of, 1)
	default: // of a proxy, which has several callers on one
		one.all.count(*owner, -1)
		one.owner.Store(new(tenant.ID))
		one.all.count("", 1)
	}
}
