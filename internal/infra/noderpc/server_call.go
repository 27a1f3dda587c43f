package noderpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// call is one call of a client.
type call struct {
	*link
	k      *serverConn
	ctx    context.Context // ends when the client closes the stream
	cancel context.CancelCauseFunc
	q      request

	upload upload
	events events
	asks   chan message // Next and Enough of Converse

	mu     sync.Mutex
	over   bool        // guarded by mu; the client sends no more
	closed bool        // guarded by mu; the client closed the stream, rather than losing its connection
	output *keptOutput // guarded by mu
	rest   io.Closer   // guarded by mu; what the stream carries after the answer
}

// serveCall serves one stream.
func (k *serverConn) serveCall(stream net.Conn) {
	l := newLink(stream, maxRequest, maxAnswer, &k.held)
	defer l.release()
	defer l.close()
	setDeadline := stream.SetReadDeadline
	if k.mux != nil {
		defer k.mux.track(stream)()
		setDeadline = func(at time.Time) error { return k.mux.setReadDeadline(stream, at) }
	}
	if setDeadline(time.Now().Add(requestTimeout)) != nil {
		return
	}
	m, body, err := l.receive()
	if err != nil || m != frameLast {
		return
	}
	if setDeadline(time.Time{}) != nil {
		return
	}
	c := &call{link: l, k: k, asks: make(chan message, 1)}
	if err := decodeMessage(body, &c.q); err != nil {
		k.s.log.Debug("received an invalid request of another machine", "err", err)
		return
	}
	request := l.mine
	l.mine = 0
	defer k.held.Add(-request)
	ctx, cancel := context.WithCancelCause(k.ctx)
	defer cancel(nil)
	c.ctx, c.cancel = ctx, cancel
	if c.q.Timeout > 0 {
		var stop context.CancelFunc
		c.ctx, stop = context.WithTimeout(ctx, c.q.Timeout)
		defer stop()
	}
	c.upload.init(c)
	c.events.changed = make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(c.read)
	defer reading.Wait() // the client closes the stream after the answer
	c.do()
}

// do makes the call and sends its answer.
func (c *call) do() {
	defer func() { // a peer must not end the server
		if p := recover(); p != nil {
			c.k.s.log.Error("a call of another machine panicked", "method", c.q.Method, "panic", p, "stack", string(debug.Stack()))
			c.fail(fault.New(fault.Internal, "the call failed on the machine of the sandbox"))
		}
	}()
	if c.k.mux != nil && c.k.mux.NumStreams() > maxCalls+1 {
		c.fail(errCalls)
		return
	}
	err := c.k.st.after(c.ctx, c.q.After)
	if err == nil {
		err = c.dispatch()
	}
	if err != nil {
		c.fail(err)
	}
}

// fail answers with an error.
func (c *call) fail(err error) {
	_ = c.send(answer{Answer: true, Err: remote.EncodeError(err)})
	c.conn.Close()
}

// answer answers with results and ends the server's side of the stream.
func (c *call) answer(results ...any) error {
	err := c.send(answer{Answer: true, Results: results})
	if errors.Is(err, errEncode) {
		return err
	}
	c.conn.Close()
	return nil
}

// answered answers with a result, or returns err.
func answered[T any](c *call, result T, err error) error {
	if err != nil {
		return err
	}
	return c.answer(result)
}

// done answers without a result, or returns err.
func done(c *call, err error) error {
	if err != nil {
		return err
	}
	return c.answer()
}

// args decodes the arguments of the call.
func (c *call) args(to ...any) error {
	if len(c.q.Args) != len(to) {
		return badRequest("%s has %d arguments, not %d", c.q.Method, len(to), len(c.q.Args))
	}
	for i, v := range to {
		if v == nil {
			continue // a reader or sink
		}
		if err := decoding.Unmarshal(c.q.Args[i], v); err != nil {
			return badRequest("argument %d of %s: %v", i+1, c.q.Method, err)
		}
	}
	return nil
}

func badRequest(format string, args ...any) error {
	return fault.New(fault.Invalid, "invalid call of another machine: "+format, args...)
}

// read receives what the client sends after its request, until the stream ends.
func (c *call) read() {
	err := c.receiveAll()
	closed := err == io.EOF && (c.k.mux == nil || !c.k.mux.IsClosed())
	c.cancel(context.Canceled)
	c.upload.fail(context.Canceled)
	c.mu.Lock()
	c.over, c.closed = true, closed
	output, rest := c.output, c.rest
	c.mu.Unlock()
	switch {
	case output != nil && closed:
		output.close()
	case output != nil:
		output.detach(c)
	case rest != nil:
		rest.Close()
	}
	close(c.asks)
	c.close()
}

