package layer_test

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	goerofs "github.com/erofs/go-erofs"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/layer"
)

// FuzzImport merges two layers of any bytes. What is taken must be written as
// an image in which another implementation finds the same files.
func FuzzImport(f *testing.F) {
	f.Add(pack(f, dir("d"), file("d/a", "1"), symlink("l", "d/a"), hardlink("h", "l")), pack(f, file("d/.wh.a", ""), file("l/b", "2")))
	f.Add(pack(f, file("a/b/c", strings.Repeat("x", 5000))), pack(f, file("a/.wh..wh..opq", ""), file("..", "")))
	f.Add(pack(f, symlink("x", "/../../x"), file("x/y", "")), pack(f, tar.Header{Typeflag: tar.TypeChar, Name: "dev"}))
	f.Add(gnuSparse(1<<14), pack(f))
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		m := newMerger(t, layer.Limits{Bytes: 1 << 20, FileSize: 1 << 16, Entries: 100, Path: 512, Depth: 20})
		for _, data := range [][]byte{lower, upper} {
			r, err := layer.Decompress(bytes.NewReader(data))
			if err == nil {
				err = m.Apply(t.Context(), r)
				r.Close()
			}
			if err != nil {
				if fault.KindOf(err) != fault.Invalid {
					t.Fatalf("the refusal is not the layer's fault: %v", err)
				}
				return
			}
		}
		img, err := os.Create(filepath.Join(t.TempDir(), "image"))
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		if err := erofs.Write(t.Context(), img, m.Root()); err != nil {
			t.Fatalf("a merged tree cannot be written: %v", err)
		}
		fsys, err := goerofs.Open(img)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fsys, ".", m.Root())
	})
}

// same compares a folder of an image with the node it was made from.
func same(t *testing.T, fsys fs.FS, dir string, n *erofs.Node) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(n.Children) {
		t.Fatalf("%q has %d entries, want %d", dir, len(entries), len(n.Children))
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		child := n.Children[e.Name()]
		if child == nil {
			t.Fatalf("%q is not of the tree", p)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := uint16(info.Mode().Perm()), child.Mode&0o777; got != want {
			t.Fatalf("%q has mode %o, want %o", p, got, want)
		}
		switch {
		case child.IsDir():
			same(t, fsys, p, child)
		case child.IsSymlink():
			if info.Mode().Type() != fs.ModeSymlink {
				t.Fatalf("%q is no link", p)
			}
		default:
			got, err := fs.ReadFile(fsys, p)
			if err != nil {
				t.Fatal(err)
			}
			want, err := io.ReadAll(io.NewSectionReader(child.Data, 0, child.Size))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%q: content differs", p)
			}
		}
	}
}
