package noderpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Config configures a Client.
type Config struct {
	// Dial connects to the Server and authenticates it.
	Dial func(ctx context.Context) (net.Conn, error)
	Log  *slog.Logger
}

// Client calls the Server of one machine. It connects on first use and reconnects after a cut. Handles
// and outputs continue after a cut.
type Client struct {
	cfg Config
	timeouts
	id [16]byte

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup
	calls   chan struct{} // holds an element for each open stream

	mu         sync.Mutex
	conn       *clientConn        // guarded by mu; nil without a connection
	dialing    *attempt           // guarded by mu; nil unless a connection is being made
	closed     bool               // guarded by mu
	healing    bool               // guarded by mu; heal runs
	epoch      uint64             // guarded by mu; increases when the server drops the handles
	handles    map[uint64]*handle // guarded by mu
	lastHandle uint64             // guarded by mu

	outputs map[*output]bool // guarded by mu; that can be resumed

	notices    []notice // guarded by mu; not acknowledged
	lastNotice uint64   // guarded by mu
	sentNotice uint64   // guarded by mu; the last notice that was sent on any connection
}

// attempt is a connection in the making.
type attempt struct {
	done chan struct{}
	conn *clientConn // valid after done
	err  error       // likewise
}

// New returns a Client. Close it.
func New(cfg Config) *Client {
	c := &Client{cfg: cfg, timeouts: defaults, calls: make(chan struct{}, maxCalls), handles: map[uint64]*handle{}, outputs: map[*output]bool{}}
	rand.Read(c.id[:])
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Close ends all calls, closes all handles on both sides, and closes the connection.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	conn := c.conn
	if conn != nil {
		c.lastNotice++
		c.notices = append(c.notices, notice{Seq: c.lastNotice, Goodbye: true})
		conn.wakeUp()
	}
	c.closed = true
	handles := slices.Collect(maps.Values(c.handles))
	c.handles = map[uint64]*handle{}
	c.mu.Unlock()
	for _, h := range handles {
		h.over()
	}
	if conn != nil {
		select { // the server closes the connection in answer to the goodbye
		case <-conn.mux.CloseChan():
		case <-time.After(goodbyeTimeout):
		}
	}
	c.end()
	c.running.Wait()
	return nil
}

const goodbyeTimeout = 2 * time.Second

// connected returns a connection. All callers share one attempt.
func (c *Client) connected(ctx context.Context) (*clientConn, error) {
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil, errClosed
	case c.conn != nil && !c.conn.mux.IsClosed():
		defer c.mu.Unlock()
		return c.conn, nil
	}
	a := c.dialing
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		c.dialing = a
		c.running.Go(func() { c.connect(a) })
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.life.Done():
		return nil, errClosed
	}
}

// connect makes a connection for the callers that wait for a.
func (c *Client) connect(a *attempt) {
	conn, w, err := c.dial()
	c.mu.Lock()
	if err == nil && c.closed {
		defer conn.mux.Close()
		conn, err = nil, errClosed
	}
	a.conn, a.err = conn, err
	c.dialing = nil
	var lost []*handle
	if err == nil {
		c.conn = conn
		if !w.known {
			c.epoch++
			lost = slices.Collect(maps.Values(c.handles))
			clear(c.handles)
		}
		conn.epoch = c.epoch
		c.acknowledged(w.processed)
		for o := range c.outputs { // their callers may read slowly
			c.notify(notice{Output: o.id})
		}
		c.running.Go(conn.sendNotices)
		c.running.Go(conn.receive)
	}
	close(a.done)
	c.mu.Unlock()
	for _, h := range lost {
		h.over()
	}
}

// dial connects and makes the handshake.
func (c *Client) dial() (*clientConn, welcome, error) {
	ctx, cancel := context.WithTimeout(c.life, c.handshake)
	defer cancel()
	raw, err := c.cfg.Dial(ctx)
	if err != nil {
		return nil, welcome{}, err
	}
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	conn, w, err := c.shake(raw)
	if err != nil {
		raw.Close()
	}
	return conn, w, err
}

func (c *Client) shake(raw net.Conn) (*clientConn, welcome, error) {
	if err := raw.SetDeadline(time.Now().Add(c.handshake)); err != nil {
		return nil, welcome{}, err
	}
	c.mu.Lock()
	h := hello{version: version, client: c.id, acknowledged: c.lastNotice}
	if len(c.notices) > 0 {
		h.acknowledged = c.notices[0].Seq - 1
	}
	c.mu.Unlock()
	if err := h.write(raw); err != nil {
		return nil, welcome{}, err
	}
	w, err := readWelcome(raw)
	switch {
	case err != nil:
		return nil, w, err
	case w.version != version || w.status == statusVersion:
		return nil, w, fmt.Errorf("the machine speaks version %d of the protocol between machines, this server version %d; run the same release of Atoll on both", w.version, version)
	case w.status != statusOK:
		return nil, w, errors.New("the machine has too many clients")
	}
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return nil, w, err
	}
	mux, err := newSession(raw, yamux.Client, c.cfg.Log, c.write)
	if err != nil {
		return nil, w, err
	}
	control, err := mux.OpenStream()
	if err != nil {
		mux.Close()
		return nil, w, err
	}
	return &clientConn{c: c, mux: mux, control: newLink(control, maxFrame, maxFrame, nil), wake: make(chan struct{}, 1)}, w, nil
}

