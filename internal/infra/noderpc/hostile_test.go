package noderpc

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// raw connects to the server without a Client, and says hello.
func (r *rig) raw(client byte) net.Conn {
	r.t.Helper()
	conn, err := r.proxy.dial(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	if err := (hello{version: version, client: [16]byte{client}}).write(conn); err != nil {
		r.t.Fatal(err)
	}
	if w, err := readWelcome(conn); err != nil || w.status != statusOK || w.known {
		r.t.Fatal(w, err)
	}
	return conn
}

// streams opens streams over a connection from raw. The first one is the control stream.
func (r *rig) streams(conn net.Conn) *yamux.Session {
	r.t.Helper()
	mux, err := yamux.Client(conn, streams(slog.New(slog.DiscardHandler), time.Minute))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { mux.Close() })
	if _, err := mux.OpenStream(); err != nil {
		r.t.Fatal(err)
	}
	return mux
}

// works checks that the server serves others.
func (r *rig) works() {
	r.t.Helper()
	c := r.client()
	if _, err := c.Get(r.t.Context(), &sandbox.Grant{}, "s", "x"); err != nil {
		r.t.Error(err)
	}
	c.Close()
}

func TestHandshake(t *testing.T) {
	r := newRig(t, func(o *timeouts) { o.handshake = 200 * time.Millisecond })
	for name, start := range map[string]string{
		"nothing": "", "garbage": strings.Repeat("GET / HTTP/1.1\r\n", 10), "half a hello": magic, "hello without streams": magic + "\x00\x01" + strings.Repeat("x", 24),
	} {
		conn, err := r.proxy.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(conn, start)
		if _, err := io.Copy(io.Discard, conn); err != nil && err != io.ErrClosedPipe { // until the server closes it
			t.Errorf("%s: %v", name, err)
		}
		conn.Close()
	}
	conn, err := r.proxy.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := (hello{version: version + 1}).write(conn); err != nil {
		t.Fatal(err)
	}
	if w, err := readWelcome(conn); err != nil || w.status != statusVersion || w.version != version {
		t.Error(w, err)
	}
	conn.Close()
}

func TestGarbage(t *testing.T) {
	r := newRig(t)
	conn := r.raw(1)
	go conn.Write(bytes.Repeat([]byte{0xff}, 1000))
	_, _ = io.Copy(io.Discard, conn) // until the server closes it

	mux := r.streams(r.raw(2))
	for name, b := range map[string][]byte{
		"too large":        {frameLast, 0x40, 0, 1},
		"unknown kind":     {9, 0, 0, 1, 0},
		"not CBOR":         {frameLast, 0, 0, 1, 0xff},
		"claims a list":    {frameLast, 0, 0, 9, 0xa1, 0x04, 0x9b, 0, 0, 0, 0xff, 0xff, 0xff},
		"an endless start": bytes.Repeat([]byte{frameMore, 0, 0, 0}, 10),
		"data":             {frameData, 0, 0, 1, 0},
	} {
		stream, err := mux.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Write(b); err != nil {
			t.Error(name, err)
		}
		if got, err := io.ReadAll(stream); err != nil || len(got) > 0 {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		stream.Close()
	}
	big, err := mux.OpenStream() // larger than a request may be, in pieces
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		part := append([]byte{frameMore, 0x10, 0, 0}, make([]byte, 1<<20)...)
		for range maxRequest>>20 + 1 {
			if _, err := big.Write(part); err != nil {
				return
			}
		}
	}()
	if _, err := io.ReadAll(big); err != nil && err != yamux.ErrConnectionReset {
		t.Error(err)
	}
	big.Close()
	r.works()
}

// TestClaims checks that the server does not allocate what a peer only claims.
func TestClaims(t *testing.T) {
	here, there := net.Pipe()
	l := newLink(there, maxRequest, maxAnswer, nil)
	go func() {
		_, _ = here.Write([]byte{frameMore, 0x3f, 0xff, 0xff, 1, 2, 3})
		here.Close()
	}()
	if _, _, err := l.receive(); err == nil {
		t.Error("received a message")
	}
	if cap(l.in) > 2*piece {
		t.Errorf("allocated %d bytes for 3", cap(l.in))
	}
}

func TestManyStreams(t *testing.T) {
	r := newRig(t)
	mux := r.streams(r.raw(1))
	opened := 0
	for ; opened < 4*maxCalls; opened++ {
		if _, err := mux.OpenStream(); err != nil {
			break
		}
	}
	if opened < maxCalls || opened > 3*maxCalls {
		t.Errorf("opened %d streams", opened)
	}
	<-mux.CloseChan()
	r.works()
}

