package disk

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRead(t *testing.T) {
	dir, c := carriage(t, `printf 0123456789 >file; mkdir -p a/b; printf deep >a/b/file; : >void; printf x >"$(printf 'odd\377')"; truncate -s 1M holes`)
	for _, try := range []struct {
		path          string
		offset, limit int64
		want          string
		size          int64
	}{
		{"file", 0, 100, "0123456789", 10}, {"file", 3, 4, "3456", 10}, {"file", 10, 5, "", 10}, {"file", 1 << 62, 5, "", 10}, {"file", 0, 0, "", 10},
		{"./a//b/./file", 0, 1 << 62, "deep", 4}, {"void", 0, 10, "", 0}, {"odd\xff", 0, 10, "x", 1}, {"holes", 1<<20 - 2, 10, "\x00\x00", 1 << 20},
	} {
		got, size, err := c.Read(Place{filepath.Join(dir, "from"), try.path}, try.offset, try.limit)
		if err != nil || string(got) != try.want || size != try.size {
			t.Errorf("%q from %d: %q of %d bytes, %v", try.path, try.offset, got, size, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	dir, c := carriage(t, `mkdir -p folder closed open ours/in mounted; for f in file closed/file open/file ours/file ours/in/file group all write; do echo secret >$f; done
ln -s file link; ln -s folder way; echo secret >folder/file; mkfifo pipe; chmod 666 file; chmod 600 closed; chmod 200 write`)
	root := filepath.Join(dir, "from")
	secret := filepath.Join(dir, "secret")
	for _, err := range []error{
		unix.Symlink(secret, filepath.Join(root, "out")),
		unix.Mount("atoll-test", filepath.Join(root, "mounted"), "tmpfs", 0, ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "mounted/file"), []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(filepath.Join(root, "mounted"), 0); err != nil {
			t.Error(err)
		}
	})
	for path, mode := range map[string]uint32{"group": 0o640, "all": 0o644, "ours": 0o711, "ours/in": 0o701, "ours/file": 0o640} {
		if err := unix.Chown(filepath.Join(root, path), 0, 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Chmod(filepath.Join(root, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) (string, error) {
		got, _, err := c.Read(Place{root, path}, 0, 100)
		return string(got), err
	}
	for _, path := range []string{
		"", ".", "nothing", "link", "out", "way/file", "folder", "pipe", "mounted", "mounted/file", "closed/file", "write", "group", "ours/file", "ours/in/file", "folder/../file",
		"../from/file", "..", "file/x", "file/.", strings.Repeat("x", 300), "file\x00",
	} {
		if got, err := read(path); err == nil || got != "" {
			t.Errorf("%q: read %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"file", "all", "open/file"} { // or nothing was refused above
		if got, err := read(path); err != nil || got != "secret\n" {
			t.Errorf("%q: read %q, %v", path, got, err)
		}
	}
	if err := unix.Chmod(root, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := read("file"); err == nil {
		t.Errorf("below a root that is closed: read %q", got)
	}
}

// TestReadGivesRightsBack has others run on the threads that read.
func TestReadGivesRightsBack(t *testing.T) {
	dir, c := carriage(t, "echo mine >file; echo secret >root")
	root := filepath.Join(dir, "from")
	closed := filepath.Join(root, "root")
	if err := unix.Chown(closed, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(closed, 0o600); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 200 {
				if got, _, err := c.Read(Place{root, "file"}, 0, 10); err != nil || string(got) != "mine\n" {
					t.Errorf("the user's: %q, %v", got, err)
					return
				}
				if got, _, err := c.Read(Place{root, "root"}, 0, 10); err == nil {
					t.Errorf("root's, by the user: %q", got)
					return
				}
				runtime.Gosched()
				if got, err := os.ReadFile(closed); err != nil || string(got) != "secret\n" {
					t.Errorf("root's, by root: %q, %v", got, err)
					return
				}
			}
		})
	}
	group.Wait()
}
