package noderpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// rig is a server with a fake node, behind a proxy.
type rig struct {
	t      *testing.T
	node   *fakeNode
	server *Server
	proxy  *proxy
}

// newRig starts a server. At the end of the test, no goroutine is left.
func newRig(t *testing.T, change ...func(*timeouts)) *rig {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				buf := make([]byte, 1<<20)
				t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			}
		}
	})
	r := &rig{t: t, node: newFake()}
	r.server = NewServer(r.node, slog.New(slog.DiscardHandler))
	for _, f := range change {
		f(&r.server.timeouts)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.proxy = newProxy(t, l.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if open := r.node.open(); len(open) > 0 {
			t.Errorf("%d handles are open after the server stopped", len(open))
		}
		for _, h := range r.node.handles {
			if h.closed != 1 {
				t.Errorf("a handle was closed %d times", h.closed)
			}
		}
		r.proxy.close()
	})
	return r
}

// client returns a new client.
func (r *rig) client() *Client {
	c := New(Config{Dial: r.proxy.dial, Log: slog.New(slog.DiscardHandler)})
	r.t.Cleanup(func() { c.Close() })
	return c
}

func (r *rig) use(c *Client, name string) sandbox.Handle {
	r.t.Helper()
	h, err := c.Use(r.t.Context(), &sandbox.Grant{}, "s", name)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

// proxy passes connections on, and cuts them.
type proxy struct {
	t  *testing.T
	to string
	wg sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu
	down  bool              // guarded by mu; refuses connections
	delay bool              // guarded by mu; delays bytes now and then
}

func newProxy(t *testing.T, to string) *proxy {
	return &proxy{t: t, to: to, conns: map[net.Conn]bool{}}
}

func (p *proxy) dial(ctx context.Context) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, errTest
	}
	var d net.Dialer
	there, err := d.DialContext(ctx, "tcp", p.to)
	if err != nil {
		return nil, err
	}
	here, mine := net.Pipe()
	p.conns[there], p.conns[mine] = true, true
	p.wg.Go(func() { p.copy(there, mine) })
	p.wg.Go(func() { p.copy(mine, there) })
	return here, nil
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		delay := p.delay
		p.mu.Unlock()
		for b := buf[:n]; len(b) > 0; {
			part := len(b)
			if delay && rand.IntN(10) == 0 {
				part = 1 + rand.IntN(len(b))
				time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
			}
			if _, err := to.Write(b[:part]); err != nil {
				return
			}
			b = b[part:]
		}
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.cut()
	}
}

func (p *proxy) close() {
	p.cut()
	p.wg.Wait()
}

