package sandbox

import "net/netip"

// Permissions are what an environment lets its programs reach and do, beyond
// Limits. The zero value reaches no network and restricts nothing else.
type Permissions struct {
	Network    NetworkPolicy
	Filesystem FilesystemPolicy
	Process    ProcessPolicy
}

// NetworkMode says how a sandbox is connected.
type NetworkMode string

const (
	NetworkBlocked      NetworkMode = "blocked"      // no device at all
	NetworkRules        NetworkMode = "rules"        // what the rules allow
	NetworkUnrestricted NetworkMode = "unrestricted" // everything but the floor: see package egress
)

// NetworkPolicy is what a sandbox may connect to. The zero value is blocked. An
// empty list allows nothing.
type NetworkPolicy struct {
	Mode         NetworkMode    // "" is NetworkBlocked
	AllowedHosts []string       // names; "*.example.com" is every name below it, "*" every name
	AllowedCIDRs []netip.Prefix // addresses that may be connected to without a name
	BlockedPorts []uint16       // refused whatever the host
}

// FilesystemPolicy restricts paths of a sandbox, absolute and clean. The longest
// path that holds a file decides about it; Blocked wins over ReadOnly, ReadOnly
// over Writable.
type FilesystemPolicy struct {
	Writable []string // where programs may write; nil is wherever their user may
	ReadOnly []string
	Blocked  []string // neither read nor listed
}

// ProcessPolicy restricts what programs start.
type ProcessPolicy struct {
	NoExec          bool     // the interpreter runs, with threads; fork and exec are refused
	BlockedCommands []string // matched at exec, after the shell's expansion
	MaxProcesses    int      // processes, not threads, at the same time; 0 is Limits.Processes
}
