package daemon

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proto"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// user runs f as the guest daemon does what is asked of it: where that cannot be, as
// the user who tests.
func user(f func() error) error {
	if os.Getuid() != 0 {
		return f()
	}
	return asUser(f)
}

// yard is a folder of the user's, in which root is unpacked to, and beside it things
// that are none of an archive's business.
func yard(t *testing.T) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "guestd-") // t.TempDir is closed to the user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for _, each := range []string{dir, dir + "/out"} {
		err := os.MkdirAll(each, 0o755)
		if err == nil {
			err = os.Chmod(each, 0o755)
		}
		if os.Getuid() == 0 && err == nil {
			err = os.Chown(each, wire.UID, wire.GID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := user(func() error { return os.WriteFile(dir+"/out/f", []byte("as it was"), 0o644) }); err != nil {
		t.Fatal(err)
	}
	return dir
}

// picture is what stands below a folder: kind, mode, and content or where a link
// leads.
func picture(t *testing.T, folder string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		what := ""
		switch info.Mode().Type() {
		case 0:
			content, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			what = fmt.Sprintf("%x", sha256.Sum256(content))
		case fs.ModeSymlink:
			if what, err = os.Readlink(at); err != nil {
				return err
			}
		}
		all = append(all, fmt.Sprintf("%q %v %s", strings.TrimPrefix(at, folder), info.Mode(), what))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// unpacked unpacks an archive, which changes nothing but root, and returns whether
// it was taken.
func unpacked(t *testing.T, dir string, archive []byte) bool {
	t.Helper()
	before := picture(t, dir+"/out")
	u := newUnpacker(dir + "/root")
	err := user(func() error { return u.all(bytes.NewReader(archive)) })
	if after := picture(t, dir+"/out"); after != before {
		t.Fatalf("it wrote beside where it was unpacked to:\n%s", after)
	}
	found, e := os.ReadDir(dir)
	if e != nil {
		t.Fatal(e)
	}
	for _, each := range found {
		if each.Name() != "out" && each.Name() != "root" {
			t.Fatalf("it made %q", each.Name())
		}
	}
	return err == nil
}

// FuzzUnpack: whatever an archive is, it is taken or refused, and nothing is written
// but where it is unpacked to.
func FuzzUnpack(f *testing.F) {
	for _, entries := range [][]byte{{}, {0, 1, 0}, {1, 0, 0, 0, 4, 0}, {2, 0, 9, 0, 4, 3}, {3, 2, 1, 2, 0, 8, 0, 5, 2}} {
		f.Add(archiveOf(entries))
	}
	f.Fuzz(func(t *testing.T, archive []byte) { unpacked(t, yard(t), archive) })
}

// FuzzEntries: the same for archives whose entries stand in each other's way. What
// was unpacked is packed and unpacked again as it is.
func FuzzEntries(f *testing.F) {
	f.Add([]byte{2, 0, 9, 0, 4, 3})                   // a link that leads out, and a file behind it
	f.Add([]byte{1, 0, 0, 2, 0, 8, 0, 4, 3})          // a folder that becomes a link
	f.Add([]byte{0, 0, 0, 3, 1, 0, 2, 2, 6, 3, 5, 2}) // hard links, also of links
	f.Add([]byte{2, 10, 10, 0, 0, 3})                 // a link in the place of the root, and a file behind it
	f.Fuzz(func(t *testing.T, entries []byte) {
		dir := yard(t)
		if !unpacked(t, dir, archiveOf(entries)) {
			return
		}
		if _, err := os.Lstat(dir + "/root"); err != nil {
			return // there was nothing in it
		}
		var again bytes.Buffer
		if err := user(func() error { return newPacker(&again).all(dir + "/root") }); err != nil {
			return // some of it is closed to its owner
		}
		second := yard(t)
		if !unpacked(t, second, again.Bytes()) {
			t.Fatal("what was packed is refused")
		}
		if was, is := picture(t, dir+"/root"), picture(t, second+"/root"); was != is {
			t.Errorf("was\n%s\nis\n%s", was, is)
		}
	})
}

var (
	entryTypes = []byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeFifo}
	entryNames = []string{"a", "b", "a/b", "a/f", "a/b/f", "b/f", "./a//b", "/a", "\xff", strings.Repeat("n", 200), ".", "..", "a/../../out/f", "", "a/b/" + strings.Repeat("m", 120)}
	entryLinks = []string{"a", "b", "a/b", "a/f", "\xff", ".", "..", "../..", "../out", "../out/f", "out", "out/f", "/", "a/../../out/f", strings.Repeat("l", 150)}
	entryModes = []int64{0o644, 0o755, 0o600, 0o4755, 0o2770, 0o1777, 0o444}
)

// archiveOf makes an archive of three numbers for each entry.
func archiveOf(entries []byte) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for e := range slices.Chunk(entries[:len(entries)/3*3], 3) {
		h := &tar.Header{
			Typeflag: entryTypes[int(e[0])%len(entryTypes)], Name: entryNames[int(e[1])%len(entryNames)],
			Mode: entryModes[int(e[0]/8)%len(entryModes)], ModTime: time.Unix(1e9, 0),
		}
		text := []byte(nil)
		switch h.Typeflag {
		case tar.TypeReg:
			text = bytes.Repeat([]byte{'x'}, int(e[2]))
			h.Size = int64(len(text))
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = entryLinks[int(e[2])%len(entryLinks)]
		}
		if w.WriteHeader(h) != nil {
			continue // there is no such entry
		}
		w.Write(text)
	}
	w.Close()
	return out.Bytes()
}

