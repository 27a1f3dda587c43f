package erofs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/imagetest"
)

// TestMount compares what the kernel shows with the tree, file by file.
func TestMount(t *testing.T) {
	root := oddTree()
	dir := imagetest.Mount(t, write(t, root))
	inodes := map[*erofs.Node]uint64{}
	count := 0
	compare := func(p string, n *erofs.Node, links uint64) {
		count++
		var st syscall.Stat_t
		if err := syscall.Lstat(p, &st); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec, st.Nlink)
		want := fmt.Sprint(n.Mode, n.UID, n.GID, n.Mtime, n.MtimeNsec, links)
		if got != want {
			t.Fatalf("%q: mode, uid, gid, mtime, links are %s, want %s", p, got, want)
		}
		if ino, ok := inodes[n]; ok && ino != st.Ino {
			t.Fatalf("%q: inode %d, want %d", p, st.Ino, ino)
		}
		inodes[n] = st.Ino
		switch {
		case n.IsSymlink():
			if target, err := os.Readlink(p); err != nil || target != n.Target {
				t.Fatalf("%q points to %q, %v", p, target, err)
			}
		case n.IsRegular():
			want := make([]byte, n.Size)
			if n.Size > 0 {
				n.Data.ReadAt(want, 0)
			}
			if data, err := os.ReadFile(p); err != nil || !bytes.Equal(data, want) {
				t.Fatalf("%q: content differs (%v)", p, err)
			}
		}
	}
	var walk func(p string, n *erofs.Node)
	walk = func(p string, n *erofs.Node) {
		dirs := uint64(2)
		for _, child := range n.Children {
			if child.IsDir() {
				dirs++
			}
		}
		compare(p, n, dirs)
		entries, err := os.ReadDir(p)
		if err != nil || len(entries) != len(n.Children) {
			t.Fatalf("%q has %d entries, want %d (%v)", p, len(entries), len(n.Children), err)
		}
		for name, child := range n.Children {
			q := filepath.Join(p, name)
			switch {
			case child.IsDir():
				walk(q, child)
			case name == "hard":
				compare(q, child, 3)
			default:
				compare(q, child, 1)
			}
		}
	}
	walk(dir, root)
	if count < 10_000 {
		t.Fatalf("only %d files compared", count)
	}
	if err := unix.Access(filepath.Join(dir, "names", "no such name"), unix.F_OK); err != unix.ENOENT {
		t.Fatalf("a missing file: %v", err)
	}
}
