package upload_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	corefile "github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

func open(t *testing.T, most upload.Limits) (*upload.Service, *blob.Store) {
	t.Helper()
	blobs, err := blob.Open(t.Context(), "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	db := storetest.SQLite(t)
	storetest.Tenant(t, db, caller.Tenant.ID)
	return &upload.Service{Store: db.Files(), Contents: upload.Contents{Blobs: blobs, Seal: storetest.Box(t)}, Limits: most, Log: slog.New(slog.DiscardHandler)}, blobs
}

var caller = &tenant.Principal{Tenant: tenant.Tenant{ID: "ten_1"}}

func always() (time.Duration, error) { return 0, nil }

func file() *upload.File {
	return &upload.File{ID: upload.NewID(), Tenant: "ten_1", Name: "a.bin", MediaType: corefile.OctetStream}
}

const piece = 256 << 10

func TestContents(t *testing.T) {
	s, blobs := open(t, upload.Limits{})
	r := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, piece - 1, piece, piece + 1, 3*piece + 7} {
		data := make([]byte, size)
		_, _ = r.Read(data)
		f := file()
		if err := s.Upload(t.Context(), caller, f, struct{ io.Reader }{bytes.NewReader(data)}, always); err != nil {
			t.Fatal(err)
		}
		if f.Size != int64(size) {
			t.Errorf("%d bytes are %d", size, f.Size)
		}
		for _, at := range []int{0, 1, piece - 1, piece, size - 1} {
			if at = max(0, min(at, size)); true {
				body := s.Open(t.Context(), f)
				if _, err := body.Seek(int64(at), io.SeekStart); err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(body)
				if err != nil || !bytes.Equal(got, data[at:]) {
					t.Errorf("%d bytes from %d on: %d, %v", size, at, len(got), err)
				}
				_ = body.Close()
			}
		}
		if size > 0 {
			kept, err := blobs.Open(t.Context(), "files/ten_1/"+string(f.ID), 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			sealed, _ := io.ReadAll(kept)
			_ = kept.Close()
			if size > 100 && bytes.Contains(sealed, data[10:60]) {
				t.Error("it is stored as it is")
			}
			// A file whose bytes are those of another is not read.
			other := file()
			if err := blobs.Put(t.Context(), "files/ten_1/"+string(other.ID), bytes.NewReader(sealed)); err != nil {
				t.Fatal(err)
			}
			other.Size = f.Size
			if _, err := io.ReadAll(s.Open(t.Context(), other)); !errors.Is(err, seal.ErrOpen) {
				t.Errorf("another's bytes: %v", err)
			}
		}
	}
}

// TestFailedUploads: what fails leaves nothing behind.
func TestFailedUploads(t *testing.T) {
	s, blobs := open(t, upload.Limits{Size: 2 * piece})
	for why, c := range map[string]struct {
		r    io.Reader
		rest func() (time.Duration, error)
		kind fault.Kind
	}{
		"broken off": {io.MultiReader(strings.NewReader("x"), broken{io.ErrUnexpectedEOF}), always, fault.Internal},
		"too large":  {bytes.NewReader(make([]byte, 2*piece+1)), always, fault.TooLarge},
		"bad rest":   {strings.NewReader("x"), func() (time.Duration, error) { return 0, fault.New(fault.Invalid, "no") }, fault.Invalid},
	} {
		f := file()
		if err := s.Upload(t.Context(), caller, f, c.r, c.rest); err == nil || fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", why, err)
		}
		if _, err := blobs.Size(t.Context(), "files/ten_1/"+string(f.ID)); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: its bytes are there: %v", why, err)
		}
	}
	if n, err := s.Sweep(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// TestSweep: what a process has left that was killed goes with the next sweep.
func TestSweep(t *testing.T) {
	s, blobs := open(t, upload.Limits{})
	f := file()
	if err := s.Upload(t.Context(), caller, f, strings.NewReader("hello"), always); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Store.Delete(ctx, "ten_1", f.ID); err != nil {
		t.Fatal(err)
	}
	cancel()
	if n, err := s.Sweep(t.Context(), 10); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if _, err := blobs.Size(t.Context(), "files/ten_1/"+string(f.ID)); fault.KindOf(err) != fault.NotFound {
		t.Errorf("its bytes are there: %v", err)
	}
	g := file()
	if err := s.Upload(t.Context(), caller, g, strings.NewReader("hello"), always); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), caller, string(g.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "ten_1", string(g.ID)); fault.KindOf(err) != fault.NotFound {
		t.Errorf("deleted: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct{ name, media, wantName, wantMedia string }{
		{"a.csv", "text/csv", "a.csv", "text/csv"}, {`C:\x\a.csv`, "", "a.csv", "text/csv; charset=utf-8"}, {"../../etc/passwd", "no media", "passwd", corefile.OctetStream},
		{"", "", "unnamed", corefile.OctetStream}, {"a/", "x/y", "a", "x/y"},
	} {
		var f upload.File
		if err := f.Describe(c.name, c.media); err != nil || f.Name != c.wantName || f.MediaType != c.wantMedia {
			t.Errorf("%q, %q: %+v, %v", c.name, c.media, f, err)
		}
	}
	for _, name := range []string{"..", "a\x00b", "a\nb", "a\xff", strings.Repeat("x", 256)} {
		var f upload.File
		if err := f.Describe(name, ""); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}
