package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// Where the suite's mounts are in a sandbox. Neither folder is in the image.
const (
	shared = "/mnt/shared"
	fixed  = "/mnt/fixed"
)

// mounted is a sandbox with a writable and a read-only mount.
type mounted struct {
	*box
	shared, fixed string // on the host
	secret        string // a file beside them, which no program may reach
}

const secretText = "the host's own"

// mountFolders makes what mounted sandboxes mount.
func mountFolders(t testing.TB) (m mounted, mounts func(*runtime.Spec)) {
	t.Helper()
	dir := t.TempDir() // closed to other users, as a data folder is
	must(t, os.Chmod(dir, 0o700))
	m = mounted{shared: filepath.Join(dir, "shared"), fixed: filepath.Join(dir, "fixed"), secret: filepath.Join(dir, "secret")}
	must(t, os.WriteFile(m.secret, []byte(secretText), 0o644))
	for _, path := range []string{m.shared, m.fixed} {
		must(t, os.Mkdir(path, 0o755))
	}
	give(t, m.shared)
	must(t, os.WriteFile(filepath.Join(m.fixed, "note"), []byte("to be read"), 0o644))
	give(t, filepath.Join(m.fixed, "note"))
	return m, func(s *runtime.Spec) {
		s.Mounts = []runtime.Mount{{Source: m.shared, Target: shared, Writable: true}, {Source: m.fixed, Target: fixed}}
	}
}

// give makes a file of the host belong to the programs' user.
func give(t testing.TB, path string) {
	t.Helper()
	uid, gid := programsUser(t)
	must(t, os.Lchown(path, int(uid), int(gid)))
}

// programsUser is the host's user and group for the programs' user.
func programsUser(t testing.TB) (uid, gid uint32) {
	t.Helper()
	owners, err := idmap.Find()
	must(t, err)
	uid, ok := owners.UID.ToHost(runtime.UID)
	gid, also := owners.GID.ToHost(runtime.GID)
	if !ok || !also {
		t.Fatalf("the programs' user has no user of the host: %+v", owners)
	}
	return uid, gid
}

func (f *fixture) createMounted(t *testing.T) mounted {
	t.Helper()
	m, mounts := mountFolders(t)
	m.box = f.create(t, mounts)
	return m
}

// entry is what the suite's program tells of a file.
type entry struct {
	UID, GID, Mode uint32
	Size           int64
	Link           string
}

// testNoMounts: what a runtime cannot do it says, and leaves nothing.
func testNoMounts(t *testing.T, f *fixture) {
	spec := f.spec(t)
	spec.Mounts = []runtime.Mount{{Source: t.TempDir(), Target: shared}}
	if inst, err := f.runtime.Create(t.Context(), spec); err == nil {
		must(t, inst.Destroy(t.Context()))
		t.Error("a sandbox with a mount was made")
	} else if !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("a mount: %v", err)
	}
	f.checkEmpty(t)
}

// testMounts: folders of the host are what they are there, and lead nowhere else.
func testMounts(t *testing.T, f *fixture) {
	m := f.createMounted(t)
	if got := m.run(t, "read", fixed+"/note"); got != "to be read" {
		t.Errorf("a file of the host holds %q", got)
	}
	for _, path := range []string{fixed + "/note", fixed + "/new"} {
		if res, _ := m.try(t, "write", path, "x"); res.ExitCode == 0 {
			t.Errorf("%s of a read-only mount was written", path)
		}
	}
	refused := map[string]string{}
	m.ask(t, &refused, "make", fixed)
	for _, what := range []string{"file", "folder", "symlink", "fifo", "device"} {
		if refused[what] == "" {
			t.Errorf("a read-only mount takes a new %s", what)
		}
	}

	clear(refused)
	m.ask(t, &refused, "make", shared)
	for _, what := range []string{"file", "folder", "symlink", "link", "rename"} {
		if refused[what] != "" {
			t.Errorf("a writable mount refuses a %s: %s", what, refused[what])
		}
	}
	for _, what := range []string{"device", "chown"} {
		if refused[what] == "" {
			t.Errorf("a program was let do: %s", what)
		}
	}
	uid, gid := programsUser(t)
	if f.groups != nil && uid != idmap.Base+runtime.UID { // root, that is, and not in a user namespace
		t.Errorf("a program's files belong to %d on the host", uid)
	}
	for _, name := range []string{"file", "renamed", "symlink", "link"} {
		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Join(m.shared, name), &st))
		if st.Uid != uid || st.Gid != gid {
			t.Errorf("%s belongs to %d:%d on the host, not to %d:%d", name, st.Uid, st.Gid, uid, gid)
		}
		var e entry
		m.ask(t, &e, "entry", shared+"/"+name)
		if e.UID != runtime.UID || e.GID != runtime.GID || e.Mode != st.Mode || e.Size != st.Size {
			t.Errorf("%s is %+v inside and %+v outside", name, e, st)
		}
	}
	if link, err := os.Readlink(filepath.Join(m.shared, "symlink")); err != nil || link != "/etc/passwd" {
		t.Errorf("a program's link is %q, %v", link, err)
	}
	if got := m.run(t, "read", shared+"/symlink"); got != passwd {
		t.Errorf("inside, it leads to %q", got)
	}

	m.checkLinks(t)
}

