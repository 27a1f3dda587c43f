package daemonclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

// Client is a conversation with one guest daemon. Its methods may be called
// concurrently. Errors that a caller may be told are fault.Errors.
type Client struct {
	instance string
	timeouts Timeouts
	first    *proto.Conn // on which connections are asked for
	listener *net.UnixListener

	done chan struct{} // closed when the conversation is over
	wait sync.WaitGroup

	mu            sync.Mutex
	err           error                // guarded by mu; why it is over
	idle          []*proto.Conn        // guarded by mu
	all           map[*proto.Conn]bool // guarded by mu; without first
	asked         int                  // guarded by mu; connections that are to come
	greeting      int                  // guarded by mu; those of them that have come and not greeted yet
	queue         []chan *proto.Conn   // guarded by mu; requests that wait for one
	pulse         *time.Timer          // guarded by mu; set while something is under way
	frozen        bool                 // guarded by mu; the sandbox is frozen
	frozenChanged time.Time            // guarded by mu; when frozen changed
	wanted        sync.Mutex           // held while more are asked for
}

const (
	maxConnections = 512     // of one sandbox, all of which but one may be followed or piped
	maxIdle        = 4       // that are kept for the next request
	readBuffer     = 8 << 10 // bytes for each
	sendBuffer     = 1 << 20 // bytes that the kernel takes
	goodbye        = 5 * time.Second
)

// newClient begins with a connection on which the greeting was read.
func newClient(l *net.UnixListener, first *proto.Conn, g proto.Greeting, p Timeouts) *Client {
	c := &Client{instance: g.Instance, timeouts: p, first: first, listener: l, done: make(chan struct{}), all: make(map[*proto.Conn]bool)}
	c.wait.Go(c.accept)
	c.wait.Go(c.watch)
	return c
}

// Instance names the guest daemon: another one means that the one before ended, and
// with it what it knew of processes.
func (c *Client) Instance() string { return c.instance }

// Done is closed when the conversation is over.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the conversation, and nothing else: processes go on, and their
// output is kept. Nothing of the host is open in the sandbox when it returns.
func (c *Client) Close() error {
	c.mu.Lock()
	over := c.err != nil
	if !over {
		c.err = process.ErrGone
	}
	c.mu.Unlock()
	if !over {
		// The guest daemon closes its ends, and the first of them last.
		c.first.SetReadDeadline(time.Now().Add(goodbye)) //nolint:errcheck // see below
		c.wanted.Lock()
		c.first.Put(proto.Leave, nil)
		err := c.say()
		c.wanted.Unlock()
		if err != nil {
			c.first.Close()
		}
	}
	c.wait.Wait()
	return nil
}

// watch reads the first connection, on which nothing comes but its end.
func (c *Client) watch() {
	_, err := c.first.Next()
	switch {
	case err == nil:
		err = fmt.Errorf("%w: something was said where nothing is to be", ErrProtocol)
	case errors.Is(err, proto.ErrFormat):
		err = fmt.Errorf("%w: %w", ErrProtocol, err)
	default:
		err = process.ErrGone
	}
	c.fail(err)
	c.first.Close()
	c.listener.Close()
	c.mu.Lock()
	all := c.all
	c.all, c.idle = nil, nil
	queue := c.queue
	c.queue = nil
	if c.pulse != nil {
		c.pulse.Stop()
	}
	c.mu.Unlock()
	for conn := range all {
		conn.Close()
	}
	for _, ch := range queue {
		close(ch)
	}
	close(c.done)
}

// fail notes why the conversation is over, and ends it; the first reason stays.
func (c *Client) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.first.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it is closed then
}

// failure returns why the conversation is over, nil if it is not.
func (c *Client) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// accept takes the connections that were asked for.
func (c *Client) accept() {
	for {
		u, err := c.listener.AcceptUnix()
		if err != nil {
			return
		}
		if !c.expected() {
			u.Close()
			c.fail(errUninvited)
			continue
		}
		c.wait.Go(func() {
			conn, g, err := greet(u, c.wasFrozen)
			if err == nil && (g.First || g.Instance != c.instance) {
				conn.Close()
				err = fmt.Errorf("%w: another guest daemon has come", ErrProtocol)
			}
			if err != nil {
				c.fail(asGone(err))
				return
			}
			c.arrived(conn)
		})
	}
}

var errUninvited = fmt.Errorf("%w: a connection that was not asked for", ErrProtocol)

// expected reports whether a connection that has just come was asked for, and
// counts it: no more wait for a greeting than were.
func (c *Client) expected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.greeting == c.asked {
		return false
	}
	c.greeting++
	return true
}

