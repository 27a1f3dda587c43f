package noderpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
)

// output is a process.Output. After a cut, it continues on another connection.
type output struct {
	c    *Client
	ctx  context.Context
	stop func() bool
	id   uint64 // on the server; 0 for the output of Converse, which cannot continue
	info process.Info
	exit process.Exit
	end  error // what Next returned last

	last    uint64 // the last piece that was received
	unacked int

	mu     sync.Mutex
	stream *stream // guarded by mu
	closed bool    // guarded by mu
}

func (o *output) Info() process.Info { return o.info }

func (o *output) Exit() process.Exit { return o.exit }

func (o *output) Next() (process.Chunk, error) {
	if o.end != nil {
		return process.Chunk{}, o.end
	}
	m, err := o.next()
	if err == nil {
		o.last++
		if o.unacked += pieceCost; m.Chunk != nil {
			o.unacked += len(m.Chunk.Data)
		}
		switch {
		case m.Chunk != nil && m.Chunk.Stream > process.Control:
			err = fmt.Errorf("%w: output of stream %d", errProtocol, m.Chunk.Stream)
		case m.Chunk != nil:
			o.acknowledge(false)
			return *m.Chunk, nil
		case m.Err == nil:
			err = fmt.Errorf("%w: a piece without output", errProtocol)
		default:
			err = m.Err.Decode()
			o.acknowledge(true)
		}
		if m.Exit != nil {
			o.exit = *m.Exit
		}
	}
	if o.end = err; o.id != 0 {
		o.Close()
	}
	return process.Chunk{}, err
}

// acknowledge tells the server which pieces have arrived, now and then or now.
func (o *output) acknowledge(now bool) {
	if o.id == 0 || !now && o.unacked < ackOutput {
		return
	}
	o.unacked = 0
	_ = o.current().send(message{Ack: o.last}) // Next sees a cut
}

func (o *output) current() *stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stream
}

// next returns the next piece. It resumes the output after a cut.
func (o *output) next() (message, error) {
	for {
		s := o.current()
		m, err := o.receive(s)
		if err == nil {
			return m, nil
		}
		if err := o.over(); err != nil {
			return m, err
		}
		if o.id == 0 || errors.Is(err, errProtocol) {
			return m, interrupted(err)
		}
		s.close()
		if err := o.resume(); err != nil {
			return m, err
		}
	}
}

func (o *output) receive(s *stream) (message, error) {
	if o.id == 0 {
		if err := s.send(message{Next: true}); err != nil {
			return message{}, err
		}
		return s.message()
	}
	m, err := s.message()
	if err == nil && m.Number != o.last+1 {
		err = fmt.Errorf("%w: piece %d of output after %d", errProtocol, m.Number, o.last)
	}
	return m, err
}

// over returns the reason why the caller gets no more output, if any.
func (o *output) over() error {
	if o.ctx.Err() != nil {
		return context.Cause(o.ctx)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return process.ErrGone
	}
	return nil
}

// resume continues the output on another connection.
func (o *output) resume() error {
	ctx, cancel := context.WithTimeout(o.ctx, o.c.grace)
	defer cancel()
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		s, err := o.c.open(o.ctx, method{name: "Resume", target: toClient, safe: true}, args{o.id, o.last})
		if err == nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.closed {
				s.close()
				return process.ErrGone
			}
			o.stream, o.unacked = s, 0
			return nil
		}
		if over := o.over(); over != nil {
			return over
		}
		if !isCut(err) {
			return err
		}
		if sleep(ctx, wait); ctx.Err() != nil {
			if over := o.over(); over != nil {
				return over
			}
			return errNoOutput
		}
	}
}

func (o *output) Enough() {
	if o.id == 0 {
		_ = o.current().send(message{Enough: true})
	}
}

