package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// hostile is something that a program tries. good.test (203.0.113.10) and what
// is below wild.test are allowed; evil.test (203.0.113.11) is not.
type hostile struct {
	name   string
	policy *runtime.NetworkPolicy // default: as above
	look   string                 // a name to look up before, beside good.test
	do     func(*testing.T, *rig)
	want   Event
}

const (
	good = "203.0.113.10"
	evil = "203.0.113.11"
)

// connects expects a connection to be refused.
func connects(address string) func(*testing.T, *rig) {
	return func(t *testing.T, r *rig) {
		c, err := r.dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("connecting to %s: %v", address, err)
		}
	}
}

// says expects a connection to be made, and to be reset, or to be answered 403,
// once it has said something.
func says(address string, parts ...string) func(*testing.T, *rig) {
	return func(t *testing.T, r *rig) {
		c, err := r.dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, p := range parts {
			if _, err := io.WriteString(c, p); err != nil && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
				t.Fatal(err)
			}
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		answer, err := io.ReadAll(c)
		if errors.Is(err, unix.ECONNRESET) { // also after something of the server's
			return
		}
		if err != nil || !strings.Contains(string(answer), " 403 ") && !strings.Contains(string(answer), " 400 ") && !strings.Contains(string(answer), " 501 ") {
			t.Errorf("not reset, but answered %q, %v", answer, err)
		}
	}
}

// sends expects a datagram to be answered with ICMP.
func sends(address, datagram string) func(*testing.T, *rig) {
	return func(t *testing.T, r *rig) {
		c, err := r.dial("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, datagram)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("sending to %s: %v", address, err)
		}
	}
}

// asks expects a name not to exist, and no resolver to be asked for it.
func asks(name string, kind uint16) func(*testing.T, *rig) {
	return func(t *testing.T, r *rig) {
		a := r.query(t, name, kind)
		if a.Rcode != dns.RcodeNameError || len(a.Answer)+len(a.Ns) > 0 {
			t.Errorf("the answer is %v", a)
		}
		for _, asked := range r.zone.queries() {
			if asked != "good.test." {
				t.Errorf("the world was asked for %q", asked)
			}
		}
	}
}

func get(target string, headers ...string) string {
	return "GET " + target + " HTTP/1.1\r\n" + strings.Join(append(headers, "", ""), "\r\n")
}

const ask = "GET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n"

