package sandboxtest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
)

// remoteGuest is a sandbox.Guest.
type remoteGuest struct{ h *remoteHandle }

func (g remoteGuest) call(ctx context.Context, method string, in args, results ...any) error {
	return g.h.call(ctx, "guest", method, in, results...)
}

func (g remoteGuest) open(ctx context.Context, method string, in args, results ...any) (*link, error) {
	return g.h.r.open(ctx, part{"guest", g.h.id}, method, in, results...)
}

func (g remoteGuest) Start(ctx context.Context, spec process.Spec) (info process.Info, err error) {
	err = g.call(ctx, "Start", args{spec}, &info)
	return info, err
}

func (g remoteGuest) Run(ctx context.Context, spec process.Spec) (process.Output, error) {
	return g.output(ctx, "Run", spec)
}

func (g remoteGuest) Follow(ctx context.Context, id process.ID, after process.Seq) (process.Output, error) {
	return g.output(ctx, "Follow", id, after)
}

func (g remoteGuest) Converse(ctx context.Context, id process.ID, data []byte, after process.Seq) (process.Output, error) {
	return g.output(ctx, "Converse", id, data, after)
}

func (g remoteGuest) output(ctx context.Context, method string, in ...any) (process.Output, error) {
	o := &remoteOutput{}
	var err error
	if o.stream.link, err = g.open(ctx, method, in, &o.info); err != nil {
		return nil, err
	}
	return o, nil
}

func (g remoteGuest) Processes(ctx context.Context) (all []process.Info, err error) {
	err = g.call(ctx, "Processes", nil, &all)
	return all, err
}

func (g remoteGuest) Process(ctx context.Context, id process.ID) (info process.Info, err error) {
	err = g.call(ctx, "Process", args{id}, &info)
	return info, err
}

func (g remoteGuest) Wait(ctx context.Context, id process.ID) (exit process.Exit, err error) {
	err = g.call(ctx, "Wait", args{id}, &exit)
	return exit, err
}

func (g remoteGuest) Write(ctx context.Context, id process.ID, data []byte) (n int, err error) {
	err = g.call(ctx, "Write", args{id, data}, &n)
	return n, err
}

func (g remoteGuest) CloseInput(ctx context.Context, id process.ID) error {
	return g.call(ctx, "CloseInput", args{id})
}

func (g remoteGuest) Resize(ctx context.Context, id process.ID, size process.Size) error {
	return g.call(ctx, "Resize", args{id, size})
}

func (g remoteGuest) Signal(ctx context.Context, id process.ID, sig syscall.Signal, group bool) error {
	return g.call(ctx, "Signal", args{id, sig, group})
}

func (g remoteGuest) Kill(ctx context.Context, id process.ID) error {
	return g.call(ctx, "Kill", args{id})
}

func (g remoteGuest) Discard(ctx context.Context, id process.ID) error {
	return g.call(ctx, "Discard", args{id})
}

func (g remoteGuest) KillAll(ctx context.Context) error { return g.call(ctx, "KillAll", args{}) }

func (g remoteGuest) Stat(ctx context.Context, path string) (info file.Info, err error) {
	err = g.call(ctx, "Stat", args{path}, &info)
	return info, err
}

func (g remoteGuest) List(ctx context.Context, path string, o file.ListOptions) (l file.Listing, err error) {
	err = g.call(ctx, "List", args{path, o}, &l)
	return l, err
}

func (g remoteGuest) Glob(ctx context.Context, cwd, pattern string, limit int) (p file.Paths, err error) {
	err = g.call(ctx, "Glob", args{cwd, pattern, limit}, &p)
	return p, err
}

func (g remoteGuest) Mkdir(ctx context.Context, path string) error {
	return g.call(ctx, "Mkdir", args{path})
}

func (g remoteGuest) Remove(ctx context.Context, path string, recursive bool) error {
	return g.call(ctx, "Remove", args{path, recursive})
}

func (g remoteGuest) Move(ctx context.Context, from, to string, replace bool) error {
	return g.call(ctx, "Move", args{from, to, replace})
}

func (g remoteGuest) Read(ctx context.Context, path string, offset, limit int64) (info file.Info, r io.ReadCloser, err error) {
	l, err := g.open(ctx, "Read", args{path, offset, limit}, &info)
	if err != nil {
		return info, nil, err
	}
	return info, &remoteReader{stream: stream{link: l}}, nil
}

