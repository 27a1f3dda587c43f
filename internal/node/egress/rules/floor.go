package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/address"
)

// Opening is an address of the floor that the operator has opened.
type Opening struct {
	Net  netip.Prefix
	Port uint16 // 0 is every port
}

// ParseOpening reads an address or a CIDR with or without a port: "10.0.0.7",
// "10.0.0.7:8080", "10.1.0.0/16", "10.1.0.0/16:443", "[fd00::1]:53".
func ParseOpening(s string) (Opening, error) {
	bad := fmt.Errorf("%q is not an address or a CIDR, with or without a port", s)
	if n, ok := parseNet(s); ok {
		return Opening{Net: n}, nil
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return Opening{}, bad
	}
	host, bracketed := strings.CutPrefix(s[:i], "[")
	if bracketed {
		if host, bracketed = strings.CutSuffix(host, "]"); !bracketed {
			return Opening{}, bad
		}
	}
	n, ok := parseNet(host)
	port, err := strconv.ParseUint(s[i+1:], 10, 16)
	if !ok || err != nil || port == 0 || n.Addr().Is6() != bracketed {
		return Opening{}, bad
	}
	return Opening{Net: n, Port: uint16(port)}, nil
}

func parseNet(s string) (netip.Prefix, bool) {
	if n, err := netip.ParsePrefix(s); err == nil && !n.Addr().Is4In6() {
		return n.Masked(), true
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), true
	}
	return netip.Prefix{}, false
}

// Floor is what no tenant's rule lifts: addresses that are not public, and those
// of the machine itself.
type Floor struct {
	Open []Opening
	Own  func() ([]netip.Addr, error) // the machine's own addresses; while they are not known, everything is on the floor
}

// Refuses reports whether an address and port are on the floor. Where clouds
// hand out credentials, only an opening of exactly that address counts.
func (f *Floor) Refuses(a netip.Addr, port uint16) bool {
	return f.refuses(a, func(o Opening) bool { return o.Port == 0 || o.Port == port })
}

// Closed reports whether an address is on the floor with every port.
func (f *Floor) Closed(a netip.Addr) bool {
	return f.refuses(a, func(Opening) bool { return true })
}

// Unopened reports whether an address would be on the floor if the operator had
// opened nothing. A policy must hold such an address itself: an allowed name that
// leads there is not enough, because the owner of the name decides where it leads.
func (f *Floor) Unopened(a netip.Addr) bool {
	a = address.Plain(a)
	if !address.Public(a) {
		return true
	}
	own, err := f.Own()
	return err != nil || slices.ContainsFunc(own, func(o netip.Addr) bool { return o.Unmap() == a })
}

func (f *Floor) refuses(a netip.Addr, counts func(Opening) bool) bool {
	a = address.Plain(a)
	if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
		return true
	}
	for _, o := range f.Open {
		if o.Net.Contains(a) && counts(o) && (o.Net.IsSingleIP() || !address.Metadata(a)) {
			return false
		}
	}
	return f.Unopened(a)
}
