package forward

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

const (
	// maxConns is how many connections previews have to one sandbox. It leaves room
	// for the other things that are done in it.
	maxConns  = 384
	maxIdle   = 64               // of them without a request
	idleConn  = 30 * time.Second // without a request
	maxHopes  = 128              // that are made and may wait for something to listen
	dialTime  = 30 * time.Second
	maxHeader = 256 << 10 // bytes of an answer
)

// pool has a place for each sandbox that connections lead to.
type pool struct {
	mu     sync.Mutex
	places map[instance]*place // guarded by mu
	closed bool                // guarded by mu
}

// instance is a sandbox between two of its sleeps: no connection outlives it.
type instance struct {
	id   runtime.ID
	done <-chan struct{} // another one for each instance; closed when it has ended
}

// place has the connections to one instance of a sandbox. It is there as long as a
// request or a connection uses it.
type place struct {
	pool *pool
	of   instance
	// kept has connections for the next requests. Only requests that can be repeated
	// take them, so a connection that the server has just closed harms none.
	kept *http.Transport
	// single makes a connection for each request and closes it afterwards: a server
	// that did not read a body takes it for the next request.
	single *http.Transport
	slots  chan struct{} // full when all connections are open
	hopes  chan struct{} // full when no more may wait for something to listen
	empty  chan struct{} // closed when users is 0
	users  int           // guarded by pool.mu
}

// enter returns the place of an instance, to be left.
func (p *pool) enter(id runtime.ID, done <-chan struct{}) (*place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	of := instance{id, done}
	at := p.places[of]
	if at == nil {
		at = &place{pool: p, of: of, slots: make(chan struct{}, maxConns), hopes: make(chan struct{}, maxHopes), empty: make(chan struct{})}
		at.kept, at.single = at.newTransport(maxIdle), at.newTransport(-1)
		p.places[of] = at
		go at.watch()
	}
	at.users++
	return at, nil
}

// newTransport returns a transport that keeps connections without a request; with a
// negative number it keeps none, and servers are not told so.
func (at *place) newTransport(idle int) *http.Transport {
	return &http.Transport{
		DialContext:            at.dial,
		DisableCompression:     true,
		MaxIdleConns:           max(idle, 0),
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        idleConn,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// watch closes what is idle when the instance has ended.
func (at *place) watch() {
	select {
	case <-at.of.done:
		at.kept.CloseIdleConnections()
	case <-at.empty:
	}
}

// hold adds a user to a place that has one, if the pool is open.
func (at *place) hold() bool {
	at.pool.mu.Lock()
	defer at.pool.mu.Unlock()
	if at.pool.closed || at.users == 0 {
		return false
	}
	at.users++
	return true
}

// leave takes a user away.
func (at *place) leave() {
	at.pool.mu.Lock()
	defer at.pool.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(at.pool.places, at.of)
		close(at.empty)
	}
}

// transport returns which connections a request takes.
func (at *place) transport(r *http.Request) *http.Transport {
	if r.Method == http.MethodGet && r.Body == nil && r.Header.Get("Upgrade") == "" {
		return at.kept
	}
	return at.single
}

// dial connects to the port of the visit in ctx. Its error is preview.ErrBusy if all connections
// stay in use.
func (at *place) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	v := visitOf(ctx)
	ctx, cancel := context.WithTimeout(v.ctx, dialTime) // the transport's own outlives the request
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !at.hold() {
		return nil, net.ErrClosed
	}
	raw, err := at.connect(ctx, v)
	if err != nil {
		at.leave()
		return nil, err
	}
	return newConn(raw, at), nil
}

// connect takes a slot and makes a connection.
func (at *place) connect(ctx context.Context, v *visit) (net.Conn, error) {
	select {
	case at.slots <- struct{}{}:
	default:
		at.kept.CloseIdleConnections() // in the place of others
		select {
		case at.slots <- struct{}{}:
		case <-ctx.Done():
			if v.ctx.Err() == nil {
				return nil, preview.ErrBusy
			}
			return nil, context.Cause(ctx)
		}
	}
	var wait time.Duration
	select {
	case at.hopes <- struct{}{}:
		defer func() { <-at.hopes }()
		wait = max(time.Until(v.until), 0)
	default:
	}
	raw, err := v.to.Use.Connect(ctx, v.to.Port, wait)
	if err != nil {
		<-at.slots
	}
	return raw, err
}

// close closes what is idle. What is in use ends with its use.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	var all []*place
	for _, at := range p.places {
		all = append(all, at)
	}
	p.mu.Unlock()
	for _, at := range all {
		at.kept.CloseIdleConnections()
	}
}
