package initclient_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// impostor is what stands in for a guest that has been taken over: the guest's
// ends of a channel.
type impostor struct {
	ch    runtime.Channel
	dec   *wire.Decoder
	nonce uint64 // of the host
}

func newImpostor(t testing.TB) *impostor {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		path := filepath.Join(dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	return &impostor{ch: runtime.Channel{ToGuest: open("to"), FromGuest: open("from")}, dec: wire.NewDecoder(wire.MaxRequest)}
}

// next returns the host's next frame of a type.
func (g *impostor) next(t testing.TB, typ wire.Type) wire.Frame {
	t.Helper()
	g.ch.ToGuest.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		if f, ok := g.dec.Next(); ok {
			if f.Type == typ {
				return f
			}
			continue
		}
		n, err := g.ch.ToGuest.Read(g.dec.Space())
		if err != nil {
			t.Errorf("waiting for the host: %v", err)
			return wire.Frame{}
		}
		g.dec.Advance(n)
	}
}

func (g *impostor) say(frames ...wire.Frame) {
	for _, f := range frames {
		g.ch.FromGuest.Write(wire.AppendFrame(nil, f))
	}
}

// dial dials the impostor, which answers the first Hello.
func (g *impostor) dial(t testing.TB, w wire.WelcomeMessage) (*initclient.Client, error) {
	t.Helper()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		hello := g.next(t, wire.Hello)
		g.nonce = hello.ID
		g.say(wire.Frame{Type: wire.Welcome, ID: hello.ID, Payload: w.Append(nil)})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := initclient.Dial(ctx, g.ch)
	<-answered
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func output(offset uint64, data string) []byte {
	return append([]byte{byte(offset), byte(offset >> 8), 0, 0, 0, 0, 0, byte(offset >> 56)}, data...)
}

func exit(m wire.ExitMessage) []byte { return m.Append(nil) }

// Each of these is something no guest says. The run ends with ErrProtocol, and
// the sink has got nothing it should not have.
func TestImpostor(t *testing.T) {
	const id = 77
	frame := func(seq uint64, typ wire.Type, payload []byte) wire.Frame {
		return wire.Frame{Type: typ, ID: id, Seq: seq, Payload: payload}
	}
	for name, frames := range map[string][]wire.Frame{
		"skipped frame":         {frame(2, wire.Stdout, output(0, "x"))},
		"repeated frame":        {frame(1, wire.Stdout, output(0, "ok")), frame(1, wire.Stdout, output(2, "x"))},
		"frame zero":            {frame(0, wire.Stdout, output(0, "x"))},
		"unknown type":          {frame(1, 0x99, nil)},
		"a host's frame":        {frame(1, wire.Run, nil)},
		"gap in the output":     {frame(1, wire.Stdout, output(5, "x"))},
		"overlapping output":    {frame(1, wire.Stdout, output(0, "ok")), frame(2, wire.Stdout, output(1, "x"))},
		"negative offset":       {frame(1, wire.Stdout, output(0xff<<56, "x"))},
		"no offset":             {frame(1, wire.Stdout, []byte("x"))},
		"empty output":          {frame(1, wire.Stdout, output(0, ""))},
		"more than asked for":   {frame(1, wire.Stdout, output(0, strings.Repeat("x", 101)))},
		"other run":             {{Type: wire.Stdout, ID: 5, Seq: 1, Payload: output(0, "x")}},
		"other run's end":       {{Type: wire.Exit, ID: 5, Seq: 1, Payload: exit(wire.ExitMessage{})}},
		"empty end":             {frame(1, wire.Exit, nil)},
		"exit code too large":   {frame(1, wire.Exit, exit(wire.ExitMessage{Code: 256}))},
		"signal and other code": {frame(1, wire.Exit, exit(wire.ExitMessage{Code: 0, Signal: 9}))},
		"less than was sent":    {frame(1, wire.Stdout, output(0, "ok")), frame(2, wire.Exit, exit(wire.ExitMessage{Stdout: 1}))},
		"absurd count":          {frame(1, wire.Exit, exit(wire.ExitMessage{Stdout: 1 << 63}))},
		"malformed refusal":     {frame(1, wire.Refused, []byte{200})},
		"malformed reply":       {frame(1, wire.Reply, []byte{200})},
		"malformed welcome":     {frame(1, wire.Welcome, []byte{200})},
		"someone's welcome":     {frame(1, wire.Welcome, (&wire.WelcomeMessage{Protocol: 1}).Append(nil))},
	} {
		t.Run(name, func(t *testing.T) {
			g := newImpostor(t)
			c, err := g.dial(t, wire.WelcomeMessage{Protocol: wire.Protocol})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				g.next(t, wire.Run)
				g.say(frames...)
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var got strings.Builder
			_, err = c.Run(ctx, initclient.RunSpec{ID: id, OutputLimit: 100}, func(_ initclient.Stream, p []byte) { got.Write(p) })
			if !errors.Is(err, initclient.ErrProtocol) {
				t.Errorf("got %v", err)
			}
			if s := got.String(); s != "" && s != "ok" {
				t.Errorf("the sink got %q", s)
			}
			<-c.Done()
			if err := c.Ping(ctx); !errors.Is(err, initclient.ErrProtocol) {
				t.Errorf("a later call got %v", err)
			}
		})
	}
}

func TestImpostorNoise(t *testing.T) {
	g := newImpostor(t)
	c, err := g.dial(t, wire.WelcomeMessage{Protocol: wire.Protocol})
	if err != nil {
		t.Fatal(err)
	}
	g.ch.FromGuest.WriteString("this is no frame, and long enough to be seen to be none")
	if err := c.Ping(t.Context()); !errors.Is(err, initclient.ErrProtocol) {
		t.Errorf("got %v", err)
	}
}

func TestImpostorWelcomes(t *testing.T) {
	for name, w := range map[string]wire.WelcomeMessage{
		"other protocol": {Protocol: 99},
		"no protocol":    {Protocol: 0},
		"long version":   {Protocol: 1, Version: strings.Repeat("v", 300)},
		"too many runs":  {Protocol: 1, Runs: make([]uint64, 65)},
	} {
		if _, err := newImpostor(t).dial(t, w); !errors.Is(err, initclient.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A guest that says nothing, and reads nothing, does not hold a caller up for longer than
// they will wait.
func TestSilentGuest(t *testing.T) {
	g := newImpostor(t)
	c, err := g.dial(t, wire.WelcomeMessage{Protocol: wire.Protocol})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	big := initclient.RunSpec{Files: []initclient.File{{Path: "/x", Data: make([]byte, 1<<20)}}}
	errs := make(chan error)
	go func() { _, err := c.Run(ctx, big, nil); errs <- err }()
	go func() { errs <- c.Warm(ctx, initclient.WarmSpec{}) }()
	go func() { errs <- c.Ping(ctx) }()
	for range 3 {
		if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
	unbounded := make(chan error)
	go func() { unbounded <- c.Ping(context.Background()) }()
	c.Close()
	if err := <-unbounded; !errors.Is(err, initclient.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// A guest may hold back at most its spool for runs without a sink.
func TestHoardIsBounded(t *testing.T) {
	g := newImpostor(t)
	c, err := g.dial(t, wire.WelcomeMessage{Protocol: wire.Protocol, Runs: []uint64{5}})
	if err != nil {
		t.Fatal(err)
	}
	chunk := strings.Repeat("x", 60000)
	go func() {
		for i := range uint64(64) {
			p := output(0, chunk)
			at := i * 60000
			p[0], p[1], p[2] = byte(at), byte(at>>8), byte(at>>16)
			if _, err := g.ch.FromGuest.Write(wire.AppendFrame(nil, wire.Frame{Type: wire.Stdout, ID: 5, Seq: i + 1, Payload: p})); err != nil {
				return
			}
		}
	}()
	<-c.Done()
	if err := c.Ping(t.Context()); !errors.Is(err, initclient.ErrProtocol) {
		t.Errorf("got %v", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	before := goruntime.NumGoroutine()
	for range 20 {
		g := newImpostor(t)
		c, err := g.dial(t, wire.WelcomeMessage{Protocol: wire.Protocol})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		c.Close()
		if _, err := c.Run(t.Context(), initclient.RunSpec{}, nil); !errors.Is(err, initclient.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if after := goruntime.NumGoroutine(); after > before+2 {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// A caller that knows a run's end and closes the Client leaves nothing of it.
func TestCloseAcknowledgesTheEnd(t *testing.T) {
	const id = 77
	for range 100 {
		g := newImpostor(t)
		c, err := g.dial(t, wire.WelcomeMessage{Protocol: wire.Protocol})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			g.next(t, wire.Run)
			g.say(wire.Frame{Type: wire.Exit, ID: id, Seq: 1, Payload: exit(wire.ExitMessage{})})
		}()
		if _, err := c.Run(t.Context(), initclient.RunSpec{ID: id}, nil); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if f := g.next(t, wire.Ack); f.Seq != 1 {
			t.Fatalf("acknowledged up to %d", f.Seq)
		}
	}
}
