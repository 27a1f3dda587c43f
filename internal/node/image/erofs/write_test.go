package erofs_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	goerofs "github.com/erofs/go-erofs"

	"github.com/atoll-run/atoll/internal/node/image/erofs"
)

// oddTree has every case the format treats differently.
func oddTree() *erofs.Node {
	rnd := rand.New(rand.NewPCG(1, 2))
	root := erofs.NewDir(0o755)
	add := func(dir *erofs.Node, name string, n *erofs.Node) *erofs.Node {
		n.Mtime, n.MtimeNsec = rnd.Int64N(4_000_000_000), uint32(rnd.IntN(1_000_000_000))
		n.UID, n.GID = rnd.Uint32N(3_000_000), rnd.Uint32N(3_000_000)
		dir.Children[name] = n
		return n
	}
	random := func(size int) string {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return string(b)
	}

	sizes := add(root, "sizes", erofs.NewDir(0o700))
	for _, size := range []int{0, 1, 31, 4095, 4096, 4097, 8191, 8192, 8193, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1<<20 + 5} {
		add(sizes, fmt.Sprint(size), erofs.NewFile(uint16(rnd.IntN(0o1000)), random(size)))
	}
	holes := random(5000) + strings.Repeat("\x00", 1<<20) + random(10) + strings.Repeat("\x00", 1<<20)
	add(sizes, "holes", erofs.NewFile(0o644, holes))

	names := add(root, "names", erofs.NewDir(0o1777))
	for _, name := range []string{"!", "-a", "...", ".a", ".hidden", "a b", "a\nb", "\x01", "\xff\xfe", "日本語", "~", "A", "a", "'\"\\", strings.Repeat("n", 255)} {
		add(names, name, erofs.NewFile(0o644, name))
	}

	big := add(root, "big", erofs.NewDir(0o755))
	for i := range 10_000 {
		add(big, fmt.Sprintf("entry-%d", i), erofs.NewFile(0o444, ""))
	}
	long := add(root, "long", erofs.NewDir(0o755))
	for i := range 40 {
		add(long, fmt.Sprintf("%0250d", i), erofs.NewDir(0o711))
	}

	links := add(root, "links", erofs.NewDir(0o755))
	for _, n := range []int{1, 59, 60, 500, 4095} {
		add(links, fmt.Sprint(n), erofs.NewSymlink(strings.Repeat("t", n)))
	}
	add(links, "up", erofs.NewSymlink("../sizes/4097"))

	hard := add(root, "hard", erofs.NewFile(0o640, "one file, three names"))
	links.Children["hard"] = hard
	big.Children["hard"] = hard

	deep := root
	for range 100 {
		deep = add(deep, "d", erofs.NewDir(0o755))
	}
	return root
}

func write(t testing.TB, root *erofs.Node) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "image.erofs"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := erofs.Write(context.Background(), f, root); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func fsck(t testing.TB, image string) {
	t.Helper()
	if out, err := exec.Command("fsck.erofs", image).CombinedOutput(); err != nil {
		t.Fatalf("fsck.erofs (from erofs-utils): %v\n%s", err, out)
	}
}

func TestFsck(t *testing.T) {
	fsck(t, write(t, oddTree()))
	fsck(t, write(t, erofs.NewDir(0o755)))
}

func TestDeterministic(t *testing.T) {
	a, err := os.ReadFile(write(t, oddTree()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(write(t, oddTree()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Fatal("the same tree gave two images")
	}
}

// TestReadBack compares what another implementation reads.
func TestReadBack(t *testing.T) {
	root := oddTree()
	f, err := os.Open(write(t, root))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fsys, err := goerofs.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	var walk func(dir string, n *erofs.Node)
	walk = func(dir string, n *erofs.Node) {
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if want := n.Names(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("%s holds %q, want %q", dir, got, want)
		}
		for name, child := range n.Children {
			p := filepath.Join(dir, name)
			switch {
			case child.IsDir():
				walk(p, child)
			case child.IsRegular():
				data, err := fs.ReadFile(fsys, p)
				if err != nil {
					t.Fatalf("%q: %v", p, err)
				}
				want := make([]byte, child.Size)
				if child.Size > 0 {
					child.Data.ReadAt(want, 0)
				}
				if !bytes.Equal(data, want) {
					t.Fatalf("%q: content differs", p)
				}
			}
		}
	}
	walk(".", root)
}

func TestRefusals(t *testing.T) {
	dir := erofs.NewDir(0o755)
	with := func(name string, n *erofs.Node) *erofs.Node {
		r := erofs.NewDir(0o755)
		r.Children[name] = n
		return r
	}
	twice := with("a", dir)
	twice.Children["b"] = dir
	short := erofs.NewFile(0o644, "abc")
	short.Size = 4
	cases := map[string]*erofs.Node{
		"root is a file":  erofs.NewFile(0o644, ""),
		"slash in name":   with("a/b", dir),
		"dot":             with(".", dir),
		"dot dot":         with("..", dir),
		"empty name":      with("", dir),
		"long name":       with(strings.Repeat("n", 256), dir),
		"no node":         with("a", nil),
		"folder twice":    twice,
		"device":          with("a", &erofs.Node{Mode: 0o020666}),
		"empty target":    with("a", erofs.NewSymlink("")),
		"long target":     with("a", erofs.NewSymlink(strings.Repeat("t", 4096))),
		"data too short":  with("a", short),
		"no data":         with("a", &erofs.Node{Mode: erofs.TypeRegular, Size: 1}),
		"too many blocks": with("a", &erofs.Node{Mode: erofs.TypeRegular, Size: 1 << 60, Data: strings.NewReader("")}),
	}
	for name, root := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := os.Create(filepath.Join(t.TempDir(), "image"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := erofs.Write(context.Background(), f, root); err == nil {
				t.Fatal("written")
			}
		})
	}
}

func TestWriteFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tiny.erofs")
	files := map[string]erofs.File{
		"guest":         {Mode: 0o755, Data: []byte("binary")},
		"hooks/main.py": {Mode: 0o644, Data: []byte("print(1)\n")},
	}
	for range 2 { // the second replaces the first
		if err := erofs.WriteFiles(name, files); err != nil {
			t.Fatal(err)
		}
	}
	fsck(t, name)
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fsys, err := goerofs.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range files {
		got, err := fs.ReadFile(fsys, p)
		if err != nil || !bytes.Equal(got, want.Data) {
			t.Fatalf("%s: %q, %v", p, got, err)
		}
	}
	for _, bad := range []string{"../x", "a//b", "", "/", "hooks/../x"} {
		if err := erofs.WriteFiles(name, map[string]erofs.File{bad: {}}); err == nil {
			t.Errorf("the path %q was taken", bad)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(name), ".erofs-*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left behind: %q, %v", left, err)
	}
}

type zeroReader struct{}

func (zeroReader) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// TestHuge writes a file whose size needs more than 32 bits; its zeros take no
// room on the disk.
func TestHuge(t *testing.T) {
	const size = 5<<30 + 7
	root := erofs.NewDir(0o755)
	root.Children["huge"] = &erofs.Node{Mode: erofs.TypeRegular | 0o644, Size: size, Data: zeroReader{}}
	root.Children["next"] = erofs.NewFile(0o644, "after it")
	f, err := os.Open(write(t, root))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fsys, err := goerofs.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	info, err := fs.Stat(fsys, "huge")
	if err != nil || info.Size() != size {
		t.Fatalf("stat: %v, %v", info, err)
	}
	if data, err := fs.ReadFile(fsys, "next"); err != nil || string(data) != "after it" {
		t.Fatalf("next: %q, %v", data, err)
	}
}