func (c *call) receiveAll() error {
	for {
		kind, body, err := c.receive()
		if err != nil {
			return err
		}
		c.mu.Lock()
		output, rest := c.output, c.rest
		c.mu.Unlock()
		port, _ := rest.(net.Conn)
		switch {
		case kind == frameData && port != nil:
			c.write(port, body)
			continue
		case kind == frameEnd && port != nil:
			if half, ok := port.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			continue
		case kind == frameData:
			if err := c.upload.add(body); err != nil {
				return err
			}
			continue
		case kind == frameEnd:
			c.upload.fail(io.EOF)
			continue
		}
		var m message
		if err := decodeMessage(body, &m); err != nil {
			return err
		}
		switch {
		case m.Cancel != nil:
			c.cancel(m.Cancel.Decode())
		case m.Sunk:
			if err := m.Err.Decode(); c.events.sunk(err) {
				c.cancel(fmt.Errorf("the caller takes no more events: %w", err))
			}
		case m.Err != nil:
			c.upload.fail(m.Err.Decode())
		case m.Ack > 0 && output != nil:
			output.ack(m.Ack)
		case m.Next || m.Enough:
			select {
			case c.asks <- m:
			default:
				return fmt.Errorf("%w: it asks again before the answer", errProtocol)
			}
		}
	}
}

// write writes to a connection in the sandbox. A program that does not read blocks it, so it checks
// now and then that the client still has the stream.
func (c *call) write(port net.Conn, data []byte) {
	var probe *time.Timer
	var mu sync.Mutex
	mu.Lock()
	probe = time.AfterFunc(probeAfter, func() {
		if c.sendEmpty(frameNothing) != nil {
			port.Close()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		probe.Reset(probeAfter)
	})
	mu.Unlock()
	_, _ = port.Write(data) // the client sees the end of the connection when it reads
	mu.Lock()
	defer mu.Unlock()
	probe.Stop()
}

// carry makes the stream carry what an answer returned. It returns false if the client has gone.
func (c *call) carry(rest io.Closer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = rest
	return !c.over
}

// upload is the client's reader.
type upload struct {
	c *call

	mu      sync.Mutex
	buf     bytes.Buffer  // guarded by mu
	credit  int64         // guarded by mu; what the client may still send
	due     int64         // guarded by mu; what the server can grant
	costs   int64         // guarded by mu; frameCost of what is in buf
	granted bool          // guarded by mu
	err     error         // guarded by mu; after buf
	changed chan struct{} // guarded by mu; closed and replaced after a change
}

func (u *upload) init(c *call) {
	u.c, u.changed = c, make(chan struct{})
	if c.q.Push {
		u.credit, u.granted = maxUpload, true
	}
}

// notify wakes a reader. Callers hold mu.
func (u *upload) notify() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// add takes bytes of the client.
func (u *upload) add(data []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return nil
	}
	cost := int64(len(data)) + frameCost
	if u.credit -= cost; u.credit < 0 || u.c.k.held.Add(int64(len(data))) > maxReceived {
		return fmt.Errorf("%w: it uploads more than the server granted", errProtocol)
	}
	u.costs += frameCost
	u.buf.Write(data)
	u.notify()
	return nil
}

// fail ends the upload after what has arrived.
func (u *upload) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil {
		u.err = err
	}
	if err == context.Canceled { // the call is over
		u.c.k.held.Add(-int64(u.buf.Len()))
		u.buf = bytes.Buffer{}
		u.err = err
	}
	u.notify()
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		u.mu.Lock()
		if u.buf.Len() > 0 || u.err != nil {
			n, _ := u.buf.Read(p)
			u.c.k.held.Add(-int64(n))
			err, grant := u.err, u.consume(int64(n))
			u.mu.Unlock()
			if grant > 0 && err == nil {
				_ = u.c.send(message{Credit: grant})
			}
			if n > 0 {
				err = nil
			}
			return n, err
		}
		changed, first := u.changed, !u.granted
		if first {
			u.granted, u.credit = true, maxUpload
		}
		u.mu.Unlock()
		if first {
			if err := u.c.send(message{Credit: maxUpload}); err != nil {
				return 0, context.Canceled
			}
		}
		select {
		case <-changed:
		case <-u.c.ctx.Done():
			return 0, context.Cause(u.c.ctx)
		}
	}
}

// consume returns what to grant after the call has consumed n bytes. Callers hold mu.
func (u *upload) consume(n int64) (grant int64) {
	u.due += n
	if u.buf.Len() == 0 {
		u.due += u.costs
		u.costs = 0
	}
	if u.due < maxUpload/4 {
		return 0
	}
	grant, u.due = u.due, 0
	u.credit += grant
	return grant
}

// events are what the server has sent to the client's sink.
type events struct {
	mu      sync.Mutex
	begun   bool          // guarded by mu
	sizes   []int         // guarded by mu; of events that the client has not acknowledged
	total   int           // guarded by mu
	err     error         // guarded by mu; of the client's sink
	changed chan struct{} // guarded by mu; closed and replaced after a change
}

