// Package clienttest makes real sandboxes with a guest daemon, under gVisor and from
// the image that the tests run programs in.
package clienttest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/liar"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/guest/proto"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/runtime/gvisor"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/check"
)

// Lie is the conversation with a guest daemon that answers requests as answer says; nil
// is for no answer, ever.
func Lie(t testing.TB, answer func(*proto.Request) *proto.Reply) *daemonclient.Client {
	t.Helper()
	return LieTo(t, daemonclient.DefaultTimeouts, answer)
}

// LieTo is Lie to a host that has this patience.
func LieTo(t testing.TB, p daemonclient.Timeouts, answer func(*proto.Request) *proto.Reply) *daemonclient.Client {
	t.Helper()
	l := liar.New(t, liar.Answers(answer))
	c, err := p.Dial(t.Context(), l.Folder, l.Come)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// patience bounds what is waited for.
const patience = 30 * time.Second

// Sandbox is a sandbox with a guest daemon.
type Sandbox struct {
	runtime.Instance
	Runtime *gvisor.Runtime
	Spec    runtime.Spec
	Guest   *initclient.Client
	Meeting string // the folder of the host where its guest daemon comes
	Home    string // the folder of the host that is its home
}

// Env is what the programs of a sandbox have as variables.
var Env = []string{
	"PATH=/home/user/.local/bin:/usr/local/bin:/usr/bin:/bin", "HOME=/home/user", "USER=user", "LOGNAME=user", "SHELL=/bin/bash", "LANG=C.UTF-8",
}

// Limits are what a sandbox gets.
func Limits() runtime.Limits {
	l := runtime.DefaultLimits()
	l.CPU, l.Memory = 2, 1<<30
	return l
}

var build struct {
	sync.Mutex
	dir string
	err error
}

// guestImage builds the guest and its guest daemon anew, once per test process.
func guestImage(t testing.TB) string {
	t.Helper()
	build.Lock()
	defer build.Unlock()
	if build.dir == "" && build.err == nil {
		build.dir, build.err = os.MkdirTemp("", "clienttest-")
		if build.err == nil {
			build.err = writeGuest(t, build.dir)
		}
	}
	must(t, build.err)
	return filepath.Join(build.dir, "guest.erofs")
}

func writeGuest(t testing.TB, dir string) error {
	files := map[string]erofs.File{}
	for name, data := range guest.Files() {
		files[name] = erofs.File{Mode: 0o644, Data: data}
	}
	root := filepath.Dir(filepath.Dir(runtimetest.Binary(t, "atoll-runsc")))
	for name, pkg := range map[string]string{"guest": "./cmd/atoll-guest", "atoll-guestd": "./cmd/atoll-guestd"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), pkg)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("%s", out)
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		files[name] = erofs.File{Mode: 0o755, Data: data}
	}
	path := filepath.Join(dir, "guest.erofs")
	if err := erofs.WriteFiles(path, files); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o644)
}

// Main runs a package's tests and removes what was built for them.
func Main(m *testing.M) int {
	defer func() {
		if build.dir != "" {
			os.RemoveAll(build.dir)
		}
	}()
	return m.Run()
}

// New makes a sandbox, which is destroyed with the test. Its home is a folder of
// the host.
func New(t testing.TB, change ...func(*runtime.Spec)) *Sandbox {
	t.Helper()
	dir, err := os.MkdirTemp("", "clienttest-") // t.TempDir is closed to the sandbox's user
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	image, err := atolltest.ImageDir()
	must(t, err)
	groups, err := cgroup.Open(filepath.Base(dir))
	must(t, err)
	t.Cleanup(func() {
		if err := groups.Remove(); err != nil {
			t.Error(err)
		}
	})
	r, err := gvisor.New(gvisor.Config{
		Runsc: runtimetest.Binary(t, "atoll-runsc"), Guest: guestImage(t), State: filepath.Join(dir, "state"), Cgroups: groups,
	})
	must(t, err)
	t.Cleanup(func() { r.Close() })

	s := &Sandbox{Runtime: r, Meeting: filepath.Join(dir, "meeting"), Home: filepath.Join(dir, "home")}
	must(t, os.Chmod(dir, 0o711))
	owners, err := idmap.Find()
	must(t, err)
	rootUID, _ := owners.UID.ToHost(0)
	rootGID, _ := owners.GID.ToHost(0)
	must(t, daemonclient.MakeFolder(s.Meeting, int(rootUID), int(rootGID)))
	must(t, os.Mkdir(s.Home, 0o755))
	uid, _ := owners.UID.ToHost(runtime.UID)
	gid, _ := owners.GID.ToHost(runtime.GID)
	must(t, os.Chown(s.Home, int(uid), int(gid)))
	s.Spec = runtime.Spec{
		ID: runtime.NewID(), Rootfs: runtime.Rootfs{Image: filepath.Join(image, "rootfs.erofs")}, Limits: Limits(), Sockets: true,
		Mounts: []runtime.Mount{{Source: s.Meeting, Target: daemonclient.Mountpoint}, {Source: s.Home, Target: runtime.Home, Writable: true, Own: true}},
	}
	for _, c := range change {
		c(&s.Spec)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s.Instance, err = r.Create(ctx, s.Spec)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	s.DialGuest(t)
	return s
}

// DialGuest opens the conversation with process 1, which Dial needs.
func (s *Sandbox) DialGuest(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	s.Guest, err = initclient.Dial(ctx, s.Channel())
	must(t, err)
	t.Cleanup(func() { s.Guest.Close() })
}

// Cue is what Dial needs to have the guest daemon come.
func (s *Sandbox) Cue(ctx context.Context) error {
	l := s.Spec.Limits
	return s.Guest.StartDaemon(ctx, initclient.Limits{Processes: l.Processes, OpenFiles: l.OpenFiles})
}

// Dial opens a conversation with the guest daemon, which is closed with the test.
func (s *Sandbox) Dial(t testing.TB) *daemonclient.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := daemonclient.Dial(ctx, s.Meeting, s.Cue)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

var must = check.Must
