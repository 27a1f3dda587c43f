package noderpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// fakeNode is a sandbox.Node without sandboxes.
type fakeNode struct {
	mu      sync.Mutex
	handles []*fakeHandle // guarded by mu
	gets    int           // guarded by mu
	block   chan struct{} // Get and Destroy wait for it or the end of the call; nil for no wait
	waiting chan struct{} // receives an element for each call that waits
	ended   chan error    // receives why each such call ended
	bytes   []byte        // guarded by mu; of the last upload
}

func newFake() *fakeNode {
	return &fakeNode{waiting: make(chan struct{}, 100_000), ended: make(chan error, 100_000)}
}

func (n *fakeNode) wait(ctx context.Context) error {
	n.mu.Lock()
	block := n.block
	n.mu.Unlock()
	if block == nil {
		return nil
	}
	n.waiting <- struct{}{}
	select {
	case <-block:
		return nil
	case <-ctx.Done():
		n.ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}
}

func (n *fakeNode) Use(_ context.Context, grant *sandbox.Grant, _, name string) (sandbox.Handle, error) {
	if name == "missing" {
		return nil, sandbox.Unknown(name)
	}
	h := &fakeHandle{n: n, name: name, done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handles = append(n.handles, h)
	return h, nil
}

func (n *fakeNode) Get(ctx context.Context, _ *sandbox.Grant, _, name string) (*sandbox.Sandbox, error) {
	n.mu.Lock()
	n.gets++
	n.mu.Unlock()
	if name == "panic" {
		panic("a test")
	}
	if name == "elsewhere" {
		return nil, &sandbox.ElsewhereError{Sandbox: &sandbox.Sandbox{Name: name}, Executor: "other"}
	}
	if err := n.wait(ctx); err != nil {
		return nil, err
	}
	return &sandbox.Sandbox{Name: name}, nil
}

func (n *fakeNode) Destroy(ctx context.Context, _ *sandbox.Grant, _, name string) (*sandbox.Sandbox, error) {
	return &sandbox.Sandbox{Name: name, State: sandbox.Destroyed}, n.wait(ctx)
}

func (n *fakeNode) List(context.Context, *sandbox.Grant, string) ([]*sandbox.Sandbox, error) {
	return nil, fault.Limit("x", time.Unix(5, 0).UTC(), "limited")
}

func (n *fakeNode) Reach(context.Context, runtime.ID) (sandbox.Handle, error) {
	return nil, sandbox.ErrNotFound
}

// open returns the handles that were not closed.
func (n *fakeNode) open() (open []*fakeHandle) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.handles {
		h.mu.Lock()
		if h.closed == 0 {
			open = append(open, h)
		}
		h.mu.Unlock()
	}
	return open
}

type fakeHandle struct {
	n    *fakeNode
	name string
	done chan struct{}

	mu     sync.Mutex
	closed int   // guarded by mu
	bytes  int64 // guarded by mu
}

func (h *fakeHandle) Sandbox() *sandbox.Sandbox { return &sandbox.Sandbox{Name: h.name} }
func (h *fakeHandle) Guest() sandbox.Guest      { return fakeGuest{n: h.n} }

func (h *fakeHandle) Contexts() (codecontext.Contexts, error) { return fakeContexts{}, nil }
func (h *fakeHandle) CopyFolder(_ context.Context, _ string, to sandbox.Handle, name string) (int64, bool, error) {
	return int64(len(to.Sandbox().Name)), true, nil
}
func (h *fakeHandle) Redactor(context.Context) (*redact.Set, error) {
	return redact.New(redact.Config{})
}
func (h *fakeHandle) Stopped(context.Context) error {
	return fault.New(fault.Unavailable, "stopped")
}
func (h *fakeHandle) Killed(context.Context, process.Exit) error { return nil }
func (h *fakeHandle) NetworkHint(_ time.Time, tails [][]byte) string {
	return fmt.Sprintf("%d tails", len(tails))
}
func (h *fakeHandle) Done() <-chan struct{} { return h.done }

func (h *fakeHandle) CountBytes(bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += bytes
}

func (h *fakeHandle) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed++
}

func (h *fakeHandle) counted() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}

