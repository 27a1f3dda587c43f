package runtimetest

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/netns"
)

// The network of the suite's sandboxes.
var network = netns.Config{
	Address: netip.MustParsePrefix("192.0.2.2/24"), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2},
	Gateway: netip.MustParseAddr("192.0.2.1"), GatewayMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, MTU: 1500,
}

const echo = "198.51.100.7:7" // behind the gateway

// testNetwork: a sandbox that is given a namespace has its device and no other,
// until its own end, whichever process is at the other end of it.
func testNetwork(t *testing.T, f *fixture) {
	if f.NoNetwork {
		spec := f.spec(t)
		spec.Network = &runtime.Network{Namespace: "/proc/self/ns/net", Resolver: network.Gateway}
		if _, err := f.runtime.Create(t.Context(), spec); !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("Create with a network: %v", err)
		}
		return
	}
	link := newLink(t)
	b := f.create(t, withLink(link))
	tap := link.Release()
	var r report
	b.ask(t, &r, "report")
	slices.Sort(r.Interfaces)
	if !slices.Equal(r.Interfaces, []string{netns.Device, "lo"}) {
		t.Errorf("network interfaces: %q", r.Interfaces)
	}
	for what, e := range r.Tries {
		if e == "" && what != "send a datagram" {
			t.Errorf("the program can: %s", what)
		}
	}
	checkNetwork(t, b, tap)

	// The process that made it dies; the next one finds the device.
	must(t, tap.Close())
	must(t, b.guest.Close())
	b.guest = nil
	must(t, b.Detach())
	f.reopen(t)
	inst, err := f.runtime.Open(t.Context(), b.ID())
	must(t, err)
	b = f.adopt(t, inst)
	if tap, err = netns.Attach(inst.Namespace()); err != nil {
		t.Fatal(err)
	}
	checkNetwork(t, b, tap)
	must(t, tap.Close())
	if !f.Driver.Checkpoint {
		return
	}

	dir := filepath.Join(t.TempDir(), "checkpoint")
	must(t, os.Mkdir(dir, 0o700))
	must(t, b.guest.Close())
	b.guest = nil
	must(t, b.Checkpoint(t.Context(), dir))
	must(t, b.Destroy(t.Context()))
	link = newLink(t)
	spec := f.spec(t)
	withLink(link)(&spec)
	inst, err = f.runtime.Restore(t.Context(), spec, dir, false)
	must(t, err)
	restored := f.adopt(t, inst)
	tap = link.Release()
	checkNetwork(t, restored, tap)
	must(t, tap.Close())
}

func newLink(t *testing.T) *netns.Link {
	t.Helper()
	link, err := netns.New(network)
	must(t, err)
	t.Cleanup(func() { link.Close() })
	return link
}

func withLink(l *netns.Link) func(*runtime.Spec) {
	return func(s *runtime.Spec) { s.Network = &runtime.Network{Namespace: l.Path(), Resolver: network.Gateway} }
}

// checkNetwork checks that what a program sends comes out of the device, and the
// answer back.
func checkNetwork(t *testing.T, b *box, tap *os.File) {
	t.Helper()
	if got, want := b.run(t, "read", "/etc/resolv.conf"), "nameserver "+network.Gateway.String()+"\n"; got != want {
		t.Errorf("/etc/resolv.conf holds %q, not %q", got, want)
	}
	answered := make(chan error, 1)
	go func() { answered <- answer(tap) }()
	defer func() {
		must(t, tap.SetReadDeadline(time.Now()))
		if err := <-answered; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		must(t, tap.SetReadDeadline(time.Time{}))
	}()
	if got := b.run(t, "ask", echo, "is this heard?"); got != "is this heard?" {
		t.Errorf("the answer is %q", got)
	}
}

// answer plays the whole world for datagrams, which it sends back to where they came
// from: with their ends exchanged, their sums stay right.
func answer(tap *os.File) error {
	frame := make([]byte, 2048)
	for {
		n, err := tap.Read(frame)
		if err != nil {
			return err
		}
		p := frame[:n]
		if n < 42 || p[12] != 8 || p[13] != 0 || p[23] != 17 || p[36] != 0 || p[37] != 7 {
			continue // no IPv4, no UDP, or not to this port
		}
		exchange(p[:6], p[6:12])
		exchange(p[26:30], p[30:34])
		exchange(p[34:36], p[36:38])
		if m, err := tap.Write(p); err != nil || m != n {
			return errors.Join(err, errors.New("a frame was cut"))
		}
	}
}

func exchange(a, b []byte) {
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
}
