package sandboxes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/test/atolltest"
)

// echo is a program that sends back what it is sent, as it comes.
const echo = `
import socket, threading
def serve(c):
    with c:
        while b := c.recv(65536): c.sendall(b)
s = socket.create_server(("127.0.0.1", 4000), backlog=128)
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`

// echoing is a sandbox with that program in it, in use.
func echoing(t *testing.T, m *machine, p *tenant.Principal) sandbox.Handle {
	t.Helper()
	m.ensure(p, "s", "x", nil)
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	script := "cat > echo.py <<'end'\n" + echo + "end\n(python3 echo.py > /dev/null 2>&1 &); until (: < /dev/tcp/127.0.0.1/4000) 2> /dev/null; do sleep 0.05; done"
	if out, exit, err := run(t.Context(), h, script); err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v: %s", exit, err, out)
	}
	return h
}

func dial(t *testing.T, h sandbox.Handle) net.Conn {
	t.Helper()
	conn, err := h.Guest().Connect(t.Context(), 4000, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// exchange has the program send something back.
func exchange(conn net.Conn) error {
	if _, err := io.WriteString(conn, "ping"); err != nil {
		return err
	}
	b := make([]byte, 4)
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != "ping" {
		return fmt.Errorf("%q came back: %w", b, err)
	}
	return nil
}

// kernel asks a sandbox's kernel for something, as is done to freeze a sandbox that is not used.
func (m *machine) kernel(id runtime.ID, method string) {
	m.t.Helper()
	folder := filepath.Join(config.DefaultStateDir(m.dir), engine.Server, string(id), "runsc")
	dir, err := os.Open(folder)
	if err != nil {
		m.t.Fatal(err)
	}
	defer dir.Close()
	conn, err := new(net.Dialer).DialContext(m.t.Context(), "unix", fmt.Sprintf("/proc/self/fd/%d/runsc-%s.sock", dir.Fd(), id))
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, `{"method":%q,"arg":null}`, method)
	var answer struct{ Success bool }
	if err := errors.Join(err, json.NewDecoder(conn).Decode(&answer)); err != nil || !answer.Success {
		m.t.Fatalf("%s: %v, %v", method, answer, err)
	}
}

// TestConnectionsSurviveStandingStill: nothing is lost of what is under way both ways, and
// waits in the kernel, when the sandbox stands still for a moment.
func TestConnectionsSurviveStandingStill(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	h := echoing(t, m, p)
	defer h.Close()
	data := make([]byte, 12<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	began, stood := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for i := range 3 {
		conn := dial(t, h)
		wg.Go(func() {
			if _, err := conn.Write(data); err != nil {
				t.Error(err)
			}
			if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			first := make([]byte, 1<<20)
			if _, err := io.ReadFull(conn, first); err != nil {
				t.Error(err)
			}
			if i == 0 {
				close(began)
			}
			if i < 2 {
				<-stood // until then all that is between is full
			}
			rest, err := io.ReadAll(conn)
			if err != nil || !bytes.Equal(slices.Concat(first, rest), data) {
				t.Errorf("%d bytes came back of %d, %v", len(first)+len(rest), len(data), err)
			}
		})
	}
	<-began
	for range 10 {
		m.kernel(h.Sandbox().ID, "containerManager.Pause")
		time.Sleep(10 * time.Millisecond) // the load: it stands still
		m.kernel(h.Sandbox().ID, "containerManager.Resume")
		time.Sleep(10 * time.Millisecond) // the load: it goes on
	}
	close(stood)
	wg.Wait()
}

// TestConnectionsEndWithSleep: those that nobody uses neither keep a sandbox awake nor
// outlive its sleep, after which there are others.
func TestConnectionsEndWithSleep(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	h := echoing(t, m, p)
	conns := []net.Conn{dial(t, h), dial(t, h), dial(t, h)}
	for _, c := range conns[:2] {
		if err := exchange(c); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	m.sleep(p, "s", "x")
	for _, c := range conns {
		if n, err := c.Read(make([]byte, 1)); n > 0 || os.IsTimeout(err) || err == nil {
			t.Errorf("asleep it says %d bytes, %v", n, err)
		}
	}
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := exchange(dial(t, h)); err != nil {
		t.Error(err)
	}
}

// TestConnectionsEndWithTheSandbox: whoever waits for a program of a sandbox that is
// destroyed, or whose kernel was killed, is told.
func TestConnectionsEndWithTheSandbox(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	h := echoing(t, m, p)
	defer h.Close()
	conn := dial(t, h)
	if err := exchange(conn); err != nil {
		t.Fatal(err)
	}
	if err := m.engine.Sandboxes().Remove(t.Context(), h.Sandbox().ID); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Error(err)
	}
}

// TestManyConnectionsLeaveNothing: more than the kernel carries at a time, and more than
// there can be, one after the other.
func TestManyConnectionsLeaveNothing(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	h := echoing(t, m, p)
	defer h.Close()
	round := func(n int) {
		t.Helper()
		conns := make([]net.Conn, n)
		for i := range conns {
			conns[i] = dial(t, h)
		}
		for _, c := range conns {
			if err := exchange(c); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range conns {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	// What the daemon has of threads, and the kernel of descriptors of this machine.
	counts := func() (threads, descriptors int) {
		out := m.shell(p, "s", "x", `for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline | grep -q atoll-guestd && grep Threads $p/status; done | tail -n 1 | tr -dc 0-9`)
		threads, err := strconv.Atoi(out)
		if err != nil {
			t.Fatal(err)
		}
		return threads, m.kernelFiles()
	}
	round(150)
	_, before := counts()
	for range 5 {
		round(150)
	}
	atolltest.Until(t, 10*time.Second, "descriptors are given back", func() bool {
		_, now := counts()
		return now <= before+50 // the kernel's own are a few more or less
	})
	if threads, _ := counts(); threads > 90 {
		t.Errorf("the daemon has %d threads", threads)
	}
}

// kernelFiles is how many descriptors that kernel of this machine's sandboxes has that has
// most. Its helper processes have the same ones, and are more or fewer.
func (m *machine) kernelFiles() (n int) {
	m.t.Helper()
	left, err := atolltest.Trace(m.dir).Find()
	if err != nil {
		m.t.Fatal(err)
	}
	for _, p := range left.Processes {
		pid, _, _ := strings.Cut(p, " ")
		if list, err := os.ReadDir("/proc/" + pid + "/fd"); err == nil {
			n = max(n, len(list))
		}
	}
	return n
}

// tryJoin makes the system call by which the kernel carries bytes, on sockets that are joined
// in a circle, so that it never waits.
const tryJoin = `
import ctypes, socket, threading, time
call = ctypes.CDLL(None, use_errno=True).syscall
memory = ctypes.create_string_buffer(64 << 10)
def join(a, b):
    n = call(1999, a.fileno(), b.fileno(), memory)
    return ctypes.get_errno() if n < 0 else 0
a, b = socket.socketpair()
c, d = socket.socketpair()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print(join(u, a), call(1999, 0, 900, memory), flush=True)
%s
`

// TestNoProgramJoins: the system call is not there for programs.
func TestNoProgramJoins(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	if got := m.shell(p, "s", "x", "python3 -c '"+strings.ReplaceAll(fmt.Sprintf(tryJoin, "print(join(a, c))"), "'", `"`)+"'"); got != "38 -1\n38" {
		t.Errorf("it answers %q, not ENOSYS", got)
	}
}

// TestRootJoinsInACircle: what root of a sandbox can do with it harms neither the sandbox nor
// keeps it from standing still.
func TestRootJoinsInACircle(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a", func(p *tenant.Principal) {
		p.Tenant.RootEnabled, p.Environment.Permissions.Process.Root = true, true
	})
	m.ensure(p, "s", "x", nil)
	circle := fmt.Sprintf(tryJoin, `
threads = [threading.Thread(target=join, args=x, daemon=True) for x in ((b, c), (d, a), (b, d), (a, a))]
for t in threads: t.start()
for i in range(64): a.send(b"x" * 4096)
print("begun", flush=True)
time.sleep(1000)`)
	m.shell(p, "s", "x", "cat > join.py <<'end'\n"+circle+"end\n(python3 join.py > log 2>&1 &); until grep begun log; do sleep 0.1; done; cat log")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if sb, err := m.Sleep(ctx, p, "s", "x"); err != nil || sb.State != sandbox.Sleeping {
		t.Errorf("asleep: %+v, %v", sb, err)
	}
	if got := m.shell(p, "s", "x", "pkill -9 -f [j]oin.py; echo well"); got != "well" {
		t.Errorf("awake it says %q", got)
	}
}
