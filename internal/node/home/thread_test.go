package home

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/test/atolltest"
)

var testKey = bytes.Repeat([]byte{7}, KeySize)

// testOwners are far from the ids of other users.
var testOwners = idmap.Map{UID: idmap.Range{Host: 1_000_000, Count: 65536}, GID: idmap.Range{Host: 1_000_000, Count: 65536}}

func folderStore(t testing.TB) (*Store, *blob.Store) {
	t.Helper()
	return storeAt(t, "file://"+t.TempDir())
}

func storeAt(t testing.TB, url string) (*Store, *blob.Store) {
	t.Helper()
	b, err := blob.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return newStore(t, b), b
}

func newStore(t testing.TB, b Blobs) *Store {
	t.Helper()
	s, err := NewStore(Config{Blobs: b, Key: testKey, Owners: testOwners})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func save(t testing.TB, s *Store, dir string, base *Tree) *Tree {
	t.Helper()
	tree, err := s.Save(t.Context(), "ten_a", dir, base, thread.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func load(t testing.TB, s *Store, state State) *Tree {
	t.Helper()
	tree, err := s.Load(t.Context(), "ten_a", state)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func restore(t testing.TB, s *Store, tree *Tree, dir string, have *Tree) {
	t.Helper()
	if err := s.Restore(t.Context(), "ten_a", tree, dir, have); err != nil {
		t.Fatal(err)
	}
}

// mirror describes everything below a folder, one entry a line.
func mirror(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	inodes := map[uint64]int{}
	var walk func(fd int, path string)
	walk = func(fd int, path string) {
		names, err := readNames(fd)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append([]string{"."}, names...) {
			var st unix.Stat_t
			if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				t.Fatal(err)
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR && name != "." {
				sub, err := openNoTime(fd, name, openFolder)
				if err != nil {
					t.Fatal(err)
				}
				walk(sub, path+"/"+name)
				unix.Close(sub)
				continue
			}
			fmt.Fprintf(&out, "%q %o %d:%d %v", path+"/"+name, st.Mode, st.Uid, st.Gid, instantOf(st.Mtim))
			if k := kindOf(&st); k == kindFile || k == kindFIFO {
				fmt.Fprintf(&out, " %v", instantOf(st.Atim))
			}
			switch st.Mode & unix.S_IFMT {
			case unix.S_IFDIR:
				x, err := readXattrs(fd)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, " %q", x)
			case unix.S_IFLNK:
				target, err := readLink(fd, name)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, " -> %q", target)
			case unix.S_IFREG:
				if _, ok := inodes[st.Ino]; !ok {
					inodes[st.Ino] = len(inodes)
				}
				f, err := openNoTime(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW)
				if err != nil {
					t.Fatal(err)
				}
				x, err := readXattrs(f)
				if err != nil {
					t.Fatal(err)
				}
				holes, err := readExtents(f, st.Size)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := unix.Seek(f, 0, unix.SEEK_SET); err != nil {
					t.Fatal(err)
				}
				file := os.NewFile(uintptr(f), name)
				sum := sha256.New() // of a part at a time: the race detector notes each byte of what is read at once, and of each copy
				if _, err := io.Copy(sum, file); err != nil {
					t.Fatal(err)
				}
				file.Close()
				fmt.Fprintf(&out, " %d links of %d, %d bytes %x %v %q", st.Nlink, inodes[st.Ino], st.Size, sum.Sum(nil), holes, x)
			}
			out.WriteByte('\n')
		}
	}
	fd, err := openHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	walk(fd, "")
	return out.String()
}

func equalMirrors(t testing.TB, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			t.Fatalf("too much: %s", b[i])
		case i >= len(b):
			t.Fatalf("missing: %s", a[i])
		case a[i] != b[i]:
			t.Fatalf("want %s\n got %s", a[i], b[i])
		}
	}
}

// TestRoundTrip changes random homes again and again. Each state is restored
// into an empty folder, and into one that holds an earlier state.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(atolltest.Count(2, 20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, _ := folderStore(t)
			g := &grower{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir()}
			g.own(g.dir)
			var base *Tree
			old := filepath.Join(t.TempDir(), "old")
			if err := os.Mkdir(old, 0o700); err != nil {
				t.Fatal(err)
			}
			var oldTree *Tree
			for step := range 8 {
				g.change(20)
				want := mirror(t, g.dir)
				base = save(t, s, g.dir, base)
				if again := save(t, s, g.dir, base); again.State != base.State {
					t.Fatalf("step %d: an unchanged home was saved as another state", step)
				}
				equalMirrors(t, want, mirror(t, g.dir))
				loaded := load(t, s, base.State)
				fresh := t.TempDir()
				restore(t, s, loaded, fresh, nil)
				equalMirrors(t, want, mirror(t, fresh))
				if again := save(t, s, fresh, loaded); again.State != base.State {
					t.Fatalf("step %d: a restored home is another state", step)
				}
				if step%3 == 0 {
					next := load(t, s, base.State)
					restore(t, s, next, old, oldTree)
					equalMirrors(t, want, mirror(t, old))
					oldTree = next
				}
			}
		})
	}
}

// What could be saved and then not be read again is refused.
func TestWhatCannotBeReadIsNotSaved(t *testing.T) {
	s, _ := folderStore(t)
	deepest := strings.Repeat("d/", maxDepth-2) + "f"
	tree, err := s.WriteFile(t.Context(), "ten_a", &Tree{root: newRoot()}, deepest, strings.NewReader("x"), thread.Quota{})
	must(t, err)
	load(t, s, tree.State)
	if _, err := s.WriteFile(t.Context(), "ten_a", tree, "d/"+deepest, strings.NewReader("x"), thread.Quota{}); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("a file too deep: %v", err)
	}

	for size, fits := range map[int]bool{maxXattrs: true, maxXattrs + 1: false} { // not every disk lets a program have so many
		made, err := s.edit(t.Context(), "ten_a", tree, thread.Quota{}, 0, func(_ *packer, root *node) error {
			root.children[0].xattrs = []xattr{{"user.a", ""}, {"user.b", strings.Repeat("x", size-12)}}
			return nil
		})
		if err == nil {
			load(t, s, made.State)
		}
		if fits != (err == nil) || err != nil && fault.KindOf(err) != fault.Exhausted {
			t.Errorf("%d bytes of attributes: %v", size, err)
		}
	}
}

func TestQuota(t *testing.T) {
	s, _ := folderStore(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.Save(t.Context(), "ten_a", dir, nil, thread.Quota{Bytes: 1 << 20})
	if fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "2 MiB more than the 1 MiB") {
		t.Errorf("%v", err)
	}
	if _, err = s.Save(t.Context(), "ten_a", dir, nil, thread.Quota{Files: 1, Bytes: 3 << 20}); err != nil {
		t.Error(err)
	}
}
