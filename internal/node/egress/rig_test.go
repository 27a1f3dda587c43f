package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	goruntime "runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/netns"
	"github.com/atoll-run/atoll/test/atolltest"
)

// TestMain runs the tests, and what they start to fuzz, in a network namespace of
// their own: the machine, which
// has the addresses of some others.
func TestMain(m *testing.M) {
	if os.Getenv("EGRESS_TEST_MACHINE") == "" {
		goruntime.LockOSThread() // a program begins in the namespace of the thread that starts it
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), "EGRESS_TEST_MACHINE=1"))
		}
		fmt.Fprintln(os.Stderr, "make a machine:", err)
		os.Exit(1)
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "replace", "203.0.113.1/24", "dev", "lo"}, // is ours; the others of the network answer, and are not
		{"addr", "replace", "198.51.100.1/24", "dev", "lo"},
		{"addr", "replace", "10.1.2.1/24", "dev", "lo"},
		{"addr", "replace", "169.254.169.1/24", "dev", "lo"},
		{"route", "replace", "default", "dev", "lo"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "ip %v: %v: %s\n", args, err, out)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// rig is a Stack at the end of a TAP device in a network namespace of its own,
// where clients are in the place of a sandbox.
type rig struct {
	*Stack
	events events
	zone   *zone

	inside chan func() // runs in the namespace
}

// events keeps what a Stack has reported.
type events struct {
	mu   sync.Mutex
	list []Event
	more chan struct{}
}

func (e *events) observe(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// await waits for an event that is like want, where want says anything.
func (e *events) await(t testing.TB, want Event) {
	t.Helper()
	for {
		e.mu.Lock()
		list := append([]Event(nil), e.list...)
		e.mu.Unlock()
		for _, got := range list {
			if got.Rule == want.Rule && (want.Host == "" || got.Host == want.Host) && (want.Port == 0 || got.Port == want.Port) &&
				(want.Protocol == "" || got.Protocol == want.Protocol) {
				return
			}
		}
		atolltest.Heard(t, e.more, fmt.Sprintf("an event like %+v, but %+v", want, list))
	}
}

// zone resolves names, and keeps which were asked for.
type zone struct {
	mu    sync.Mutex
	names map[string][]netip.Addr
	asked []string
}

func (z *zone) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked = append(z.asked, host)
	if addrs := z.names[host]; addrs != nil {
		return addrs, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (z *zone) set(name string, addrs ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.names[name+"."] = nil
	for _, a := range addrs {
		z.names[name+"."] = append(z.names[name+"."], netip.MustParseAddr(a))
	}
}

func newRig(t testing.TB, cfg Config, policy runtime.NetworkPolicy) *rig {
	t.Helper()
	r := &rig{zone: &zone{names: map[string][]netip.Addr{}}, inside: make(chan func())}
	r.events.more = make(chan struct{}, 1)
	l, err := netns.New(netns.Config{Address: SandboxAddress, MAC: SandboxMAC, Gateway: Gateway, GatewayMAC: GatewayMAC, MTU: MTU})
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan error)
	go func() {
		goruntime.LockOSThread() // and never unlocked: the thread ends in its namespace
		ns, err := os.Open(l.Path())
		if err == nil {
			err = errors.Join(unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET), ns.Close())
		}
		entered <- err
		for f := range r.inside {
			f()
		}
	}()
	t.Cleanup(func() { close(r.inside) })
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	link := l.Release()
	if cfg.Resolver == nil {
		cfg.Resolver = r.zone
	}
	if r.Stack, err = New(cfg, link, policy, r.events.observe); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// in runs f in the namespace, on the one thread that is there: whatever it does
// must be done by system calls of that thread.
func (r *rig) in(f func()) {
	done := make(chan struct{})
	r.inside <- func() { defer close(done); f() }
	<-done
}

// dial connects from inside. What is dropped in place of refused shows as ETIMEDOUT.
func (r *rig) dial(network, address string) (c net.Conn, err error) {
	to := netip.MustParseAddrPort(address)
	kind := unix.SOCK_STREAM
	if network == "udp" {
		kind = unix.SOCK_DGRAM
	}
	var fd int
	r.in(func() {
		if fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		err = unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
		if err == unix.EINTR { // it goes on connecting
			err = connected(fd)
		}
	})
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "client")
	defer f.Close()
	return net.FileConn(f)
}

// queries are the names that were asked for.
func (z *zone) queries() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return append([]string(nil), z.asked...)
}

// connected awaits the end of a connect that was interrupted.
func connected(fd int) error {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		return err
	}
}