// fakeGuest is a Guest whose processes put out a fixed text.
type fakeGuest struct{ n *fakeNode }

// outputText is what every process puts out.
var outputText = func() []byte {
	var b bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.Bytes()
}()

type fakeOutput struct {
	ctx    context.Context
	at     int
	closed chan struct{}
	once   sync.Once
	silent bool
}

func (o *fakeOutput) Info() process.Info { return process.Info{ID: "p", PID: 7} }
func (o *fakeOutput) Exit() process.Exit { return process.Exit{Code: 3} }
func (o *fakeOutput) Enough()            {}
func (o *fakeOutput) Close() error {
	o.once.Do(func() { close(o.closed) })
	return nil
}

func (o *fakeOutput) Next() (process.Chunk, error) {
	if o.silent {
		select {
		case <-o.closed:
			return process.Chunk{}, process.ErrGone
		case <-o.ctx.Done():
			return process.Chunk{}, context.Cause(o.ctx)
		}
	}
	if o.at == len(outputText) {
		return process.Chunk{}, io.EOF
	}
	to := min(len(outputText), o.at+1+o.at%5000)
	data := outputText[o.at:to]
	o.at = to
	return process.Chunk{Seq: process.Seq(to), Data: data}, nil
}

func (g fakeGuest) Run(ctx context.Context, spec process.Spec) (process.Output, error) {
	return &fakeOutput{ctx: ctx, closed: make(chan struct{}), silent: spec.Shell == "silent"}, nil
}

func (g fakeGuest) Follow(ctx context.Context, _ process.ID, after process.Seq) (process.Output, error) {
	return &fakeOutput{ctx: ctx, at: int(after), closed: make(chan struct{})}, nil
}

func (g fakeGuest) Converse(ctx context.Context, _ process.ID, _ []byte, _ process.Seq) (process.Output, error) {
	return &fakeOutput{ctx: ctx, closed: make(chan struct{})}, nil
}

func (g fakeGuest) Process(_ context.Context, id process.ID) (process.Info, error) {
	return process.Info{ID: id}, nil
}

func (g fakeGuest) Create(_ context.Context, path string, _ file.CreateOptions, content io.Reader) (int64, error) {
	if path == "/refused" {
		return 0, fault.New(fault.Forbidden, "refused")
	}
	b, err := io.ReadAll(content)
	g.n.mu.Lock()
	g.n.bytes = b
	g.n.mu.Unlock()
	return int64(len(b)), err
}

func (g fakeGuest) Read(context.Context, string, int64, int64) (file.Info, io.ReadCloser, error) {
	return file.Info{Size: int64(len(outputText))}, io.NopCloser(bytes.NewReader(outputText)), nil
}

// Connect returns a connection that echoes.
func (g fakeGuest) Connect(context.Context, uint16, time.Duration) (net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	return net.Dial("tcp", l.Addr().String())
}

type fakeContexts struct{}

func (fakeContexts) Run(ctx context.Context, _ codecontext.ID, req codecontext.Request, sink codecontext.Sink) (*codecontext.Result, error) {
	if req.Code == "wait" {
		if err := sink(codecontext.Event{}); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	for i := range 1000 {
		if err := sink(codecontext.Event{Text: fmt.Appendf(nil, "%d,", i)}); err != nil {
			return &codecontext.Result{Status: codecontext.Interrupted}, nil
		}
	}
	return &codecontext.Result{Status: codecontext.OK}, nil
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s: %s", what)
		}
	}
}

var errTest = errors.New("a test")

func (n *fakeNode) Ensure(context.Context, *sandbox.Grant, string, string, *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	return nil, false, errTest
}
func (n *fakeNode) Usage(context.Context, *sandbox.Grant, string, string) (u sandbox.Usage, err error) {
	return u, nil
}
func (n *fakeNode) Update(context.Context, *sandbox.Grant, string, string, sandbox.Change) (*sandbox.Sandbox, error) {
	return nil, errTest
}
func (n *fakeNode) Sleep(context.Context, *sandbox.Grant, string, string) (*sandbox.Sandbox, error) {
	return nil, errTest
}
func (n *fakeNode) Restart(context.Context, *sandbox.Grant, string, string) (*sandbox.Sandbox, error) {
	return nil, errTest
}
func (n *fakeNode) Fork(context.Context, *sandbox.Grant, string, string, int) ([]*sandbox.Sandbox, error) {
	return nil, errTest
}
func (n *fakeNode) Snapshot(context.Context, *sandbox.Grant, string, string, time.Duration) (*sandbox.Snapshot, error) {
	return nil, errTest
}
func (n *fakeNode) Orphans(context.Context) ([]runtime.ID, error) { return []runtime.ID{"a", "b"}, nil }
func (n *fakeNode) Reap(context.Context) ([]runtime.ID, error)    { return nil, errTest }

