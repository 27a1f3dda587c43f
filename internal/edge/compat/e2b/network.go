package e2b

import (
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

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
	return sandboxes.Narrowed(n.AllowOut, n.DenyOut, closed)
}

func (d *Handlers) setNetwork(c *httpapi.Call, in *Network) error {
	r, sb, err := d.on(c)
	if err != nil {
		return err
	}
	narrowed, err := in.narrowed(in.Internet)
	if err != nil {
		return err
	}
	var private *bool
	if in.AllowPublic != nil {
		private = new(in.private())
	}
	return d.sandboxes.SetNarrowed(c.Context(), r, sb, private, narrowed)
}
