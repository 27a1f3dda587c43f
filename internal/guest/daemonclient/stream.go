package daemonclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

// closing lets an exchange be ended once, by who reads it or who closes it.
type closing struct {
	x    *exchange
	mu   sync.Mutex
	done bool
}

// finish ends the exchange with f, and returns what f does, unless it has ended.
func (c *closing) finish(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return io.ErrClosedPipe
	}
	c.done = true
	return f()
}

// Close ends it early, or has no effect.
func (c *closing) Close() error {
	_ = c.finish(func() error { c.x.drop(); return nil })
	return nil
}

// Watch tells of changes of a path, and below it if recursive, until the Events
// are closed or ctx ends.
func (c *Client) Watch(ctx context.Context, path string, recursive bool) (file.Events, error) {
	x, _, err := c.begin(ctx, proto.Request{Watch: &proto.Watch{Path: []byte(path), Recursive: recursive}})
	if err != nil {
		return nil, err
	}
	x.waitWithoutLimit()
	return &Events{closing: closing{x: x}}, nil
}

// Events are changes of files, as they come. One goroutine at a time may use
// them, but Close may be called at any time.
type Events struct {
	closing
	got []proto.Changed
	err error
}

var changes = map[string]file.Change{"created": file.Created, "modified": file.Modified, "removed": file.Removed, "lost": file.Lost}

// maxChanges bounds what comes at a time.
const maxChanges = 100_000

// Next returns the next change.
func (e *Events) Next() (file.Event, error) {
	for len(e.got) == 0 && e.err == nil {
		t, err := e.x.Conn.Next()
		if err == nil && t != proto.Change {
			err = fmt.Errorf("%w: a frame of type %d among changes", ErrProtocol, t)
		}
		if err == nil {
			err = e.x.Decode(&e.got)
		}
		if err == nil && (len(e.got) == 0 || len(e.got) > maxChanges) {
			err = fmt.Errorf("%w: %d changes at a time", ErrProtocol, len(e.got))
		}
		if err != nil {
			e.err = e.finish(func() error { return e.x.failed(err) })
		}
	}
	if e.err != nil {
		return file.Event{}, e.err
	}
	is := e.got[0]
	e.got = e.got[1:]
	change, ok := changes[is.Change]
	if !ok || len(is.Path) > maxPath {
		e.err = e.finish(func() error { return e.x.failed(fmt.Errorf("%w: a change that cannot be", ErrProtocol)) })
		return file.Event{}, e.err
	}
	return file.Event{Change: change, Path: string(is.Path), Folder: is.Folder}, nil
}

// Connect connects to a TCP port of the sandbox's loopback interface, by IPv4 or
// else IPv6. CloseWrite of the connection ends one direction alone. ctx is for
// connecting only.
//
// With wait, a port on which something may be about to listen may take so long: if
// something was started in the sandbox, or told what to do, in the last half minute.
func (c *Client) Connect(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error) {
	x, _, err := c.begin(ctx, proto.Request{Connect: &proto.Connect{Port: port, Wait: int64(max(wait, 0))}})
	return raw(ctx, x, err)
}

// Accept waits for a connection that a program makes to a port of the loopback interface, on
// which the guest daemon listens while it is asked, and for some seconds more. A NotFound fault
// says that none came. ctx is for the wait only.
func (c *Client) Accept(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error) {
	x, _, err := c.begin(ctx, proto.Request{Accept: &proto.Accept{Port: port, Wait: int64(max(wait, 0))}})
	return raw(ctx, x, err)
}

// raw is the connection that an exchange has become.
func raw(ctx context.Context, x *exchange, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	if !x.stop() {
		x.client.drop(x.Conn)
		return nil, context.Cause(ctx)
	}
	x.waitWithoutLimit()
	return &portConn{UnixConn: x.line.UnixConn, x: x}, nil
}

// portConn is a connection with a port.
type portConn struct {
	*net.UnixConn
	x    *exchange
	once sync.Once
}

func (p *portConn) Read(b []byte) (int, error) {
	n, err := p.x.Raw(b)
	if err != nil && err != io.EOF {
		if why := p.x.client.failure(); errors.Is(why, ErrSilent) {
			err = why
		}
	}
	return n, err
}

// WriteTo is not UnixConn's, which would pass over what was read ahead.
func (p *portConn) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{p})
}

func (p *portConn) Close() error {
	p.once.Do(func() { p.x.client.drop(p.x.Conn) })
	return nil
}
