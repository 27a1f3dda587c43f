package oci

import (
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// TestTheFilterLetsNothingThroughThatOpensTheKernel checks by name what the
// profile that ours comes from might one day allow.
func TestTheFilterLetsNothingThroughThatOpensTheKernel(t *testing.T) {
	f, err := filter()
	if err != nil {
		t.Fatal(err)
	}
	if f.DefaultAction != specs.ActErrno || len(f.Architectures) != 1 {
		t.Errorf("by default %s, on %v", f.DefaultAction, f.Architectures)
	}
	allowed := map[string][]specs.LinuxSyscall{}
	for _, c := range f.Syscalls {
		for _, name := range c.Names {
			if c.Action == specs.ActAllow {
				allowed[name] = append(allowed[name], c)
			}
		}
	}
	for _, name := range []string{
		"bpf", "perf_event_open", "io_uring_setup", "userfaultfd", "keyctl", "add_key", "request_key", "mount", "umount2", "move_mount",
		"open_tree", "fsopen", "pivot_root", "unshare", "setns", "init_module", "finit_module", "kexec_load", "kexec_file_load", "reboot",
		"swapon", "open_by_handle_at", "fanotify_init", "quotactl", "syslog", "acct", "iopl", "ioperm", "settimeofday", "clock_settime", "socketcall",
	} {
		if allowed[name] != nil {
			t.Errorf("%s is allowed", name)
		}
	}
	for _, name := range []string{"read", "write", "openat", "clone", "execve", "futex", "mmap", "epoll_wait", "pidfd_open", "sethostname", "setresuid"} {
		if allowed[name] == nil {
			t.Errorf("%s is not allowed", name)
		}
	}
	for _, name := range []string{"socket", "clone"} {
		for _, c := range allowed[name] {
			if len(c.Args) == 0 {
				t.Errorf("%s is allowed whatever its arguments", name)
			}
		}
	}
	if len(allowed["socket"]) != len(sockets) {
		t.Errorf("socket has %d rules", len(allowed["socket"]))
	}
}

// TestEverySandboxIsAnotherUser: ids of a sandbox's range belong to it, as far
// as there are slots, and never to the machine's users.
func TestEverySandboxIsAnotherUser(t *testing.T) {
	seen := map[uint32]bool{}
	const count = 200
	for range count {
		id := runtime.NewID()
		base := baseUID(id)
		if base != baseUID(id) {
			t.Fatal("a sandbox's range changes")
		}
		if base < firstUID || base%slotSize != 0 || uint64(base)+slotSize > 0x7FFE0000 {
			t.Fatalf("range from %#x", base)
		}
		seen[base] = true
	}
	if len(seen) < count*9/10 {
		t.Errorf("%d sandboxes share %d ranges", count, len(seen))
	}
}

func TestTheConfigurationShowsNothingOfTheHost(t *testing.T) {
	r := &Runtime{name: "crun"}
	spec := runtime.Spec{ID: runtime.NewID(), Limits: runtime.DefaultLimits(), Rootfs: runtime.Rootfs{
		Tree: "/srv/tree", Binds: []runtime.Bind{{Source: "/usr", Target: "/usr"}, {Source: "/opt/x", Target: "/opt/y"}},
	}}
	s, err := r.config(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Mounts {
		if m.Type == "bind" && (!slices.Contains(m.Options, "ro") || !slices.Contains(m.Options, "nosuid") || !slices.Contains(m.Options, "nodev")) {
			t.Errorf("mount %+v", m)
		}
		if slices.Contains([]string{"/usr", "/opt/x"}, m.Source) {
			t.Errorf("%s is shown with the host's owners", m.Source)
		}
	}
	if s.Root.Path != boxRoot || s.Linux.CgroupsPath != "" || s.Linux.Seccomp == nil {
		t.Errorf("root %s, groups %q", s.Root.Path, s.Linux.CgroupsPath)
	}
	if m := s.Linux.UIDMappings; len(m) != 1 || m[0].ContainerID != 0 || m[0].HostID != baseUID(spec.ID) {
		t.Errorf("ids %+v", m)
	}
}
