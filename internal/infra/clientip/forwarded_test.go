package clientip_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/infra/clientip"
)

func proxies(t testing.TB, standard bool, trusted ...string) *clientip.Proxies {
	t.Helper()
	p, err := clientip.New(clientip.Config{Trusted: trusted, Standard: standard})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestClient(t *testing.T) {
	const us = "10.0.0.0/8 192.0.2.7 2001:db8:ffff::/48 ::ffff:172.16.0.0/108"
	for _, c := range []struct {
		name     string
		trusted  string
		standard bool
		peer     string
		header   http.Header
		addr     string
	}{
		{name: "no proxies", peer: "203.0.113.9:1234", header: http.Header{"X-Forwarded-For": {"1.2.3.4"}}, addr: "203.0.113.9"},
		{name: "stranger", trusted: us, peer: "203.0.113.9:1234", header: http.Header{"X-Forwarded-For": {"1.2.3.4"}}, addr: "203.0.113.9"},
		{name: "a proxy that says nothing", trusted: us, peer: "10.1.1.1:1", addr: "10.1.1.1"},
		{name: "one proxy", trusted: us, peer: "10.1.1.1:1", header: http.Header{"X-Forwarded-For": {"1.2.3.4"}}, addr: "1.2.3.4"},
		{name: "forged before the client's", trusted: us, peer: "10.1.1.1:1", header: http.Header{"X-Forwarded-For": {"10.9.9.9, 127.0.0.1, 1.2.3.4"}}, addr: "1.2.3.4"},
		{name: "forged in a line of its own", trusted: us, peer: "10.1.1.1:1", header: http.Header{"X-Forwarded-For": {"10.9.9.9", "1.2.3.4"}}, addr: "1.2.3.4"},
		{name: "two proxies", trusted: us, peer: "10.1.1.1:1", header: http.Header{"X-Forwarded-For": {"9.9.9.9, 1.2.3.4, 192.0.2.7"}}, addr: "1.2.3.4"},
		{name: "only proxies", trusted: us, peer: "10.1.1.1:1", header: http.Header{"X-Forwarded-For": {"10.3.3.3, 10.2.2.2"}}, addr: "10.3.3.3"},
		{name: "unknown hop", trusted: us, peer: "10.1.1.1:1", header: http.Header{"X-Forwarded-For": {"1.2.3.4, unknown, 10.2.2.2"}}, addr: "10.2.2.2"},
		{name: "empty header", trusted: us, peer: "10.1.1.1:1", header: http.Header{"X-Forwarded-For": {""}}, addr: "10.1.1.1"},
		{name: "ports", trusted: us, peer: "10.1.1.1:1", header: http.Header{"X-Forwarded-For": {"1.2.3.4:555, 192.0.2.7:80"}}, addr: "1.2.3.4"},
		{name: "IPv6", trusted: us, peer: "[2001:db8:ffff::1]:1", header: http.Header{"X-Forwarded-For": {"[2001:db8::5]:99"}}, addr: "2001:db8::5"},
		{name: "bare IPv6", trusted: us, peer: "[2001:db8:ffff::1%eth0]:1", header: http.Header{"X-Forwarded-For": {"2001:db8::5"}}, addr: "2001:db8::5"},
		{name: "IPv4 in IPv6", trusted: us, peer: "[::ffff:10.1.1.1]:1", header: http.Header{"X-Forwarded-For": {"::ffff:1.2.3.4"}}, addr: "1.2.3.4"},
		{name: "network written in IPv6", trusted: us, peer: "172.16.3.4:1", header: http.Header{"X-Forwarded-For": {"1.2.3.4"}}, addr: "1.2.3.4"},
		{name: "the other header is the client's", trusted: us, peer: "10.1.1.1:1", header: http.Header{"Forwarded": {"for=6.6.6.6;proto=https"}, "X-Forwarded-For": {"1.2.3.4"}}, addr: "1.2.3.4"},

		{name: "standard", trusted: us, standard: true, peer: "10.1.1.1:1", header: http.Header{"Forwarded": {`for=1.2.3.4;proto=https;by=10.1.1.1`}, "X-Forwarded-For": {"6.6.6.6"}}, addr: "1.2.3.4"},
		{name: "standard, two proxies", trusted: us, standard: true, peer: "10.1.1.1:1", header: http.Header{"Forwarded": {`for=6.6.6.6, For="[2001:db8::5]:99" ; Proto=https`, `for=10.2.2.2;proto=http`}}, addr: "2001:db8::5"},
		{name: "standard, hidden", trusted: us, standard: true, peer: "10.1.1.1:1", header: http.Header{"Forwarded": {`for=6.6.6.6, for=_hidden;proto=https`}}, addr: "10.1.1.1"},
		{name: "standard, swallowing quote", trusted: us, standard: true, peer: "10.1.1.1:1", header: http.Header{"Forwarded": {`for=6.6.6.6;x=", for=1.2.3.4`}}, addr: "10.1.1.1"},
		{name: "standard, escaped quote", trusted: us, standard: true, peer: "10.1.1.1:1", header: http.Header{"Forwarded": {`x="a\"b,for=6.6.6.6", for=1.2.3.4`}}, addr: "1.2.3.4"},
		{name: "standard, nonsense", trusted: us, standard: true, peer: "10.1.1.1:1", header: http.Header{"Forwarded": {"nonsense"}}, addr: "10.1.1.1"},
		{name: "standard, without an address", trusted: us, standard: true, peer: "10.1.1.1:1", header: http.Header{"Forwarded": {"proto=https"}}, addr: "10.1.1.1"},

		{name: "Unix socket", trusted: us, peer: "@", header: http.Header{"X-Forwarded-For": {"1.2.3.4"}}, addr: "invalid IP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: c.peer, Header: c.header}
			got := proxies(t, c.standard, strings.Fields(c.trusted)...).Client(r)
			if got.String() != c.addr {
				t.Errorf("got %s, want %s", got, c.addr)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, bad := range []string{"", "proxy.internal", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", "::ffff:0:0/90"} {
		if _, err := clientip.New(clientip.Config{Trusted: []string{bad}}); err == nil {
			t.Errorf("%q was taken for a proxy", bad)
		}
	}
}

// Whatever a client writes, what the proxy adds decides.
func FuzzClient(f *testing.F) {
	for _, s := range []string{"", "1.2.3.4", "unknown", `for="`, `for=1.2.3.4;proto=https`, `x="\`, `x="\"`, "for=\"[::1]:1\",", "10.0.0.1, 10.0.0.1", "[::1", "=", ";", ","} {
		f.Add(s)
	}
	legacy, standard := proxies(f, false, "10.0.0.0/8"), proxies(f, true, "10.0.0.0/8")
	peer, client := netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("2001:db8::7")
	f.Fuzz(func(t *testing.T, forged string) {
		r := &http.Request{RemoteAddr: "10.1.1.1:80", Header: http.Header{
			"X-Forwarded-For": {forged + ", 2001:db8::7, 10.2.2.2"},
		}}
		if got := legacy.Client(r); got != client {
			t.Errorf("X-Forwarded-For after %q gives %v", forged, got)
		}
		for _, added := range []string{`for="[2001:db8::7]:99";proto=https`, `proto=https;for="[2001:db8::7]"`} {
			r.Header = http.Header{"Forwarded": {forged, added}}
			if got := standard.Client(r); got != client {
				t.Errorf("Forwarded after %q gives %v", forged, got)
			}
			r.Header = http.Header{"Forwarded": {forged + ", " + added}}
			if got := standard.Client(r); got != client && got != peer { // the whole line may be void
				t.Errorf("Forwarded after %q in one line gives %v", forged, got)
			}
		}
		r.RemoteAddr, r.Header = "203.0.113.1:5", http.Header{"X-Forwarded-For": {forged}, "Forwarded": {forged}}
		for _, p := range []*clientip.Proxies{legacy, standard} {
			if got := p.Client(r); got.String() != "203.0.113.1" {
				t.Errorf("a stranger is believed: %v", got)
			}
		}
	})
}
