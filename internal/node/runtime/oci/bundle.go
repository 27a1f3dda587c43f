package oci

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/runtime/ocispec"
)

const (
	bundleDir  = "bundle"
	runtimeDir = "runtime" // the OCI runtime's own state
	logFile    = "runtime.log"
	pidFile    = "pid"
)

// Sandboxes' uids are taken from a range that neither users, nor subordinate
// ids, nor containers are given by any distribution: one slot for each, so that
// what the kernel counts or permits by uid is not shared between sandboxes. The
// slot follows from the id; two sandboxes in one slot are no harm, just less
// apart.
const (
	firstUID = 0x70000000
	slotSize = 1 << 16
	slots    = 4094 // up to systemd's 0x7FFE0000
)

// baseUID returns the host's uid for the sandbox's uid 0.
func baseUID(id runtime.ID) uint32 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return firstUID + h.Sum32()%slots*slotSize
}

// masked paths tell of the host or steer it; they are hidden. Those in readOnly
// cannot be written to.
var (
	masked = []string{
		"/proc/acpi", "/proc/asound", "/proc/bus", "/proc/config.gz", "/proc/interrupts", "/proc/iomem", "/proc/ioports",
		"/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/latency_stats", "/proc/modules",
		"/proc/sched_debug", "/proc/scsi", "/proc/sys/kernel/random/boot_id", "/proc/timer_list", "/proc/timer_stats",
		"/sys/devices/virtual/powercap", "/sys/firmware", "/sys/fs", "/sys/kernel", "/sys/module",
	}
	readOnly = []string{"/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// specVersion is the version of the specification that all we say is from. Older
// runtimes refuse a newer one unread.
const specVersion = "1.0.2"

// writeBundle writes the OCI bundle: a configuration whose root folder and
// mounts the stage makes when the sandbox starts.
func (r *Runtime) writeBundle(spec runtime.Spec) error {
	if err := os.Mkdir(r.dir.Path(spec.ID, bundleDir), 0o700); err != nil {
		return err
	}
	s, err := r.config(spec)
	if err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(r.dir.Path(spec.ID, bundleDir, "config.json"), data, 0o600)
}

func (r *Runtime) config(spec runtime.Spec) (*specs.Spec, error) {
	plain := spec
	plain.Rootfs.Binds = nil // ours come with shifted owners
	s := ocispec.New(plain, boxRoot)
	s.Version = specVersion
	s.Process.Rlimits = nil // what may be locked in memory is the host's to say
	s.Mounts = append(s.Mounts, specs.Mount{
		Destination: "/dev/pts", Type: "devpts", Source: "devpts",
		Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"},
	}, bind(boxGuest, runtime.GuestDir, "ro"))
	for i, b := range spec.Rootfs.Binds {
		s.Mounts = append(s.Mounts, bind(boxBind(i), b.Target, "ro"))
	}
	for i, m := range spec.Mounts {
		mode := "ro"
		if m.Writable {
			mode = "rw"
		}
		s.Mounts = append(s.Mounts, bind(boxMount(i), m.Target, mode))
	}
	if spec.Network != nil {
		// /sys is for the owner of the network namespace, and tells about it.
		for i := range s.Mounts {
			if m := &s.Mounts[i]; m.Type == "sysfs" {
				m.Type, m.Source, m.Options = "tmpfs", "tmpfs", []string{"nosuid", "noexec", "nodev", "ro", "size=4k", "nr_inodes=1"}
			}
		}
	}
	ids := []specs.LinuxIDMapping{{ContainerID: 0, HostID: baseUID(spec.ID), Size: slotSize}}
	s.Linux.UIDMappings, s.Linux.GIDMappings = ids, ids
	s.Linux.Namespaces = append(s.Linux.Namespaces,
		specs.LinuxNamespace{Type: specs.UserNamespace}, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = masked, readOnly
	var err error
	if s.Linux.Seccomp, err = filter(); err != nil {
		return nil, fmt.Errorf("make system call filter: %w", err)
	}
	if !r.hidesCgroups() {
		s.Linux.CgroupsPath = r.groupPath(spec.ID)
	}
	return s, nil
}

func bind(source, target, mode string) specs.Mount {
	return specs.Mount{
		Destination: target, Type: "bind", Source: source, Options: []string{"rbind", mode, "nosuid", "nodev"},
	}
}

// hostPath makes a path absolute, and refuses one that the stage covers.
func hostPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real := abs
	if p, err := filepath.EvalSymlinks(abs); err == nil {
		real = p
	}
	if rel, err := filepath.Rel(stageDir, real); err == nil && filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s is below %s, which sandboxes are built in; choose another folder", path, stageDir)
	}
	return abs, nil
}
