package disk

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMeasureCountsWhatIsOnDiskAndNothingElse(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	outside := t.TempDir()
	must(os.WriteFile(filepath.Join(outside, "large"), make([]byte, 8<<20), 0o600))
	dir := t.TempDir()
	must(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	must(os.WriteFile(filepath.Join(dir, "a", "b", "file"), make([]byte, 1<<20), 0o600))
	must(os.Symlink(outside, filepath.Join(dir, "link")))
	must(os.Symlink(filepath.Join(outside, "large"), filepath.Join(dir, "a", "large")))
	must(unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	must(os.WriteFile(filepath.Join(dir, "sparse"), nil, 0o600))
	must(os.Truncate(filepath.Join(dir, "sparse"), 1<<40))
	used, err := Measure(t.Context(), dir, 1<<40)
	if err != nil || used < 1<<20 || used > 1<<20+64<<10 {
		t.Errorf("measured %d, %v", used, err)
	}
	if used, err = Measure(t.Context(), dir, 1<<19); !errors.Is(err, ErrOverLimit) || used <= 1<<19 {
		t.Errorf("beyond the most: %d, %v", used, err)
	}
	if _, err := Measure(t.Context(), filepath.Join(dir, "link"), 1<<40); err == nil {
		t.Error("a link was followed")
	}
	if _, err := Measure(t.Context(), filepath.Join(dir, "fifo"), 1<<40); err == nil {
		t.Error("a FIFO was measured")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ended, dir, 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}

// nest makes folders in each other, each with a file of 4 KiB; no path is as long.
func nest(t *testing.T, dir string, levels int) {
	t.Helper()
	fd, err := unix.Open(dir, openDir, 0)
	for i := 0; i < levels && err == nil; i++ {
		err = unix.Mkdirat(fd, "d", 0o700)
		var f, below int
		if err == nil {
			f, err = unix.Openat(fd, "f", unix.O_CREAT|unix.O_WRONLY, 0)
		}
		if err == nil {
			_, err = unix.Write(f, make([]byte, 4096))
			unix.Close(f)
		}
		if err == nil {
			below, err = unix.Openat(fd, "d", openDir, 0)
		}
		unix.Close(fd)
		fd = below
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}

// withFiles runs do with room for so few more descriptors.
func withFiles(t *testing.T, more uint64, do func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open)) + more, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}()
	do()
}

func TestFoldersInEachOtherTakeFewDescriptors(t *testing.T) {
	const levels = 700
	dir := filepath.Join(t.TempDir(), "deep")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	nest(t, dir, levels)
	withFiles(t, keptOpen+30, func() {
		used, err := Measure(t.Context(), dir, 1<<40)
		if least := int64(levels * 4096); err != nil || used < least || used > 5*least {
			t.Errorf("measured %d of %d, %v", used, least, err)
		}
		if err := RemoveTree(dir); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	if err := RemoveTree(dir); err != nil {
		t.Errorf("what is not there: %v", err)
	}
}

// TestMeasureFindsItsWay: a program that moves folders about while they are measured
// neither escapes the measuring nor leads it out of the folder.
func TestMeasureFindsItsWay(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "large"), make([]byte, 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(outside, "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	nest(t, dir, 3*keptOpen)
	deep := dir + strings.Repeat("/d", 2*keptOpen)
	stop, moved := make(chan struct{}), make(chan error)
	go func() {
		for {
			err := errors.Join(os.Rename(deep, dir+"/moved"), os.Rename(dir+"/moved", deep))
			select {
			case <-stop:
				moved <- err
				return
			default:
				if err != nil {
					<-stop
					moved <- err
					return
				}
			}
		}
	}()
	for range 100 {
		used, err := Measure(t.Context(), dir, 1<<40)
		if err != nil && !errors.Is(err, ErrOverLimit) || used < keptOpen*4096 || used > 32<<20 {
			t.Errorf("measured %d, %v", used, err)
		}
	}
	close(stop)
	if err := <-moved; err != nil {
		t.Error(err)
	}
}

func TestRemoveTreeRemovesAllAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	script := `set -e; mkdir -p in/1/2/3/4 in/2/1/1 in/a/b/c out/kept; : >in/3; : >in/1/2/3/4/f; : >in/a/b/c/f; : >out/kept/f
ln -s ../../out in/a/out; ln -s ../../../out/kept in/a/b/kept; mkfifo in/a/b/pipe; chmod 0 in/a/b/c in/2
for i in $(seq 300); do echo in/many/$i/x/y; done | xargs mkdir -p`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := RemoveTree(filepath.Join(dir, "in")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "out/kept/f")); err != nil {
		t.Error(err)
	}
	if err := os.Symlink("out", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "out/kept/f"} {
		if err := RemoveTree(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out/kept")); err != nil {
		t.Error(err)
	}
}

func TestHeldCountsWhatHasNoNameAnyMore(t *testing.T) {
	dir := t.TempDir()
	held := func() int64 {
		t.Helper()
		n, err := UnlinkedSize(t.Context(), dir, []int{os.Getpid(), os.Getpid(), 1 << 30})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	before := held()
	f, err := os.Create(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if got := held() - before; got != 0 {
		t.Errorf("with its name it is held with %d bytes", got)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if got := held() - before; got < 1<<20 || got > 1<<20+64<<10 {
		t.Errorf("without a name it is held with %d bytes", got)
	}
	f.Close()
	if got := held() - before; got != 0 {
		t.Errorf("closed, it is held with %d bytes", got)
	}
}

// A file that was opened through a mount of another folder is no file of dir,
// though they are on one file system.
func TestHeldLeavesOtherMountsOut(t *testing.T) {
	base := t.TempDir()
	dir, other, on, same := filepath.Join(base, "with a blank"), filepath.Join(base, "other"), filepath.Join(base, "on"), filepath.Join(base, "same")
	for _, d := range []string{dir, other, on, same} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{other: on, dir: same} {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(to, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	hold := func(in string) int64 {
		t.Helper()
		before, err := UnlinkedSize(t.Context(), dir, []int{os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(in, "gone"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), os.Remove(f.Name())); err != nil {
			t.Fatal(err)
		}
		after, err := UnlinkedSize(t.Context(), dir, []int{os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		return after - before
	}
	for in, want := range map[string]bool{dir: true, same: true, on: false} {
		if got := hold(in); got >= 1<<20 != want {
			t.Errorf("of a file in %s %d bytes are counted", in, got)
		}
	}
	for name, want := range map[string]string{`/a\040b`: "/a b", `/a\134040`: `/a\040`, `/plain`: "/plain", `odd\9`: `odd\9`, `\`: `\`} {
		if got := unescape(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}