func TestNeverReads(t *testing.T) {
	r := newRig(t, func(o *timeouts) { o.write = 100 * time.Millisecond })
	c := r.client()
	h := r.use(c, "a")
	conn := r.raw(1)
	stalled := &stalling{Conn: conn, stall: make(chan struct{})}
	mux := r.streams(stalled)
	t.Cleanup(func() { close(stalled.stall) }) // before the end of mux
	for i := range uint64(60) {
		stream, err := mux.OpenStream()
		if err != nil {
			break // closed already
		}
		l := newLink(stream, maxAnswer, maxRequest, nil)
		if i == 0 {
			if err := l.send(outgoing{Method: "Use", Args: []any{&sandbox.Grant{}, "s", "x", 1}}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.message(); err != nil {
				t.Fatal(err)
			}
			stalled.on()
			continue
		}
		_ = l.send(outgoing{Target: toGuest, Handle: 1, Method: "Run", Args: []any{process.Spec{}}})
	}
	o, err := h.Guest().Run(t.Context(), process.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	read(t, o)
	eventually(t, "the server closes the connection", func() bool {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		for key, st := range r.server.clients {
			if key.id == [16]byte{1} {
				st.mu.Lock()
				defer st.mu.Unlock()
				return st.conn == nil
			}
		}
		return true
	})
	h.Close()
}

// stalling is a connection whose owner stops reading.
type stalling struct {
	net.Conn
	mu    sync.Mutex
	stops bool
	stall chan struct{}
}

func (s *stalling) on() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = true
}

func (s *stalling) Read(p []byte) (int, error) {
	s.mu.Lock()
	stops := s.stops
	s.mu.Unlock()
	if stops {
		<-s.stall
	}
	return s.Conn.Read(p)
}

func TestManyHandles(t *testing.T) {
	st := newClientState(NewServer(nil, slog.New(slog.DiscardHandler)), clientKey{}, 0)
	n := newFake()
	open := func() (sandbox.Handle, error) { return n.Use(t.Context(), nil, "", "x") }
	for i := range uint64(maxHandles) {
		if _, err := st.use(t.Context(), i+1, open); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.use(t.Context(), maxHandles+1, open); err != errHandles {
		t.Error(err)
	}
	if _, err := st.use(t.Context(), 5, open); err != nil || len(n.handles) != maxHandles {
		t.Error("a repeated call opens another handle", err)
	}
	st.drop()
	st.s.running.Wait()
	if len(n.open()) > 0 {
		t.Error("handles are open")
	}
}

// TestClosedBeforeUse closes a handle before the server receives the call that opens it.
func TestClosedBeforeUse(t *testing.T) {
	st := newClientState(NewServer(nil, slog.New(slog.DiscardHandler)), clientKey{}, 0)
	n := newFake()
	st.notice(nil, notice{Seq: 1, Handle: 7, Close: true})
	if h, err := st.use(t.Context(), 7, func() (sandbox.Handle, error) { return n.Use(t.Context(), nil, "", "x") }); err == nil || h != nil {
		t.Error("opened a closed handle")
	}
	st.drop()
	if len(n.open()) > 0 {
		t.Error("handles are open")
	}
}

// memory is a stream that receives fixed bytes.
type memory struct {
	*bytes.Reader
}

func (memory) Write(p []byte) (int, error)      { return len(p), nil }
func (memory) Close() error                     { return nil }
func (memory) LocalAddr() net.Addr              { return nil }
func (memory) RemoteAddr() net.Addr             { return nil }
func (memory) SetDeadline(time.Time) error      { return nil }
func (memory) SetReadDeadline(time.Time) error  { return nil }
func (memory) SetWriteDeadline(time.Time) error { return nil }

// recorded is a stream that records what is written to it.
type recorded struct {
	memory
	bytes.Buffer
}

func (r *recorded) Write(p []byte) (int, error) { return r.Buffer.Write(p) }
func (r *recorded) Read(p []byte) (int, error)  { return r.memory.Read(p) }

// frames returns the frames of messages.
func frames(all ...any) []byte {
	r := &recorded{memory: memory{bytes.NewReader(nil)}}
	l := newLink(r, maxAnswer, maxAnswer, nil)
	for _, m := range all {
		var err error
		switch m := m.(type) {
		case []byte:
			err = l.sendData(m)
		case int:
			err = l.sendEmpty(byte(m))
		default:
			err = l.send(m)
		}
		if err != nil {
			panic(err)
		}
	}
	return r.Bytes()
}

// panics fails a test when the server reports a panic.
type panics struct {
	slog.Handler
	t *testing.T
}

func (p panics) Enabled(context.Context, slog.Level) bool { return true }
func (p panics) Handle(_ context.Context, rec slog.Record) error {
	if rec.Level >= slog.LevelError {
		rec.Attrs(func(a slog.Attr) bool { p.t.Log(a); return true })
		p.t.Error(rec.Message)
	}
	return nil
}

// FuzzServer sends arbitrary bytes to a server as a call.
func FuzzServer(f *testing.F) {
	g := &sandbox.Grant{}
	for _, q := range []outgoing{
		{Method: "Get", Args: []any{g, "s", "x"}}, {Method: "Get", Args: []any{nil, "s", "x"}}, {Method: "Use", Args: []any{g, "s", "x", 2}}, {Method: "Ensure", Args: []any{g, "s", "x", &sandbox.Spec{}}},
		{Method: "Orphans"}, {Method: "Fork", Args: []any{g, "s", "x", -1}}, {Target: toClient, Method: "Resume", Args: []any{1, 0}},
		{Target: toHandle, Handle: 1, Method: "CopyFolder", Args: []any{"/", 1, "x"}}, {Target: toHandle, Handle: 1, Method: "NetworkHint", Args: []any{time.Now(), [][]byte{{1}}}},
		{Target: toContexts, Handle: 1, Method: "Get", Args: []any{"nothing"}}, {Target: toContexts, Handle: 1, Method: "Run", Args: []any{"python", codecontext.Request{}, nil}},
		{Target: toGuest, Handle: 1, Method: "Read", Args: []any{"/x", 0, -1}}, {Target: toGuest, Handle: 1, Method: "Connect", Args: []any{80, 0}}, {Target: toGuest, Handle: 1, Method: "Watch", Args: []any{"/", true}},
	} {
		f.Add(frames(q))
	}
	f.Add(frames(outgoing{Target: toGuest, Handle: 1, Method: "Run", Args: []any{process.Spec{}}}, message{Ack: 3}, message{Ack: 1 << 60}))
	f.Add(frames(outgoing{Target: toGuest, Handle: 1, Method: "Converse", Args: []any{"p", []byte("x"), 0}}, message{Next: true}, message{Enough: true}, message{Next: true}))
	f.Add(frames(outgoing{Target: toGuest, Handle: 1, Method: "Unpack", Args: []any{"/", nil}, Push: true}, []byte("x"), []byte{}, frameNothing, frameEnd, []byte("y")))
	f.Add(frames(outgoing{Target: toContexts, Handle: 1, Method: "Run", Args: []any{"python", codecontext.Request{Code: "wait"}, nil}}, message{Sunk: true}, message{Sunk: true}, message{Cancel: remote.EncodeError(io.EOF)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := NewServer(newFake(), slog.New(panics{slog.DiscardHandler, t}))
		k := &serverConn{s: s, st: newClientState(s, clientKey{}, 0), ctx: t.Context()}
		if _, err := k.st.use(t.Context(), 1, func() (sandbox.Handle, error) { return s.node.Use(t.Context(), nil, "", "x") }); err != nil {
			t.Fatal(err)
		}
		k.serveCall(memory{bytes.NewReader(b)})
		if n := k.held.Load(); n != 0 {
			t.Errorf("%d bytes of messages are held after the call", n)
		}
		k.st.drop()
		s.running.Wait()
		if len(s.node.(*fakeNode).open()) > 0 {
			t.Error("a handle is open")
		}
	})
}

// FuzzClient answers calls with arbitrary bytes.
func FuzzClient(f *testing.F) {
	f.Add(frames(answer{Answer: true, Results: []any{&sandbox.Sandbox{}, true}}))
	f.Add(frames(answer{Answer: true, Results: []any{nil, true}}))
	f.Add(frames(message{Credit: 1 << 40}, message{Event: &codecontext.Event{}}, answer{Answer: true, Err: remote.EncodeError(sandbox.ErrNotFound)}))
	f.Add(frames(message{Number: 1, Chunk: &process.Chunk{Data: []byte("x")}}, message{Number: 2, Chunk: &process.Chunk{Stream: 9}}))
	f.Add(frames(message{Number: 1, Err: remote.EncodeError(io.EOF), Exit: &process.Exit{}}))
	f.Add(frames([]byte("abc"), frameNothing, []byte{}, message{Err: remote.EncodeError(io.EOF)}))
	f.Add(frames([]byte("abc"), frameEnd))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := New(Config{Log: slog.New(slog.DiscardHandler)})
		c.Close()
		open := func() *stream {
			c.calls <- struct{}{}
			return c.stream(t.Context(), memory{bytes.NewReader(b)})
		}
		s := open()
		var sb *sandbox.Sandbox
		var created bool
		in := args{codecontext.Sink(func(codecontext.Event) error { return nil }), strings.NewReader("upload")}
		if err := s.await(in, []any{&sb, &created}); err == nil && sb == nil {
			t.Error("an answer without a sandbox")
		}
		s.close()
		for _, id := range []uint64{0, 1} {
			o := &output{c: c, ctx: t.Context(), stream: open(), id: id}
			for range 100 {
				chunk, err := o.Next()
				if err != nil {
					break
				}
				_ = [4]int{}[chunk.Stream]
			}
			o.Close()
		}
		d := &download{stream: open()}
		_, _ = io.Copy(io.Discard, d)
		d.Close()
		conn := &carried{stream: open()}
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
		e := &changes{stream: open()}
		for range 100 {
			if _, err := e.Next(); err != nil {
				break
			}
		}
		e.Close()
		if len(c.calls) > 0 {
			t.Errorf("%d calls are left", len(c.calls))
		}
		_, _ = readWelcome(bytes.NewReader(b))
		_, _ = readHello(bytes.NewReader(b))
	})
}
