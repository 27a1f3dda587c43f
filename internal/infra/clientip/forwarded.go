// Package clientip tells where a request came from when there are proxies in
// front of the server.
//
// Any client can write the headers by which proxies pass on who called them. So
// they count as far as trusted proxies wrote them, and no further: read
// from the right, the last address that is not a trusted proxy's is the client's.
package clientip

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
	// proxies write; otherwise it is X-Forwarded-For. There is no guessing: proxies
	// pass on the one they do not know as the client wrote it.
	Standard bool
}

// Proxies finds out who called. The zero Proxies trusts no proxy.
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

// Client returns the address that made a request: invalid when the peer has
// none, as on a Unix socket.
func (p *Proxies) Client(r *http.Request) netip.Addr {
	client := peer(r.RemoteAddr)
	if !p.trusts(client) {
		return client
	}
	hops := legacy(r.Header)
	if p.standard {
		hops = standard(r.Header)
	}
	for _, addr := range slices.Backward(hops) {
		if !addr.IsValid() { // who told us does not know, or does not say
			break
		}
		client = addr
		if !p.trusts(addr) {
			break
		}
	}
	return client
}

// Proxied reports whether a request came by a trusted proxy.
func (p *Proxies) Proxied(r *http.Request) bool { return p.trusts(peer(r.RemoteAddr)) }

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

// legacy reads the X-Forwarded-For headers: who called each proxy, invalid where
// it does not tell.
func legacy(h http.Header) (hops []netip.Addr) {
	for _, line := range h.Values("X-Forwarded-For") {
		for addr := range strings.SplitSeq(line, ",") {
			hops = append(hops, address(addr))
		}
	}
	return hops
}
