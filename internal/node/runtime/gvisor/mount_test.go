package gvisor_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// TestAMountBelowAMountComesInLater: what the host mounts in a living sandbox's
// folder is inside, and goes again, whatever the sandbox holds of it.
func TestAMountBelowAMountComesInLater(t *testing.T) {
	groups, err := cgroup.Open("atoll-test-propagation")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { groups.Remove() })
	r := open(t, filepath.Join(t.TempDir(), "state"), groups)
	t.Cleanup(func() { r.Close() })
	folder := t.TempDir()
	inner := filepath.Join(folder, "inner")
	mount := func(source, target, kind string, flags uintptr) {
		t.Helper()
		if err := unix.Mount(source, target, kind, flags, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) })
	}
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	mount(folder, folder, "", unix.MS_BIND)
	if err := unix.Mount("", folder, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	inst, err := r.Create(t.Context(), runtime.Spec{
		ID: runtime.NewID(), Rootfs: runtimetest.Image(t), Limits: runtimetest.Limits(),
		Mounts: []runtime.Mount{{Source: folder, Target: "/data", Writable: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Destroy(t.Context())
	c, err := initclient.Dial(t.Context(), inst.Channel())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run := func(args ...string) (string, int) {
		t.Helper()
		var out []byte
		res, err := c.Run(t.Context(), initclient.RunSpec{
			ID:          initclient.NewRunID(),
			Command:     initclient.Command{Path: runtimetest.Probe, Argv: append([]string{"probe"}, args...), Dir: "/", Limits: initclient.Limits{Processes: 40, OpenFiles: 64}},
			OutputLimit: 1 << 16,
		}, func(_ initclient.Stream, p []byte) { out = append(out, p...) })
		if err != nil {
			t.Fatal(err)
		}
		return string(out), res.ExitCode
	}

	mount("none", inner, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV)
	if err := os.Chown(inner, idmap.Base+runtime.UID, idmap.Base+runtime.GID); err != nil {
		t.Fatal(err)
	}
	if out, code := run("write", "/data/inner/file", "of a program"); code != 0 {
		t.Errorf("writing ended with %d: %s", code, out)
	}
	if data, err := os.ReadFile(filepath.Join(inner, "file")); err != nil || string(data) != "of a program" {
		t.Errorf("the host's mount holds %q, %v", data, err)
	}
	if err := unix.Unmount(inner, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if out, _ := run("names", "/data/inner"); out != "[]\n" {
		t.Errorf("after it is unmounted, the folder holds %s", out)
	}
}
