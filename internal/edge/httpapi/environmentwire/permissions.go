package environmentwire

import (
	"net/netip"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Permissions say what the programs of an environment may reach and do.
type Permissions struct {
	Network    NetworkPermissions    `json:"network" doc:"Network access of programs."`
	Filesystem FilesystemPermissions `json:"filesystem" doc:"Which files programs may see and change."`
	Process    ProcessPermissions    `json:"process" doc:"Programs and processes that may run."`
	AllowMCP   bool                  `json:"allow_mcp_servers" doc:"In sessions: MCP servers of the agent are asked also where network does not allow their hosts."`
}

// NetworkPermissions are what programs may connect to.
type NetworkPermissions struct {
	Enabled      bool     `json:"enabled" doc:"Whether there is a network at all."`
	Unrestricted bool     `json:"unrestricted" doc:"Addresses may be connected to without a name having been looked up."`
	AllowedHosts []string `json:"allowed_hosts" doc:"Names; *.example.com is every name below it, * every name. An empty list allows none."`
	AllowedCIDRs []string `json:"allowed_cidrs" doc:"Addresses that may be connected to without a name."`
	BlockedPorts []int    `json:"blocked_ports" doc:"Ports that cannot be reached."`
}

// FilesystemPermissions are what programs may read and write.
type FilesystemPermissions struct {
	WritablePaths []string `json:"writable_paths" doc:"Where programs may write as far as their user may; / is everywhere."`
	ReadOnlyPaths []string `json:"read_only_paths" doc:"Files and folders that programs can read and not change."`
	BlockedPaths  []string `json:"blocked_paths" doc:"Files and folders that programs cannot see."`
}

// ProcessPermissions are what programs may start.
type ProcessPermissions struct {
	Root            bool     `json:"root" doc:"Programs run as uid 0 of the sandbox, with the capabilities that a package manager needs."`
	AllowExec       bool     `json:"allow_exec" doc:"Whether programs may start other programs."`
	BlockedCommands []string `json:"blocked_commands" doc:"Names of programs that cannot be started."`
	MaxProcesses    int      `json:"max_processes" doc:"Processes, not threads, at the same time; 0 for no bound but limits.processes."`
}

// PermissionsChange changes permissions; omitted fields stay unchanged.
type PermissionsChange struct {
	Network    *NetworkChange    `json:"network,omitzero" doc:"Network access of programs."`
	Filesystem *FilesystemChange `json:"filesystem,omitzero" doc:"Which files programs may see and change."`
	Process    *ProcessChange    `json:"process,omitzero" doc:"Programs and processes that may run."`
	AllowMCP   *bool             `json:"allow_mcp_servers,omitzero" doc:"In sessions: MCP servers of the agent are asked also where network does not allow their hosts."`
}

// NetworkChange changes NetworkPermissions.
type NetworkChange struct {
	Enabled      *bool     `json:"enabled,omitzero" doc:"Refused with 403 where the tenant's policy allows no network."`
	Unrestricted *bool     `json:"unrestricted,omitzero" doc:"Addresses may be connected to without a name having been looked up."`
	AllowedHosts *[]string `json:"allowed_hosts,omitzero" maxItems:"100" doc:"Replaces the list. * if there was no network and nothing is named."`
	AllowedCIDRs *[]string `json:"allowed_cidrs,omitzero" maxItems:"100" doc:"Replaces the list."`
	BlockedPorts *[]uint16 `json:"blocked_ports,omitzero" maxItems:"100" doc:"Replaces the list; 1 to 65535."`
}

// FilesystemChange changes FilesystemPermissions.
type FilesystemChange struct {
	WritablePaths *[]string `json:"writable_paths,omitzero" maxItems:"100" doc:"Replaces the list; all else is read-only. / is everywhere."`
	ReadOnlyPaths *[]string `json:"read_only_paths,omitzero" maxItems:"100" doc:"Replaces the list."`
	BlockedPaths  *[]string `json:"blocked_paths,omitzero" maxItems:"100" doc:"Replaces the list."`
}

// ProcessChange changes ProcessPermissions.
type ProcessChange struct {
	Root            *bool     `json:"root,omitzero" doc:"Programs run as uid 0 of the sandbox. Refused with 403 where the tenant's policy does not allow it."`
	AllowExec       *bool     `json:"allow_exec,omitzero" doc:"false forbids fork and exec; threads still work."`
	BlockedCommands *[]string `json:"blocked_commands,omitzero" maxItems:"100" doc:"Replaces the list. A program's name, or a name with the arguments it begins with."`
	MaxProcesses    *int      `json:"max_processes,omitzero" minimum:"0" maximum:"1048576" doc:"Processes, not threads, at the same time; 0 for no bound but limits.processes."`
}

// Domain gives the tenant package's form. c may be nil.
func (c *PermissionsChange) Domain() (out tenant.PermissionsChange, err error) {
	if c == nil {
		return out, nil
	}
	out.AllowMCP = c.AllowMCP
	if n := c.Network; n != nil {
		out.Network, out.AnyAddress, out.AllowedHosts, out.BlockedPorts = n.Enabled, n.Unrestricted, n.AllowedHosts, n.BlockedPorts
		if n.AllowedCIDRs != nil {
			list, err := tenant.ParseCIDRs(*n.AllowedCIDRs)
			if err != nil {
				return out, err
			}
			out.AllowedCIDRs = &list
		}
	}
	if f := c.Filesystem; f != nil {
		out.Writable, out.ReadOnly, out.Blocked = f.WritablePaths, f.ReadOnlyPaths, f.BlockedPaths
	}
	if p := c.Process; p != nil {
		out.Root = p.Root
		out.AllowExec, out.BlockedCommand, out.MaxProcesses = p.AllowExec, p.BlockedCommands, p.MaxProcesses
	}
	return out, nil
}

// PermissionsOf renders the permissions of an environment.
func PermissionsOf(e *tenant.Environment) Permissions {
	files, process := e.Permissions.Filesystem, e.Permissions.Process
	out := Permissions{
		Network: NetworkOf(e.Permissions.Network), AllowMCP: e.AllowMCP,
		Filesystem: FilesystemPermissions{
			WritablePaths: append([]string{}, files.Writable...), ReadOnlyPaths: append([]string{}, files.ReadOnly...), BlockedPaths: append([]string{}, files.Blocked...),
		},
		Process: ProcessPermissions{
			Root: process.Root, AllowExec: !process.NoExec, BlockedCommands: append([]string{}, process.BlockedCommands...), MaxProcesses: process.MaxProcesses,
		},
	}
	if files.Writable == nil {
		out.Filesystem.WritablePaths = []string{"/"}
	}
	return out
}

// NetworkOf renders a network policy.
func NetworkOf(p runtime.NetworkPolicy) NetworkPermissions {
	out := NetworkPermissions{
		Enabled: !p.Blocked(), Unrestricted: p.Mode == runtime.NetworkUnrestricted, AllowedHosts: append([]string{}, p.AllowedHosts...),
		AllowedCIDRs: httpapi.Each(p.AllowedCIDRs, netip.Prefix.String), BlockedPorts: httpapi.Each(p.BlockedPorts, func(port uint16) int { return int(port) }),
	}
	if out.Unrestricted {
		out.AllowedHosts = []string{"*"}
	}
	return out
}

// Over gives the policy that a change makes of p.
func (c *NetworkChange) Over(p runtime.NetworkPolicy) (runtime.NetworkPolicy, error) {
	change, err := (&PermissionsChange{Network: c}).Domain()
	if err != nil {
		return p, err
	}
	return change.NetworkOver(p)
}
