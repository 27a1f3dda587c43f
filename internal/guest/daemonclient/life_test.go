package daemonclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
)

// TestTakeOver: what a host that is killed leaves is there for the next.
func TestTakeOver(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	spec := process.Spec{Shell: "n=0; while read -t 60 x; do n=$((n+1)); echo $n $x; done; exit 6", Env: clienttest.Env, Input: true, Lossless: true}
	p := start(t, c, spec)
	o := follow(t, c, p.ID, 0)
	if _, err := c.Write(t.Context(), p.ID, []byte("a\n")); err != nil {
		t.Fatal(err)
	}
	_, at := until(t, o, "1 a\n")
	quick := start(t, c, shell("sleep 0.1; echo said without a listener; exit 7"))
	running, err := c.Run(t.Context(), shell("sleep 0.2; echo end; exit 8"))
	if err != nil {
		t.Fatal(err)
	}
	runID := running.Info().ID
	waited := make(chan error, 1)
	go func() {
		_, err := c.Wait(context.WithoutCancel(t.Context()), p.ID)
		waited <- err
	}()
	c.Cut()
	if err := <-waited; !errors.Is(err, process.ErrGone) {
		t.Errorf("Wait: %v", err)
	}
	if _, err := o.Next(); !errors.Is(err, process.ErrGone) {
		t.Errorf("Next: %v", err)
	}
	if _, err := running.Next(); !errors.Is(err, process.ErrGone) {
		t.Errorf("Next: %v", err)
	}
	if _, err := c.Processes(t.Context()); !errors.Is(err, process.ErrGone) {
		t.Errorf("Processes: %v", err)
	}
	<-c.Done()

	for range 5 {
		next := s.Dial(t)
		if next.Instance() != c.Instance() {
			t.Fatal("there is another guest daemon")
		}
		next.Cut()
	}
	next := s.Dial(t)
	o = follow(t, next, p.ID, at)
	if _, err := next.Write(t.Context(), p.ID, []byte("b\n")); err != nil {
		t.Fatal(err)
	}
	if got, _ := until(t, o, "\n"); got != "2 b\n" {
		t.Errorf("it goes on with %q", got)
	}
	if err := next.CloseInput(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.Code != 6 {
		t.Errorf("%+v", got)
	}
	if e, err := next.Wait(t.Context(), quick.ID); err != nil || e.Code != 7 {
		t.Errorf("%+v, %v", e, err)
	}
	if got := all(t, follow(t, next, quick.ID, 0)); got.out[0] != "said without a listener\n" {
		t.Errorf("%+v", got)
	}
	if got := all(t, follow(t, next, runID, 0)); got.out[0] != "end\n" || got.Code != 8 {
		t.Errorf("%+v", got)
	}
}

// TestDialFails: what keeps the guest daemon from coming is told, and harms nothing.
func TestDialFails(t *testing.T) {
	s := clienttest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := daemonclient.Dial(ctx, s.Meeting, func(context.Context) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no daemon comes: %v", err)
	}
	refused := errors.New("refused")
	if _, err := daemonclient.Dial(t.Context(), s.Meeting, func(context.Context) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("no cue: %v", err)
	}
	if _, err := daemonclient.Dial(t.Context(), filepath.Join(s.Meeting, "no"), s.Cue); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	c := s.Dial(t)
	if got := run(t, c, "echo well"); got.out[0] != "well\n" {
		t.Errorf("got %+v", got)
	}
	// A cue while there is a conversation begins another one.
	second := s.Dial(t)
	<-c.Done()
	if got := run(t, second, "echo well"); got.out[0] != "well\n" {
		t.Errorf("got %+v", got)
	}
}

func TestPorts(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	_, err := c.Connect(t.Context(), 8000, 0)
	kind(t, err, fault.NotFound, "port 8000")
	const server = `
import http.server, socket, sys, threading
class H(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
class V6(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        super().server_bind()
def echo(s):
    while True:
        c, _ = s.accept()
        def serve(c=c):
            total = 0
            while True:
                b = c.recv(65536)
                if not b: break
                total += len(b)
                c.sendall(b)
            c.sendall(b"|%d" % total); c.close(); print("closed", flush=True)
        threading.Thread(target=serve, daemon=True).start()
e = socket.create_server(("127.0.0.1", 9000))
threading.Thread(target=echo, args=(e,), daemon=True).start()
threading.Thread(target=V6(("::1", 8001), H).serve_forever, daemon=True).start()
h = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), H)
print("ready", flush=True)
h.serve_forever()
`
	create(t, c, "index.html", "<p>hello")
	p := start(t, c, process.Spec{Argv: []string{"python3", "-c", server}, Env: clienttest.Env, Lossless: true})
	o := follow(t, c, p.ID, 0)
	until(t, o, "ready\n")
	web := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		if strings.HasSuffix(addr, ":8001") {
			return c.Connect(ctx, 8001, 0)
		}
		return c.Connect(ctx, 8000, 0)
	}}}
	defer web.CloseIdleConnections()
	for _, url := range []string{"http://x:8000/", "http://x:8000/", "http://x:8001/"} {
		r, err := web.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || string(body) != "<p>hello" {
			t.Errorf("%s: %q, %v", url, body, err)
		}
	}
	conn, err := c.Connect(t.Context(), 9000, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := strings.Repeat("0123456789", 100_000)
	go func() {
		io.WriteString(conn, data)
		conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	back, err := io.ReadAll(conn)
	if err != nil || string(back) != data+"|1000000" {
		t.Errorf("%d bytes came back: %v", len(back), err)
	}
	conn.Close()
	until(t, o, "closed\n")
	// The program sees when the host goes away, in whichever state.
	for _, how := range []func(net.Conn){
		func(c net.Conn) { c.Close() },
		func(c net.Conn) { io.WriteString(c, "x"); c.Read(make([]byte, 1)); c.Close() },
		func(c net.Conn) { c.(interface{ CloseWrite() error }).CloseWrite(); c.Close() },
	} {
		conn, err := c.Connect(t.Context(), 9000, 0)
		if err != nil {
			t.Fatal(err)
		}
		how(conn)
		until(t, o, "closed\n")
	}
}

// TestManyConnections checks that neither a reader who is late nor how many
// connections there were keeps others from going on.
func TestManyConnections(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	const echo = `
import socket, threading
def serve(c):
    with c:
        while b := c.recv(65536): c.sendall(b)
s = socket.create_server(("127.0.0.1", 9000), backlog=64)
print("ready", flush=True)
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`
	p := start(t, c, process.Spec{Argv: []string{"python3", "-c", echo}, Env: clienttest.Env, Lossless: true})
	until(t, follow(t, c, p.ID, 0), "ready\n")
	data := strings.Repeat("0123456789abcdef", 256<<10)
	var group errgroup.Group
	read := make(chan struct{}) // closed when all but one have their data
	var others sync.WaitGroup
	for i := range 8 {
		conn, err := c.Connect(t.Context(), 9000, 0)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() error {
			_, err := io.WriteString(conn, data)
			return errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite())
		})
		if i > 0 {
			others.Add(1)
		}
		group.Go(func() error {
			defer conn.Close()
			if i == 0 {
				<-read
			} else {
				defer others.Done()
			}
			back, err := io.ReadAll(conn)
			if err == nil && string(back) != data {
				err = fmt.Errorf("%d bytes came back", len(back))
			}
			return err
		})
	}
	others.Wait()
	close(read)
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	for range 600 { // more than there can be at a time
		conn, err := c.Connect(t.Context(), 9000, 0)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
}

// TestATerminalThatNobodyReads: what cannot be written there holds nothing up, and
// keeps no other host away.
func TestATerminalThatNobodyReads(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	p := start(t, c, process.Spec{Argv: []string{"sleep", "1000"}, Env: clienttest.Env, Terminal: &process.Size{Rows: 10, Columns: 20}})
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	full, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := c.Write(full, p.ID, []byte(strings.Repeat("x\n", 1<<20))); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a terminal takes 2 MiB: %v", err)
	}
	kind(t, c.CloseInput(soon(), p.ID), fault.Conflict, "does not read")
	if err := c.Signal(soon(), p.ID, syscall.SIGTSTP, true); err != nil {
		t.Errorf("a signal: %v", err)
	}
	c.Cut()
	<-c.Done()
	c = s.Dial(t)
	if err := c.Kill(soon(), p.ID); err != nil {
		t.Errorf("its end: %v", err)
	}
	if e, err := c.Wait(soon(), p.ID); err != nil || e.Signal != syscall.SIGKILL {
		t.Errorf("it ended with %+v, %v", e, err)
	}
}
