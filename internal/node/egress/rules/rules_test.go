package rules

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/address"
	"github.com/atoll-run/atoll/internal/core/address/addresstest"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

func rules(hosts ...string) runtime.NetworkPolicy {
	return runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: hosts}
}

func TestHost(t *testing.T) {
	for _, c := range []struct{ allowed, yes, no string }{
		{"example.com", "example.com", "www.example.com com example.org xexample.com"},
		{"Example.COM.", "example.com", "example.org"},
		{"*.example.com", "www.example.com a.b.example.com", "example.com xexample.com example.com.evil.test"},
		{"*.com", "a.com a.b.com", "com a.org"},
		{"*", "example.com a", ""},
		{"bücher.example", "xn--bcher-kva.example", "bcher.example"},
		{"*.bücher.example", "a.xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", "example"},
		{"_dmarc.example.com", "_dmarc.example.com", "example.com"},
		{"localhost", "localhost", "a.localhost"},
	} {
		p, err := Compile(rules(c.allowed))
		if err != nil {
			t.Errorf("%s: %v", c.allowed, err)
			continue
		}
		for _, name := range strings.Fields(c.yes) {
			if !p.Host(name) {
				t.Errorf("%s does not allow %s", c.allowed, name)
			}
		}
		for _, name := range append(strings.Fields(c.no), "") {
			if p.Host(name) {
				t.Errorf("%s allows %q", c.allowed, name)
			}
		}
	}
	for _, p := range []runtime.NetworkPolicy{{}, {Mode: runtime.NetworkBlocked}, rules()} {
		c, err := Compile(p)
		if err != nil || c.Host("example.com") || c.Address(netip.MustParseAddr("1.1.1.1")) {
			t.Errorf("%+v allows something, or %v", p, err)
		}
	}
}

func TestAddress(t *testing.T) {
	p := rules("192.0.2.7", "::ffff:192.0.2.8")
	p.AllowedCIDRs = []netip.Prefix{netip.MustParsePrefix("198.51.100.7/24")}
	c, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	for a, want := range map[string]bool{
		"192.0.2.7": true, "192.0.2.8": true, "192.0.2.9": false, "198.51.100.200": true, "::ffff:198.51.100.1": true, "198.51.101.1": false,
	} {
		if c.Address(netip.MustParseAddr(a)) != want {
			t.Errorf("%s is allowed: %t", a, !want)
		}
	}
}

