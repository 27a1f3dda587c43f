package webhook

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/atoll-run/atoll/internal/address"
)

type rawConn = syscall.RawConn

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
		} else if h := address.Hostname(s); h != "" {
			out.hosts[h] = true
		} else {
			return allowList{}, fmt.Errorf("webhook allow-list: %q is not a host, an address or a CIDR", s)
		}
	}
	return out, nil
}

// host reports whether a host is allowed by its name, whatever its address.
func (l allowList) host(h string) bool { return l.hosts[address.Hostname(h)] }

// address reports whether an address may be reached; named says that its host
// is allowed by name.
func (l allowList) address(named bool, a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || address.Metadata(a) {
		return false
	}
	return named || address.Public(a) || slices.ContainsFunc(l.nets, func(p netip.Prefix) bool { return p.Contains(address.Plain(a)) })
}

// connect decides on a connection that is about to be made.
func (l allowList) connect(named bool, hostport string) error {
	at, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return &net.AddrError{Err: "refused, not an address", Addr: hostport}
	}
	if !l.address(named, at.Addr()) {
		return &net.AddrError{Err: "refused, webhooks do not go to private, local or reserved addresses", Addr: at.Addr().String()}
	}
	return nil
}
