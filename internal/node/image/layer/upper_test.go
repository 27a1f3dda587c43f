package layer

import (
	"archive/tar"
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

// TestApplyUpper merges what an overlay holds, in gVisor's form, with a tree.
func TestApplyUpper(t *testing.T) {
	base := erofs.NewDir(0o755)
	for _, name := range []string{"/usr/bin/old", "/usr/bin/kept", "/etc/gone", "/etc/gone2", "/etc/gone3", "/opt/a", "/opt/b", "/etc/.wh.name"} {
		if err := tree.Put(base, name, erofs.NewFile(0o644, "base")); err != nil {
			t.Fatal(err)
		}
	}
	var upper bytes.Buffer
	w := tar.NewWriter(&upper)
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "./usr/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "./usr/bin/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "./usr/bin/old", Mode: 0o6755, Size: 3},
		{Typeflag: tar.TypeLink, Name: "./usr/bin/same", Linkname: "./usr/bin/old"},
		{Typeflag: tar.TypeDir, Name: "./etc/", Mode: 0o755},
		{Typeflag: tar.TypeChar, Name: "./etc/gone"},
		{Typeflag: tar.TypeLink, Name: "./tmp/gone", Linkname: "./etc/gone"},
		{Typeflag: tar.TypeLink, Name: "./etc/gone2", Linkname: "./etc/gone"},
		{Typeflag: tar.TypeLink, Name: "./etc/gone3", Linkname: "./tmp/gone"},
		{Typeflag: tar.TypeReg, Name: "./etc/.wh.kept", Mode: 0o644, Size: 3},
		{Typeflag: tar.TypeDir, Name: "./opt/", Mode: 0o755, PAXRecords: map[string]string{opaqueAttribute: "y"}},
		{Typeflag: tar.TypeReg, Name: "./opt/b", Mode: 0o644, Size: 3},
		{Typeflag: tar.TypeDir, Name: "./tmp/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "./tmp/x", Mode: 0o644, Size: 3},
		{Typeflag: tar.TypeLink, Name: "./usr/bin/y", Linkname: "./tmp/x"},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			w.Write([]byte("new"))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	spool, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	m := NewMergerOver(base, spool, Limits{Bytes: 1 << 20})
	if err := m.ApplyUpper(t.Context(), &upper, func(p string) bool { return p != "/tmp" && !strings.HasPrefix(p, "/tmp/") }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/usr/bin/old": "new", "/usr/bin/same": "new", "/usr/bin/kept": "base", "/etc/.wh.kept": "new", "/etc/.wh.name": "base", "/opt/b": "new",
		"/etc/gone": "", "/etc/gone2": "", "/etc/gone3": "", "/opt/a": "", "/tmp": "", "/usr/bin/y": "",
	} {
		got, err := tree.ReadFile(m.Root(), name, 10)
		if string(got) != want || (want == "") != (err != nil) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	if n, _, err := tree.Lookup(m.Root(), "/usr/bin/old"); err != nil || n.Mode&setID != 0 {
		t.Error("a set-user-id bit is kept")
	}
}