func TestErrors(t *testing.T) {
	r := newRig(t)
	c := r.client()
	ctx := t.Context()
	_, err := c.Get(ctx, &sandbox.Grant{}, "s", "elsewhere")
	if e, ok := errors.AsType[*sandbox.ElsewhereError](err); !ok || e.Executor != "other" || e.Sandbox.Name != "elsewhere" {
		t.Errorf("got %v", err)
	}
	_, err = c.List(ctx, &sandbox.Grant{}, "")
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Kind != fault.Exhausted || e.Dimension != "x" || !e.ResetsAt.Equal(time.Unix(5, 0)) || err.Error() != "limited" {
		t.Errorf("got %v", err)
	}
	if _, err = c.Reach(ctx, "x"); !errors.Is(err, sandbox.ErrNotFound) || fault.KindOf(err) != fault.NotFound || err.Error() != sandbox.ErrNotFound.Error() {
		t.Errorf("got %v", err)
	}
	if _, err = c.Get(ctx, &sandbox.Grant{}, "s", "panic"); fault.KindOf(err) != fault.Internal {
		t.Errorf("got %v", err)
	}
	if _, err = c.Get(ctx, nil, "s", "x"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
	if ids, err := c.Orphans(ctx); err != nil || fmt.Sprint(ids) != "[a b]" {
		t.Errorf("got %v, %v", ids, err)
	}
	if _, err = c.Reap(ctx); err == nil || err.Error() != errTest.Error() {
		t.Errorf("got %v", err)
	}
}

func TestCalls(t *testing.T) {
	r := newRig(t)
	c := r.client()
	ctx := t.Context()
	h, other := r.use(c, "a"), r.use(c, "other")
	if h.Sandbox().Name != "a" {
		t.Errorf("got %+v", h.Sandbox())
	}
	if n, done, err := h.CopyFolder(ctx, "/x", other, "y"); n != 5 || !done || err != nil {
		t.Error(n, done, err)
	}
	if err := h.Stopped(ctx); err == nil || err.Error() != "stopped" {
		t.Error(err)
	}
	if err := h.Killed(ctx, process.Exit{}); err != nil {
		t.Error(err)
	}
	if hint := h.NetworkHint(time.Now(), [][]byte{nil, []byte("x")}); hint != "2 tails" {
		t.Error(hint)
	}
	if _, err := h.Redactor(ctx); err != nil {
		t.Error(err)
	}
	for _, reader := range []io.Reader{bytes.NewReader(outputText), io.MultiReader(bytes.NewReader(outputText)), &oneByOne{outputText[:100_000]}} {
		n, err := h.Guest().Create(ctx, "/x", file.CreateOptions{}, reader)
		if err != nil || n != int64(len(r.node.bytes)) || !bytes.HasPrefix(outputText, r.node.bytes) || n < 100_000 {
			t.Errorf("upload: %d bytes, %v", n, err)
		}
	}
	if _, err := h.Guest().Create(ctx, "/x", file.CreateOptions{}, io.MultiReader(strings.NewReader("x"), failing{})); !errors.Is(err, errTest) {
		t.Errorf("an upload whose reader fails: %v", err)
	}
	if _, err := h.Guest().Create(ctx, "/refused", file.CreateOptions{}, bytes.NewReader(outputText)); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("an upload that is refused: %v", err)
	}
	info, reader, err := h.Guest().Read(ctx, "/x", 0, -1)
	if err != nil || info.Size != int64(len(outputText)) {
		t.Fatal(info, err)
	}
	if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, outputText) {
		t.Errorf("download: %d bytes, %v", len(got), err)
	}
	reader.Close()
	all, err := h.Contexts()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	res, err := all.Run(ctx, "python", codecontext.Request{}, func(e codecontext.Event) error {
		text.Write(e.Text)
		return nil
	})
	if err != nil || res.Status != codecontext.OK || !strings.HasSuffix(text.String(), "998,999,") {
		t.Error(res, err, text.String())
	}
	if res, err := all.Run(ctx, "python", codecontext.Request{}, func(codecontext.Event) error { return errTest }); err != nil || res.Status != codecontext.Interrupted {
		t.Error(res, err)
	}
	detached, cancel := context.WithCancelCause(ctx)
	if _, err := all.Run(detached, "python", codecontext.Request{Code: "wait"}, func(codecontext.Event) error { cancel(codecontext.ErrDetached); return nil }); !errors.Is(err, codecontext.ErrDetached) {
		t.Error(err)
	}
	o, err := h.Guest().Converse(ctx, "p", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if chunk, err := o.Next(); err != nil || string(chunk.Data) != "0" {
		t.Errorf("%q, %v", chunk.Data, err)
	}
	o.Enough()
	o.Close()
	h.CountBytes(5)
	h.CountBytes(6)
	h.Close()
	other.Close()
	if _, err := c.Get(ctx, &sandbox.Grant{}, "s", "x"); err != nil { // after the notices
		t.Error(err)
	}
	if open := r.node.open(); len(open) > 0 || r.node.handles[0].counted() != 11 {
		t.Errorf("%d handles are open, %d bytes were counted", len(open), r.node.handles[0].counted())
	}
	if _, err := h.Guest().Process(ctx, "p"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a call of a closed handle: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errTest }

type oneByOne struct{ rest []byte }

func (o *oneByOne) Read(p []byte) (int, error) {
	if len(o.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:1], o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

func TestConnections(t *testing.T) {
	r := newRig(t)
	h := r.use(r.client(), "a")
	defer h.Close()
	conn, err := h.Guest().Connect(t.Context(), 80, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("got %v", err)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = conn.Write(outputText)
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, outputText) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	cut, err := h.Guest().Connect(t.Context(), 80, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.proxy.cut()
	if _, err := cut.Read(make([]byte, 1)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	cut.Close()
}

// read reads an output to its end and checks it.
func read(t *testing.T, o process.Output) {
	t.Helper()
	defer o.Close()
	at := 0
	for {
		chunk, err := o.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d of %d bytes: %v", at, len(outputText), err)
		}
		if !bytes.HasPrefix(outputText[at:], chunk.Data) || chunk.Seq != process.Seq(at+len(chunk.Data)) {
			t.Fatalf("wrong output at %d, Seq %d", at, chunk.Seq)
		}
		at += len(chunk.Data)
	}
	if at != len(outputText) || o.Exit().Code != 3 {
		t.Errorf("%d of %d bytes, exit %+v", at, len(outputText), o.Exit())
	}
}

// TestCuts cuts connections at random points while output is read.
func TestCuts(t *testing.T) {
	r := newRig(t)
	r.proxy.delay = true
	c := r.client()
	h := r.use(c, "a")
	stop := make(chan struct{})
	var cutting sync.WaitGroup
	cuts := 0
	cutting.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(5+rand.IntN(30)) * time.Millisecond):
				r.proxy.cut()
				cuts++
			}
		}
	})
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			for {
				var o process.Output
				var err error
				if i%2 == 0 {
					o, err = h.Guest().Run(t.Context(), process.Spec{})
				} else {
					o, err = h.Guest().Follow(t.Context(), "p", 0)
				}
				if fault.KindOf(err) == fault.Unavailable {
					continue // the start was cut
				}
				if err != nil {
					t.Error(err)
					return
				}
				read(t, o)
				return
			}
		})
	}
	readers.Wait()
	close(stop)
	cutting.Wait()
	t.Logf("%d cuts", cuts)
	select {
	case <-h.Done():
		t.Error("Done is closed")
	default:
	}
	h.CountBytes(3)
	h.Close()
	eventually(t, "the handle is closed", func() bool { return len(r.node.open()) == 0 })
	if got := r.node.handles[0].counted(); got != 3 {
		t.Errorf("%d bytes were counted", got)
	}
}

