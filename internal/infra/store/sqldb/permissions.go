package sqldb

import (
	"encoding/json"
	"net/netip"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// permissionsRow is how permissions are stored. A name is never given another
// meaning.
type permissionsRow struct {
	Network struct {
		Mode         string         `json:"mode,omitempty"`
		AllowedHosts []string       `json:"allowed_hosts,omitempty"`
		AllowedCIDRs []netip.Prefix `json:"allowed_cidrs,omitempty"`
		BlockedPorts []uint16       `json:"blocked_ports,omitempty"`
	} `json:"network,omitzero"`
	Filesystem struct {
		Writable []string `json:"writable"` // null is everywhere
		ReadOnly []string `json:"read_only,omitempty"`
		Blocked  []string `json:"blocked,omitempty"`
	} `json:"filesystem"`
	Process struct {
		Root            bool     `json:"root,omitempty"`
		NoExec          bool     `json:"no_exec,omitempty"`
		BlockedCommands []string `json:"blocked_commands,omitempty"`
		MaxProcesses    int      `json:"max_processes,omitempty"`
	} `json:"process,omitzero"`
}

// permissionsText is p as it is stored: "" for the zero value.
func permissionsText(p runtime.Permissions) (string, error) {
	if p.Equal(runtime.Permissions{}) {
		return "", nil
	}
	var r permissionsRow
	r.Network.Mode, r.Network.AllowedHosts = string(p.Network.Mode), p.Network.AllowedHosts
	r.Network.AllowedCIDRs, r.Network.BlockedPorts = p.Network.AllowedCIDRs, p.Network.BlockedPorts
	r.Filesystem.Writable, r.Filesystem.ReadOnly, r.Filesystem.Blocked = p.Filesystem.Writable, p.Filesystem.ReadOnly, p.Filesystem.Blocked
	r.Process.Root = p.Process.Root
	r.Process.NoExec, r.Process.BlockedCommands, r.Process.MaxProcesses = p.Process.NoExec, p.Process.BlockedCommands, p.Process.MaxProcesses
	return JSONOf(r, false)
}

func permissionsOf(text string) (p runtime.Permissions, err error) {
	if text == "" {
		return p, nil
	}
	var r permissionsRow
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return p, err
	}
	p.Network.Mode, p.Network.AllowedHosts = runtime.NetworkMode(r.Network.Mode), r.Network.AllowedHosts
	p.Network.AllowedCIDRs, p.Network.BlockedPorts = r.Network.AllowedCIDRs, r.Network.BlockedPorts
	p.Filesystem.Writable, p.Filesystem.ReadOnly, p.Filesystem.Blocked = r.Filesystem.Writable, r.Filesystem.ReadOnly, r.Filesystem.Blocked
	p.Process.Root = r.Process.Root
	p.Process.NoExec, p.Process.BlockedCommands, p.Process.MaxProcesses = r.Process.NoExec, r.Process.BlockedCommands, r.Process.MaxProcesses
	return p, nil
}
