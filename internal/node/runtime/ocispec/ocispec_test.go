package ocispec

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

func testSpec() runtime.Spec {
	l := runtime.DefaultLimits()
	l.Tmp, l.Shm, l.Inodes = 111<<20, 22<<20, 333
	return runtime.Spec{
		ID: runtime.NewID(), Limits: l, Labels: map[string]string{"secret": "not-for-the-sandbox"},
		Rootfs: runtime.Rootfs{Tree: "/tree", Binds: []runtime.Bind{{Source: "/usr", Target: "/usr"}}},
	}
}

func mount(t *testing.T, s *specs.Spec, at string) specs.Mount {
	t.Helper()
	i := slices.IndexFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == at })
	if i < 0 {
		t.Fatalf("nothing is mounted at %s", at)
	}
	return s.Mounts[i]
}

func TestWritablePlacesHaveASizeAndANumberOfFiles(t *testing.T) {
	s := New(testSpec(), "/root")
	for at, size := range map[string]string{"/tmp": "size=116391936", "/dev/shm": "size=23068672"} {
		m := mount(t, s, at)
		for _, option := range []string{size, "nr_inodes=333", "nosuid", "nodev", "mode=1777"} {
			if m.Type != "tmpfs" || !slices.Contains(m.Options, option) {
				t.Errorf("%s is %+v, without %s", at, m, option)
			}
		}
	}
	for _, m := range s.Mounts {
		if m.Type == "tmpfs" && !slices.ContainsFunc(m.Options, func(o string) bool { return strings.HasPrefix(o, "size=") }) {
			t.Errorf("%s may grow without bound", m.Destination)
		}
	}
}

func TestOfTheHostOnlyBindsAreShownAndReadOnly(t *testing.T) {
	s := New(testSpec(), "/root")
	for _, m := range s.Mounts {
		if strings.HasPrefix(m.Source, "/") && (m.Destination != "/usr" || m.Source != "/usr" || !slices.Contains(m.Options, "ro") || !slices.Contains(m.Options, "nosuid")) {
			t.Errorf("mount %+v", m)
		}
	}
	if m := mount(t, s, "/sys"); !slices.Contains(m.Options, "ro") {
		t.Error("/sys is writable")
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "not-for-the-sandbox") {
		t.Error("labels reach the sandbox")
	}
}

func TestTheGuestIsAloneAndHoldsLittle(t *testing.T) {
	s := New(testSpec(), "/root")
	if p := s.Process; !slices.Equal(p.Args, []string{"/.atoll/guest"}) || !p.NoNewPrivileges || p.Terminal {
		t.Errorf("process 1: %+v", p)
	}
	for _, kv := range s.Process.Env {
		if !strings.HasPrefix(kv, "PATH=") {
			t.Errorf("variable %s", kv)
		}
	}
	for _, kind := range []specs.LinuxNamespaceType{specs.PIDNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.MountNamespace, specs.NetworkNamespace} {
		i := slices.IndexFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == kind })
		if i < 0 || s.Linux.Namespaces[i].Path != "" {
			t.Errorf("the %s namespace is not its own", kind)
		}
	}
	c := s.Process.Capabilities
	if len(c.Inheritable)+len(c.Ambient) > 0 {
		t.Errorf("programs inherit capabilities: %+v", c)
	}
	for _, dangerous := range []string{"CAP_SYS_PTRACE", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_BOOT", "CAP_SYS_TIME", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_MKNOD", "CAP_BPF", "CAP_DAC_READ_SEARCH"} {
		if slices.Contains(c.Bounding, dangerous) {
			t.Errorf("the guest has %s", dangerous)
		}
	}
}
