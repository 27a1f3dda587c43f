// Package forwarded tells where a request came from when there are proxies in
// front of the server.
//
// Anybody can write the headers by which proxies pass on who called them. So
// they are believed as far as trusted proxies wrote them, and no further: read
// from the right, the last address that is not a trusted proxy's is the client's.
package forwarded

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Config says which proxies there are.
type Config struct {
	// Trusted lists the proxies' addresses and networks (CIDR). Without any,
	// headers mean nothing.
	Trusted []string
	// Standard makes the standard's header Forwarded (RFC 7239) the one that
	// proxies write; otherwise it is X-Forwarded-For with X-Forwarded-Proto. There
	// is no guessing: proxies pass on the one they do not know as the client
	// wrote it.
	Standard bool
}

// Proxies finds out who called. The zero Proxies trusts nobody.
type Proxies struct {
	trusted  []netip.Prefix
	standard bool
}

// New checks the configuration.
func New(c Config) (*Proxies, error) {
	p := &Proxies{standard: c.Standard}
	for _, s := range c.Trusted {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			addr, addrErr := netip.ParseAddr(s)
			if addrErr != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("trusted proxy %q is neither an address nor a network such as 10.0.0.0/8", s)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if a := prefix.Addr(); a.Is4In6() {
			if prefix.Bits() < 96 {
				return nil, fmt.Errorf("trusted proxy %q: write IPv4 networks as such", s)
			}
			prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
		}
		p.trusted = append(p.trusted, prefix.Masked())
	}
	return p, nil
}

// Client is who made a request, and how.
type Client struct {
	Addr   netip.Addr // invalid when the peer has none, as on a Unix socket
	Scheme string     // "http" or "https", as the client wrote the URL
}

// hop is what one proxy says of who called it.
type hop struct {
	addr  netip.Addr // invalid when it does not tell
	proto string     // "" when it does not tell
}

// Client returns who made a request.
func (p *Proxies) Client(r *http.Request) Client {
	c := Client{Addr: peer(r.RemoteAddr), Scheme: "http"}
	if r.TLS != nil {
		c.Scheme = "https"
	}
	if !p.trusts(c.Addr) {
		return c
	}
	hops := legacy(r.Header)
	if p.standard {
		hops = standard(r.Header)
	}
	for _, h := range slices.Backward(hops) {
		if h.proto != "" {
			c.Scheme = h.proto
		}
		if !h.addr.IsValid() { // who told us does not know, or does not say
			break
		}
		c.Addr = h.addr
		if !p.trusts(h.addr) {
			break
		}
	}
	return c
}

func (p *Proxies) trusts(addr netip.Addr) bool {
	return addr.IsValid() && slices.ContainsFunc(p.trusted, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// peer reads the address of a connection.
func peer(remote string) netip.Addr {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// address reads an address in a header, which may have a port. IPv6 addresses
// with one are in brackets; without one they may be.
func address(s string) netip.Addr {
	s = strings.TrimSpace(s)
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Unmap().WithZone("")
	}
	if rest, ok := strings.CutPrefix(s, "["); ok {
		inside, after, ok := strings.Cut(rest, "]")
		addr, err := netip.ParseAddr(inside)
		if !ok || err != nil || !addr.Is6() || after != "" && !strings.HasPrefix(after, ":") {
			return netip.Addr{}
		}
		return addr.Unmap().WithZone("")
	}
	if host, _, ok := strings.Cut(s, ":"); ok {
		if addr, err := netip.ParseAddr(host); err == nil && addr.Is4() {
			return addr
		}
	}
	return netip.Addr{}
}

// scheme reads a scheme in a header; "" for what is none of ours.
func scheme(s string) string {
	switch s = strings.ToLower(strings.TrimSpace(s)); s {
	case "http", "https":
		return s
	}
	return ""
}

// legacy reads the X-Forwarded headers. Proxies that append to one append to the
// other; those that write the scheme alone write the client's.
func legacy(h http.Header) []hop {
	addrs := list(h.Values("X-Forwarded-For"))
	protos := list(h.Values("X-Forwarded-Proto"))
	if len(addrs) == 0 && len(protos) > 0 {
		return []hop{{proto: scheme(protos[len(protos)-1])}}
	}
	hops := make([]hop, len(addrs))
	for i := range hops {
		hops[i].addr = address(addrs[i])
		// The last of both belong together.
		if j := len(protos) - len(addrs) + i; j >= 0 {
			hops[i].proto = scheme(protos[j])
		}
	}
	return hops
}

// list splits headers at their commas.
func list(values []string) (all []string) {
	for _, v := range values {
		all = append(all, strings.Split(v, ",")...)
	}
	return all
}
