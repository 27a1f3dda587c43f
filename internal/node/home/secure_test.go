package home

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Set-user-id bits are part of a state, and mean something nowhere: a folder that
// is mounted nosuid gets them, another does not.
func TestSecure(t *testing.T) {
	s, _ := folderStore(t)
	dir := filepath.Join(t.TempDir(), "homes")
	must(t, Secure(dir))
	t.Cleanup(func() { must(t, Unmount(dir)) })
	must(t, Secure(dir)) // a second time is no second mount
	if i, err := os.Stat(dir); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
	if flags, err := mountFlags(dir); err != nil || flags&safe != safe {
		t.Errorf("flags %x, %v", flags, err)
	}
	device := filepath.Join(dir, "null")
	must(t, unix.Mknod(device, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	if f, err := os.Open(device); err == nil {
		f.Close()
		t.Error("a device was opened")
	}
	must(t, os.Remove(device))

	home := filepath.Join(dir, "home")
	must(t, os.Mkdir(home, 0o700))
	write(t, filepath.Join(home, "tool"), "x")
	must(t, unix.Chmod(filepath.Join(home, "tool"), 0o6755))
	tree := save(t, s, home, nil)
	for into, want := range map[string]uint32{filepath.Join(dir, "again"): 0o6755, t.TempDir(): 0o755} {
		must(t, os.MkdirAll(into, 0o700))
		loaded := load(t, s, tree.State)
		restore(t, s, loaded, into, nil)
		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Join(into, "tool"), &st))
		if st.Mode&0o7777 != want {
			t.Errorf("%s has mode %o, not %o", into, st.Mode, want)
		}
		if again := save(t, s, into, loaded); again.State != tree.State {
			t.Errorf("%s is another state", into)
		}
	}
	must(t, Unmount(dir))
	if flags, err := mountFlags(dir); err != nil || flags&safe == safe {
		t.Errorf("the mount is still there: %x, %v", flags, err)
	}
}

// A process without CAP_SYS_ADMIN has mounted nothing, so there is nothing to complain
// of when it comes to its end.
func TestUnmountWithoutRights(t *testing.T) {
	mounted := filepath.Join(t.TempDir(), "homes")
	must(t, Secure(mounted))
	t.Cleanup(func() { must(t, Unmount(mounted)) })
	folder := t.TempDir()
	errs := make(chan error, 2)
	go func() {
		runtime.LockOSThread() // for good: the thread ends without its capabilities
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		errs <- errors.Join(unix.Capset(&head, &none[0]), Unmount(folder))
		errs <- Unmount(mounted)
	}()
	must(t, <-errs)
	if err := <-errs; !errors.Is(err, unix.EPERM) {
		t.Errorf("a mount that cannot be undone: %v", err)
	}
}