// checkLinks: links that lead out of a mount lead into the sandbox.
func (m mounted) checkLinks(t *testing.T) {
	t.Helper()
	up, err := filepath.Rel(m.shared, m.secret)
	must(t, err)
	for i, target := range []string{m.secret, up, "../../../../../../../.." + m.secret, "/proc/self/root" + m.secret, filepath.Dir(m.secret)} {
		name := fmt.Sprintf("out%d", i)
		must(t, os.Symlink(target, filepath.Join(m.shared, name)))
		for _, path := range []string{name, name + "/secret", name + "/../secret", name + "/../" + filepath.Base(m.secret)} {
			if res, out := m.try(t, "read", shared+"/"+path); res.ExitCode == 0 {
				t.Errorf("%s, a link to %s, shows %q", path, target, out)
			}
			if res, _ := m.try(t, "write", shared+"/"+path, "x"); res.ExitCode == 0 {
				t.Errorf("%s, a link to %s, can be written to", path, target)
			}
		}
	}
	if data, err := os.ReadFile(m.secret); err != nil || string(data) != secretText {
		t.Errorf("the file beside the mount holds %q, %v", data, err)
	}
}

// testMountedLater: what comes into a mount's folder on the host is inside at
// once, and what leaves it is not.
func testMountedLater(t *testing.T, f *fixture) {
	m := f.createMounted(t)
	for range 3 {
		if res, _ := m.try(t, "names", shared+"/home"); res.ExitCode == 0 {
			t.Error("there is a folder before it was put there")
		}
		home := filepath.Join(filepath.Dir(m.shared), "home")
		must(t, os.MkdirAll(filepath.Join(home, "a", "b"), 0o755))
		must(t, os.WriteFile(filepath.Join(home, "a", "b", "c"), []byte("moved"), 0o644))
		give(t, home)
		must(t, os.Rename(home, filepath.Join(m.shared, "home")))
		var names []string
		m.ask(t, &names, "names", shared)
		if !slices.Contains(names, "home") {
			t.Errorf("the mount holds %q", names)
		}
		if got := m.run(t, "read", shared+"/home/a/b/c"); got != "moved" {
			t.Errorf("a file of the folder holds %q", got)
		}
		m.run(t, "write", shared+"/home/own", "of a program")
		must(t, os.Rename(filepath.Join(m.shared, "home"), home))
		if data, err := os.ReadFile(filepath.Join(home, "own")); err != nil || string(data) != "of a program" {
			t.Errorf("a program's file holds %q, %v", data, err)
		}
		must(t, os.RemoveAll(home))
	}
	must(t, m.guest.Close())
	must(t, m.Destroy(t.Context()))
	f.checkEmpty(t)
	if _, err := os.Stat(filepath.Join(m.fixed, "note")); err != nil {
		t.Errorf("the end of the sandbox took a file of the mount: %v", err)
	}
}

