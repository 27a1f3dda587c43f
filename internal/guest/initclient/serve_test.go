package initclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// freePort is a port that nothing listens at. The guest of these tests has no network of
// its own.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// respond is a response with a body.
func respond(body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
}

// echo answers with the body of a request.
func echo(_ context.Context, request []byte) []byte {
	_, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
	return respond(string(body))
}

// asking is a program that may ask serve; its code has ask(body, **headers), which returns
// status and body, and raw(bytes, …), which returns all that is answered.
func asking(t *testing.T, serve initclient.Serve, code string) initclient.RunSpec {
	t.Helper()
	port := freePort(t)
	spec := guesttest.Program(t, guesttest.Python, fmt.Sprintf(`import http.client, socket, threading, time
PORT = %d
def ask(body=b"", **headers):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)
    c.request("POST", "/x", body, headers)
    r = c.getresponse()
    return r.status, r.read()
def connect():
    return socket.create_connection(("127.0.0.1", PORT), timeout=20)
def raw(*parts):
    s = connect()
    for p in parts:
        try: s.sendall(p)
        except OSError: break
    got = b""
    try:
        while True:
            b = s.recv(65536)
            if not b: return got
            got += b
    except OSError as e:
        return got
%s
`, port, code))
	spec.Port, spec.Serve = port, serve
	return spec
}

func TestProgramsAsk(t *testing.T) {
	_, c := start(t)
	warm(t, c, guesttest.Warm(t, guesttest.Python))
	got := run(t, c, asking(t, echo, `
print(ask(b"hello"))
print(ask())
print(ask(b"x" * 60000)[1] == b"x" * 60000)
out = []
threads = [threading.Thread(target=lambda i=i: out.append(ask(b"%d" % i))) for i in range(50)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(int(b) for s, b in out) == list(range(50)))
print(raw(b"POST / HTTP/1.1\r\ncontent-LENGTH: 2\r\n", b"\r\no", b"k")[-2:])
`))
	if got.stdout != "(200, b'hello')\n(200, b'')\nTrue\nTrue\nb'ok'\n" || !got.Warm {
		t.Errorf("got %+v", got)
	}
	big := strings.Repeat("y", initclient.MaxResponse-1000)
	got = run(t, c, asking(t, func(context.Context, []byte) []byte { return respond(big) }, `
s, b = ask(b"hello")
print(s, b == b"y" * (4 * 1024 * 1024 - 1000))
`))
	if got.stdout != "200 True\n" {
		t.Errorf("got %+v", got)
	}
	got = run(t, c, asking(t, func(context.Context, []byte) []byte { return make([]byte, initclient.MaxResponse+1) }, "print(ask()[0])"))
	if got.stdout != "502\n" {
		t.Errorf("got %+v", got)
	}
}

// TestBadRequests: what is no request is refused by the guest, and the host hears nothing
// of it.
func TestBadRequests(t *testing.T) {
	_, c := start(t)
	var served atomic.Int32
	got := run(t, c, asking(t, func(context.Context, []byte) []byte { served.Add(1); return respond("") }, `
def status(*parts): print(raw(*parts).split(b"\r\n")[0].decode())
status(b"POST / HTTP/1.1\r\n" + b"A: b\r\n" * 4000)
status(b"POST / HTTP/1.1\r\nA: " + b"x" * 1000000)
status(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
status(b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"x" * 3000000)
status(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n")
status(b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx")
status(b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n")
connect().close()
`))
	want := "HTTP/1.1 431 Request Header Fields Too Large\n" + "HTTP/1.1 431 Request Header Fields Too Large\n" + "HTTP/1.1 411 Length Required\n" +
		"HTTP/1.1 413 Content Too Large\n" + strings.Repeat("HTTP/1.1 411 Length Required\n", 3)
	if got.stdout != want || served.Load() != 0 {
		t.Errorf("got %+v after %d requests", got, served.Load())
	}
}

// TestFloods: connections that send nothing, half a request, or read nothing keep no one
// from asking once they are gone, and the guest serves on.
func TestFloods(t *testing.T) {
	_, c := start(t)
	got := run(t, c, asking(t, func(_ context.Context, request []byte) []byte { return respond(strings.Repeat("z", 3<<20)) }, `
held = []
for i in range(1000):
    s = socket.socket(); s.setblocking(False)
    try: s.connect(("127.0.0.1", PORT))
    except BlockingIOError: pass
    held.append(s)
    if i > 500: held.pop(0).close()
for s in held[:20]:
    try: s.send(b"POST / HTTP/1.1\r\nContent-Le")
    except OSError: pass
print(len(held))
for s in held: s.close()
held = [connect() for _ in range(7)]
for s in held: s.sendall(b"POST / HTTP/1.1\r\n\r\n")
time.sleep(0.2)
s, b = ask()
print(s, len(b))
for s in held: s.close()
print(len(ask()[1]))
`))
	if got.stdout != fmt.Sprintf("501\n200 %d\n%d\n", 3<<20, 3<<20) {
		t.Errorf("got %+v", got)
	}
	healthy(t, c)
}