func (g remoteGuest) Create(ctx context.Context, path string, o file.CreateOptions, content io.Reader) (size int64, err error) {
	err = g.call(ctx, "Create", args{path, o, content}, &size)
	return size, err
}

func (g remoteGuest) Pack(ctx context.Context, path string) (file.Archive, error) {
	l, err := g.open(ctx, "Pack", args{path})
	if err != nil {
		return nil, err
	}
	return &remoteReader{stream: stream{link: l}}, nil
}

func (g remoteGuest) Unpack(ctx context.Context, path string, archive io.Reader) (n file.Counts, err error) {
	err = g.call(ctx, "Unpack", args{path, archive}, &n)
	return n, err
}

func (g remoteGuest) PutSkills(ctx context.Context, archive io.Reader) error {
	return g.call(ctx, "PutSkills", args{archive})
}

func (g remoteGuest) Watch(ctx context.Context, path string, recursive bool) (file.Events, error) {
	l, err := g.open(ctx, "Watch", args{path, recursive})
	if err != nil {
		return nil, err
	}
	return &remoteEvents{stream{link: l}}, nil
}

func (g remoteGuest) Listening(ctx context.Context) (ports []netip.AddrPort, err error) {
	err = g.call(ctx, "Listening", nil, &ports)
	return ports, err
}

func (g remoteGuest) Connect(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error) {
	return g.connection(ctx, "Connect", port, wait)
}

func (g remoteGuest) Accept(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error) {
	return g.connection(ctx, "Accept", port, wait)
}

func (g remoteGuest) connection(ctx context.Context, method string, port uint16, wait time.Duration) (net.Conn, error) {
	dialing, connected := context.WithCancel(ctx)
	l, err := g.open(dialing, method, args{port, wait})
	if err != nil {
		connected()
		return nil, err
	}
	l.forget() // ctx is for connecting only
	connected()
	return &remoteConn{Conn: l.conn, link: l}, nil
}

// stream is an answer that goes on: the caller asks for one piece after another.
type stream struct {
	link *link
	end  error // what it ended with
}

// ask sends a request and returns what is answered.
func (s *stream) ask(q frame) (frame, error) {
	if s.end != nil {
		return frame{}, s.end
	}
	err := s.link.send(q)
	var f frame
	if err == nil {
		f, err = s.link.receive()
	}
	if err == nil {
		err = f.Err.decode()
	}
	if err != nil && !errors.Is(err, process.ErrEnough) {
		s.end = err
	}
	return f, err
}

// Close ends it. It may be called at any time.
func (s *stream) Close() error {
	s.link.close()
	return nil
}

// remoteOutput is a process.Output.
type remoteOutput struct {
	stream
	info process.Info
	exit process.Exit
}

func (o *remoteOutput) Info() process.Info { return o.info }

func (o *remoteOutput) Next() (process.Chunk, error) {
	f, err := o.ask(frame{Next: true})
	if f.Exit != nil {
		o.exit = *f.Exit
	}
	if err != nil {
		return process.Chunk{}, err
	}
	return *f.Chunk, nil
}

func (o *remoteOutput) Exit() process.Exit { return o.exit }

func (o *remoteOutput) Enough() { _ = o.link.send(frame{Enough: true}) }

// remoteReader is a file.Archive, or an io.ReadCloser.
type remoteReader struct {
	stream
	counts file.Counts
}

func (r *remoteReader) Read(p []byte) (int, error) {
	f, err := r.ask(frame{Read: len(p)})
	if f.Counts != nil {
		r.counts = *f.Counts
	}
	return copy(p, f.Data), err
}

func (r *remoteReader) Counts() file.Counts { return r.counts }

// remoteEvents is file.Events.
type remoteEvents struct{ stream }

func (e *remoteEvents) Next() (file.Event, error) {
	f, err := e.ask(frame{Next: true})
	if err != nil {
		return file.Event{}, err
	}
	return *f.Changed, nil
}

// remoteConn is a connection to a port. Its deadlines are those of the connection below.
type remoteConn struct {
	net.Conn
	link *link
	mu   sync.Mutex // held by Write
	rest []byte
	end  error
}

func (c *remoteConn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.end != nil {
			return 0, c.end
		}
		f, err := c.link.receive()
		if err == nil {
			err = f.Err.decode()
		}
		c.rest, c.end = f.Data, err
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *remoteConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.link.send(frame{Data: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *remoteConn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link.send(frame{CloseWrite: true})
}

func (c *remoteConn) Close() error {
	c.link.close()
	return nil
}