// Close ends it.
func (o *output) Close() error {
	o.mu.Lock()
	o.closed = true
	s := o.stream
	o.mu.Unlock()
	if o.stop != nil {
		o.stop()
	}
	s.close()
	o.c.forget(o, s)
	return nil
}

// remember keeps o on the server after cuts, until forget.
func (c *Client) remember(o *output) {
	if o.id == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outputs[o] = true
	if s := o.current(); s.on != c.conn && c.conn != nil { // a cut came first
		c.notify(notice{Output: o.id})
	}
}

// forget closes o on the server, which may not see the end of o's last stream as the end of o.
func (c *Client) forget(o *output, s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outputs[o] && (s.on != c.conn || s.on.mux.IsClosed()) {
		c.notify(notice{Output: o.id, Close: true})
	}
	delete(c.outputs, o)
}

// download is a file.Archive, or an io.ReadCloser.
type download struct {
	stream *stream
	left   int // bytes of the frame
	end    error
	counts file.Counts
}

func (d *download) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for d.left == 0 {
		if d.end != nil {
			return 0, d.end
		}
		kind, size, err := d.stream.header()
		switch {
		case err != nil:
			d.end = d.stream.cut(err, interrupted)
		case kind == frameData:
			d.left = size
		case kind == frameLast:
			d.end = d.last(size)
		case kind != frameNothing:
			d.end = interrupted(errProtocol)
		}
	}
	n, err := d.stream.conn.Read(p[:min(len(p), d.left)])
	d.left -= n
	if err != nil && n == 0 {
		d.left = 0
		d.end = d.stream.cut(err, interrupted)
		return 0, d.end
	}
	return n, nil
}

// last receives the message that ends the download.
func (d *download) last(size int) error {
	d.stream.in = d.stream.in[:0]
	if err := d.stream.body(size); err != nil {
		return d.stream.cut(err, interrupted)
	}
	var m message
	if err := decodeMessage(d.stream.in, &m); err != nil || m.Err == nil {
		return interrupted(errors.Join(errProtocol, err))
	}
	if m.Counts != nil {
		d.counts = *m.Counts
	}
	return m.Err.Decode()
}

func (d *download) Counts() file.Counts { return d.counts }

// Close ends it. It may be called at any time.
func (d *download) Close() error {
	d.stream.close()
	return nil
}

// changes is file.Events.
type changes struct {
	stream *stream
	end    error

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (e *changes) Next() (file.Event, error) {
	if e.end != nil {
		return file.Event{}, e.end
	}
	m, err := e.stream.message()
	switch {
	case err != nil:
		e.end = e.stream.cut(err, interrupted)
		e.mu.Lock()
		if e.closed && e.stream.ctx.Err() == nil {
			e.end = process.ErrGone
		}
		e.mu.Unlock()
	case m.Err != nil:
		e.end = m.Err.Decode()
	case m.Changed == nil:
		e.end = interrupted(errProtocol)
	default:
		return *m.Changed, nil
	}
	return file.Event{}, e.end
}

// Close ends it. It may be called at any time.
func (e *changes) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stream.close()
	return nil
}

// carried is a connection to a port. After a deadline, a frame may be unfinished; reads and writes
// continue it.
type carried struct {
	stream *stream

	reading sync.Mutex // held by Read
	head    [headerSize]byte
	got     int    // bytes of head
	left    int    // bytes of the frame
	body    []byte // of a message that ends the connection, as far as it has arrived
	last    bool   // the frame is that message
	end     error

	writing sync.Mutex // held by Write and CloseWrite
	rest    []byte     // of a header that was not written completely
	owed    int        // bytes of a frame that were not written
	ended   bool       // CloseWrite was called

	mu     sync.Mutex
	failed error // guarded by mu; ended the connection
	closed bool  // guarded by mu
}

func (c *carried) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	for c.left == 0 {
		if c.end != nil {
			return 0, c.end
		}
		if err := c.frame(); err != nil {
			return 0, c.failedRead(err)
		}
	}
	n, err := c.stream.conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	if n == 0 && err != nil {
		return 0, c.failedRead(err)
	}
	return n, nil
}