// FuzzInside: an entry's name leads below the root, or is refused.
func FuzzInside(f *testing.F) {
	for _, name := range append([]string{"a/./b", "//", "a/..", "...", "a\x00b", "../", ".."}, entryNames...) {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		at, err := inside(name)
		if err != nil {
			return
		}
		if at == "" || path.IsAbs(at) || path.Clean(at) != at || slices.Contains(strings.Split(at, "/"), "..") || strings.IndexByte(at, 0) >= 0 {
			t.Errorf("%q is %q", name, at)
		}
		if full, err := place([]byte(name)); name != "" && (err != nil || !path.IsAbs(full)) {
			t.Errorf("%q is at %q, %v", name, full, err)
		}
	})
}

// FuzzGlob: whatever a pattern is, it finds what is there, once and in order, or is
// refused.
func FuzzGlob(f *testing.F) {
	dir, err := os.MkdirTemp("", "guestd-")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"a/b/c", "a/.h/c", ".h", "[x]", "{y,z}", "caf\xe9", "-n", "a b", `back\slash`} {
		if err := os.MkdirAll(path.Join(dir, path.Dir(name)), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(path.Join(dir, name), nil, 0o644); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink("..", dir+"/a/up"); err != nil {
		f.Fatal(err)
	}
	for _, pattern := range []string{"**", "*", "a/**/c", "{a,b}*", "[[]x]", `back\\*`, "**/**/**/**/c", "a/up/up/*", "{a,{b,{c,d}}}/?", "\xff*", "./a/*", "{a,}{b,}{/c,}", "{**/,}[{,]x]", "a//", `\a/**`} {
		f.Add([]byte(pattern))
	}
	f.Fuzz(func(t *testing.T, pattern []byte) {
		all, err := parsePattern(string(pattern))
		if len(pattern) > 200 || err != nil || slices.ContainsFunc(all, func(a alternative) bool {
			return path.IsAbs(a.base) || strings.Contains(a.base+"/"+strings.Join(a.names, "/"), "..")
		}) {
			return // it looks at this machine, or at nothing
		}
		g := &globber{limit: 20}
		if err := g.find(&proto.Glob{Dir: []byte(dir), Pattern: pattern}); err != nil {
			t.Errorf("%q is parsed and refused: %v", pattern, err)
		}
		if len(g.found) > g.limit || !slices.IsSortedFunc(g.found, bytes.Compare) || len(slices.CompactFunc(slices.Clone(g.found), bytes.Equal)) != len(g.found) {
			t.Errorf("%q finds %q", pattern, g.found)
		}
		for _, at := range g.found {
			if _, err := os.Lstat(path.Join(dir, string(at))); err != nil {
				t.Errorf("%q finds %q: %v", pattern, at, err)
			}
		}
	})
}
