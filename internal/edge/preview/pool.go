package preview

import (
	"bufio"
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	freshTime = 2 * time.Second // servers do not close a connection that early
)

// errBusy says that all connections of a sandbox are in use.
var errBusy = errors.New("too many connections to this sandbox")

// pool keeps connections to servers in sandboxes for the next request.
type pool struct {
	mu     sync.Mutex
	places map[runtime.ID]*place // guarded by mu
	timer  *time.Timer           // guarded by mu; set while there are idle ones
	closed bool                  // guarded by mu
}

// place has the connections to one sandbox.
type place struct {
	open    int     // all of them, and those being made
	hopes   int     // those being made that may wait for something to listen
	idle    []*conn // the one used last is the last
	waiting []chan struct{}
}

// conn is a connection to a port of a sandbox.
type conn struct {
	net.Conn
	pool  *pool
	id    runtime.ID
	port  uint16
	raw   syscall.RawConn
	in    *bufio.Reader // of the conn itself
	head  []byte        // what the last request began with
	since time.Time     // when it became idle
	left  int64         // bytes that may be read
	out   *answer       // what is to be flushed before something is waited for
	once  sync.Once
}

var errTooLong = errors.New("the header of the answer is too long")

// Read reads from the server. Whatever was read before it has been sent to the
// client by the time that there is nothing more.
func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooLong
	}
	if c.out != nil {
		if err := c.out.flush(); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	return n, err
}

// take returns a connection: one that is there, if it has not been idle for longer
// than idle, or a new one. used tells which.
func (p *pool) take(ctx context.Context, v *visit, idle time.Duration) (_ *conn, used bool, err error) {
	r := v.record
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	for {
		c, wait, err := p.claim(r, idle)
		switch {
		case err != nil:
			return nil, false, err
		case c != nil && c.quiet():
			return c, true, nil
		case c != nil:
			c.drop()
		case wait == nil:
			c, err := p.dial(ctx, v)
			return c, false, err
		default:
			select {
			case <-wait:
			case <-ctx.Done():
				p.leave(r.Sandbox, wait)
				if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					return nil, false, errBusy
				}
				return nil, false, context.Cause(ctx)
			}
		}
	}
}

// claim returns an idle connection, or what to wait for. With neither of them the
// caller may make a connection.
func (p *pool) claim(r *preview.Record, idle time.Duration) (*conn, chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, net.ErrClosed
	}
	at := p.places[r.Sandbox]
	if at == nil {
		at = &place{}
		p.places[r.Sandbox] = at
	}
	for i, c := range slices.Backward(at.idle) {
		if c.port == r.Port && time.Since(c.since) < idle {
			at.idle = slices.Delete(at.idle, i, i+1)
			return c, nil, nil
		}
	}
	if at.open >= maxConns && len(at.idle) > 0 { // in the place of another
		c := at.idle[0]
		at.idle = slices.Delete(at.idle, 0, 1)
		at.open--
		c.once.Do(func() { c.Conn.Close() })
	}
	if at.open < maxConns {
		at.open++
		return nil, nil, nil
	}
	wait := make(chan struct{})
	at.waiting = append(at.waiting, wait)
	return nil, wait, nil
}

// leave gives up waiting.
func (p *pool) leave(id runtime.ID, wait chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.places[id]
	if at == nil {
		return
	}
	if i := slices.Index(at.waiting, wait); i >= 0 {
		at.waiting = slices.Delete(at.waiting, i, i+1)
		return
	}
	p.next(id, at) // it was its turn
}

// next lets one go on who waits. p.mu is held.
func (p *pool) next(id runtime.ID, at *place) {
	if len(at.waiting) > 0 {
		close(at.waiting[0])
		at.waiting = at.waiting[1:]
	} else if at.open == 0 {
		delete(p.places, id)
	}
}

func (p *pool) dial(ctx context.Context, v *visit) (*conn, error) {
	r := v.record
	wait, hoped := p.hope(r.Sandbox, v.until)
	raw, err := v.use.Connect(ctx, r.Port, wait)
	hoped()
	if err != nil {
		p.gone(r.Sandbox)
		return nil, err
	}
	c := &conn{Conn: raw, pool: p, id: r.Sandbox, port: r.Port}
	c.in = bufio.NewReaderSize(c, 16<<10)
	if s, ok := raw.(syscall.Conn); ok {
		if c.raw, err = s.SyscallConn(); err != nil {
			c.drop()
			return nil, err
		}
	}
	return c, nil
}

// hope returns how long a connection may wait for something to listen, which only so
// many may. hoped is to be called when it is there, or is not.
func (p *pool) hope(id runtime.ID, until time.Time) (wait time.Duration, hoped func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.places[id] // there is one while a connection is being made
	if at.hopes >= maxHopes {
		return 0, func() {}
	}
	at.hopes++
	return max(time.Until(until), 0), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		at.hopes--
	}
}

// gone notes that a connection is no more.
func (p *pool) gone(id runtime.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.places[id]
	at.open--
	p.next(id, at)
}

// drop closes the connection.
func (c *conn) drop() {
	c.once.Do(func() {
		c.Conn.Close()
		c.pool.gone(c.id)
	})
}

// keep has the connection wait for the next request.
func (c *conn) keep() {
	p := c.pool
	p.mu.Lock()
	at := p.places[c.id]
	if p.closed || len(at.idle) >= maxIdle || c.in.Buffered() > 0 {
		p.mu.Unlock()
		c.drop()
		return
	}
	defer p.mu.Unlock()
	c.out, c.since = nil, time.Now()
	at.idle = append(at.idle, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(idleConn, p.reap)
	}
	p.next(c.id, at)
}

// quiet reports whether the connection is open and has no unread bytes: a server that sent
// some without a request cannot be trusted with the next one.
func (c *conn) quiet() bool {
	if c.raw == nil {
		return true
	}
	var got error
	err := c.raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, got = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && got == unix.EAGAIN
}

// reap closes what has been idle for long.
func (p *pool) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := time.Duration(math.MaxInt64)
	for id, at := range p.places {
		for len(at.idle) > 0 {
			if left := idleConn - time.Since(at.idle[0].since); left > 0 {
				first = min(first, left)
				break
			}
			p.evict(id, at)
		}
	}
	if p.timer = nil; first <= idleConn {
		p.timer = time.AfterFunc(first, p.reap)
	}
}

// evict closes the connection that has been idle for longest. p.mu is held.
func (p *pool) evict(id runtime.ID, at *place) {
	c := at.idle[0]
	at.idle = slices.Delete(at.idle, 0, 1)
	c.once.Do(func() { c.Conn.Close() })
	at.open--
	p.next(id, at)
}

// close closes what is idle. What is in use ends with its use.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	for id, at := range p.places {
		for len(at.idle) > 0 {
			p.evict(id, at)
		}
	}
}
