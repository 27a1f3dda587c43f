package home

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	_ "gocloud.dev/blob/memblob"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
)

// kinds of errors that a caller's bytes and paths may lead to.
func callers(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.NotFound, fault.Exhausted, fault.TooLarge:
		return true
	}
	return false
}

// FuzzImport reads any bytes as an archive. What is taken in is saved so that it
// can be read again, and is written as an archive that holds the same.
func FuzzImport(f *testing.F) {
	at := time.Unix(1, 2)
	for _, headers := range [][]tar.Header{
		{{Name: "./", Typeflag: tar.TypeDir, Mode: 0o700}, {Name: "a/b", Typeflag: tar.TypeReg, Size: 3, ModTime: at, Mode: 0o4755}, {Name: "l", Typeflag: tar.TypeLink, Linkname: "a/b"}},
		{{Name: "s", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "p", Typeflag: tar.TypeFifo}, {Name: "dev", Typeflag: tar.TypeChar}, {Name: "p", Typeflag: tar.TypeFifo}},
		{{Name: "x", Typeflag: tar.TypeReg, Size: 3, Format: tar.FormatPAX, PAXRecords: map[string]string{xattrRecord + "user.a": "b"}}},
		{{Name: strings.Repeat("d/", 100) + "f", Typeflag: tar.TypeReg, Size: 3, Format: tar.FormatGNU, Uid: 1 << 40}},
	} {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, h := range headers {
			must(f, w.WriteHeader(&h))
			if h.Size > 0 {
				_, err := io.WriteString(w, "abc")
				must(f, err)
			}
		}
		must(f, w.Close())
		f.Add(out.Bytes())
	}
	s, _ := storeAt(f, "mem://")
	f.Fuzz(func(t *testing.T, data []byte) {
		made, err := s.Import(t.Context(), "ten_a", bytes.NewReader(data), thread.Quota{Bytes: 4 << 20})
		if err != nil {
			if !callers(err) {
				t.Fatal(err)
			}
			return
		}
		tree := load(t, s, made.State)
		var out bytes.Buffer
		must(t, s.Export(t.Context(), "ten_a", tree, &out))
		again, err := s.Import(t.Context(), "ten_a", &out, thread.Quota{})
		must(t, err)
		if again.Bytes < made.Bytes || again.Files != made.Files { // holes are data in an archive
			t.Fatalf("%d bytes in %d entries became %d in %d", made.Bytes, made.Files, again.Bytes, again.Files)
		}
	})
}

// FuzzPath writes a file at any path. What is written can be read again, is found
// by the same path, and is gone when it is removed.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"a", "d/e", "/d/e/", "link/x", "file/x", "..", "a//b", "\xff", "a\x00", strings.Repeat("n/", 300) + "n"} {
		f.Add(path)
	}
	s, _ := storeAt(f, "mem://")
	root := newRoot()
	root.children = []*node{
		{name: "d", kind: kindDir, mode: 0o700}, {name: "file", kind: kindFile, mode: 0o600}, {name: "link", kind: kindSymlink, target: "/etc"},
	}
	f.Fuzz(func(t *testing.T, path string) {
		old := &Tree{root: root}
		made, err := s.WriteFile(t.Context(), "ten_a", old, path, strings.NewReader("content"), thread.Quota{})
		if err != nil {
			if !callers(err) {
				t.Fatal(err)
			}
			return
		}
		tree := load(t, s, made.State)
		if got := read(t, s, tree, path, 0, -1); got != "content" {
			t.Fatalf("read %q", got)
		}
		e, err := tree.Stat(path)
		if err != nil || e.Size != 7 || e.Directory || e.Link != "" {
			t.Fatalf("%+v, %v", e, err)
		}
		less, err := s.Remove(t.Context(), "ten_a", tree, path)
		must(t, err)
		if _, err := load(t, s, less.State).Stat(path); fault.KindOf(err) != fault.NotFound {
			t.Fatalf("after it was removed: %v", err)
		}
	})
}
