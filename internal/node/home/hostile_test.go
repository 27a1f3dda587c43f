package home

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unique"
)

// FuzzTree reads any bytes as a tree. What can be read names nothing outside of
// its folder, and is written again as a tree that is the same.
func FuzzTree(f *testing.F) {
	var parts [][]byte
	aPack := unique.Make([16]byte{1})
	root := newRoot()
	file := &node{name: "f", kind: kindFile, mode: 0o644, size: 3 << 20, linked: true, extents: []extent{{0, 10}, {2 << 20, 5}},
		chunks: []ref{{pack: aPack}, {pack: aPack}}, xattrs: []xattr{{"user.a", "\x00"}}}
	root.children = []*node{{name: "d", kind: kindDir, children: []*node{file}}, {name: "g", kind: kindFile, link: file},
		{name: "l", kind: kindSymlink, target: "/etc"}, {name: "p", kind: kindFIFO}}
	if err := encodeTree(root, false, func(b []byte) error { parts = append(parts, bytes.Clone(b)); return nil }); err != nil {
		f.Fatal(err)
	}
	f.Add(parts[0])
	for _, name := range []string{"..", ".", "a/b", "", "\x00"} {
		f.Add(bytes.Replace(parts[0], []byte("\x01l"), append([]byte{byte(len(name))}, name...), 1))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := decodeTree(false, once(data))
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v", err)
			}
			return
		}
		var check func(*node)
		check = func(n *node) {
			for _, c := range n.children {
				if strings.ContainsAny(c.name, "/\x00") || c.name == "" || c.name == "." || c.name == ".." {
					t.Fatalf("name %q", c.name)
				}
				check(c)
			}
		}
		check(root)
		if _, files := tally(root); files > int64(len(data)) {
			t.Fatalf("%d entries of %d bytes", files, len(data))
		}
		var again bytes.Buffer
		must(t, encodeTree(root, false, func(b []byte) error { again.Write(b); return nil }))
		if again.Len() > 2*len(data)+64 && len(data) < segmentLarge {
			t.Fatalf("%d bytes became %d", len(data), again.Len())
		}
	})
}

func once(data []byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		d := data
		data = nil
		return d, nil
	}
}

// FuzzState reads any bytes as a state's content, and as a list of condemned packs.
func FuzzState(f *testing.F) {
	aPack := unique.Make([16]byte{1})
	f.Add((&root{bytes: 1, files: 2, packs: []pack{aPack}, segments: []segment{{ref: ref{pack: aPack}}}}).encode())
	f.Add([]byte(deletedMagic + strings.Repeat("ab", 16) + " 12\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := decodeRoot(data); err == nil && len(r.segments) > len(data) {
			t.Fatal("more segments than bytes")
		}
		if list, err := parseDeleted(data); err == nil && len(list) > len(data) {
			t.Fatal("more packs than bytes")
		}
	})
}

// A tree that was made to lead out of its folder stays in it: names are checked
// when it is read, and links are not followed when it is restored.
func TestRestoreStaysInside(t *testing.T) {
	s, _ := folderStore(t)
	outside := t.TempDir()
	into := t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(into, "a"))) // where a folder is to be
	tree := &Tree{root: newRoot()}
	tree.root.children = []*node{{name: "a", kind: kindDir, mode: 0o755, children: []*node{{name: "f", kind: kindFile, mode: 0o644}}}}
	have := &Tree{root: newRoot()}
	have.root.children = []*node{{name: "a", kind: kindDir, mode: 0o700}}
	if err := s.Restore(t.Context(), "ten_a", tree, into, have); err == nil {
		t.Error("a link was taken for a folder")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("written outside: %v, %v", left, err)
	}
	restore(t, s, tree, into, nil) // with nothing known, the link goes
	if i, err := os.Lstat(filepath.Join(into, "a")); err != nil || !i.IsDir() {
		t.Errorf("%v, %v", i, err)
	}
}
