package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/egress"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
	"github.com/atoll-run/atoll/internal/node/netns"
)

const (
	perTransfer = 512 << 20
	gigabit     = 1e9 / 8
)

// network measures TCP through the egress of a sandbox, from a client of this
// machine's kernel in the sandbox's namespace, beside the machine's loopback.
func network(ctx context.Context, b *bench) (_ []report.Row, err error) {
	at, stop, err := serveBytes()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	inside, leave, err := egressTo(at)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, leave()) }()

	outside := func() (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", at.String()) }
	var through, direct, connects, bare report.Sample
	for range max(b.count(6), 2) { // by turns
		for _, c := range []struct {
			to   *report.Sample
			dial func() (net.Conn, error)
		}{{&through, inside}, {&direct, outside}} {
			d, err := download(c.dial)
			if err != nil {
				return nil, err
			}
			*c.to = append(*c.to, d)
		}
	}
	for range b.count(2000) {
		for _, c := range []struct {
			to   *report.Sample
			dial func() (net.Conn, error)
		}{{&connects, inside}, {&bare, outside}} {
			d, err := connect(c.dial)
			if err != nil {
				return nil, err
			}
			*c.to = append(*c.to, d)
		}
	}
	rate := func(s report.Sample) float64 { return perTransfer / s.Percentile(50).Seconds() / gigabit }
	must := min(0.6*rate(direct), 2)
	return []report.Row{
		{
			Case: "TCP download through the egress", Unit: "Gbit/s", Measured: rate(through), Must: report.AtLeast(must),
			Note: fmt.Sprintf("loopback makes %.1f Gbit/s; 60 %% of it or 2 Gbit/s, whichever is less", rate(direct)),
		},
		{
			Case: "connecting through the egress, p50", Unit: "ms", Must: report.AtMost(1), Sample: connects.Summary(),
			Measured: report.Milliseconds(connects.Percentile(50) - bare.Percentile(50)), Note: "until the first byte has come back; less what loopback takes",
		},
		{
			Case: "connecting through the egress, p99", Unit: "ms", Must: report.AtMost(3), Sample: connects.Summary(),
			Measured: report.Milliseconds(connects.Percentile(99) - bare.Percentile(50)), Note: "likewise",
		},
	}, nil
}

// serveBytes answers each connection's first byte with one, or if that is a 'd'
// with perTransfer.
func serveBytes() (at netip.AddrPort, stop func() error, err error) {
	host, err := ownAddress()
	if err != nil {
		return at, nil, err
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: host})
	if err != nil {
		return at, nil, err
	}
	chunk := make([]byte, 256<<10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var first [1]byte
				if _, err := c.Read(first[:]); err != nil {
					return
				}
				if first[0] != 'd' {
					_, _ = c.Write(first[:])
					return
				}
				for range perTransfer / len(chunk) {
					if _, err := c.Write(chunk); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort(), l.Close, nil
}

// ownAddress is an address of this machine that is not loopback, which in a
// namespace leads nowhere else.
func ownAddress() (net.IP, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP, nil
		}
	}
	return nil, errors.New("this machine has no IPv4 address but loopback")
}

// egressTo makes a namespace with an egress that leads to one address, and
// returns how to connect to that from inside.
func egressTo(at netip.AddrPort) (dial func() (net.Conn, error), leave func() error, err error) {
	l, err := netns.New(netns.Config{
		Address: egress.SandboxAddress, MAC: egress.SandboxMAC, Gateway: egress.Gateway, GatewayMAC: egress.GatewayMAC, MTU: egress.MTU,
	})
	if err != nil {
		return nil, nil, err
	}
	ns, err := os.Open(l.Path())
	tap := l.Release()
	if err != nil {
		return nil, nil, errors.Join(err, tap.Close())
	}
	one := netip.PrefixFrom(at.Addr(), at.Addr().BitLen())
	s, err := egress.New(egress.Config{Open: []rules.Opening{{Net: one, Port: at.Port()}}}, tap,
		runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedCIDRs: []netip.Prefix{one}}, nil)
	if err != nil {
		return nil, nil, errors.Join(err, ns.Close(), tap.Close())
	}
	jobs, entered := make(chan func()), make(chan error)
	go func() {
		goruntime.LockOSThread() // and never unlocked: the thread ends in the namespace
		entered <- unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		for job := range jobs {
			job()
		}
	}()
	if err := <-entered; err != nil {
		close(jobs)
		return nil, nil, errors.Join(err, s.Close(), ns.Close())
	}
	dial = func() (c net.Conn, err error) {
		done := make(chan struct{})
		jobs <- func() { defer close(done); c, err = connectHere(at) }
		<-done
		return c, err
	}
	return dial, func() error { close(jobs); return errors.Join(s.Close(), ns.Close()) }, nil
}

// connectHere connects in the namespace of the calling thread.
func connectHere(at netip.AddrPort) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "client")
	defer f.Close()
	return net.FileConn(f)
}

// download is how long perTransfer takes.
func download(dial func() (net.Conn, error)) (time.Duration, error) {
	c, err := dial()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	began := time.Now()
	if _, err := c.Write([]byte("d")); err != nil {
		return 0, err
	}
	buf := make([]byte, 256<<10)
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, buf)
	if err == nil && n != perTransfer {
		err = fmt.Errorf("%d bytes came, not %d", n, perTransfer)
	}
	return time.Since(began), err
}

// connect is how long a connection takes until its first byte has come back.
func connect(dial func() (net.Conn, error)) (time.Duration, error) {
	began := time.Now()
	c, err := dial()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		return 0, err
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return time.Since(began), err
}
