package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// unusedWait is how long a connection has at a shutdown to bring its first request.
const unusedWait = 250 * time.Millisecond

// connections are those that are open. When there are as many as may be, one on which no
// key was shown makes room for the next: a client that opens connections without a key
// cannot keep out callers who have one.
type connections struct {
	max    int // 0 for any number
	closed prometheus.Counter

	mu   sync.Mutex
	open map[net.Conn]*connection
}

// connection is one of them.
type connection struct {
	state http.ConnState // guarded by connections.mu
	since time.Time      // when it took its state; guarded by connections.mu
	keyed atomic.Bool    // a request on it had a valid key
}

type connectionKey struct{}

// context is an [http.Server]'s ConnContext.
func (a *connections) context(ctx context.Context, c net.Conn) context.Context {
	one := &connection{since: time.Now()}
	a.mu.Lock()
	if a.open == nil {
		a.open = map[net.Conn]*connection{}
	}
	var victim net.Conn
	if a.max > 0 && len(a.open) >= a.max {
		victim = a.idlest()
		if victim == nil {
			victim = c
		}
		delete(a.open, victim)
	}
	if victim != c {
		a.open[c] = one
	}
	a.mu.Unlock()
	if victim != nil {
		a.closed.Inc()
		_ = victim.Close()
	}
	return context.WithValue(ctx, connectionKey{}, one)
}

// sample is how many connections without a key are compared to find one that can be
// spared: to look at all of them for each new one would slow the listener down.
const sample = 64

// idlest returns a connection that can be spared: without a key, and of some of those the
// one that waits for a request rather than having one, for the longest; nil for none. a.mu
// is held.
func (a *connections) idlest() (victim net.Conn) {
	var least *connection
	seen := 0
	for c, one := range a.open { // begins at a random one
		if one.keyed.Load() {
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

// track is an [http.Server]'s ConnState.
func (a *connections) track(c net.Conn, state http.ConnState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(a.open, c)
		return
	}
	if one := a.open[c]; one != nil {
		one.state, one.since = state, time.Now()
	}
}

// closeUnused closes connections that have brought no request yet. Go's client and browsers
// open a connection and then send the request on another that becomes free first;
// [http.Server.Shutdown] would wait 5 seconds for each of them.
func (a *connections) closeUnused() {
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

// Trust notes that a request had a valid key, or what stands for one: its connection is not
// closed to make room for others.
func Trust(r *http.Request) {
	if one, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		one.keyed.Store(true)
	}
}