func (g fakeGuest) Start(context.Context, process.Spec) (i process.Info, err error) { return i, nil }
func (g fakeGuest) Processes(context.Context) ([]process.Info, error) {
	return make([]process.Info, 3), nil
}
func (g fakeGuest) Wait(context.Context, process.ID) (e process.Exit, err error) { return e, nil }
func (g fakeGuest) Write(_ context.Context, _ process.ID, data []byte) (int, error) {
	return len(data) / 2, errTest
}
func (g fakeGuest) CloseInput(context.Context, process.ID) error                   { return nil }
func (g fakeGuest) Resize(context.Context, process.ID, process.Size) error         { return nil }
func (g fakeGuest) Signal(context.Context, process.ID, syscall.Signal, bool) error { return nil }
func (g fakeGuest) Kill(context.Context, process.ID) error                         { return nil }
func (g fakeGuest) Discard(context.Context, process.ID) error                      { return nil }
func (g fakeGuest) KillAll(context.Context) error                                  { return nil }
func (g fakeGuest) Stat(context.Context, string) (i file.Info, err error)          { return i, nil }
func (g fakeGuest) Mkdir(context.Context, string) error                            { return errTest }
func (g fakeGuest) Remove(context.Context, string, bool) error                     { return errTest }
func (g fakeGuest) Move(context.Context, string, string, bool) error               { return errTest }
func (g fakeGuest) Glob(context.Context, string, string, int) (p file.Paths, err error) {
	return p, nil
}
func (g fakeGuest) List(context.Context, string, file.ListOptions) (l file.Listing, err error) {
	return l, nil
}
func (g fakeGuest) Pack(context.Context, string) (file.Archive, error) { return nil, errTest }
func (g fakeGuest) Unpack(_ context.Context, _ string, r io.Reader) (file.Counts, error) {
	n, err := io.Copy(io.Discard, r)
	return file.Counts{Bytes: n}, err
}
func (g fakeGuest) PutSkills(_ context.Context, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}
func (g fakeGuest) Watch(context.Context, string, bool) (file.Events, error) {
	return &fakeEvents{}, nil
}
func (g fakeGuest) Listening(context.Context) ([]netip.AddrPort, error) {
	return []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:80")}, nil
}
func (g fakeGuest) Accept(context.Context, uint16, time.Duration) (net.Conn, error) {
	return nil, errTest
}

// fakeEvents are three file events.
type fakeEvents struct{ n int }

func (e *fakeEvents) Close() error { return nil }
func (e *fakeEvents) Next() (file.Event, error) {
	if e.n++; e.n > 3 {
		return file.Event{}, process.ErrGone
	}
	return file.Event{Path: fmt.Sprint(e.n)}, nil
}

func (fakeContexts) Create(context.Context, execution.Language, string) (*codecontext.Context, error) {
	return nil, errTest
}
func (fakeContexts) List(context.Context) ([]*codecontext.Context, error) { return nil, nil }
func (fakeContexts) Get(_ context.Context, id codecontext.ID) (*codecontext.Context, error) {
	_ = id.Language() // panics for an invalid id
	return &codecontext.Context{ID: id}, nil
}
func (fakeContexts) Collect(context.Context, codecontext.ID, codecontext.Request, codecontext.Sink) (*codecontext.Result, error) {
	return nil, codecontext.ErrNoTrace
}
func (fakeContexts) Interrupt(context.Context, codecontext.ID) error { return nil }
func (fakeContexts) Restart(context.Context, codecontext.ID) (*codecontext.Context, error) {
	return nil, errTest
}
func (fakeContexts) Delete(context.Context, codecontext.ID) error { return nil }
