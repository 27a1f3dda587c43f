package disk_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/disk"
)

func TestSetSize(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{"1024", "2048"} {
		if err := disk.SetSize(dir, map[string]int64{"1024": 1024, "2048": 2048}[want]); err != nil {
			t.Fatal(err)
		}
		var text [32]byte
		n, err := unix.Lgetxattr(dir, "user.atoll.disk_size", text[:])
		if err == unix.ENOTSUP {
			t.Log("this file system has no extended attributes")
			return
		}
		if err != nil || string(text[:n]) != want {
			t.Errorf("the folder has %q, %v", text[:max(n, 0)], err)
		}
	}
	if err := disk.SetSize(filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
