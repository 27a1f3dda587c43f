package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
	if used, err = Measure(t.Context(), dir, 1<<19); !errors.Is(err, ErrMore) || used <= 1<<19 {
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

func TestMeasureGivesUpOnFoldersWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	nest := func(levels int) {
		t.Helper()
		fd, err := unix.Open(dir, openDir, 0)
		for i := 0; i < levels && err == nil; i++ { // no path is as long
			err = unix.Mkdirat(fd, "d", 0o700)
			if errors.Is(err, unix.EEXIST) {
				err = nil
			}
			below := -1
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
	nest(deepest / 2)
	if _, err := Measure(t.Context(), dir, 1<<40); err != nil {
		t.Errorf("%d folders in each other: %v", deepest/2, err)
	}
	nest(deepest + 10)
	if _, err := Measure(t.Context(), dir, 1<<40); !errors.Is(err, ErrMore) {
		t.Errorf("%d folders in each other: %v", deepest+10, err)
	}
}
