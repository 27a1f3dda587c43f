// Package outbound decides which addresses this process may connect to on behalf of callers: public
// addresses of other machines, and addresses that the operator allows.
//
// Atoll checks a name when a caller sets it, to return a helpful error, and checks the resolved
// address again on each connection. DNS changes therefore cannot bypass the check.
package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/address"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// List is an operator's allow-list in addition to public addresses. The zero List allows nothing
// more. Copies share their content, which Set may change during use.
type List struct{ live *live }

type live struct {
	opened   atomic.Pointer[opened]
	kept     kept
	loopback atomic.Pointer[string] // the tenant that reaches this machine's loopback; nil for none
}

type opened struct {
	hosts map[string]bool
	nets  []netip.Prefix
}

// Parse parses a list of host names, addresses and CIDRs.
func Parse(list []string) (List, error) {
	l := List{&live{}}
	if err := l.Set(list); err != nil {
		return List{}, err
	}
	return l, nil
}

// Set replaces the addresses that l allows. It closes connections to addresses that l no longer
// allows, even if they serve a request.
func (l List) Set(list []string) error {
	out := &opened{hosts: map[string]bool{}}
	for _, s := range list {
		s = strings.TrimSpace(s)
		if p, err := netip.ParsePrefix(s); err == nil {
			out.nets = append(out.nets, p.Masked())
		} else if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			out.nets = append(out.nets, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
		} else if h := address.Hostname(s); h != "" {
			out.hosts[h] = true
		} else {
			return fmt.Errorf("allow-list: %q is not a host, an address or a CIDR", s)
		}
	}
	l.live.opened.Store(out)
	l.cut()
	return nil
}

// content returns what the list currently allows.
func (l List) content() *opened {
	if l.live == nil {
		return &opened{}
	}
	return l.live.opened.Load()
}

func (l List) holds(a netip.Addr) bool {
	return slices.ContainsFunc(l.content().nets, func(p netip.Prefix) bool { return p.Contains(address.Plain(a)) })
}

// host reports whether a host is allowed by name, whatever its address.
func (l List) host(h string) bool { return l.content().hosts[address.Hostname(h)] }

// Opens reports whether the operator allows a host, by name or by its literal address.
func (l List) Opens(ctx context.Context, host string) bool {
	if l.Loopback(ctx, host) {
		return true
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return l.holds(a)
	}
	return l.host(host)
}

// address reports whether connections to an address are allowed. named says that its host is
// allowed by name. Addresses of this machine are denied like private ones, even public ones,
// because services that listen on all interfaces answer there.
func (l List) address(named bool, a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || address.Metadata(a) {
		return false
	}
	return named || l.holds(a) || address.Public(a) && !address.OfMachine(a)
}

// connect returns an error if a connection that is about to be made is not allowed.
func (l List) connect(named bool, remote string) error {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return &net.AddrError{Err: "refused, not an address", Addr: remote}
	}
	if !l.address(named, at.Addr()) {
		return &net.AddrError{Err: "refused: private, local and reserved addresses, and this machine's own, are not connected to", Addr: at.Addr().String()}
	}
	return nil
}

// Dial connects to a host, and rejects it if its resolved address is not allowed. resolver may be
// nil.
func (l List) Dial(ctx context.Context, resolver *net.Resolver, network, remote string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return nil, err
	}
	named, own := l.host(host), l.Loopback(ctx, host)
	d := net.Dialer{Resolver: resolver, ControlContext: func(_ context.Context, _, remote string, _ syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(remote); own && err == nil && at.Addr().IsLoopback() {
			return nil
		}
		return l.connect(named, remote)
	}}
	conn, err := d.DialContext(ctx, network, remote)
	if err != nil || own {
		return conn, err
	}
	return l.keep(conn, host)
}

// lookupTimeout limits how long a lookup delays the caller. Check accepts a name that does not
// resolve now, because it may resolve later.
const lookupTimeout = 2 * time.Second

// Check returns an Invalid fault, which names field, if connections to a host are not allowed.
// resolver may be nil.
func (l List) Check(ctx context.Context, resolver *net.Resolver, field, host string) error {
	if l.Loopback(ctx, host) {
		return nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if !l.address(false, a) {
			return fault.New(fault.Invalid, "%s must not lead to a private, local or reserved address, or to this machine", field)
		}
		return nil
	}
	name := address.Hostname(host)
	if name == "" {
		return fault.New(fault.Invalid, "the host of %s must be a host name (write international names in xn-- form) or a plain IP address", field)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	found, err := resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil
	}
	for _, a := range found {
		if !l.address(l.host(name), a) {
			return fault.New(fault.Invalid, "the host of %s must not resolve to a private, local or reserved address, or to this machine", field)
		}
	}
	return nil
}
