package noderpc

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// guest is a sandbox.Guest.
type guest struct{ h *handle }

func (g guest) method(name string) method {
	return method{target: toGuest, handle: g.h.id, name: name, safe: slices.Contains(safeInGuest, name)}
}

// safeInGuest are the methods of a Guest that the client may repeat after a cut.
var safeInGuest = []string{
	"Follow", "Processes", "Process", "Wait", "Stat", "List", "Glob", "Read", "Pack", "Watch", "Listening",
}

func (g guest) call(ctx context.Context, name string, in args, results ...any) error {
	return g.h.c.call(ctx, g.method(name), in, results...)
}

func (g guest) open(ctx context.Context, name string, in args, results ...any) (*stream, error) {
	return g.h.c.open(ctx, g.method(name), in, results...)
}

func (g guest) Start(ctx context.Context, spec process.Spec) (info process.Info, err error) {
	err = g.call(ctx, "Start", args{spec}, &info)
	return info, err
}

func (g guest) Run(ctx context.Context, spec process.Spec) (process.Output, error) {
	return g.output(ctx, "Run", spec)
}

func (g guest) Follow(ctx context.Context, id process.ID, after process.Seq) (process.Output, error) {
	return g.output(ctx, "Follow", id, after)
}

func (g guest) Converse(ctx context.Context, id process.ID, data []byte, after process.Seq) (process.Output, error) {
	return g.output(ctx, "Converse", id, data, after)
}

func (g guest) output(ctx context.Context, name string, in ...any) (process.Output, error) {
	o := &output{c: g.h.c, ctx: ctx}
	s, err := g.open(ctx, name, in, &o.info, &o.id)
	if err != nil {
		return nil, err
	}
	o.stream = s
	g.h.c.remember(o)
	o.stop = context.AfterFunc(ctx, func() { o.Close() })
	return o, nil
}

func (g guest) Processes(ctx context.Context) (all []process.Info, err error) {
	err = g.call(ctx, "Processes", nil, &all)
	return all, err
}

func (g guest) Process(ctx context.Context, id process.ID) (info process.Info, err error) {
	err = g.call(ctx, "Process", args{id}, &info)
	return info, err
}

func (g guest) Wait(ctx context.Context, id process.ID) (exit process.Exit, err error) {
	err = g.call(ctx, "Wait", args{id}, &exit)
	return exit, err
}

func (g guest) Write(ctx context.Context, id process.ID, data []byte) (n int, err error) {
	for {
		part := data[n:min(len(data), n+fragment)]
		var wrote int
		var failed *remote.Failure
		err := g.call(ctx, "Write", args{id, part}, &wrote, &failed)
		n += min(max(wrote, 0), len(part))
		if err == nil {
			err = failed.Decode()
		}
		if err != nil || n == len(data) || wrote < len(part) {
			return n, err
		}
	}
}

func (g guest) CloseInput(ctx context.Context, id process.ID) error {
	return g.call(ctx, "CloseInput", args{id})
}

func (g guest) Resize(ctx context.Context, id process.ID, size process.Size) error {
	return g.call(ctx, "Resize", args{id, size})
}

func (g guest) Signal(ctx context.Context, id process.ID, sig syscall.Signal, group bool) error {
	return g.call(ctx, "Signal", args{id, sig, group})
}

func (g guest) Kill(ctx context.Context, id process.ID) error {
	return g.call(ctx, "Kill", args{id})
}

func (g guest) Discard(ctx context.Context, id process.ID) error {
	return g.call(ctx, "Discard", args{id})
}

func (g guest) KillAll(ctx context.Context) error { return g.call(ctx, "KillAll", args{}) }

func (g guest) Stat(ctx context.Context, path string) (info file.Info, err error) {
	err = g.call(ctx, "Stat", args{path}, &info)
	return info, err
}

func (g guest) List(ctx context.Context, path string, o file.ListOptions) (l file.Listing, err error) {
	err = g.call(ctx, "List", args{path, o}, &l)
	return l, err
}

func (g guest) Glob(ctx context.Context, cwd, pattern string, limit int) (p file.Paths, err error) {
	err = g.call(ctx, "Glob", args{cwd, pattern, limit}, &p)
	return p, err
}

func (g guest) Mkdir(ctx context.Context, path string) error {
	return g.call(ctx, "Mkdir", args{path})
}

func (g guest) Remove(ctx context.Context, path string, recursive bool) error {
	return g.call(ctx, "Remove", args{path, recursive})
}

func (g guest) Move(ctx context.Context, from, to string, replace bool) error {
	return g.call(ctx, "Move", args{from, to, replace})
}

func (g guest) Read(ctx context.Context, path string, offset, limit int64) (info file.Info, r io.ReadCloser, err error) {
	s, err := g.open(ctx, "Read", args{path, offset, limit}, &info)
	if err != nil {
		return info, nil, err
	}
	return info, &download{stream: s}, nil
}

func (g guest) Create(ctx context.Context, path string, o file.CreateOptions, content io.Reader) (size int64, err error) {
	err = g.call(ctx, "Create", args{path, o, content}, &size)
	return size, err
}

func (g guest) Pack(ctx context.Context, path string) (file.Archive, error) {
	s, err := g.open(ctx, "Pack", args{path})
	if err != nil {
		return nil, err
	}
	return &download{stream: s}, nil
}

func (g guest) Unpack(ctx context.Context, path string, archive io.Reader) (n file.Counts, err error) {
	u := &caller{Reader: archive}
	var failed *remote.Failure
	if err := g.call(ctx, "Unpack", args{path, lengthOf(archive, u)}, &n, &failed); err != nil {
		return n, err
	}
	if failed != nil && u.err != nil {
		return n, u.err
	}
	return n, failed.Decode()
}

// caller remembers the error of a caller's reader.
type caller struct {
	io.Reader
	err error
}

func (r *caller) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// lengthOf returns u, with the method Len if the caller's reader has it.
func lengthOf(r io.Reader, u *caller) io.Reader {
	if l, ok := r.(sized); ok {
		return struct {
			io.Reader
			sized
		}{u, l}
	}
	return u
}

// sized is a reader in memory, which does not block.
type sized interface{ Len() int }

func (g guest) PutSkills(ctx context.Context, archive io.Reader) error {
	return g.call(ctx, "PutSkills", args{archive})
}

func (g guest) Watch(ctx context.Context, path string, recursive bool) (file.Events, error) {
	s, err := g.open(ctx, "Watch", args{path, recursive})
	if err != nil {
		return nil, err
	}
	return &changes{stream: s}, nil
}

func (g guest) Listening(ctx context.Context) (ports []netip.AddrPort, err error) {
	err = g.call(ctx, "Listening", nil, &ports)
	return ports, err
}

func (g guest) Connect(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error) {
	return g.connection(ctx, "Connect", port, wait)
}

func (g guest) Accept(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error) {
	return g.connection(ctx, "Accept", port, wait)
}

func (g guest) connection(ctx context.Context, name string, port uint16, wait time.Duration) (net.Conn, error) {
	s, err := g.open(ctx, name, args{port, wait})
	if err != nil {
		return nil, err
	}
	if !s.forget() { // ctx is for connecting only
		s.close()
		return nil, context.Cause(ctx)
	}
	return &carried{stream: s}, nil
}
