package e2b

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

// everything is all addresses.
const everything = "0.0.0.0/0"

// narrowed reads what a sandbox may connect to, of what its environment may; nil for all of
// that. n may be nil.
func (n *Network) narrowed(internet *bool) (sandboxes.Narrow, error) {
	closed := internet != nil && !*internet
	if n == nil {
		n = &Network{}
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"dnsServers", given(n.DNSServers)}, {"egressProxy", given(n.EgressProxy)}, {"httpsPorts", given(n.HTTPSPorts)}, {"rules", given(n.Rules)},
		{"maskRequestHost", n.MaskRequestHost != nil && *n.MaskRequestHost != ""},
	} {
		if f.set {
			return nil, unsupported("network: %s is not supported by this server", f.name)
		}
	}
	for _, to := range n.DenyOut {
		if to != everything && to != "::/0" {
			return nil, unsupported("network: denyOut can be %q alone, with allowOut for what stays open: this server has no rules that close a part", everything)
		}
		closed = true
	}
	if !closed || slices.Contains(n.AllowOut, everything) {
		return nil, nil
	}
	hosts, ranges, no := []string{}, []string{}, false
	for _, to := range n.AllowOut {
		if at, err := netip.ParseAddr(to); err == nil {
			ranges = append(ranges, netip.PrefixFrom(at, at.BitLen()).String())
		} else if strings.Contains(to, "/") {
			ranges = append(ranges, to)
		} else {
			hosts = append(hosts, to)
		}
	}
	change := environmentwire.NetworkChange{Unrestricted: &no, AllowedHosts: &hosts, AllowedCIDRs: &ranges}
	return func(env runtime.NetworkPolicy) (*runtime.NetworkPolicy, error) {
		if env.Blocked() { // and stays so
			_, err := change.Over(runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted})
			return nil, err
		}
		policy, err := change.Over(env)
		return &policy, err
	}, nil
}

func (d *Handlers) setNetwork(c *httpapi.Call, in *Network) error {
	r, sb, err := d.on(c)
	if err != nil {
		return err
	}
	if in.AllowPublic != nil && in.private() != isPrivate(sb) {
		return unsupported("network: allowPublicTraffic can be said when a sandbox is made alone")
	}
	narrowed, err := in.narrowed(in.Internet)
	if err != nil {
		return err
	}
	if narrowed == nil {
		narrowed = sandboxes.Everything
	}
	_, err = d.sandboxes.Update(c.Context(), r, sandboxes.Change{Network: narrowed})
	return err
}
