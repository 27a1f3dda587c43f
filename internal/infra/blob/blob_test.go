package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/test/atolltest"
)

func open(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "blobs")
	suite(t, open(t, "file://"+dir), 200, func(i, n int) string { return fmt.Sprintf("v/%d/x%d", n%20, i) })
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("files are left: %v", left)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("folders are left: %v, %v", entries, err)
	}
	if i, err := os.Stat(dir); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", i.Mode(), err)
	}
}

// What a process was writing when it was killed is gone with the next one.
func TestFolderAfterKill(t *testing.T) {
	dir := t.TempDir()
	s := open(t, "file://"+dir)
	if err := s.Put(t.Context(), "a/b", strings.NewReader("kept")); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, "a", "c.17ab.tmp")
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, "file://"+dir)
	if got := files(t, dir); len(got) != 1 || get(t, again, "a/b", 0, -1) != "kept" {
		t.Errorf("files %v", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, url := range []string{"file://relative/path", "file:///x?y=z", "nosuch://x", "://", "file:x"} {
		if _, err := Open(context.Background(), url); err == nil {
			t.Errorf("%s was opened", url)
		}
	}
}

func TestBucket(t *testing.T) {
	// Each has a prefix of its own: the test's server keeps a bucket in folders, and refuses an
	// object now and then while the folder goes that another one was the last in.
	suite(t, open(t, atolltest.S3(t)), 10, func(i, n int) string { return fmt.Sprintf("v%d/%d/x", i, n%20) })
}

func files(t *testing.T, dir string) (all []string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func get(t *testing.T, s *Store, name string, offset, limit int64) string {
	t.Helper()
	r, err := s.Open(context.Background(), name, offset, limit)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(b)
}

// suite is what every store does. Folders come and go in so many rounds: in each, each of eight puts and
// deletes what in says.
func suite(t *testing.T, s *Store, rounds int, in func(i, round int) string) {
	ctx := t.Context()
	big := make([]byte, 12<<20+17) // more than a part of an upload
	for i := range big {
		big[i] = byte(rand.Uint32())
	}
	put := func(name string, data []byte) {
		t.Helper()
		if err := s.Put(ctx, name, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	put("t/1/stdout", []byte("hello\x00\xff"))
	put("t/1/stderr", nil)
	put("t/2/stdout", big)
	put("u/ä b+c&d%20?#", []byte("x"))
	put("t/1/stdout", []byte("other"))

	if got := get(t, s, "t/1/stdout", 0, -1); got != "other" {
		t.Errorf("got %q", got)
	}
	if got := get(t, s, "u/ä b+c&d%20?#", 0, -1); got != "x" {
		t.Errorf("got %q", got)
	}
	for _, r := range []struct{ offset, limit int64 }{{0, -1}, {0, 1}, {5 << 20, 1000}, {12 << 20, -1}, {12 << 20, 1000}, {12<<20 + 17, -1}, {1 << 30, 5}, {7, 0}} {
		from := min(r.offset, int64(len(big)))
		want := big[from:]
		if r.limit >= 0 {
			want = want[:min(r.limit, int64(len(want)))]
		}
		if got := get(t, s, "t/2/stdout", r.offset, r.limit); got != string(want) {
			t.Errorf("%d bytes at %d: got %d, want %d", r.limit, r.offset, len(got), len(want))
		}
	}
	for _, r := range []struct{ offset, limit int64 }{{0, -1}, {0, 0}, {0, 1}, {0, 1 << 20}, {7, 5}} {
		if got := get(t, s, "t/1/stderr", r.offset, r.limit); got != "" {
			t.Errorf("%d bytes at %d of an empty object: got %q", r.limit, r.offset, got)
		}
	}
	if r, err := s.Range(ctx, "t/1/stderr", 0, 0); err != nil {
		t.Errorf("0 bytes of an empty object: %v", err)
	} else if data, err := io.ReadAll(r); len(data) > 0 || err != nil || r.Close() != nil {
		t.Errorf("0 bytes of an empty object: %q, %v", data, err)
	}
	r, err := s.Range(ctx, "t/1/stderr", 0, 1)
	if err == nil {
		_, err = io.ReadAll(r)
		r.Close()
	}
	if !errors.Is(err, ErrShort) {
		t.Errorf("a byte of an empty object: %v", err)
	}
	if n, err := s.Size(ctx, "t/2/stdout"); err != nil || n != int64(len(big)) {
		t.Errorf("size %d, %v", n, err)
	}
	ranges(t, s, big)
	for _, name := range []string{"t/3", "t/1", "no/such/name"} {
		if _, err := s.Open(ctx, name, 0, -1); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Open(ctx, name, 7, -1); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Size(ctx, name); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "/a", "a/", "a//b", "a/../b", ".", "..", "a\x00", "a\n", `a\b`, "a\xff", "a.tmp", strings.Repeat("x", 201), strings.Repeat("x/", 451)} {
		if err := s.Put(ctx, name, strings.NewReader("")); fault.KindOf(err) != fault.Invalid {
			t.Errorf("name %q: %v", name, err)
		}
	}

	// A source that fails, and a caller who gives up, leave what was there.
	broken := errors.New("broken")
	if err := s.Put(ctx, "t/1/stdout", io.MultiReader(bytes.NewReader(big), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	given, cancel := context.WithCancel(ctx)
	if err := s.Put(given, "t/1/stdout", io.MultiReader(strings.NewReader("half"), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, io.EOF
	}))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := get(t, s, "t/1/stdout", 0, -1); got != "other" {
		t.Errorf("got %d bytes", len(got))
	}

	for range 2 { // twice is once
		if err := s.Delete(ctx, "t/1/stdout"); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Size(ctx, "t/1/stdout"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after its deletion: %v", err)
	}
	var wg sync.WaitGroup
	for i := range 8 { // folders come and go
		wg.Go(func() {
			for n := range rounds {
				name := in(i, n)
				if err := s.Put(ctx, name, strings.NewReader("x")); err != nil {
					t.Error(err)
				}
				if err := s.Delete(ctx, name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	put("tt/1", []byte("x"))
	for _, folder := range []string{"t", "t", "u"} {
		if err := s.DeletePrefix(ctx, folder); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Size(ctx, "t/2/stdout"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after its folder's deletion: %v", err)
	}
	if got := get(t, s, "tt/1", 0, -1); got != "x" {
		t.Errorf("a folder whose name begins alike: %q", got)
	}
	if err := s.Delete(ctx, "tt/1"); err != nil {
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// ranges reads exact ranges of t/2/stdout, which holds big, and lists folders.
func ranges(t *testing.T, s *Store, big []byte) {
	ctx := t.Context()
	for _, r := range []struct {
		offset, size int64
		short        bool
	}{{0, 10, false}, {5 << 20, 1 << 20, false}, {int64(len(big)) - 3, 3, false}, {int64(len(big)) - 3, 4, true}, {int64(len(big)), 1, true}, {1 << 30, 1, true}} {
		got, err := s.Range(ctx, "t/2/stdout", r.offset, r.size)
		var data []byte
		if err == nil {
			data, err = io.ReadAll(got)
			got.Close()
		}
		if r.short {
			if !errors.Is(err, ErrShort) {
				t.Errorf("%d bytes at %d: %d bytes, %v", r.size, r.offset, len(data), err)
			}
		} else if err != nil || !bytes.Equal(data, big[r.offset:r.offset+r.size]) {
			t.Errorf("%d bytes at %d: %d bytes, %v", r.size, r.offset, len(data), err)
		}
	}
	if _, err := s.Range(ctx, "t/none", 0, 1); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a range of nothing: %v", err)
	}
	var names []string
	for info, err := range s.List(ctx, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if info.Name == "t/2/stdout" && (info.Size != int64(len(big)) || time.Since(info.Modified) > time.Hour) {
			t.Errorf("listed as %+v", info)
		}
		names = append(names, info.Name)
	}
	if want := []string{"t/1/stderr", "t/1/stdout", "t/2/stdout"}; !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
}
