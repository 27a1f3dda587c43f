package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/tenant"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// openNetwork adds to in what --allow and --deny ask for. If that allows something,
// the tenant name is allowed to have a network.
func (r *remote) openNetwork(ctx context.Context, c *sdk.Client, f *envFlags, name string, now sdk.NetworkPermissions, in *sdk.EnvironmentChange) error {
	change, err := f.network.over(now)
	if err != nil || change == nil {
		return err
	}
	if in.Permissions == nil {
		in.Permissions = &sdk.PermissionsChange{}
	}
	in.Permissions.Network = change
	if !*change.Enabled {
		return nil
	}
	t, err := c.Tenant(ctx, name)
	if err != nil || t.NetworkEnabled {
		return err
	}
	on := true
	if _, err = c.ChangeTenant(ctx, name, sdk.TenantChange{NetworkEnabled: &on}); err != nil {
		return err
	}
	fmt.Fprintf(r.app.std.err, "The environments of %s may have a network from now on, as by 'atoll tenant set %s --network'.\n", name, name)
	return nil
}

// allowRoot lets the environments of the tenant name run programs as root, if --root
// asks for it.
func (r *remote) allowRoot(ctx context.Context, c *sdk.Client, f *envFlags, name string) error {
	if !f.asRoot {
		return nil
	}
	t, err := c.Tenant(ctx, name)
	if err != nil || t.RootEnabled {
		return err
	}
	if _, err = c.ChangeTenant(ctx, name, sdk.TenantChange{RootEnabled: &f.asRoot}); err != nil {
		return err
	}
	fmt.Fprintf(r.app.std.err, "The environments of %s may run programs as root of their sandbox from now on, as by 'atoll tenant set %s --root'.\n", name, name)
	return nil
}

// openSandboxes changes the network of the sandboxes that live as that of their
// environment was changed. before is the environment's policy until now: a sandbox
// with another one was given it on purpose and keeps it. That needs a key of the
// tenant: for the tenant dev of this machine it is the development key.
func (r *remote) openSandboxes(ctx context.Context, f *envFlags, name, environment string, before sdk.NetworkPermissions) {
	e, err := r.devServer()
	if name != tenant.Dev || environment != tenant.DefaultName || err != nil {
		fmt.Fprintln(r.app.std.err, "Sandboxes that live keep their network; 'atoll sandbox network NAME' changes it.")
		return
	}
	c := sdk.New(e.url, e.key)
	all, err := c.Sandboxes(ctx, "")
	if err != nil {
		fmt.Fprintf(r.app.std.err, "Sandboxes that live keep their network: %v\n", err)
		return
	}
	for _, sb := range all {
		if !samePolicy(sb.Network, before) {
			continue
		}
		change, err := f.network.over(sb.Network)
		if err == nil && change != nil {
			_, err = c.ChangeSandboxNetwork(ctx, sdk.SandboxRef{Session: sb.Session, Name: sb.Name}, *change)
		}
		if err != nil {
			fmt.Fprintf(r.app.std.err, "The sandbox %s keeps its network: %v\n", sb.Name, err)
		}
	}
}

func samePolicy(a, b sdk.NetworkPermissions) bool {
	return a.Enabled == b.Enabled && a.Unrestricted == b.Unrestricted && slices.Equal(a.AllowedHosts, b.AllowedHosts) &&
		slices.Equal(a.AllowedCidrs, b.AllowedCidrs) && slices.Equal(a.BlockedPorts, b.BlockedPorts)
}
