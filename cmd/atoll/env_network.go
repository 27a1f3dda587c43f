package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/app/tty"
	"github.com/atoll-run/atoll/internal/core/tenant"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// openNetwork adds to in what --allow and --deny ask for, and reports whether the tenant
// must be allowed to have a network for that.
func openNetwork(f *envFlags, now sdk.NetworkPermissions, in *sdk.EnvironmentChange) (bool, error) {
	change, err := f.network.over(now)
	if err != nil || change == nil {
		return false, err
	}
	if in.Permissions == nil {
		in.Permissions = &sdk.PermissionsChange{}
	}
	in.Permissions.Network = change
	return *change.Enabled, nil
}

// allowTenant lets the environments of the tenant name have a network, or run programs as
// root. conclude is called with what came of the change of the environment: it takes back
// what was allowed for it if that was refused, and returns the error.
func (r *remote) allowTenant(ctx context.Context, c *sdk.Client, name string, network, root bool) (conclude func(error) error, err error) {
	if !network && !root {
		return func(err error) error { return err }, nil
	}
	t, err := c.Tenant(ctx, name)
	if err != nil {
		return nil, err
	}
	var allow, undo sdk.TenantChange
	var done []string
	if network && !t.NetworkEnabled {
		allow.NetworkEnabled, undo.NetworkEnabled = new(true), new(false)
		done = append(done, fmt.Sprintf("The environments of %s may have a network from now on, as by 'atoll tenant set %[1]s --network'.", name))
	}
	if root && !t.RootEnabled {
		allow.RootEnabled, undo.RootEnabled = new(true), new(false)
		done = append(done, fmt.Sprintf("The environments of %s may run programs as root of their sandbox from now on, as by 'atoll tenant set %[1]s --root'.", name))
	}
	if len(done) == 0 {
		return func(err error) error { return err }, nil
	}
	if _, err = c.ChangeTenant(ctx, name, allow); err != nil {
		return nil, err
	}
	return func(err error) error {
		if err != nil {
			if _, failed := c.ChangeTenant(context.WithoutCancel(ctx), name, undo); failed != nil {
				err = errors.Join(err, fmt.Errorf("the tenant %s keeps the network permission granted for this: %w", name, failed))
			}
			return err
		}
		for _, text := range done {
			fmt.Fprintln(r.app.std.err, text)
		}
		return nil
	}, nil
}

// openSandboxes applies an environment's new network to its sandboxes and prints how many need a
// restart to get it. before is the environment's previous policy: a user chose any other policy on
// purpose, so those sandboxes keep theirs. Changing a sandbox needs a key of its tenant, which this
// machine has only for the tenant dev: the development key.
func (r *remote) openSandboxes(ctx context.Context, f *envFlags, name string, e *sdk.Environment, before sdk.NetworkPermissions) {
	restart := e.SandboxesToRestart
	if server, err := r.devServer(); err == nil && name == tenant.Dev && e.Name == tenant.DefaultName && restart > 0 {
		c := sdk.New(server.url, server.key)
		all, err := c.Sandboxes(ctx, "")
		if err != nil {
			fmt.Fprintf(r.app.std.err, "Sandboxes that live keep their network: %s\n", tty.Printable(err.Error()))
			return
		}
		restart -= r.openDevSandboxes(ctx, c, f, all, before)
	}
	switch {
	case restart == 1:
		fmt.Fprintln(r.app.std.err, "1 sandbox gets this network when it is restarted: 'atoll sandbox restart NAME'.")
	case restart > 1:
		fmt.Fprintf(r.app.std.err, "%d sandboxes get this network when they are restarted: 'atoll sandbox restart NAME'.\n", restart)
	}
}

// openDevSandboxes changes the network of sandboxes that have one and returns their number.
func (r *remote) openDevSandboxes(ctx context.Context, c *sdk.Client, f *envFlags, all []sdk.Sandbox, before sdk.NetworkPermissions) (changed int64) {
	for _, sb := range all {
		if !sb.Network.Enabled || !samePolicy(sb.Network, before) {
			continue
		}
		change, err := f.network.over(sb.Network)
		if err == nil && change != nil {
			_, err = c.ChangeSandboxNetwork(ctx, sdk.SandboxRef{Session: sb.Session, Name: sb.Name}, *change)
		}
		if err != nil {
			fmt.Fprintf(r.app.std.err, "The sandbox %s keeps its network: %s\n", sb.Name, tty.Printable(err.Error()))
			continue
		}
		changed++
	}
	return changed
}

func samePolicy(a, b sdk.NetworkPermissions) bool {
	return a.Enabled == b.Enabled && a.Unrestricted == b.Unrestricted && slices.Equal(a.AllowedHosts, b.AllowedHosts) &&
		slices.Equal(a.AllowedCidrs, b.AllowedCidrs) && slices.Equal(a.BlockedPorts, b.BlockedPorts)
}
