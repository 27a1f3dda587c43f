package webhook

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

type rawConn = syscall.RawConn

// closed4 are the IPv4 ranges that are not public. The ranges for documentation
// are not among them: nothing is there, except on machines that were set up so.
var closed4 = prefixes(
	"0.0.0.0/8",        // this host
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // carriers' private; Alibaba's metadata
	"127.0.0.0/8",      // loopback
	"169.254.0.0/16",   // link-local; most clouds' metadata
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments; Oracle's metadata
	"192.88.99.0/24",   // relays of 6to4
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast
	"168.63.129.16/32", // Azure's host, under a public address
)

// closed6 are the ranges within open6 that are not public.
var closed6 = prefixes(
	"2001::/23", // protocol assignments, with Teredo and benchmarks
	"2002::/16", // 6to4: IPv4 addresses in disguise
)

var (
	open6  = netip.MustParsePrefix("2000::/3")     // all that is given out as public
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // IPv4 addresses, as networks without IPv4 write them
	isatap = [4]byte{0, 0, 0x5e, 0xfe}             // before an IPv4 address in an interface's part
)

// metadata are the addresses where clouds hand out credentials. No list allows
// them.
var metadata = prefixes(
	"169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "169.254.169.253/32",
	"168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
	"fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128",
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

func within(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// plain returns the IPv4 address that a stands for when it is written as
// IPv6, otherwise a.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// public reports whether everybody may be sent to an address.
func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = plain(a)
	if a.Is4() {
		return !within(closed4, a)
	}
	if !open6.Contains(a) || within(closed6, a) {
		return false
	}
	b := a.As16()
	b[8] &^= 2 // says whether the number is unique, not whose it is
	if [4]byte(b[8:12]) == isatap {
		return public(netip.AddrFrom4([4]byte(b[12:])))
	}
	return true
}

// allowList is what an operator has opened beside the public addresses.
type allowList struct {
	hosts map[string]bool
	nets  []netip.Prefix
}

func parseAllow(list []string) (allowList, error) {
	out := allowList{hosts: map[string]bool{}}
	for _, s := range list {
		s = strings.TrimSpace(s)
		if p, err := netip.ParsePrefix(s); err == nil {
			out.nets = append(out.nets, p.Masked())
		} else if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			out.nets = append(out.nets, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
		} else if h := hostname(s); h != "" {
			out.hosts[h] = true
		} else {
			return allowList{}, fmt.Errorf("webhook allow-list: %q is not a host, an address or a CIDR", s)
		}
	}
	return out, nil
}

// host reports whether a host is allowed by its name, whatever its address.
func (l allowList) host(h string) bool { return l.hosts[hostname(h)] }

// address reports whether an address may be reached; named says that its host
// is allowed by name.
func (l allowList) address(named bool, a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || within(metadata, plain(a)) {
		return false
	}
	return named || public(a) || within(l.nets, plain(a))
}

// connect decides on a connection that is about to be made.
func (l allowList) connect(named bool, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &net.AddrError{Err: "refused, not an address", Addr: address}
	}
	if !l.address(named, at.Addr()) {
		return &net.AddrError{Err: "refused, webhooks do not go to private, local or reserved addresses", Addr: at.Addr().String()}
	}
	return nil
}
