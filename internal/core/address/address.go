// Package address says which IP addresses are public and what is a host name,
// so that nothing that a tenant names leads into the machine or the network
// around it.
package address

import "net/netip"

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

// metadata are the addresses where clouds hand out credentials.
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

// Plain returns the IPv4 address that a stands for when it is written as
// IPv6, otherwise a.
func Plain(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// Public reports whether any caller may be sent to an address.
func Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = Plain(a)
	if a.Is4() {
		return !within(closed4, a)
	}
	if !open6.Contains(a) || within(closed6, a) {
		return false
	}
	b := a.As16()
	b[8] &^= 2 // says whether the number is unique, not whose it is
	if [4]byte(b[8:12]) == isatap {
		return Public(netip.AddrFrom4([4]byte(b[12:])))
	}
	return true
}

// Metadata reports whether clouds hand out credentials at an address.
func Metadata(a netip.Addr) bool { return within(metadata, Plain(a)) }