// TestRequestsEndWithTheRun: a request under way when the program ends is given up, and no
// later run is asked at its port.
func TestRequestsEndWithTheRun(t *testing.T) {
	g, c := start(t)
	ended := make(chan struct{})
	spec := asking(t, func(ctx context.Context, _ []byte) []byte {
		defer close(ended)
		if err := os.WriteFile(filepath.Join(g.Root(), "tmp/asked"), nil, 0o644); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return nil
	}, `
import os
s = connect(); s.sendall(b"POST / HTTP/1.1\r\n\r\n")
while not os.path.exists("/tmp/asked"): time.sleep(0.01)
`)
	if got := run(t, c, spec); got.ExitCode != 0 {
		t.Errorf("got %+v", got)
	}
	select {
	case <-ended:
	default:
		t.Error("the request is served on after the run's end")
	}
	later := asking(t, echo, fmt.Sprintf("PORT = %d\ntry: ask()\nexcept OSError as e: print(type(e).__name__)", spec.Port))
	later.Port, later.Serve = 0, nil
	if got := run(t, c, later); got.stdout != "ConnectionRefusedError\n" {
		t.Errorf("got %+v", got)
	}
	// A program that has taken the port keeps only itself from asking.
	taken := asking(t, echo, "")
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", taken.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := run(t, c, taken); got.ExitCode != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestHostIsKilledWhileItAnswers: the program is told, and the next host answers further
// requests.
func TestHostIsKilledWhileItAnswers(t *testing.T) {
	g := guesttest.Start(t)
	c := g.Dial(t)
	asked := make(chan struct{})
	spec := asking(t, func(ctx context.Context, _ []byte) []byte { close(asked); <-ctx.Done(); return respond("late") }, `
print(ask())
print(ask(b"again"))
`)
	spec.ID = initclient.NewRunID()
	go func() { <-asked; c.Leave() }()
	if _, err := c.Run(t.Context(), spec, nil); !errors.Is(err, initclient.ErrClosed) {
		t.Fatal(err)
	}
	next := g.Dial(t)
	var out bytes.Buffer
	res, err := next.Attach(t.Context(), spec.ID, nil, func(_ initclient.Stream, p []byte) { out.Write(p) }, echo)
	if err != nil || res.ExitCode != 0 || !strings.HasPrefix(out.String(), "(502, ") || !strings.HasSuffix(out.String(), "(200, b'again')\n") {
		t.Errorf("%+v, %v, %s", res, err, out.String())
	}
	healthy(t, next)
}

// TestAHostileGuestAsks: what no guest asks ends the conversation.
func TestAHostileGuestAsks(t *testing.T) {
	for name, test := range map[string]struct {
		port uint16
		asks func(nonce uint64) []wire.AskMessage
		fine bool
	}{
		"may not": {0, func(n uint64) []wire.AskMessage { return []wire.AskMessage{{Host: n, Number: 1}} }, false},
		"too long": {1, func(n uint64) []wire.AskMessage {
			return []wire.AskMessage{{Host: n, Number: 1, Request: make([]byte, wire.MaxAsk+1)}}
		}, false},
		"repeats": {1, func(n uint64) []wire.AskMessage { return []wire.AskMessage{{Host: n, Number: 1}, {Host: n, Number: 1}} }, false},
		"another host": {1, func(n uint64) []wire.AskMessage {
			return []wire.AskMessage{{Host: n + 1, Number: 1}, {Host: n + 1, Number: 1}}
		}, true},
		"more at once": {1, func(n uint64) (all []wire.AskMessage) {
			for i := range wire.MaxAsks + 1 {
				all = append(all, wire.AskMessage{Host: n, Number: uint64(i + 1)})
			}
			return all
		}, false},
		"as many as it may": {1, func(n uint64) (all []wire.AskMessage) {
			for i := range wire.MaxAsks {
				all = append(all, wire.AskMessage{Host: n, Number: uint64(i + 1)})
			}
			return all
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newImpostor(t)
			c, err := g.dial(t, wire.WelcomeMessage{Protocol: wire.Protocol})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				g.next(t, wire.Run)
				seq := uint64(0)
				for _, m := range test.asks(g.nonce) {
					seq++
					g.say(wire.Frame{Type: wire.Ask, ID: 7, Seq: seq, Payload: m.Append(nil)})
				}
				g.say(wire.Frame{Type: wire.Exit, ID: 7, Seq: seq + 1, Payload: exit(wire.ExitMessage{})})
			}()
			_, err = c.Run(t.Context(), initclient.RunSpec{ID: 7, Port: test.port, Serve: func(ctx context.Context, _ []byte) []byte { <-ctx.Done(); return nil }}, nil)
			if errors.Is(err, initclient.ErrProtocol) == test.fine {
				t.Errorf("got %v", err)
			}
		})
	}
}