// frame receives the start of a frame, or the whole message that ends the connection.
func (c *carried) frame() error {
	for c.got < headerSize && !c.last {
		n, err := c.stream.conn.Read(c.head[c.got:])
		c.got += n
		if n == 0 && err != nil {
			return err
		}
	}
	if !c.last {
		kind, size, err := parseHeader(c.head)
		if err != nil {
			return err
		}
		c.got = 0
		switch {
		case kind == frameData:
			c.left = size
			return nil
		case kind == frameEnd:
			c.end = io.EOF
			return nil
		case kind == frameNothing:
			return nil
		case kind != frameLast || size > piece:
			return errProtocol
		}
		c.last, c.body = true, make([]byte, 0, size)
	}
	for len(c.body) < cap(c.body) {
		n, err := c.stream.conn.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		if n == 0 && err != nil {
			return err
		}
	}
	var m message
	if err := decodeMessage(c.body, &m); err != nil {
		return err
	}
	if m.Err == nil {
		return errProtocol
	}
	c.end = m.Err.Decode()
	c.fail(c.end)
	return nil
}

// failedRead returns what the caller sees of an error of the stream.
func (c *carried) failedRead(err error) error {
	if isTimeout(err) && !c.isClosed() {
		return os.ErrDeadlineExceeded
	}
	if c.isClosed() {
		err = net.ErrClosed
	} else {
		err = interrupted(err)
		c.fail(err)
	}
	c.end = err
	return err
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

func (c *carried) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
}

func (c *carried) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *carried) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	failed := c.failed
	c.mu.Unlock()
	if failed != nil {
		return 0, failed
	}
	if c.ended {
		return 0, io.ErrClosedPipe
	}
	for n < len(p) {
		if c.owed == 0 {
			c.owed = min(len(p)-n, piece)
			c.rest = make([]byte, headerSize)
			putHeader(c.rest, frameData, c.owed)
		}
		part := p[n:min(len(p), n+c.owed)]
		if len(c.rest) > 0 { // header and bytes in one frame of the connection
			head := len(c.rest)
			wrote, err := c.stream.conn.Write(append(c.rest, part...))
			c.rest = c.rest[min(wrote, head):]
			wrote = max(0, wrote-head)
			n, c.owed = n+wrote, c.owed-wrote
			if err != nil {
				return n, c.failedWrite(err)
			}
			c.rest = nil
			continue
		}
		wrote, err := c.stream.conn.Write(part)
		n, c.owed = n+wrote, c.owed-wrote
		if err != nil {
			return n, c.failedWrite(err)
		}
	}
	return n, nil
}

func (c *carried) failedWrite(err error) error {
	switch {
	case c.isClosed():
		return net.ErrClosed
	case isTimeout(err):
		return os.ErrDeadlineExceeded
	}
	return interrupted(err)
}

func (c *carried) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return nil
	}
	c.ended = true
	if c.owed > 0 {
		c.Close()
		return io.ErrShortWrite
	}
	if err := c.stream.sendEmpty(frameEnd); err != nil {
		return c.failedWrite(err)
	}
	return nil
}

// Close ends the connection in both directions.
func (c *carried) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stream.close()
	return nil
}

func (c *carried) LocalAddr() net.Addr  { return c.stream.conn.LocalAddr() }
func (c *carried) RemoteAddr() net.Addr { return c.stream.conn.RemoteAddr() }

func (c *carried) SetDeadline(t time.Time) error      { return c.stream.conn.SetDeadline(t) }
func (c *carried) SetReadDeadline(t time.Time) error  { return c.stream.conn.SetReadDeadline(t) }
func (c *carried) SetWriteDeadline(t time.Time) error { return c.stream.conn.SetWriteDeadline(t) }