// testMountFailures: a mount that cannot work makes no sandbox, and the sudden
// end of a sandbox with mounts leaves nothing.
func testMountFailures(t *testing.T, f *fixture) {
	m, _ := mountFolders(t)
	for name, bad := range map[string]runtime.Mount{
		"no such folder":    {Source: m.shared + ".not", Target: shared},
		"a relative source": {Source: "shared", Target: shared},
		"a relative target": {Source: m.shared, Target: "mnt"},
		"dots":              {Source: m.shared, Target: "/mnt/../.atoll"},
		"over the root":     {Source: m.shared, Target: "/"},
		"over the guest":    {Source: m.shared, Target: runtime.GuestDir},
		"in the guest's":    {Source: m.shared, Target: runtime.GuestDir + "/x"},
	} {
		spec := f.spec(t)
		spec.Mounts = []runtime.Mount{bad}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		inst, err := f.runtime.Create(ctx, spec)
		cancel()
		if err == nil {
			must(t, inst.Destroy(t.Context()))
			t.Errorf("%s: a sandbox was made", name)
		}
		f.checkEmpty(t)
	}

	sudden := f.createMounted(t)
	sudden.start(t, Limits(), "forever").line(t)
	for _, pid := range holders(t, filepath.Join(f.state, string(sudden.ID()))) {
		_ = unix.Kill(pid, unix.SIGKILL) // it may have ended with the one before
	}
	await(t, "Done", sudden.Done())
	must(t, f.runtime.Destroy(t.Context(), sudden.ID()))
	f.checkEmpty(t)
}

// testMountCheckpoint: a sandbox with mounts is restored with others.
func testMountCheckpoint(t *testing.T, f *fixture) {
	if !f.Driver.Checkpoint {
		return // testCheckpoint has seen it refused
	}
	first := f.createMounted(t)
	first.run(t, "read", fixed+"/note")
	first.run(t, "names", shared)
	must(t, first.guest.Close())
	first.guest = nil
	dir := filepath.Join(t.TempDir(), "checkpoint")
	must(t, os.Mkdir(dir, 0o700))
	must(t, first.Checkpoint(t.Context(), dir))
	must(t, first.Destroy(t.Context()))
	f.checkEmpty(t)
	for i := range 2 {
		m, mounts := mountFolders(t)
		must(t, os.WriteFile(filepath.Join(m.shared, "later"), fmt.Append(nil, i), 0o644))
		spec := f.spec(t)
		mounts(&spec)
		inst, err := f.runtime.Restore(t.Context(), spec, dir, false)
		must(t, err)
		b := f.adopt(t, inst)
		if got := b.run(t, "read", shared+"/later"); got != fmt.Sprint(i) {
			t.Errorf("sandbox %d sees %q", i, got)
		}
		b.run(t, "write", shared+"/own", "x")
		if _, err := os.Stat(filepath.Join(m.shared, "own")); err != nil {
			t.Error(err)
		}
	}
}

// testKill: what a program has written is in the mount when its sandbox is killed,
// and nothing more comes after.
func testKill(t *testing.T, f *fixture) {
	m := f.createMounted(t)
	m.start(t, Limits(), "append", shared+"/file").line(t)
	must(t, f.runtime.Kill(t.Context(), m.ID()))
	await(t, "Done", m.Done())
	path := filepath.Join(m.shared, "file")
	read := func() []byte {
		t.Helper()
		data, err := os.ReadFile(path)
		must(t, err)
		return data
	}
	data := read()
	if !bytes.HasPrefix(data, []byte("by way of memory")) || !bytes.HasPrefix(data[4096:], []byte("by descriptor")) {
		t.Errorf("the file holds %q and %q", data[:20], data[4096:4116])
	}
	var st unix.Stat_t
	must(t, unix.Stat(path+".touched", &st))
	if st.Mtim.Nano() != 1e18+123456000 {
		t.Errorf("a file's time is %d", st.Mtim.Nano())
	}
	for _, pid := range holders(t, filepath.Join(f.state, string(m.ID()))) {
		var st unix.Stat_t
		if unix.Stat(fmt.Sprintf("/proc/%d/root", pid), &st) == nil {
			t.Errorf("process %d lives on", pid)
		}
	}
	if !bytes.Equal(read(), data) {
		t.Error("the file changes after Kill")
	}
	infos, err := f.runtime.List(t.Context())
	must(t, err)
	if len(infos) != 1 || infos[0].Alive || infos[0].Labels["test"] != t.Name() {
		t.Errorf("List: %+v", infos)
	}
	must(t, f.runtime.Kill(t.Context(), runtime.NewID()))
	must(t, f.runtime.Kill(t.Context(), m.ID()))
	must(t, m.Destroy(t.Context()))
	f.checkEmpty(t)
}
