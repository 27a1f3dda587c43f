package egress

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// listen serves connections at an address and port.
func listen(t testing.TB, address string, serve func(*net.TCPConn)) netip.AddrPort {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func hosts(names ...string) runtime.NetworkPolicy {
	return runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: names}
}

// query asks the sandbox's resolver.
func (r *rig) query(t testing.TB, name string, kind uint16) *dns.Msg {
	t.Helper()
	c, err := r.dial("udp", netip.AddrPortFrom(Gateway, 53).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), kind)
	co := &dns.Conn{Conn: c}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if err := co.WriteMsg(m); err != nil {
		t.Fatal(err)
	}
	a, err := co.ReadMsg()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return a
}

func TestConnect(t *testing.T) {
	at := listen(t, "203.0.113.7:7", func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	r := newRig(t, Config{}, hosts("echo.test"))
	r.zone.set("echo.test", "203.0.113.7")
	if _, err := r.dial("tcp", at.String()); err != unix.ECONNREFUSED {
		t.Fatalf("an address that no name has led to: %v", err)
	}
	r.events.await(t, Event{Protocol: "tcp", Port: at.Port(), Rule: RuleAddress})
	if a := r.query(t, "echo.test", dns.TypeA); len(a.Answer) != 1 {
		t.Fatalf("the answer is %v", a)
	}
	c, err := r.dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello, echo\n")); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "hello, echo\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if u := r.Usage(); u.BytesIn != 12 || u.BytesOut != 12 || u.Connections != 1 || len(u.Hosts) != 1 || u.Hosts[0] != "echo.test" {
		t.Errorf("usage is %+v", u)
	}
}