// sunk takes an acknowledgment and reports whether the sink failed.
func (e *events) sunk(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.sizes) > 0 {
		e.total -= e.sizes[0]
		e.sizes = e.sizes[1:]
	}
	failed := err != nil && e.err == nil
	if failed {
		e.err = err
	}
	close(e.changed)
	e.changed = make(chan struct{})
	return failed
}

// sink is a codecontext.Sink that sends events to the client. The first event precedes the code, so
// sink waits until the client has received it.
func (c *call) sink(ev codecontext.Event) error {
	e := &c.events
	size := len(ev.Text) + pieceCost
	if ev.Display != nil {
		for _, data := range ev.Display.Data {
			size += len(data)
		}
	}
	e.mu.Lock()
	err, first := e.err, !e.begun
	e.begun = true
	e.sizes, e.total = append(e.sizes, size), e.total+size
	e.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.send(message{Event: &ev}); err != nil {
		return err
	}
	for {
		e.mu.Lock()
		err, wait, changed := e.err, first && len(e.sizes) > 0 || e.total > maxEvents, e.changed
		e.mu.Unlock()
		if err != nil || !wait {
			return err
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
}

// sendOutput answers with an output that the client can resume, and sends it.
func (c *call) sendOutput(open func(context.Context) (process.Output, error)) error {
	k, err := c.k.st.keep(c.ctx, open)
	if err != nil {
		return err
	}
	if err := c.send(answer{Answer: true, Results: []any{k.o.Info(), k.id}}); err != nil {
		k.close() // the client does not know it
		return nil
	}
	c.sendKept(k, 1)
	return nil
}

// resume continues an output after a cut, with the piece after the last one that the client has.
func (c *call) resume() error {
	var id, last uint64
	if err := c.args(&id, &last); err != nil {
		return err
	}
	c.k.st.mu.Lock()
	k := c.k.st.outputs[id]
	c.k.st.mu.Unlock()
	if k == nil {
		return errNoOutput
	}
	k.ack(last)
	if err := c.send(answer{Answer: true}); err != nil {
		return nil
	}
	c.sendKept(k, last+1)
	return nil
}

func (c *call) sendKept(k *keptOutput, from uint64) {
	k.attach(c)
	c.mu.Lock()
	c.output = k
	over, closed := c.over, c.closed
	c.mu.Unlock()
	switch {
	case over && closed:
		k.close()
	case over:
		k.detach(c)
	default:
		k.send(c, from)
	}
}

// converse sends an output piece by piece, as the client asks for it.
func (c *call) converse(o process.Output) error {
	defer o.Close()
	if !c.carry(o) || c.send(answer{Answer: true, Results: []any{o.Info(), uint64(0)}}) != nil {
		return nil
	}
	for q := range c.asks {
		if q.Enough {
			o.Enough()
			continue
		}
		var m message
		chunk, err := o.Next()
		if m.Err = remote.EncodeError(err); err == nil {
			m.Chunk = &chunk
		} else if errors.Is(err, io.EOF) {
			exit := o.Exit()
			m.Exit = &exit
		}
		if c.send(m) != nil {
			break
		}
	}
	return nil
}

// download sends what r reads.
func (c *call) download(r io.ReadCloser, results ...any) error {
	defer r.Close()
	if !c.carry(r) || c.send(answer{Answer: true, Results: results}) != nil {
		return nil
	}
	err := c.sendFrom(r)
	m := message{Err: remote.EncodeError(err)}
	if packed, ok := r.(file.Archive); ok && err == io.EOF {
		counts := packed.Counts()
		m.Counts = &counts
	}
	if c.send(m) == nil {
		c.conn.Close()
	}
	return nil
}

// sendFrom sends what r reads and returns r's error.
func (c *call) sendFrom(r io.Reader) error {
	buf := make([]byte, piece)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := c.sendData(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// watch sends file events.
func (c *call) watch(e file.Events) error {
	defer e.Close()
	if !c.carry(e) || c.send(answer{Answer: true}) != nil {
		return nil
	}
	for {
		event, err := e.Next()
		m := message{Changed: &event}
		if err != nil {
			m = message{Err: remote.EncodeError(err)}
		}
		if c.send(m) != nil || err != nil {
			return nil
		}
	}
}

// connect carries a connection.
func (c *call) connect(port net.Conn) error {
	if !c.carry(port) || c.send(answer{Answer: true}) != nil {
		port.Close()
		return nil
	}
	switch err := c.sendFrom(port); err {
	case io.EOF:
		_ = c.sendEmpty(frameEnd)
	default:
		_ = c.send(message{Err: remote.EncodeError(err)})
	}
	return nil // read closes port when the client closes the stream
}
