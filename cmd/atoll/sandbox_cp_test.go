package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestUnpackHostile unpacks what a sandbox that was taken over might send.
func TestUnpackHostile(t *testing.T) {
	folder := tar.Header{Name: ".", Typeflag: tar.TypeDir, Mode: 0o755}
	for name, heads := range map[string][]tar.Header{
		"a path above":          {folder, {Name: "../outside", Typeflag: tar.TypeReg, Size: 1}},
		"an absolute path":      {folder, {Name: "/outside", Typeflag: tar.TypeReg, Size: 1}},
		"through a link":        {folder, {Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "l/outside", Typeflag: tar.TypeReg, Size: 1}},
		"a hard link to beyond": {folder, {Name: "l", Typeflag: tar.TypeLink, Linkname: "../secret"}},
		"a link, then a folder": {{Name: ".", Typeflag: tar.TypeSymlink, Linkname: "beside"}, folder, {Name: "outside", Typeflag: tar.TypeReg, Size: 1}},
		"no folder first":       {{Name: "outside", Typeflag: tar.TypeReg, Size: 1}},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("s"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "beside"), 0o700); err != nil {
			t.Fatal(err)
		}
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, head := range heads {
			if err := w.WriteHeader(&head); err != nil {
				t.Fatal(err)
			}
			if head.Size > 0 {
				if _, err := w.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := unpack(&archive, filepath.Join(dir, "to")); err == nil {
			t.Errorf("%s: unpacked", name)
		}
		for _, outside := range []string{"outside", "beside/outside"} {
			if _, err := os.Lstat(filepath.Join(dir, outside)); err == nil {
				t.Errorf("%s: it is outside", name)
			}
		}
	}
}

// TestUnpackFollowsNoLink: what a copy leaves does not lead the next one elsewhere.
func TestUnpackFollowsNoLink(t *testing.T) {
	archived := func(heads ...tar.Header) io.Reader {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, head := range heads {
			if err := w.WriteHeader(&head); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return &archive
	}
	dir := t.TempDir()
	to := filepath.Join(dir, "to")
	link := tar.Header{Name: ".", Typeflag: tar.TypeSymlink, Linkname: "beside"}
	folder := []tar.Header{{Name: ".", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "planted", Typeflag: tar.TypeReg}}
	if err := os.Mkdir(filepath.Join(dir, "beside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unpack(archived(link), to); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("a link as the whole: %v", err)
	}
	if _, err := os.Lstat(to); err == nil {
		t.Error("it is there")
	}
	if err := os.Symlink("beside", to); err != nil { // by an older version, or within a copy
		t.Fatal(err)
	}
	if err := unpack(archived(folder...), to); err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Errorf("a folder over a link: %v", err)
	}
	if at := copiedTo("app", to); at != to {
		t.Errorf("over a link to a folder, the copy is %s", at)
	}
	beside, err := filepath.EvalSymlinks(filepath.Join(dir, "beside"))
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{"/home/user/app": filepath.Join(beside, "app"), ".": beside} {
		if at := copiedTo(from, to+"/"); at != want {
			t.Errorf("with a slash, the copy of %s is %s", from, at)
		}
	}
	if left, err := os.ReadDir(beside); err != nil || len(left) > 0 {
		t.Errorf("the link led to %v, %v", left, err)
	}
	if err := unpack(archived(tar.Header{Name: ".", Typeflag: tar.TypeReg}), to); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(to); err != nil || !info.Mode().IsRegular() {
		t.Errorf("a file over a link: %v, %v", info, err)
	}
}

// TestPackUnpack brings a folder through both.
func TestPackUnpack(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	if err := os.MkdirAll(filepath.Join(from, "sub", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "sub", "-f\n"), []byte("text"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 123_456_789)
	for _, name := range []string{"sub/-f\n", "sub/empty", "sub", "."} {
		if err := os.Chtimes(filepath.Join(from, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(packFolder(w, from)) }()
	to := filepath.Join(dir, "to")
	if err := unpack(r, to); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(to, "sub", "-f\n"))
	if err != nil || string(text) != "text" {
		t.Errorf("got %q %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(to, "sub", "-f\n")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("got %v %v", info, err)
	}
	if target, err := os.Readlink(filepath.Join(to, "link")); err != nil || target != "/etc" {
		t.Errorf("got %q %v", target, err)
	}
	for _, name := range []string{"sub/-f\n", "sub/empty", "sub", "."} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || !info.ModTime().Equal(at) {
			t.Errorf("the time of %q: %v, %v", name, info, err)
		}
	}
}