// TestNotices counts bytes during cuts, exactly once.
func TestNotices(t *testing.T) {
	r := newRig(t)
	h := r.use(r.client(), "a")
	for i := range 2000 {
		h.CountBytes(1)
		if i%100 == 0 {
			r.proxy.cut()
		}
	}
	eventually(t, "all bytes are counted", func() bool { return r.node.handles[0].counted() >= 2000 })
	h.Close()
	eventually(t, "the handle is closed", func() bool { return len(r.node.open()) == 0 })
	if got := r.node.handles[0].counted(); got != 2000 {
		t.Errorf("%d bytes were counted", got)
	}
}

func TestCancellation(t *testing.T) {
	r := newRig(t)
	c := r.client()
	r.node.block = make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := c.Get(ctx, &sandbox.Grant{}, "s", "x")
		got <- err
	}()
	<-r.node.waiting
	cancel(errTest)
	if err := <-got; !errors.Is(err, errTest) {
		t.Error(err)
	}
	if err := <-r.node.ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	timed, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := c.Destroy(timed, &sandbox.Grant{}, "s", "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	<-r.node.ended
	h := r.use(c, "a")
	running, end := context.WithCancel(t.Context())
	o, err := h.Guest().Run(running, process.Spec{Shell: "silent"})
	if err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := o.Next(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	o.Close()
	h.Close()
}

// TestRepeat checks which calls a cut repeats.
func TestRepeat(t *testing.T) {
	r := newRig(t)
	c := r.client()
	r.node.block = make(chan struct{})
	got := make(chan error, 2)
	go func() {
		_, err := c.Get(t.Context(), &sandbox.Grant{}, "s", "x")
		got <- err
	}()
	<-r.node.waiting
	r.proxy.cut()
	<-r.node.waiting // again
	r.proxy.cut()
	if err := <-got; fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "may have run") {
		t.Error(err)
	}
	if r.node.gets != 2 {
		t.Errorf("%d calls", r.node.gets)
	}
	go func() {
		_, err := c.Destroy(t.Context(), &sandbox.Grant{}, "s", "x")
		got <- err
	}()
	<-r.node.waiting
	r.proxy.cut()
	if err := <-got; fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "may have run") || !errors.Is(err, sandbox.ErrMayHaveRun) {
		t.Error(err)
	}
	r.proxy.setDown(true)
	if _, err := c.Destroy(t.Context(), &sandbox.Grant{}, "s", "x"); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "did not run") || errors.Is(err, sandbox.ErrMayHaveRun) {
		t.Error(err)
	}
	r.proxy.setDown(false)
	close(r.node.block)
	if sb, err := c.Destroy(t.Context(), &sandbox.Grant{}, "s", "x"); err != nil || sb.State != sandbox.Destroyed {
		t.Error(err)
	}
}