// greet takes the guest daemon's greeting on a new connection. stood may be nil: see line.
func greet(u *net.UnixConn, stood func(since time.Time) bool) (conn *proto.Conn, g proto.Greeting, err error) {
	u.SetWriteBuffer(sendBuffer) //nolint:errcheck // a matter of speed
	l := &timedConn{UnixConn: u, wasFrozen: stood}
	l.setLimit(goodbye, false)
	conn = proto.NewConn(l, readBuffer)
	t, err := conn.Next()
	if err == nil && t != proto.Hello {
		err = fmt.Errorf("%w: no greeting", ErrProtocol)
	}
	if err == nil {
		err = conn.Decode(&g)
	}
	if err == nil && (g.Version < 1 || len(g.Instance) > 64 || conn.Waiting()) {
		err = fmt.Errorf("%w: the greeting makes no sense", ErrProtocol)
	}
	if err != nil {
		u.Close()
		return nil, g, err
	}
	l.setLimit(0, false)
	return conn, g, nil
}

// arrived gives a new connection to a request that waits, or keeps it.
func (c *Client) arrived(conn *proto.Conn) {
	c.mu.Lock()
	c.asked--
	c.greeting--
	if c.err != nil || c.all == nil {
		c.mu.Unlock()
		conn.Close()
		return
	}
	c.all[conn] = true
	c.deliver(conn)
	c.mu.Unlock()
}

// deliver gives a connection to a request that waits, or keeps it. c.mu is held.
func (c *Client) deliver(conn *proto.Conn) {
	if len(c.queue) > 0 {
		c.queue[0] <- conn
		c.queue = c.queue[1:]
		return
	}
	c.idle = append(c.idle, conn)
}

// acquire returns a connection, on which one request can be made. One that is urgent is
// made before all others, and although there are no more connections.
func (c *Client) acquire(ctx context.Context, urgent bool) (*proto.Conn, error) {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	var conn *proto.Conn
	var ch chan *proto.Conn
	if n := len(c.idle); n > 0 {
		conn, c.idle = c.idle[n-1], c.idle[:n-1]
	} else {
		ch = make(chan *proto.Conn, 1)
		at := len(c.queue)
		if urgent {
			at = 0
		}
		c.queue = slices.Insert(c.queue, at, ch)
	}
	most := maxConnections
	if !urgent {
		most--
		c.schedulePing()
	}
	// One more than is waited for, so that the next request finds one.
	more := min(len(c.queue)+1-c.asked-len(c.idle), most-len(c.all)-c.asked)
	if more > 0 {
		c.asked += more
	}
	c.mu.Unlock()
	if more > 0 {
		c.want(more)
	}
	if conn != nil {
		return conn, nil
	}
	select {
	case conn := <-ch:
		if conn == nil {
			return nil, c.failure()
		}
		return conn, nil
	case <-ctx.Done():
		c.mu.Lock()
		for i := range c.queue {
			if c.queue[i] == ch {
				c.queue = append(c.queue[:i:i], c.queue[i+1:]...)
				break
			}
		}
		c.mu.Unlock()
		select {
		case conn := <-ch: // it came after all
			c.release(conn)
		default:
		}
		return nil, context.Cause(ctx)
	}
}

// want asks for more connections.
func (c *Client) want(n int) {
	c.wanted.Lock()
	defer c.wanted.Unlock()
	err := c.first.Encode(proto.More, proto.Wanted{Connections: n})
	if err == nil {
		err = c.say()
	}
	if err != nil {
		c.fail(process.ErrGone)
	}
}

// say sends what was put on the first connection. c.wanted is held.
func (c *Client) say() error {
	c.first.Transport.(*timedConn).SetWriteDeadline(time.Now().Add(goodbye)) //nolint:errcheck // it would show with the write
	return c.first.Flush()
}

// while has f run beside the conversation, which it must not outlive. It reports
// whether that is still going on.
func (c *Client) while(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		return false
	}
	c.wait.Go(f)
	return true
}

// release takes a connection back on which an exchange is over.
func (c *Client) release(conn *proto.Conn) {
	if conn == nil {
		return
	}
	c.mu.Lock()
	switch {
	case c.all == nil:
	case conn.Waiting():
		go c.fail(fmt.Errorf("%w: more was said than was asked for", ErrProtocol))
	case len(c.all) < maxConnections && (len(c.queue) > 0 || len(c.idle) < maxIdle):
		c.deliver(conn)
	default:
		c.mu.Unlock()
		c.drop(conn)
		return
	}
	c.mu.Unlock()
}

// drop closes a connection, as in the middle of an exchange.
func (c *Client) drop(conn *proto.Conn) {
	conn.Close()
	c.mu.Lock()
	delete(c.all, conn)
	// Who waits for one may have counted on this.
	more := min(len(c.queue)-c.asked, maxConnections-1-len(c.all)-c.asked)
	if more > 0 && c.err == nil {
		c.asked += more
	}
	over := c.err != nil
	c.mu.Unlock()
	if more > 0 && !over {
		c.want(more)
	}
}

// asGone tells what no guest daemon says from the end of a connection.
func asGone(err error) error {
	switch {
	case errors.Is(err, ErrProtocol), errors.Is(err, ErrSilent):
		return err
	case errors.Is(err, proto.ErrFormat):
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return process.ErrGone
	}
	return fmt.Errorf("%w: %w", process.ErrGone, err)
}
