// Package rules decides what a sandbox may connect to: a tenant's policy above a
// floor that only the operator opens. It touches no network.
package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/atoll-run/atoll/internal/core/address"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Bounds of a policy.
const (
	MaxHosts = 256
	MaxCIDRs = 64
	MaxPorts = 64
)

// Policy is a sandbox.NetworkPolicy, checked and ready to be asked.
type Policy struct {
	mode  runtime.NetworkMode
	every bool            // "*"
	names map[string]bool // exact names
	below map[string]bool // "example.com" for "*.example.com"
	nets  []netip.Prefix
	ports map[uint16]bool // refused
}

// Compile returns an Invalid fault, which says what to change, unless a policy
// can be kept to.
func Compile(p runtime.NetworkPolicy) (*Policy, error) {
	out := &Policy{mode: p.Mode, names: map[string]bool{}, below: map[string]bool{}, ports: map[uint16]bool{}}
	switch p.Mode {
	case "":
		out.mode = runtime.NetworkBlocked
	case runtime.NetworkBlocked, runtime.NetworkRules, runtime.NetworkUnrestricted:
	default:
		return nil, fault.New(fault.Invalid, "network mode must be %q, %q or %q, not %q",
			runtime.NetworkBlocked, runtime.NetworkRules, runtime.NetworkUnrestricted, p.Mode)
	}
	switch {
	case len(p.AllowedHosts) > MaxHosts:
		return nil, fault.New(fault.Invalid, "allowed_hosts holds at most %d entries", MaxHosts)
	case len(p.AllowedCIDRs) > MaxCIDRs:
		return nil, fault.New(fault.Invalid, "the allowed CIDRs are at most %d", MaxCIDRs)
	case len(p.BlockedPorts) > MaxPorts:
		return nil, fault.New(fault.Invalid, "blocked_ports holds at most %d entries", MaxPorts)
	case out.mode != runtime.NetworkRules && len(p.AllowedHosts)+len(p.AllowedCIDRs) > 0:
		return nil, fault.New(fault.Invalid, "allowed hosts and CIDRs need network mode %q, not %q", runtime.NetworkRules, out.mode)
	}
	for i, s := range p.AllowedHosts {
		if err := out.addHost(s); err != nil {
			return nil, fault.New(fault.Invalid, "allowed_hosts[%d]: %s", i, err)
		}
	}
	for i, n := range p.AllowedCIDRs {
		if !n.IsValid() || n.Addr().Zone() != "" {
			return nil, fault.New(fault.Invalid, "the allowed CIDR number %d is none", i)
		}
		if n.Addr().Is4In6() {
			return nil, fault.New(fault.Invalid, "allowed CIDR %s: write IPv4 addresses as such", n)
		}
		out.nets = append(out.nets, n.Masked())
	}
	for i, port := range p.BlockedPorts {
		if port == 0 {
			return nil, fault.New(fault.Invalid, "blocked_ports[%d]: ports are 1 to 65535", i)
		}
		out.ports[port] = true
	}
	return out, nil
}

// addHost adds an entry of allowed_hosts.
func (p *Policy) addHost(s string) error {
	if s == "*" {
		p.every = true
		return nil
	}
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return fmt.Errorf("%q has a zone, which means something on one machine only", s)
		}
		p.nets = append(p.nets, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
		return nil
	}
	rest, wild := strings.CutPrefix(s, "*.")
	switch {
	case strings.Contains(rest, "*"):
		return fmt.Errorf("%q: a wildcard is \"*\", or \"*.\" before a whole name", s)
	case strings.Contains(s, "/"):
		return fmt.Errorf("%q: give a name without scheme and path; networks are given as CIDRs", s)
	case strings.Contains(s, ":"):
		return fmt.Errorf("%q: give a name without a port; ports are refused by blocked_ports", s)
	}
	ascii, err := idna.Lookup.ToASCII(rest)
	if err != nil && strings.Contains(rest, "_") {
		ascii = rest // a name that hosts do not have, but services do
	} else if err != nil {
		return fmt.Errorf("%q is not a host name", s)
	}
	name := address.Hostname(ascii)
	if name == "" {
		return fmt.Errorf("%q is neither a host name nor an address", s)
	}
	if wild {
		p.below[name] = true
	} else {
		p.names[name] = true
	}
	return nil
}

// Mode is what the policy was made with, never "".
func (p *Policy) Mode() runtime.NetworkMode { return p.mode }

// Host reports whether a name may be looked up and connected to. It must be in
// the form of address.Hostname.
func (p *Policy) Host(name string) bool {
	switch {
	case name == "" || p.mode == runtime.NetworkBlocked:
		return false
	case p.mode == runtime.NetworkUnrestricted || p.every || p.names[name]:
		return true
	}
	for len(p.below) > 0 {
		_, parent, ok := strings.Cut(name, ".")
		if !ok {
			return false
		}
		if p.below[parent] {
			return true
		}
		name = parent
	}
	return false
}

// Address reports whether an address may be connected to without a name.
func (p *Policy) Address(a netip.Addr) bool {
	switch p.mode {
	case runtime.NetworkBlocked:
		return false
	case runtime.NetworkUnrestricted:
		return true
	}
	return slices.ContainsFunc(p.nets, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) })
}

// Port reports whether a port may be connected to.
func (p *Policy) Port(port uint16) bool { return port != 0 && !p.ports[port] }
