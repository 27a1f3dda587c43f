package home

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
)

func read(t testing.TB, s *Store, tree *Tree, path string, offset, limit int64) string {
	t.Helper()
	r, err := s.ReadFile(t.Context(), "ten_a", tree, path, offset, limit)
	must(t, err)
	defer r.Close()
	data, err := io.ReadAll(r)
	must(t, err)
	return string(data)
}

func TestFiles(t *testing.T) {
	s, _ := folderStore(t)
	ctx := t.Context()
	tree := load(t, s, "")
	random := make([]byte, 9<<20+17)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	write := func(path, content string) {
		t.Helper()
		next, err := s.WriteFile(ctx, "ten_a", tree, path, strings.NewReader(content), thread.Quota{})
		must(t, err)
		tree = load(t, s, next.State)
	}
	write("a/b/c.txt", "hello")
	write("/a/big", string(random))
	write("a/b/empty", "")
	if got := read(t, s, tree, "a/b/c.txt", 0, -1); got != "hello" {
		t.Errorf("got %q", got)
	}
	for _, r := range [][2]int64{{0, -1}, {5 << 20, 100}, {1<<20 - 1, 2}, {9 << 20, -1}, {9<<20 + 17, -1}, {1 << 40, 5}, {3, 0}} {
		from := min(r[0], int64(len(random)))
		want := random[from:]
		if r[1] >= 0 {
			want = want[:min(r[1], int64(len(want)))]
		}
		if got := read(t, s, tree, "a/big", r[0], r[1]); got != string(want) {
			t.Errorf("%v: %d bytes, want %d", r, len(got), len(want))
		}
	}
	list, err := tree.List("a/b")
	if err != nil || len(list) != 2 || list[0].Path != "a/b/c.txt" || list[0].Size != 5 || time.Since(list[0].Modified) > time.Hour {
		t.Errorf("%+v, %v", list, err)
	}
	if e, err := tree.Stat("a"); err != nil || !e.Directory || e.Path != "a" {
		t.Errorf("%+v, %v", e, err)
	}
	dir := t.TempDir()
	restore(t, s, tree, dir, nil)
	if got, err := os.ReadFile(filepath.Join(dir, "a/big")); err != nil || !bytes.Equal(got, random) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	next, err := s.Remove(ctx, "ten_a", tree, "a/b")
	must(t, err)
	if _, err := next.Stat("a/b/c.txt"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if got := read(t, s, tree, "a/b/c.txt", 0, -1); got != "hello" {
		t.Errorf("the state before changed: %q", got)
	}
}

func TestFilesRefused(t *testing.T) {
	s, _ := folderStore(t)
	ctx := t.Context()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	must(t, os.Symlink("/etc", filepath.Join(dir, "link")))
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
	tree := save(t, s, dir, nil)
	for _, path := range []string{"..", "../x", "a/../b", "a//b", "./a", "a/./b", "a\x00", "", "/", "d/", strings.Repeat("n", 256), "d", "link", "link/passwd", "file/below"} {
		if _, err := s.WriteFile(ctx, "ten_a", tree, path, strings.NewReader("x"), thread.Quota{}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q was written: %v", path, err)
		}
	}
	for _, path := range []string{"link/passwd", "nothing", "file/below", "d/none"} {
		if _, err := s.ReadFile(ctx, "ten_a", tree, path, 0, -1); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%q was read: %v", path, err)
		}
		if _, err := s.Remove(ctx, "ten_a", tree, path); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%q was removed: %v", path, err)
		}
	}
	if _, err := s.ReadFile(ctx, "ten_a", tree, "link", 0, -1); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a link was read: %v", err)
	}
	_, err := s.WriteFile(ctx, "ten_a", tree, "big", strings.NewReader(strings.Repeat("x", 3<<20)), thread.Quota{Bytes: 2 << 20})
	if fault.KindOf(err) != fault.Exhausted {
		t.Errorf("over the quota: %v", err)
	}
	failed := errors.New("the client went away")
	if _, err := s.WriteFile(ctx, "ten_a", tree, "f", iotest.ErrReader(failed), thread.Quota{}); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}

// TestTar exports random homes and imports them again: nothing is lost.
func TestTar(t *testing.T) {
	for seed := range uint64(3) {
		s, _ := folderStore(t)
		g := &grower{t: t, rnd: rand.New(rand.NewPCG(seed, 3)), dir: t.TempDir(), plain: true}
		g.own(g.dir)
		g.change(60)
		tree := save(t, s, g.dir, nil)
		var out bytes.Buffer
		must(t, s.Export(t.Context(), "ten_a", tree, &out))
		again, err := s.Import(t.Context(), "ten_a", &out, thread.Quota{})
		must(t, err)
		dir := t.TempDir()
		restore(t, s, load(t, s, again.State), dir, nil)
		equalMirrors(t, mirror(t, g.dir), mirror(t, dir))
	}
}

func TestImportRefuses(t *testing.T) {
	s, _ := folderStore(t)
	for name, headers := range map[string][]tar.Header{
		"out":             {{Name: "../x", Typeflag: tar.TypeReg}},
		"absolute":        {{Name: "/etc/../../x", Typeflag: tar.TypeReg}},
		"in the middle":   {{Name: "a/../../x", Typeflag: tar.TypeReg}},
		"through a link":  {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "a/passwd", Typeflag: tar.TypeReg}},
		"through a file":  {{Name: "a", Typeflag: tar.TypeReg}, {Name: "a/b", Typeflag: tar.TypeReg}},
		"link outside":    {{Name: "a", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}},
		"link to folder":  {{Name: "a", Typeflag: tar.TypeDir}, {Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}},
		"file and folder": {{Name: "a", Typeflag: tar.TypeDir}, {Name: "a", Typeflag: tar.TypeReg}},
		"no target":       {{Name: "a", Typeflag: tar.TypeSymlink}},
	} {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, h := range headers {
			must(t, w.WriteHeader(&h))
		}
		must(t, w.Close())
		if _, err := s.Import(t.Context(), "ten_a", &out, thread.Quota{}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Import(t.Context(), "ten_a", strings.NewReader(strings.Repeat("no archive ", 200)), thread.Quota{}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(t, w.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 1 << 40}))
	if _, err := s.Import(t.Context(), "ten_a", &out, thread.Quota{Bytes: 1 << 20}); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("%v", err)
	}
}