// clientConn is a connection to the server.
type clientConn struct {
	c       *Client
	mux     *session
	control *link
	epoch   uint64
	wake    chan struct{} // notices are to be sent
}

// wakeUp makes sendNotices look at the notices.
func (k *clientConn) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// sendNotices sends the notices that the server has not processed, until the connection ends.
func (k *clientConn) sendNotices() {
	var sent uint64 // on this connection
	for {
		k.c.mu.Lock()
		var due []notice
		for _, n := range k.c.notices {
			if n.Seq > sent {
				due = append(due, n)
			}
		}
		if len(due) > 0 {
			sent = due[len(due)-1].Seq
			k.c.sentNotice = max(k.c.sentNotice, sent)
		}
		k.c.mu.Unlock()
		for _, n := range due {
			if k.control.send(message{Notice: &n}) != nil {
				k.mux.Close()
				return
			}
		}
		select {
		case <-k.wake:
		case <-k.mux.CloseChan():
			return
		}
	}
}

// receive receives what the server says on the control stream, until the connection ends.
func (k *clientConn) receive() {
	defer k.c.lost(k)
	defer k.mux.Close()
	defer context.AfterFunc(k.c.life, func() { k.mux.Close() })()
	for {
		m, err := k.control.message()
		switch {
		case err != nil:
			return
		case m.Ack > 0:
			k.c.mu.Lock()
			k.c.acknowledged(m.Ack)
			k.c.mu.Unlock()
		case m.Ended > 0:
			k.c.mu.Lock()
			h := k.c.handles[m.Ended]
			k.c.mu.Unlock()
			if h != nil {
				h.over()
			}
		}
	}
}

// acknowledged forgets notices that the server has processed. Callers hold mu.
func (c *Client) acknowledged(seq uint64) {
	c.notices = slices.DeleteFunc(c.notices, func(n notice) bool { return n.Seq <= seq })
}

// notify queues a notice. Callers hold mu.
func (c *Client) notify(n notice) {
	if last := len(c.notices) - 1; last >= 0 && n.Bytes > 0 && c.notices[last].Bytes > 0 && c.notices[last].Handle == n.Handle && c.notices[last].Seq > c.sentNotice {
		c.notices[last].Bytes += n.Bytes
	} else {
		c.lastNotice++
		n.Seq = c.lastNotice
		c.notices = append(c.notices, n)
	}
	if c.conn != nil {
		c.conn.wakeUp()
	}
}

// lost takes note of the end of a connection, and begins to reconnect for handles, outputs and notices.
func (c *Client) lost(k *clientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != k {
		return
	}
	c.conn = nil
	if len(c.handles)+len(c.outputs)+len(c.notices) > 0 && !c.closed && !c.healing {
		c.healing = true
		since := time.Now()
		c.running.Go(func() { c.heal(since) })
	}
}

// heal reconnects. If that takes longer than the grace period, the server drops the handles, and so
// does heal.
func (c *Client) heal(since time.Time) {
	var err error
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		ctx, cancel := context.WithDeadline(c.life, since.Add(c.grace))
		if _, err = c.connected(ctx); err != nil {
			sleep(ctx, wait)
		}
		over := ctx.Err() != nil
		cancel()
		c.mu.Lock()
		if c.conn != nil || over || c.closed {
			break
		}
		if err == nil { // there was a connection, and a cut since then
			since = time.Now()
		}
		c.mu.Unlock()
	}
	c.healing = false
	var lost []*handle
	if c.conn == nil && !c.closed {
		c.epoch++
		for id, h := range c.handles {
			lost = append(lost, h)
			c.notify(notice{Handle: id, Close: true})
		}
		clear(c.handles)
	}
	c.mu.Unlock()
	for _, h := range lost {
		h.over()
	}
	if len(lost) > 0 {
		c.cfg.Log.Warn("lost the sandboxes in use on another machine", "handles", len(lost), "err", err)
	}
}

const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// sleep waits, at most until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// newHandle returns the number of a new handle.
func (c *Client) newHandle() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastHandle++
	return c.lastHandle
}

// opened registers a handle that a connection of epoch returned.
func (c *Client) opened(h *handle, epoch uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return errClosed
	case epoch != c.epoch:
		c.notify(notice{Handle: h.id, Close: true})
		return errNoHandle
	}
	c.handles[h.id] = h
	if c.conn == nil && !c.healing { // the cut came before the handle
		c.healing = true
		since := time.Now()
		c.running.Go(func() { c.heal(since) })
	}
	return nil
}

// abandon closes a handle that the server may have opened.
func (c *Client) abandon(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notify(notice{Handle: id, Close: true})
}

// unreachable returns the fault for a call that was not sent.
func unreachable(err error) error {
	if errors.Is(err, errClosed) {
		return fault.Wrap(fault.Unavailable, err, "this server is about to stop; the call did not run. Retry in a few seconds")
	}
	return notRun(err)
}

var _ sandbox.Node = (*Client)(nil)
