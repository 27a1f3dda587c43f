package address

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/core/address/addresstest"
)

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
			if Public(f) != want {
				t.Errorf("Public(%s) is %t", f, !want)
			}
		}
	}
	for _, s := range addresstest.Closed {
		try(s, false)
	}
	for _, s := range opened {
		try(s, true)
	}
	if Public(netip.Addr{}) || Public(netip.MustParseAddr("2a00:1450::1%eth0")) {
		t.Error("nothing, or an address with a zone, is public")
	}
}

func TestOfMachine(t *testing.T) {
	for s, want := range map[string]bool{"127.0.0.1": true, "::ffff:127.0.0.1": true, "64:ff9b::7f00:1": true, "203.0.113.77": false} {
		if OfMachine(netip.MustParseAddr(s)) != want {
			t.Errorf("%s is the machine's: %t", s, !want)
		}
	}
}

func FuzzPublic(f *testing.F) {
	for _, s := range slices.Concat(addresstest.Closed, opened) {
		b := netip.MustParseAddr(s).As16()
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok || !Public(a) {
			return
		}
		// What the standard library calls special is never public, however it is
		// written, and wrapping an address does not open it.
		p := Plain(a)
		if p.IsPrivate() || p.IsLoopback() || p.IsLinkLocalUnicast() || p.IsMulticast() || p.IsUnspecified() || !p.IsGlobalUnicast() {
			t.Errorf("%s is public", a)
		}
		if Metadata(p) {
			t.Errorf("%s is public and gives out credentials", a)
		}
		if p.Is4() && !Public(p) {
			t.Errorf("%s is public, %s is not", a, p)
		}
	})
}
