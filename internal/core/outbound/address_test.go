package outbound

import (
	"net"
	"net/netip"
	"testing"
)

func TestAllowList(t *testing.T) {
	l, err := Parse([]string{"10.1.0.0/16", "192.168.7.7", "fd12::/16", "Hooks.Intranet.", "169.254.0.0/16", "0.0.0.0/0", " plain "})
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[string]bool{
		"10.1.2.3": true, "192.168.7.7": true, "fd12::9": true, "::ffff:10.1.2.3": true, "64:ff9b::a01:203": true, "127.0.0.1": true,
		"fd13::1": false, "169.254.1.1": true, "169.254.169.254": false, "168.63.129.16": false, "::ffff:169.254.169.254": false,
		"64:ff9b::a9fe:a9fe": false, "fe80::1%lo": false,
	} {
		if l.address(false, netip.MustParseAddr(s)) != want {
			t.Errorf("%s is allowed: %t", s, !want)
		}
	}
	if !l.host("hooks.intranet") || !l.host("HOOKS.intranet.") || !l.host("plain") || l.host("x.hooks.intranet") || l.host("intranet") {
		t.Error("hosts are compared wrongly")
	}
	if l.address(true, netip.MustParseAddr("fd00:ec2::254")) {
		t.Error("a host that is allowed by name leads to a metadata address")
	}
	for _, s := range []string{"", "https://x", "a/b", "fe80::1%lo", "10.0.0.0/33", "1.2.3", "*.intranet"} {
		if _, err := Parse([]string{s}); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

// A service that listens on the machine's public address is not connected to,
// unless the operator has opened the address. The others of its network are.
func TestOwnAddress(t *testing.T) {
	for _, c := range []struct {
		at, allow string
		want      bool
	}{
		{own, "", false}, {"::ffff:" + own, "", false},
		{own, own, true}, {own, "198.51.100.0/24", false}, {own, "203.0.113.0/24", true},
		{"203.0.113.2", "", true},
	} {
		l, err := net.Listen("tcp", net.JoinHostPort(c.at, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var list List
		if c.allow != "" {
			if list, err = Parse([]string{c.allow}); err != nil {
				t.Fatal(err)
			}
		}
		conn, err := list.Dial(t.Context(), nil, "tcp", l.Addr().String())
		if (err == nil) != c.want {
			t.Errorf("connecting to %s with %q allowed: %v", c.at, c.allow, err)
		}
		if err == nil {
			conn.Close()
		}
		if err := list.Check(t.Context(), nil, "url", c.at); (err == nil) != c.want {
			t.Errorf("%s with %q allowed: %v", c.at, c.allow, err)
		}
	}
}
