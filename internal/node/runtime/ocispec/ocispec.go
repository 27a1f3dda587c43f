// Package ocispec turns a sandbox's spec into the OCI runtime specification
// that every OCI runtime reads: the guest as process 1, a small set of mounts,
// few capabilities, and no network but what the spec brings.
package ocispec

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// Hostname is what every sandbox is called inside.
const Hostname = "atoll"

// guestCaps are what process 1 needs: to become the unprivileged user, to own
// files for it, to signal it and to mount. Programs get none of them.
var guestCaps = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_ADMIN", "CAP_SYS_RESOURCE",
}

// New returns the specification of a sandbox whose root folder is rootDir.
// The guest's own folder is not among its mounts: how that gets in is the
// runtime's concern.
func New(spec runtime.Spec, rootDir string) *specs.Spec {
	l, caps := spec.Limits, guestCaps
	// Sandboxes with a guest daemon have had this capability since their first
	// version. gVisor restores a checkpoint only into the same capabilities, so
	// taking it away would leave those that sleep on disk unusable.
	if spec.Traces || spec.Sockets {
		caps = append(slices.Clone(caps), "CAP_SYS_PTRACE")
	}
	if spec.Shared {
		caps = append(slices.Clone(caps), "CAP_SYS_CHROOT", "CAP_SYS_PTRACE") // to enter namespaces of programs
	}
	s := &specs.Spec{
		Version: specs.Version,
		Root:    &specs.Root{Path: rootDir},
		Process: &specs.Process{
			Args:            []string{path.Join(runtime.GuestDir, "guest")},
			Env:             []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Cwd:             "/",
			NoNewPrivileges: true,
			// Locked memory counts against the sandbox's memory like any other;
			// locking is also how a restored interpreter maps its memory in.
			Rlimits:      []specs.POSIXRlimit{{Type: "RLIMIT_MEMLOCK", Hard: math.MaxUint64, Soft: math.MaxUint64}},
			Capabilities: &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
		},
		Hostname: Hostname,
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			tmpfs("/dev/shm", l.Shm, l.Inodes),
			tmpfs("/tmp", l.Tmp, l.Inodes),
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
				{Type: specs.MountNamespace}, {Type: specs.NetworkNamespace},
			},
		},
	}
	if n := spec.Network; n != nil {
		s.Process.Env = append(s.Process.Env, wire.ResolverEnv+"="+n.Resolver.String())
		if n.Authority {
			s.Process.Env = append(s.Process.Env, wire.AuthorityEnv+"=1")
		}
		s.Linux.Namespaces[len(s.Linux.Namespaces)-1].Path = n.Namespace
	}
	for _, b := range spec.Rootfs.Binds {
		s.Mounts = append(s.Mounts, specs.Mount{
			Destination: b.Target, Type: "bind", Source: b.Source,
			Options: []string{"rbind", "ro", "nosuid", "nodev"},
		})
	}
	return s
}

func tmpfs(target string, size int64, inodes int) specs.Mount {
	return specs.Mount{
		Destination: target, Type: "tmpfs", Source: "tmpfs",
		Options: []string{"nosuid", "nodev", "mode=1777", fmt.Sprintf("size=%d", size), "nr_inodes=" + strconv.Itoa(inodes)},
	}
}