func TestCompileExplains(t *testing.T) {
	many := make([]string, MaxHosts+1)
	for i := range many {
		many[i] = "a.test"
	}
	ports := rules("a.test")
	ports.BlockedPorts = []uint16{0}
	nets := rules()
	nets.AllowedCIDRs = []netip.Prefix{{}}
	mapped := rules()
	mapped.AllowedCIDRs = []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}
	open := rules("a.test")
	open.Mode = runtime.NetworkUnrestricted
	for want, p := range map[string]runtime.NetworkPolicy{
		"network mode must be":           {Mode: "open"},
		"at most 256":                    rules(many...),
		"blocked_ports[0]: ports":        ports,
		"CIDR number 0 is none":          nets,
		"write IPv4 addresses as such":   mapped,
		"need network mode":              open,
		"allowed_hosts[0]: \"https://a":  rules("https://a"),
		"without a port":                 rules("a.test:80"),
		"a wildcard is":                  rules("a.*.test"),
		"\"*.\" before a whole name":     rules("*example.com"),
		"neither a host name nor":        rules("0x7f.1"),
		"[0]: \"3405803787\"":            rules("3405803787"),
		"[0]: \"\" is neither":           rules(""),
		"[0]: \"a b\"":                   rules("a b"),
		"[0]: \"a\\x00\"":                rules("a\x00"),
		"has a zone":                     rules("fe80::1%eth0"),
		"[0]: \"*.\" is neither":         rules("*."),
		"[0]: \"1.2.3\" is neither":      rules("1.2.3"),
		"without scheme and path; netwo": rules("10.0.0.0/8"),
	} {
		_, err := Compile(p)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestFloor(t *testing.T) {
	own := netip.MustParseAddr("203.0.113.1")
	f := Floor{Own: func() ([]netip.Addr, error) { return []netip.Addr{own}, nil }}
	for _, s := range append(addresstest.Closed, "203.0.113.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "::ffff:203.0.113.1") {
		if a := netip.MustParseAddr(s); !f.Refuses(a, 443) || !f.Closed(a) {
			t.Errorf("%s is not on the floor", s)
		}
	}
	for _, s := range []string{"1.1.1.1", "203.0.113.2", "192.0.2.1", "2606:4700::1"} {
		if a := netip.MustParseAddr(s); f.Refuses(a, 443) || f.Closed(a) {
			t.Errorf("%s is on the floor", s)
		}
	}
	for _, s := range []string{"10.0.0.7:8080", "10.1.0.0/16", "169.254.0.0/16", "169.254.169.254:80", "[fd00::1]:53", "203.0.113.1", "0.0.0.0/0:99"} {
		o, err := ParseOpening(s)
		if err != nil {
			t.Fatal(err)
		}
		f.Open = append(f.Open, o)
	}
	for s, want := range map[string]bool{
		"10.0.0.7:8080": true, "10.0.0.7:8081": false, "10.0.0.8:8080": false, "10.1.2.3:1": true, "169.254.1.1:80": true,
		"169.254.169.254:80": true, "169.254.169.254:81": false, "169.254.170.2:80": false, "[fd00::1]:53": true, "[fd00::2]:53": false,
		"203.0.113.1:1": true, "127.0.0.1:99": true, "127.0.0.1:98": false, "169.254.170.2:99": false, "224.0.0.1:99": false, "0.0.0.0:99": false,
	} {
		a := netip.MustParseAddrPort(s)
		if f.Refuses(a.Addr(), a.Port()) == want {
			t.Errorf("%s is open: %t", s, !want)
		}
	}
	for s, want := range map[string]bool{"10.0.0.7": true, "::ffff:10.0.0.7": true, "203.0.113.1": true, "169.254.169.254": true, "203.0.113.2": false} {
		if f.Unopened(netip.MustParseAddr(s)) != want {
			t.Errorf("%s is on the floor where nothing is opened: %t", s, !want)
		}
	}
	for _, s := range []string{"", "x", "10.0.0.0/33", "10.0.0.1:0", "10.0.0.1:65536", "fd00::1:", "[fd00::1", "[10.0.0.1]:80", "fe80::1%lo", "10.0.0.1:"} {
		if o, err := ParseOpening(s); err == nil {
			t.Errorf("%q is %v", s, o)
		}
	}
}

// A machine that does not know its own addresses lets nothing through that is
// not opened.
func TestFloorWithoutOwn(t *testing.T) {
	f := Floor{
		Open: []Opening{{Net: netip.MustParsePrefix("192.0.2.7/32")}},
		Own:  func() ([]netip.Addr, error) { return nil, errors.New("no netlink") },
	}
	if !f.Refuses(netip.MustParseAddr("1.1.1.1"), 443) || f.Refuses(netip.MustParseAddr("192.0.2.7"), 443) {
		t.Error("the floor is elsewhere")
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("*.example.com", "www.example.com")
	f.Add("bücher.example", "xn--bcher-kva.example")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := Compile(rules(pattern))
		if err != nil || pattern == "*" || address.Hostname(name) != name || !p.Host(name) {
			return
		}
		// A name is allowed by its whole self or by whole labels at its end.
		end := strings.TrimSuffix(strings.TrimPrefix(pattern, "*."), ".")
		for _, r := range end {
			if r > '~' {
				return // compared as punycode
			}
		}
		if end = strings.ToLower(end); name != end && !strings.HasSuffix(name, "."+end) {
			t.Errorf("%q allows %q", pattern, name)
		}
	})
}
