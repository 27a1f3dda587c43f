package webhook

import (
	"net/netip"
	"testing"
)

// closed are addresses that nothing may be sent to, in every way to write them.
var closed = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
	"169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192",
	"192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "224.0.0.1", "239.255.255.255", "240.0.0.1",
	"255.255.255.255", "168.63.129.16", "100.100.100.200",

	"::", "::1", "::127.0.0.1", "::8.8.8.8", // unspecified, loopback, IPv4-compatible
	"::ffff:0:127.0.0.1", // IPv4-translated
	"100::1", "5f00::1",  // discard, segment routing
	"fe80::1", "febf::1", "fec0::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1", "ff0e::1",
	"64:ff9b:1::1", "64:ff9b:1::808:808", // a network's own NAT64
	"2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1", // Teredo, benchmarks, ORCHID
	"2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1", // 6to4
	"2a00:1450::5efe:10.0.0.1", "2a00:1450::200:5efe:127.0.0.1", // ISATAP
	"4000::1", "8000::1", "1::1",
}

var opened = []string{
	"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
	"169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
	"198.20.0.0", "223.255.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.7",
	"2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "2001:4860:4860::8888", "2001:200::1", "2001:db8::1", "3fff::1",
	"2a00:1450::5efe:8.8.8.8",
}

func TestPublic(t *testing.T) {
	try := func(s string, want bool) {
		t.Helper()
		a := netip.MustParseAddr(s)
		forms := []netip.Addr{a}
		if a.Is4() {
			b := a.As4()
			forms = append(forms, netip.MustParseAddr("::ffff:"+s),
				netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]}))
		}
		for _, f := range forms {
			if public(f) != want {
				t.Errorf("public(%s) is %t", f, !want)
			}
		}
	}
	for _, s := range closed {
		try(s, false)
	}
	for _, s := range opened {
		try(s, true)
	}
	if public(netip.Addr{}) || public(netip.MustParseAddr("2a00:1450::1%eth0")) {
		t.Error("nothing, or an address with a zone, is public")
	}
}

func TestAllowList(t *testing.T) {
	l, err := parseAllow([]string{"10.1.0.0/16", "192.168.7.7", "fd12::/16", "Hooks.Intranet.", "169.254.0.0/16", "0.0.0.0/0", " plain "})
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
		if _, err := parseAllow([]string{s}); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func FuzzPublic(f *testing.F) {
	for _, s := range append(closed, opened...) {
		b := netip.MustParseAddr(s).As16()
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok || !public(a) {
			return
		}
		// What the standard library calls special is never public, however it is
		// written, and wrapping an address does not open it.
		p := plain(a)
		if p.IsPrivate() || p.IsLoopback() || p.IsLinkLocalUnicast() || p.IsMulticast() || p.IsUnspecified() || !p.IsGlobalUnicast() {
			t.Errorf("%s is public", a)
		}
		if within(metadata, p) {
			t.Errorf("%s is public and gives out credentials", a)
		}
		if p.Is4() && !public(p) {
			t.Errorf("%s is public, %s is not", a, p)
		}
	})
}
