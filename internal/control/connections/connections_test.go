package connections

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// lobby opens connections without a network.
type lobby struct {
	t   *testing.T
	all *Connections
}

type caller struct {
	net.Conn
	ctx    context.Context
	closed bool
}

func (c *caller) Close() error { c.closed = true; return nil }

func newLobby(t *testing.T, most int) *lobby {
	return &lobby{t, &Connections{Max: most, Closed: prometheus.NewCounter(prometheus.CounterOpts{Name: "closed"})}}
}

// enter opens a connection, on which keys of tenants are shown one after the other.
func (l *lobby) enter(state http.ConnState, keys ...tenant.ID) *caller {
	l.t.Helper()
	c := &caller{}
	c.ctx = l.all.Context(l.t.Context(), c)
	l.all.Track(c, http.StateNew)
	l.all.Track(c, state)
	for _, key := range keys {
		Trust(c.ctx, key)
	}
	if len(l.all.open) > l.all.Max {
		l.t.Fatalf("%d connections are open", len(l.all.open))
	}
	return c
}

// TestTenantsShareConnections: whoever holds all connections, busy ones too, a tenant that
// has none gets some, and keeps them.
func TestTenantsShareConnections(t *testing.T) {
	const most = 160
	for _, tenants := range []int{1, 2, 3, 7, 40} {
		t.Run(fmt.Sprint(tenants), func(t *testing.T) {
			l := newLobby(t, most)
			for i := range 3 * most {
				l.enter(http.StateActive, fmt.Sprint("ten_", i%tenants))
			}
			var own []*caller
			for range most / (tenants + 2) {
				own = append(own, l.enter(http.StateIdle, "late"))
				l.enter(http.StateActive, "ten_0")
			}
			for i, c := range own {
				if c.closed {
					t.Errorf("connection %d of %d was closed", i, len(own))
				}
			}
			if held := l.all.held["late"]; held != len(own) {
				t.Errorf("%d are counted, want %d", held, len(own))
			}
			for i := range tenants {
				if l.all.held[fmt.Sprint("ten_", i)] == 0 {
					t.Errorf("tenant %d has none left", i)
				}
			}
		})
	}
}

// TestKeysOfSeveralOnOneConnection: tenants that show each other's keys on their
// connections have no more of them for that.
func TestKeysOfSeveralOnOneConnection(t *testing.T) {
	l := newLobby(t, 40)
	for range 100 {
		l.enter(http.StateActive, "a", "b")
	}
	if c := l.enter(http.StateActive, "late"); c.closed {
		t.Error("the late one was not let in")
	}
	if l.all.held["late"] != 1 || l.all.owned != len(l.all.open) {
		t.Errorf("%v are held, %d of %d", l.all.held, l.all.owned, len(l.all.open))
	}
}

// TestTimeToShowAKey: callers without a key do not keep one out who is about to show it,
// and do not close more than a few connections of those who have.
func TestTimeToShowAKey(t *testing.T) {
	const most = 160
	l := newLobby(t, most)
	for i := range most {
		l.enter(http.StateIdle, fmt.Sprint("ten_", i%2))
	}
	c := l.enter(http.StateActive) // it has begun to send
	for range 100 * most {
		l.enter(http.StateNew)
	}
	if c.closed {
		t.Error("a caller who sends a request was closed for one who does not")
	}
	if left := l.all.owned; left < most-l.all.reserve() {
		t.Errorf("%d of %d with a key are open", left, most)
	}
}

// TestOneConnectionEach: where there are as many tenants as connections, none loses its
// only one.
func TestOneConnectionEach(t *testing.T) {
	l := newLobby(t, 20)
	var all []*caller
	for i := range 20 {
		all = append(all, l.enter(http.StateIdle, fmt.Sprint("ten_", i)))
	}
	if c := l.enter(http.StateNew); !c.closed {
		t.Error("one more was let in")
	}
	for i, c := range all {
		if c.closed {
			t.Errorf("the connection of tenant %d was closed", i)
		}
	}
}