var hostiles = []hostile{
	// Names.
	{name: "a name that is not allowed", do: asks("evil.test", dns.TypeA), want: Event{Protocol: "dns", Host: "evil.test", Rule: RuleHost}},
	{name: "data in a name", do: asks("c2VjcmV0.evil.test", dns.TypeA), want: Event{Host: "c2VjcmV0.evil.test", Rule: RuleHost}},
	{name: "TXT tunnel", do: asks("c2VjcmV0.evil.test", dns.TypeTXT), want: Event{Rule: RuleHost}},
	{name: "NULL tunnel", do: asks("c2VjcmV0.evil.test", dns.TypeNULL), want: Event{Rule: RuleHost}},
	{name: "ANY", do: asks("evil.test", dns.TypeANY), want: Event{Rule: RuleHost}},
	{name: "MX", do: asks("evil.test", dns.TypeMX), want: Event{Rule: RuleHost}},
	{name: "PTR", do: asks("11.113.0.203.in-addr.arpa", dns.TypePTR), want: Event{Rule: RuleHost}},
	{name: "the allowed name within another", do: asks("good.test.evil.test", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "the allowed name as the end of another", do: asks("evilgood.test", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "below a name that is allowed alone", do: asks("evil.good.test", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "a wildcard's own name", do: asks("wild.test", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "the end of a wildcard's name", do: asks("evilwild.test", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "NUL in a name", do: asks(`good.test\000.evil.test`, dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "NUL after an allowed name", do: asks(`good.test\000evil`, dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "dot within a label", do: asks(`evil\.good.test`, dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "Unicode in a name", do: asks(`\103\114\195\188n.test`, dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "letters that look like others", do: asks("xn--god-pla.test", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "a number as a name", do: asks("3405803787", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "a hexadecimal number as a name", do: asks("0xcb00710b", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "an address as a name", do: asks("203.0.113.11", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "an octal address as a name", do: asks("0313.0.0161.013", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "the root", do: asks(".", dns.TypeNS), want: Event{Rule: RuleHost}},
	{name: "numbers where every name is allowed", policy: only("*"), do: asks("2130706433", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "an empty list", policy: only(), do: asks("good.test", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "no network", policy: &runtime.NetworkPolicy{}, do: asks("good.test", dns.TypeA), want: Event{Rule: RuleHost}},
	{name: "a name that leads inside", policy: only("good.test", "inside.test"), do: leads("inside.test"), want: Event{Host: "inside.test", Rule: RuleFloor}},
	{name: "a name that leads to metadata", policy: only("*"), do: leads("metadata.test"), want: Event{Rule: RuleFloor}},
	{name: "a name that leads home", policy: only("*"), do: leads("loopback.test"), want: Event{Rule: RuleFloor}},
	{name: "a name that leads to the machine", policy: only("*"), do: leads("machine.test"), want: Event{Rule: RuleFloor}},
	{name: "a name that leads inside, unrestricted", policy: &runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted}, do: leads("inside.test"), want: Event{Rule: RuleFloor}},

	// Addresses.
	{name: "an address that was not looked up", do: connects(evil + ":80"), want: Event{Protocol: "tcp", Port: 80, Rule: RuleAddress}},
	{name: "the same with TLS", do: connects(evil + ":443"), want: Event{Port: 443, Rule: RuleAddress}},
	{name: "DNS over TLS", do: connects(evil + ":853"), want: Event{Port: 853, Rule: RuleAddress}},
	{name: "DNS over TCP elsewhere", do: connects(evil + ":53"), want: Event{Port: 53, Rule: RuleAddress}},
	{name: "every name is allowed, and none was looked up", policy: only("*"), do: connects(evil + ":443"), want: Event{Rule: RuleAddress}},
	{name: "an allowed name that was not looked up", do: connects("203.0.113.12:80"), want: Event{Rule: RuleAddress}},
	{name: "no network", policy: &runtime.NetworkPolicy{}, do: connects(good + ":80"), want: Event{Rule: RuleBlocked}},
	{name: "an empty list", policy: only(), do: connects(good + ":80"), want: Event{Rule: RuleAddress}},
	{name: "a blocked port", policy: &runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"good.test"}, BlockedPorts: []uint16{22}},
		do: connects(good + ":22"), want: Event{Port: 22, Rule: RulePort, Host: "good.test"}},
	{name: "a blocked port, unrestricted", policy: &runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted, BlockedPorts: []uint16{22}},
		do: connects(evil + ":22"), want: Event{Port: 22, Rule: RulePort}},
	{name: "beside a CIDR", policy: cidr("203.0.113.16/28"), do: connects(evil + ":80"), want: Event{Rule: RuleAddress}},
	{name: "a CIDR over private addresses", policy: cidr("10.0.0.0/8"), do: connects("10.1.2.9:80"), want: Event{Rule: RuleFloor}},
	{name: "a CIDR over everything", policy: cidr("0.0.0.0/0"), do: connects("169.254.169.254:80"), want: Event{Rule: RuleFloor}},
	{name: "an address as an allowed host", policy: only("10.1.2.9"), do: connects("10.1.2.9:80"), want: Event{Rule: RuleFloor}},
	{name: "private, unrestricted", policy: unrestricted, do: connects("10.1.2.9:80"), want: Event{Rule: RuleFloor}},
	{name: "metadata, unrestricted", policy: unrestricted, do: connects("169.254.169.254:80"), want: Event{Port: 80, Rule: RuleFloor}},
	{name: "the machine's own, unrestricted", policy: unrestricted, do: connects("203.0.113.1:80"), want: Event{Rule: RuleFloor}},
	{name: "carriers' private, unrestricted", policy: unrestricted, do: connects("100.100.100.200:80"), want: Event{Rule: RuleFloor}},
	{name: "reserved, unrestricted", policy: unrestricted, do: connects("240.0.0.1:80"), want: Event{Rule: RuleFloor}},
	{name: "Azure's host, unrestricted", policy: unrestricted, do: connects("168.63.129.16:80"), want: Event{Rule: RuleFloor}},
	{name: "the gateway", policy: unrestricted, do: connects(Gateway.String() + ":80"), want: Event{Rule: RuleFloor}},

	// TLS.
	{name: "TLS to another name", do: says(good+":443", hello(sni("evil.test"))), want: Event{Protocol: "tls", Host: "evil.test", Port: 443, Rule: RuleTLSName}},
	{name: "TLS to another name, cut into records", do: says(good+":443", records(helloMessage(sni("evil.test")), 7)), want: Event{Rule: RuleTLSName}},
	{name: "TLS to another name, byte by byte", do: says(good+":443", strings.Split(hello(sni("evil.test")), "")...), want: Event{Rule: RuleTLSName}},
	{name: "TLS to another name on another port", do: says(good+":9443", hello(sni("evil.test"))), want: Event{Rule: RuleTLSName}},
	{name: "TLS to a name of another address", look: "a.wild.test", do: says(good+":443", hello(sni("a.wild.test"), ext{99, []byte("evil")})), want: Event{Rule: RuleTLSName}},
	{name: "TLS without a name", do: says(good+":443", hello(ext{99, []byte("evil")})), want: Event{Rule: RuleTLSName}},
	{name: "TLS to an address", do: says(good+":443", hello(sni("203.0.113.10"), ext{99, []byte("evil")})), want: Event{Rule: RuleTLSName}},
	{name: "TLS to a name with a dot", do: says(good+":443", hello(sni("good.test."), ext{99, []byte("evil")})), want: Event{Rule: RuleTLSName}},
	{name: "TLS to a name with NUL", do: says(good+":443", hello(sni("good.test\x00.evil.test"))), want: Event{Rule: RuleTLSName}},
	{name: "TLS to two names", do: says(good+":443", hello(sni("good.test", "evil.test"))), want: Event{Rule: RuleTLSHello}},
	{name: "TLS with names twice", do: says(good+":443", hello(sni("good.test"), sni("evil.test"))), want: Event{Rule: RuleTLSHello}},
	{name: "TLS with an encrypted name", do: says(good+":443", hello(sni("good.test"), ext{0xfe0d, []byte("evil")})), want: Event{Rule: RuleTLSECH}},
	{name: "TLS with an encrypted name of the first draft", do: says(good+":443", hello(sni("good.test"), ext{0xffce, []byte("evil")})), want: Event{Rule: RuleTLSECH}},
	{name: "TLS that is broken", do: says(good+":443", "\x16\x03\x01\x00\x08\x01\x00\x00\x04evil"), want: Event{Rule: RuleTLSHello}},
	{name: "TLS that does not begin with a hello", do: says(good+":443", "\x16\x03\x01\x00\x08\x02\x00\x00\x04evil"), want: Event{Rule: RuleTLSHello}},
	{name: "the hello of SSL 2", do: says(good+":443", "\x80\x2e\x01\x03\x01evil.test"), want: Event{Rule: RuleProtocol}},
	{name: "something else where TLS is spoken", do: says(good+":443", "SSH-2.0-evil\r\n"), want: Event{Rule: RuleProtocol}},
	{name: "something else where HTTP is spoken", do: says(good+":80", "\x00evil"), want: Event{Rule: RuleProtocol}},

	{name: "TLS to another name at the second attempt", do: says(good+":443", hello(sni("good.test")), hello(sni("evil.test"))), want: Event{Host: "good.test", Rule: RuleTLSName}},
	{name: "the same in one segment", do: says(good+":443", hello(sni("good.test"))+hello(sni("evil.test"))), want: Event{Rule: RuleTLSName}},
	{name: "the same after early data", do: says(good+":443", hello(sni("good.test"))+"\x17\x03\x03\x00\x01x", "\x14\x03\x03\x00\x01\x01"+records(helloMessage(sni("evil.test")), 9)), want: Event{Rule: RuleTLSName}},
	{name: "the same on another port", do: says(good+":9443", hello(sni("good.test")), hello(sni("evil.test"))), want: Event{Rule: RuleTLSName}},
	{name: "TLS that hides its name at the second attempt", do: says(good+":443", hello(sni("good.test")), hello(sni("good.test"), ext{0xfe0d, []byte("evil")})), want: Event{Rule: RuleTLSName}},
	{name: "something else than TLS after a hello", do: says(good+":443", hello(sni("good.test"))+"evil"), want: Event{Rule: RuleTLSName}},

	// HTTP.
	{name: "another host", do: says(good+":80", get("/", "Host: evil.test")), want: Event{Protocol: "http", Host: "evil.test", Port: 80, Rule: RuleHTTPHost}},
	{name: "another host on another port", do: says(good+":7", get("/", "Host: evil.test")), want: Event{Rule: RuleHTTPHost}},
	{name: "another host after blank lines", do: says(good+":7", "\r\n\r\n"+ask), want: Event{Rule: RuleHTTPForm}},
	{name: "another host by a method of its own", do: says(good+":7", "EVIL / HTTP/1.1\r\nHost: evil.test\r\n\r\n"), want: Event{Rule: RuleHTTPHost}},
	{name: "another host byte by byte", do: says(good+":80", strings.Split(ask, "")...), want: Event{Rule: RuleHTTPHost}},
	{name: "another host with a port", do: says(good+":80", get("/", "Host: evil.test:80")), want: Event{Rule: RuleHTTPHost}},
	{name: "an address as host", do: says(good+":80", get("/evil", "Host: 203.0.113.10")), want: Event{Rule: RuleHTTPHost}},
	{name: "an IPv6 address as host", do: says(good+":80", get("/evil", "Host: [::ffff:203.0.113.10]")), want: Event{Rule: RuleHTTPHost}},
	{name: "a number as host", do: says(good+":80", get("/evil", "Host: 3405803786")), want: Event{Rule: RuleHTTPHost}},
	{name: "a user before the host", do: says(good+":80", get("/evil", "Host: good.test@evil.test")), want: Event{Rule: RuleHTTPForm}},
	{name: "no host", do: says(good+":80", "GET /evil HTTP/1.0\r\n\r\n"), want: Event{Rule: RuleHTTPHost}},
	{name: "an empty host", do: says(good+":80", get("/evil", "Host: ")), want: Event{Rule: RuleHTTPHost}},
	{name: "two hosts", do: says(good+":80", get("/", "Host: good.test", "Host: evil.test")), want: Event{Rule: RuleHTTPForm}},
	{name: "a host with NUL", do: says(good+":80", get("/", "Host: good.test\x00.evil.test")), want: Event{Rule: RuleHTTPForm}},
	{name: "a host that is folded", do: says(good+":80", get("/", "Host: good.test", " .evil.test")), want: Event{Rule: RuleHTTPForm}},
	{name: "the second request", do: says(good+":80", get("/", "Host: good.test"), ask), want: Event{Rule: RuleHTTPHost}},
	{name: "the second request in the first's segment", do: says(good+":80", get("/", "Host: good.test")+ask), want: Event{Rule: RuleHTTPHost}},
	{name: "a request after a body", do: says(good+":80", "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 4\r\n\r\nbody"+ask), want: Event{Rule: RuleHTTPHost}},
	{name: "two lengths", do: says(good+":80", "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 4\r\nContent-Length: 60\r\n\r\nbody"+ask), want: Event{Rule: RuleHTTPForm}},
	{name: "a length and chunks", do: says(good+":80", "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+ask), want: Event{Rule: RuleHTTPHost}},
	{name: "chunks of another kind", do: says(good+":80", "POST / HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"+ask), want: Event{Rule: RuleHTTPForm}},
	{name: "an upgrade to what is not checked", do: says(good+":80", get("/", "Host: good.test", "Connection: upgrade", "Upgrade: h2c"), ask), want: Event{Rule: RuleHTTPHost}},
	{name: "CONNECT", do: says(good+":80", "CONNECT evil.test:443 HTTP/1.1\r\nHost: good.test\r\n\r\n"), want: Event{Rule: RuleHTTPForm}},
	{name: "CONNECT on a proxy's port", do: says(good+":8080", "CONNECT evil.test:443 HTTP/1.1\r\nHost: good.test\r\n\r\n"), want: Event{Rule: RuleHTTPForm}},
	{name: "a whole URL of another host", do: says(good+":80", get("http://evil.test/", "Host: good.test")), want: Event{Rule: RuleHTTPForm}},
	{name: "a whole URL beside another host", do: says(good+":80", get("http://good.test/", "Host: evil.test")), want: Event{Rule: RuleHTTPForm}},
	{name: "HTTP of the first version", do: says(good+":80", "GET /evil\r\n"), want: Event{Rule: RuleHTTPForm}},
	{name: "HTTP/2 with another authority", do: saysHTTP2(good+":80", "evil.test"), want: Event{Protocol: "http", Host: "evil.test", Rule: RuleHTTPHost}},

	// UDP.
	{name: "a datagram to an address that was not looked up", do: sends(evil+":5000", "evil"), want: Event{Protocol: "udp", Port: 5000, Rule: RuleAddress}},
	{name: "DNS elsewhere", do: sends(evil+":53", "evil"), want: Event{Protocol: "udp", Port: 53, Rule: RuleAddress}},
	{name: "DNS to an allowed host's address is a datagram like any", policy: only(), do: sends(good+":53", "evil"), want: Event{Rule: RuleAddress}},
	{name: "QUIC to an allowed host", do: sends(good+":443", "\xc0\x00\x00\x00\x01evil"), want: Event{Protocol: "udp", Port: 443, Host: "good.test", Rule: RuleQUIC}},
	{name: "QUIC on another port", do: sends(good+":5000", "\xc0\x00\x00\x00\x01evil"), want: Event{Rule: RuleQUIC}},
	{name: "QUIC of version 2", do: sends(good+":5000", "\xd0\x6b\x33\x43\xcfevil"), want: Event{Rule: RuleQUIC}},
	{name: "a datagram inside, unrestricted", policy: unrestricted, do: sends("10.1.2.9:5000", "evil"), want: Event{Rule: RuleFloor}},
	{name: "a datagram without a network", policy: &runtime.NetworkPolicy{}, do: sends(good+":5000", "evil"), want: Event{Rule: RuleBlocked}},
}

var unrestricted = &runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted}

func cidr(s string) *runtime.NetworkPolicy {
	return &runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix(s)}}
}

func only(names ...string) *runtime.NetworkPolicy {
	p := hosts(names...)
	return &p
}

// leads expects a name not to exist because of where it leads.
func leads(name string) func(*testing.T, *rig) {
	return func(t *testing.T, r *rig) {
		if a := r.query(t, name, dns.TypeA); a.Rcode != dns.RcodeNameError || len(a.Answer) > 0 {
			t.Errorf("the answer is %v", a)
		}
	}
}

// TestHostile has every refusal answered at once, reported with its rule, and
// nothing of it arrive anywhere.
func TestHostile(t *testing.T) {
	w := newWire(t)
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) {
			policy := hosts("good.test", "*.wild.test")
			if h.policy != nil {
				policy = *h.policy
			}
			r := newRig(t, Config{}, policy)
			for name, at := range map[string]string{
				"good.test": good, "evil.test": evil, "a.wild.test": "203.0.113.12", "inside.test": "10.1.2.9",
				"metadata.test": "169.254.169.254", "loopback.test": "127.0.0.1", "machine.test": "203.0.113.1",
			} {
				r.zone.set(name, at)
			}
			if r.policy.Load().Host("good.test") {
				r.query(t, "good.test", dns.TypeA)
			}
			if h.look != "" {
				r.query(t, h.look, dns.TypeA)
			}
			began := time.Now()
			h.do(t, r)
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("refused after %s", d)
			}
			r.events.await(t, h.want)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			w.check(t, good)
		})
	}
	if len(hostiles) < 60 {
		t.Errorf("there are %d requests", len(hostiles))
	}
}

// saysHTTP2 expects a request in HTTP/2 without TLS to be answered 403.
func saysHTTP2(address, authority string) func(*testing.T, *rig) {
	return func(t *testing.T, r *rig) {
		c, err := r.dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil },
			Protocols:   new(http.Protocols),
		}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer tr.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+authority+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		if a.StatusCode != http.StatusForbidden || a.ProtoMajor != 2 {
			t.Errorf("the answer is %s in %s", a.Status, a.Proto)
		}
	}
}
