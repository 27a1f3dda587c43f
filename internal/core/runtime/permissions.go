package runtime

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Permissions define what programs of an environment may reach and do, in addition to Limits. The
// zero value allows no network and restricts nothing else.
type Permissions struct {
	Network    NetworkPolicy
	Filesystem FilesystemPolicy
	Process    ProcessPolicy
}

// NetworkMode says how a sandbox connects to the network.
type NetworkMode string

const (
	NetworkBlocked      NetworkMode = "blocked"      // no network device
	NetworkRules        NetworkMode = "rules"        // only what the rules allow
	NetworkUnrestricted NetworkMode = "unrestricted" // everything except what package egress always denies
)

// NetworkPolicy defines what a sandbox may connect to. The zero value allows nothing, and neither
// does an empty list.
type NetworkPolicy struct {
	Mode         NetworkMode    // "" means NetworkBlocked
	AllowedHosts []string       // names; "*.example.com" matches all subdomains, "*" matches every name
	AllowedCIDRs []netip.Prefix // addresses that programs may connect to without a name
	BlockedPorts []uint16       // denied for every host
}

// Blocked reports whether p allows no network.
func (p NetworkPolicy) Blocked() bool { return p.Mode == "" || p.Mode == NetworkBlocked }

// Equal reports whether p and o have the same rules.
func (p NetworkPolicy) Equal(o NetworkPolicy) bool {
	return p.Mode == o.Mode && slices.Equal(p.AllowedHosts, o.AllowedHosts) &&
		slices.Equal(p.AllowedCIDRs, o.AllowedCIDRs) && slices.Equal(p.BlockedPorts, o.BlockedPorts)
}

// Within reports whether o allows everything that p allows. It compares rule by rule, so it does
// not recognize a range that two others cover together.
func (p NetworkPolicy) Within(o NetworkPolicy) bool {
	switch {
	case p.Blocked():
		return true
	case o.Blocked(), p.Mode == NetworkUnrestricted && o.Mode != NetworkUnrestricted:
		return false
	}
	for _, port := range o.BlockedPorts {
		if !slices.Contains(p.BlockedPorts, port) {
			return false
		}
	}
	if o.Mode == NetworkUnrestricted {
		return true
	}
	for _, h := range p.AllowedHosts {
		if !slices.ContainsFunc(o.AllowedHosts, func(pattern string) bool { return covers(pattern, h) }) {
			return false
		}
	}
	for _, c := range p.AllowedCIDRs {
		if !slices.ContainsFunc(o.AllowedCIDRs, func(r netip.Prefix) bool { return r.Bits() <= c.Bits() && r.Contains(c.Addr()) }) {
			return false
		}
	}
	return true
}

// And returns what both p and o allow. Two name patterns or address ranges either nest or are
// disjoint, so the narrower of each pair is their intersection.
func (p NetworkPolicy) And(o NetworkPolicy) NetworkPolicy {
	if p.Blocked() || o.Blocked() {
		return NetworkPolicy{Mode: NetworkBlocked}
	}
	both := NetworkPolicy{Mode: NetworkRules, BlockedPorts: union(p.BlockedPorts, o.BlockedPorts)}
	switch NetworkUnrestricted {
	case p.Mode:
		both.Mode, both.AllowedHosts, both.AllowedCIDRs = o.Mode, o.AllowedHosts, o.AllowedCIDRs
	case o.Mode:
		both.AllowedHosts, both.AllowedCIDRs = p.AllowedHosts, p.AllowedCIDRs
	default:
		both.AllowedHosts = narrower(p.AllowedHosts, o.AllowedHosts, covers)
		both.AllowedCIDRs = narrower(p.AllowedCIDRs, o.AllowedCIDRs, func(r, c netip.Prefix) bool { return r.Bits() <= c.Bits() && r.Contains(c.Addr()) })
	}
	return both
}

// narrower returns the covered element of each pair in which one element covers the other.
func narrower[T comparable](p, o []T, covers func(wide, narrow T) bool) []T {
	var both []T
	for _, a := range p {
		for _, b := range o {
			switch {
			case covers(b, a):
				both = union(both, []T{a})
			case covers(a, b):
				both = union(both, []T{b})
			}
		}
	}
	return both
}