// TestGrace checks that handles survive a short cut and end with a long one.
func TestGrace(t *testing.T) {
	r := newRig(t)
	c := r.client()
	h := r.use(c, "a")
	r.proxy.cut()
	if _, err := h.Guest().Process(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	close(r.node.handles[0].done) // reported now or after a reconnect
	r.proxy.cut()
	<-h.Done()

	h.Close()
}

// TestAfterGrace checks that a long cut ends handles and outputs on both sides.
func TestAfterGrace(t *testing.T) {
	r := newRig(t, func(o *timeouts) { o.grace = time.Millisecond })
	c := r.client()
	c.grace = 100 * time.Millisecond
	h := r.use(c, "a")
	o, err := h.Guest().Run(t.Context(), process.Spec{Shell: "silent"})
	if err != nil {
		t.Fatal(err)
	}
	r.proxy.setDown(true)
	if _, err := o.Next(); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
	eventually(t, "the server closes the handles", func() bool { return len(r.node.open()) == 0 })
	<-h.Done()
	r.proxy.setDown(false)
	if _, err := h.Guest().Process(t.Context(), "p"); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
	again := r.use(c, "b")
	if _, err := again.Guest().Process(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	h.Close()
	again.Close()
}

// TestGoodbye checks that the end of a client closes its handles at once, and no others.
func TestGoodbye(t *testing.T) {
	r := newRig(t)
	a, b := r.client(), r.client()
	ha, hb := r.use(a, "a"), r.use(b, "b")
	if ha.(*handle).id != hb.(*handle).id {
		t.Fatal("the clients number handles differently")
	}
	ha.CountBytes(1)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	<-ha.Done()
	eventually(t, "the server closes the handle", func() bool { return len(r.node.open()) == 1 })
	if r.node.open()[0].name != "b" {
		t.Error("the wrong handle is closed")
	}
	if _, err := hb.Guest().Process(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	if _, err := ha.Guest().Process(t.Context(), "p"); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
}

// TestSlowReaders checks that unread outputs do not delay other calls.
func TestSlowReaders(t *testing.T) {
	r := newRig(t)
	c := r.client()
	h := r.use(c, "a")
	for range 20 {
		o, err := h.Guest().Run(t.Context(), process.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		_, reader, err := h.Guest().Read(t.Context(), "/x", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
	}
	o, err := h.Guest().Run(t.Context(), process.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	read(t, o)
}

// TestSlowReaderAfterCut reads an output long after a cut.
func TestSlowReaderAfterCut(t *testing.T) {
	r := newRig(t)
	c := r.client()
	h := r.use(c, "a")
	o, err := h.Guest().Run(t.Context(), process.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	closed, err := h.Guest().Run(t.Context(), process.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	r.proxy.cut()
	if _, err := h.Guest().Process(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	closed.Close()
	outputs := func() (all []*keptOutput) {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		for _, st := range r.server.clients {
			st.mu.Lock()
			for _, k := range st.outputs {
				all = append(all, k)
			}
			st.mu.Unlock()
		}
		return all
	}
	eventually(t, "the server closes one output and keeps the other", func() bool {
		all := outputs()
		if len(all) != 1 {
			return false
		}
		all[0].mu.Lock()
		defer all[0].mu.Unlock()
		return all[0].attached == nil && all[0].expiry == nil
	})
	read(t, o)
	eventually(t, "the server closes the output", func() bool { return len(outputs()) == 0 })
	h.Close()
}
