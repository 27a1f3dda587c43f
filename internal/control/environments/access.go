package environments

import (
	"slices"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Access is what a network allows: everything, or hosts. The hosts of package managers are apart if the
// network allows all of them.
type Access struct {
	Unrestricted bool
	Hosts        []string
	Registries   bool
}

// registryHosts are the hosts of all package managers that a network can be opened for.
func registryHosts() (hosts []string) {
	for _, p := range tenant.Presets {
		hosts = append(hosts, p.Hosts...)
	}
	return hosts
}

// AccessOf returns what a network allows.
func AccessOf(n runtime.NetworkPolicy) Access {
	if n.Mode == runtime.NetworkUnrestricted {
		return Access{Unrestricted: true}
	}
	out, registries := Access{Hosts: []string{}}, registryHosts()
	out.Registries = !slices.ContainsFunc(registries, func(host string) bool { return !slices.Contains(n.AllowedHosts, host) })
	for _, host := range n.AllowedHosts {
		if !out.Registries || !slices.Contains(registries, host) {
			out.Hosts = append(out.Hosts, host)
		}
	}
	return out
}

// Limit returns the change that limits a network to hosts. Nil arguments leave what the network allows now.
func Limit(now runtime.NetworkPolicy, hosts *[]string, registries *bool) tenant.PermissionsChange {
	to := AccessOf(now)
	if hosts != nil {
		to.Hosts = *hosts
	}
	if registries != nil {
		to.Registries = *registries
	}
	all := slices.Clone(to.Hosts)
	if to.Registries {
		for _, host := range registryHosts() {
			if !slices.Contains(all, host) {
				all = append(all, host)
			}
		}
	}
	if len(all)+len(now.AllowedCIDRs) == 0 {
		return tenant.PermissionsChange{Network: new(false)}
	}
	return tenant.PermissionsChange{Network: new(true), AnyAddress: new(false), AllowedHosts: &all}
}