// union returns a copy of p plus the elements of o that p lacks.
func union[T comparable](p, o []T) []T {
	all := slices.Clone(p)
	for _, v := range o {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// covers reports whether pattern matches every name that h matches.
func covers(pattern, h string) bool {
	if pattern == "*" || pattern == h {
		return true
	}
	below, wild := strings.CutPrefix(pattern, "*")
	return wild && strings.HasSuffix(h, below) && h != "*"
}

// Any reports whether p allows every host, on some port.
func (p NetworkPolicy) Any() bool {
	return p.Mode == NetworkUnrestricted || !p.Blocked() && slices.Contains(p.AllowedHosts, "*")
}

// Reaches reports whether p allows a host, by name or address, on a port.
func (p NetworkPolicy) Reaches(host string, port uint16) bool {
	if p.Blocked() || host == "" || slices.Contains(p.BlockedPorts, port) {
		return false
	}
	if p.Mode == NetworkUnrestricted {
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return slices.ContainsFunc(p.AllowedCIDRs, func(c netip.Prefix) bool { return c.Contains(addr.Unmap()) })
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(p.AllowedHosts, func(pattern string) bool { return covers(strings.ToLower(pattern), name) })
}

// FilesystemPolicy restricts paths of a sandbox; paths are absolute and clean. The longest path
// that contains a file decides. Blocked overrides ReadOnly, and ReadOnly overrides Writable. No
// rule reopens a path below a blocked one.
type FilesystemPolicy struct {
	Writable []string // where programs may write; nil for wherever their user may
	ReadOnly []string
	Blocked  []string // programs can neither read nor list these
}

// Restricts reports whether p forbids anything.
func (p FilesystemPolicy) Restricts() bool {
	return p.Writable != nil || len(p.ReadOnly) > 0 || len(p.Blocked) > 0
}

// ProcessPolicy restricts which programs may start, and as which user.
type ProcessPolicy struct {
	// Root runs programs as uid 0 of the sandbox, with the capabilities that a package manager
	// needs, instead of as UID. On the host they remain unprivileged.
	Root bool

	NoExec          bool     // the interpreter may run, with threads; fork and exec fail
	BlockedCommands []string // matched at exec, after shell expansion
	MaxProcesses    int      // concurrent processes, not threads; 0 for Limits.Processes
}

// Restricts reports whether the guest must enforce p.
func (p ProcessPolicy) Restricts() bool {
	return p.Root || p.NoExec || len(p.BlockedCommands) > 0 || p.MaxProcesses > 0
}

// Traced reports whether the guest must inspect the programs that start.
func (p ProcessPolicy) Traced() bool {
	return !p.NoExec && (len(p.BlockedCommands) > 0 || p.MaxProcesses > 0)
}

// Restricts reports whether the guest must enforce any rule of p.
func (p Permissions) Restricts() bool { return p.Filesystem.Restricts() || p.Process.Restricts() }

// Equal reports whether p and o have the same rules.
func (p Permissions) Equal(o Permissions) bool {
	return p.Network.Equal(o.Network) &&
		(p.Filesystem.Writable == nil) == (o.Filesystem.Writable == nil) && slices.Equal(p.Filesystem.Writable, o.Filesystem.Writable) &&
		slices.Equal(p.Filesystem.ReadOnly, o.Filesystem.ReadOnly) && slices.Equal(p.Filesystem.Blocked, o.Filesystem.Blocked) &&
		p.Process.Root == o.Process.Root && p.Process.NoExec == o.Process.NoExec && slices.Equal(p.Process.BlockedCommands, o.Process.BlockedCommands) &&
		p.Process.MaxProcesses == o.Process.MaxProcesses
}

// Limits of permissions.
const (
	MaxRules     = 100  // entries per list
	MaxRulePath  = 1024 // bytes per path
	MaxCommand   = 1024 // bytes per blocked command
	maxHost      = 253  // characters of a name, as in DNS
	maxHostLabel = 63
)

// Validate returns an error, for the author of the rules, if a rule cannot be enforced.
func (p Permissions) Validate() error {
	for _, check := range []func() error{p.Network.validate, p.Filesystem.validate, p.Process.validate} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p NetworkPolicy) validate() error {
	switch p.Mode {
	case "", NetworkBlocked, NetworkRules, NetworkUnrestricted:
	default:
		return fmt.Errorf("network: unknown mode %q", string(p.Mode))
	}
	if err := atMost("network.allowed_hosts", len(p.AllowedHosts)); err != nil {
		return err
	}
	for _, h := range p.AllowedHosts {
		if err := CheckHost(h); err != nil {
			return fmt.Errorf("network.allowed_hosts: %w, or \"*\" for all", err)
		}
	}
	if err := atMost("network.allowed_cidrs", len(p.AllowedCIDRs)); err != nil {
		return err
	}
	for _, c := range p.AllowedCIDRs {
		if !c.IsValid() || c != c.Masked() || c.Addr().Is4In6() {
			return fmt.Errorf("network.allowed_cidrs: %s is not a range of addresses; want one such as \"203.0.113.0/24\", without bits after the prefix", c)
		}
	}
	if err := atMost("network.blocked_ports", len(p.BlockedPorts)); err != nil {
		return err
	}
	if slices.Contains(p.BlockedPorts, 0) {
		return fmt.Errorf("network.blocked_ports: want ports of 1 to 65535")
	}
	return nil
}

// CheckHost returns an error if h is neither a host name nor a name pattern.
func CheckHost(h string) error {
	if why := hostPattern(h); why != "" {
		return fmt.Errorf("%.300q %s; want a name such as \"example.com\", or \"*.example.com\" for all its subdomains", h, why)
	}
	return nil
}

// hostPattern returns why a pattern is invalid, or "". Write international names in their DNS form
// (xn--…).
func hostPattern(h string) string {
	if h == "*" {
		return ""
	}
	name := strings.TrimPrefix(h, "*.")
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return "is an address, not a name: addresses go into allowed_cidrs"
	}
	labels := strings.Split(name, ".")
	switch {
	case name == "" || len(name) > maxHost:
		return fmt.Sprintf("must have 1 to %d characters", maxHost)
	case strings.Trim(labels[len(labels)-1], "0123456789") == "" && labels[len(labels)-1] != "":
		return "must not end in a number"
	}
	for _, label := range labels {
		if label == "" || len(label) > maxHostLabel || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "is no host name in lower case, without scheme, port or path"
		}
	}
	return ""
}

func (p FilesystemPolicy) validate() error {
	for _, list := range []struct {
		name  string
		paths []string
	}{{"writable_paths", p.Writable}, {"read_only_paths", p.ReadOnly}, {"blocked_paths", p.Blocked}} {
		if err := atMost("filesystem."+list.name, len(list.paths)); err != nil {
			return err
		}
		for _, name := range list.paths {
			if why := rulePath(name); why != "" {
				return fmt.Errorf("filesystem.%s: %.300q %s", list.name, name, why)
			}
			for _, own := range []string{"/proc", "/sys", GuestDir} {
				if name == own || within(own, name) {
					return fmt.Errorf("filesystem.%s: %s belongs to the sandbox and cannot be changed", list.name, name)
				}
			}
			if list.name == "writable_paths" {
				continue
			}
			switch name {
			case "/":
				return fmt.Errorf("filesystem.%s: \"/\" covers every path; list the paths that may be written in writable_paths", list.name)
			case "/dev":
				return fmt.Errorf("filesystem.%s: programs need /dev; name an entry of it, such as /dev/shm", list.name)
			}
		}
	}
	for _, blocked := range p.Blocked {
		for _, open := range slices.Concat(p.Writable, p.ReadOnly) {
			if within(blocked, open) {
				return fmt.Errorf("filesystem: %s is below the blocked path %s, and nothing below a blocked path can be allowed; block its siblings instead", open, blocked)
			}
		}
		if within(blocked, Home) || blocked == Home {
			return fmt.Errorf("filesystem.blocked_paths: %s contains the home directory, where programs start; block paths inside it", blocked)
		}
	}
	return nil
}

// within reports whether a path is below a directory.
func within(folder, p string) bool {
	return p != folder && (folder == "/" || strings.HasPrefix(p, folder+"/"))
}

func rulePath(p string) string {
	switch {
	case p == "" || len(p) > MaxRulePath:
		return fmt.Sprintf("must have 1 to %d bytes", MaxRulePath)
	case !strings.HasPrefix(p, "/"):
		return "must be absolute, beginning with /"
	case path.Clean(p) != p:
		return fmt.Sprintf("must be written without ., .., // or a / at its end, as %.300q", path.Clean(p))
	case !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl):
		return "must be text without control characters"
	}
	return ""
}

func (p ProcessPolicy) validate() error {
	if err := atMost("process.blocked_commands", len(p.BlockedCommands)); err != nil {
		return err
	}
	for _, c := range p.BlockedCommands {
		switch {
		case strings.TrimSpace(c) == "" || len(c) > MaxCommand:
			return fmt.Errorf("process.blocked_commands: a command must have 1 to %d bytes", MaxCommand)
		case !utf8.ValidString(c) || strings.ContainsFunc(c, unicode.IsControl):
			return fmt.Errorf("process.blocked_commands: %.300q must be one line of text without control characters", c)
		}
	}
	if p.MaxProcesses < 0 || p.MaxProcesses > MaxProcesses {
		return fmt.Errorf("process.max_processes must be between 0, which leaves only the environment's limit, and %d", MaxProcesses)
	}
	return nil
}

// MaxProcesses is the largest ProcessPolicy.MaxProcesses.
const MaxProcesses = 1 << 20

func atMost(list string, n int) error {
	if n > MaxRules {
		return fmt.Errorf("%s has %d entries; the limit is %d", list, n, MaxRules)
	}
	return nil
}
