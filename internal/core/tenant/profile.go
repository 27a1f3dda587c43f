package tenant

import (
	"slices"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Profile names a set of rules that an environment may begin with.
type Profile string

const (
	Unrestricted Profile = "unrestricted"
	StandardUse  Profile = "standard"
	Restricted   Profile = "restricted"
	Isolated     Profile = "isolated"
)

// Profiles lists every profile.
var Profiles = []Profile{Unrestricted, StandardUse, Restricted, Isolated}

// Permissions are the rules of a profile.
func (p Profile) Permissions() runtime.Permissions {
	home := []string{runtime.Home, "/tmp"}
	switch p {
	case Unrestricted:
		return runtime.Permissions{Network: runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted}}
	case Restricted: // its user names the hosts
		return runtime.Permissions{
			Network:    runtime.NetworkPolicy{Mode: runtime.NetworkRules, BlockedPorts: []uint16{22, 25}},
			Filesystem: runtime.FilesystemPolicy{Writable: home, ReadOnly: []string{"/data"}, Blocked: []string{"/etc/shadow", "/root"}},
			Process:    runtime.ProcessPolicy{BlockedCommands: slices.Clone(dangerous), MaxProcesses: 10},
		}
	case Isolated:
		return runtime.Permissions{
			Filesystem: runtime.FilesystemPolicy{Writable: []string{"/tmp"}, ReadOnly: []string{"/dev/shm"}},
			Process:    runtime.ProcessPolicy{NoExec: true},
		}
	default: // the contract's defaults
		return runtime.Permissions{
			Network:    runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"*"}},
			Filesystem: runtime.FilesystemPolicy{Writable: home},
			Process:    runtime.ProcessPolicy{MaxProcesses: 20},
		}
	}
}

// dangerous are the commands that the profile Restricted blocks: those that end
// or rebuild a machine, become another user, or look at and tamper with others.
var dangerous = []string{
	"rm -rf /", "rm -fr /", "rm -r -f /", "shutdown", "reboot", "halt", "poweroff", "init", "telinit", "mkfs", "mke2fs", "fdisk", "parted", "mount", "umount",
	"dd", "insmod", "modprobe", "sudo", "su", "chroot", "unshare", "nsenter", "strace", "gdb", "ssh", "nc", "ncat", "netcat", "socat", "crontab",
}
