package tenant

import (
	"net/netip"
	"slices"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// PermissionsChange says what to change of permissions; nil leaves a thing as it
// is. Lists are replaced.
type PermissionsChange struct {
	Profile *Profile // begins anew with its rules, before the rest is changed

	Network        *bool // whether there is one
	AnyAddress     *bool // everything but the floor may be reached, without looking a name up
	AllowedHosts   *[]string
	AllowedCIDRs   *[]netip.Prefix
	BlockedPorts   *[]uint16
	Writable       *[]string // "/" is everywhere
	ReadOnly       *[]string
	Blocked        *[]string
	Root           *bool // programs run as uid 0 of the sandbox
	AllowExec      *bool
	BlockedCommand *[]string
	MaxProcesses   *int
	AllowMCP       *bool // see Environment
}

// changePermissions makes the change, and checks it and the tenant's policy.
func changePermissions(t Tenant, e *Environment, c PermissionsChange) error {
	if c == (PermissionsChange{}) {
		return nil
	}
	if c.Profile != nil {
		if err := oneOf("permission_profile", *c.Profile, Profiles); err != nil {
			return err
		}
		e.Permissions, e.Profile, e.AllowMCP = c.Profile.Permissions(), string(*c.Profile), false
		// Full access to files is root's: as the ordinary user, programs may not change the image's.
		// Permitted checks the tenant's policy now and on each later change.
		e.Permissions.Process.Root = *c.Profile == Unrestricted
	}
	p := e.Permissions
	if err := c.network(&p.Network); err != nil {
		return err
	}
	setList(&p.Filesystem.ReadOnly, c.ReadOnly)
	setList(&p.Filesystem.Blocked, c.Blocked)
	if c.Writable != nil {
		p.Filesystem.Writable = append([]string{}, *c.Writable...) // which is never nil
		if slices.Contains(*c.Writable, "/") {
			p.Filesystem.Writable = nil
		}
	}
	set(&p.Process.Root, c.Root)
	if c.AllowExec != nil {
		p.Process.NoExec = !*c.AllowExec
	}
	setList(&p.Process.BlockedCommands, c.BlockedCommand)
	set(&p.Process.MaxProcesses, c.MaxProcesses)
	set(&e.AllowMCP, c.AllowMCP)
	if err := p.Validate(); err != nil {
		return invalid("permissions: %s", err)
	}
	e.Permissions = p
	return t.allows(e, c.Root != nil || e.Profile != string(Unrestricted))
}

// ParseCIDRs reads ranges of addresses that a client allows.
func ParseCIDRs(texts []string) (_ []netip.Prefix, err error) {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		if list[i], err = netip.ParsePrefix(text); err != nil {
			return nil, invalid("permissions: network.allowed_cidrs: %s is not a range of addresses; want one such as \"203.0.113.0/24\"", wire.Quote(text))
		}
	}
	return list, nil
}

// NetworkOver is what c makes of a network policy.
func (c PermissionsChange) NetworkOver(p runtime.NetworkPolicy) (runtime.NetworkPolicy, error) {
	err := c.network(&p)
	return p, err
}

func (c PermissionsChange) network(p *runtime.NetworkPolicy) error {
	opened := c.AllowedHosts != nil && len(*c.AllowedHosts) > 0 || c.AllowedCIDRs != nil && len(*c.AllowedCIDRs) > 0 || c.AnyAddress != nil && *c.AnyAddress
	if c.AllowedHosts != nil {
		if err := checkNewHosts(*c.AllowedHosts, p.AllowedHosts); err != nil {
			return err
		}
	}
	switch {
	case c.Network != nil && !*c.Network && opened:
		return invalid("permissions: network.enabled is false, but the network has other settings; remove one of them")
	case c.Network != nil && !*c.Network:
		*p = runtime.NetworkPolicy{Mode: runtime.NetworkBlocked}
	case p.Blocked() && (c.Network != nil || opened):
		p.Mode = runtime.NetworkRules
		if c.AllowedHosts == nil && c.AllowedCIDRs == nil {
			p.AllowedHosts = []string{"*"} // the contract's default
		}
	}
	setList(&p.AllowedHosts, c.AllowedHosts)
	setList(&p.AllowedCIDRs, c.AllowedCIDRs)
	setList(&p.BlockedPorts, c.BlockedPorts)
	switch {
	case p.Blocked():
		if len(p.AllowedHosts) > 0 || len(p.AllowedCIDRs) > 0 || len(p.BlockedPorts) > 0 {
			return invalid("permissions: network.enabled is false, so no host can be allowed or blocked")
		}
		p.Mode = runtime.NetworkBlocked
	case c.AnyAddress != nil && *c.AnyAddress:
		if c.AllowedHosts != nil || c.AllowedCIDRs != nil {
			return invalid("permissions: network.unrestricted allows every host and address; omit allowed_hosts and allowed_cidrs")
		}
		p.Mode, p.AllowedHosts, p.AllowedCIDRs = runtime.NetworkUnrestricted, nil, nil
	case p.Mode == runtime.NetworkUnrestricted && (c.AnyAddress != nil || c.AllowedHosts != nil || c.AllowedCIDRs != nil):
		p.Mode = runtime.NetworkRules
		if c.AllowedHosts == nil && c.AllowedCIDRs == nil {
			p.AllowedHosts = []string{"*"}
		}
	}
	return nil
}

// setList replaces a list. An empty one is nil, as stores give it back.
func setList[T any](field *[]T, value *[]T) {
	if value != nil {
		*field = slices.Concat([]T(nil), *value)
	}
}

// allows returns a Forbidden fault if an environment enables the network, or explicitly (named)
// runs programs as root, against the tenant's policy.
func (t *Tenant) allows(e *Environment, named bool) error {
	if named && e.Permissions.Process.Root && !t.RootEnabled {
		return fault.New(fault.Forbidden, "this tenant's policy does not let programs run as root in their sandbox: send \"permissions\": {\"process\": {\"root\": false}}, or ask the operator to allow it (atoll tenant set %s --root)", t.Name)
	}
	if t.NetworkEnabled || e.Permissions.Network.Blocked() {
		return nil
	}
	return fault.New(fault.Forbidden, "this tenant's policy allows no network: send \"permissions\": {\"network\": {\"enabled\": false}}, or ask the operator to allow it (atoll tenant set %s --network)", t.Name)
}

// Permitted is what of an environment's permissions the tenant's policy allows now.
func (t *Tenant) Permitted(p runtime.Permissions) runtime.Permissions {
	if !t.NetworkEnabled {
		p.Network = runtime.NetworkPolicy{}
	}
	p.Process.Root = p.Process.Root && t.RootEnabled
	return p
}
