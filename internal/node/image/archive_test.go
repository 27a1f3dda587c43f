package image_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image"
)

// exported returns the archive of the small image, and the store it came from.
func exported(t *testing.T) (*image.Store, []byte) {
	t.Helper()
	s := open(t)
	_, err := s.Import(t.Context(), image.ImportOptions{Name: "small", Source: layoutOf(t, small(t)), Preloads: []string{"numpy"}})
	if err != nil {
		t.Fatal(err)
	}
	var out, again bytes.Buffer
	if err := s.Export(t.Context(), "small", &out, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Export(t.Context(), "small", &again, nil); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Fatalf("the same image gives other bytes (%v)", err)
	}
	return s, out.Bytes()
}

// file writes an archive into a file.
func file(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), image.ArchiveName("small"))
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "#sha256=" + hex.EncodeToString(sum[:])
}

// TestArchive: what is exported is imported elsewhere as it was, bytes and record.
func TestArchive(t *testing.T) {
	from, data := exported(t)
	name := file(t, data)
	if !image.IsArchive(name) || image.IsArchive(layoutOf(t, small(t))) || image.IsArchive("/proc/self/exe") {
		t.Error("archives are not told from other files")
	}
	to := open(t)
	got, err := to.ImportArchive(t.Context(), image.ImportOptions{Source: name + sumOf(data)})
	if err != nil {
		t.Fatal(err)
	}
	want, err := from.Get("small")
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := os.ReadFile(want.Rootfs.Image)
	b, err2 := os.ReadFile(got.Rootfs.Image)
	if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
		t.Errorf("the files differ (%v, %v)", err1, err2)
	}
	want.Rootfs = got.Rootfs
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := to.ImportArchive(t.Context(), image.ImportOptions{Source: name}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second import: %v", err)
	}
	if img, err := to.ImportArchive(t.Context(), image.ImportOptions{Source: name, Name: "other"}); err != nil || img.Name != "other" {
		t.Errorf("under another name: %v, %v", img, err)
	}
	if _, err := to.ImportArchive(t.Context(), image.ImportOptions{Source: name, Replace: true}); err != nil {
		t.Errorf("in place of the first: %v", err)
	}
	if left := leftovers(t, to); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestArchiveRedirects follows redirects under the rules for the URL itself.
func TestArchiveRedirects(t *testing.T) {
	_, data := exported(t)
	serve := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
	plain := httptest.NewServer(http.HandlerFunc(serve))
	defer plain.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/small", serve)
	mux.Handle("/near", http.RedirectHandler("/small", http.StatusFound))
	mux.Handle("/far", http.RedirectHandler(plain.URL, http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	usual := http.DefaultTransport
	http.DefaultTransport = server.Client().Transport // knows the certificate
	defer func() { http.DefaultTransport = usual }()
	s := open(t)
	for source, want := range map[string]fault.Kind{
		server.URL + "/far":                fault.Invalid,
		server.URL + "/loop":               fault.Unavailable,
		server.URL + "/loop" + sumOf(data): fault.Unavailable,
	} {
		if _, err := s.ImportArchive(t.Context(), image.ImportOptions{Source: source}); fault.KindOf(err) != want || err == nil {
			t.Errorf("%s: %v, want kind %v", source, err, want)
		}
	}
	for _, source := range []string{server.URL + "/near", server.URL + "/far" + sumOf(data)} {
		if _, err := s.ImportArchive(t.Context(), image.ImportOptions{Source: source, Replace: true}); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestArchiveByURL fetches one over HTTP.
func TestArchiveByURL(t *testing.T) {
	_, data := exported(t)
	cut := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/small":
			http.NotFound(w, r)
		case cut:
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(data[:len(data)/2])
		default:
			_, _ = w.Write(data)
		}
	}))
	defer server.Close()
	s := open(t)
	for source, want := range map[string]fault.Kind{
		server.URL + "/small":                                    fault.Invalid, // http without a checksum
		server.URL + "/small" + sumOf([]byte("other")):           fault.Invalid,
		server.URL + "/small#md5=00":                             fault.Invalid,
		server.URL + "/absent" + sumOf(data):                     fault.Unavailable,
		"http://127.0.0.1:1/small" + sumOf(data):                 fault.Unavailable,
		"/nowhere/" + image.ArchiveName("small"):                 fault.NotFound,
		file(t, data) + strings.ToUpper(sumOf(data)):             fault.Invalid,
		file(t, data[:len(data)-30]):                             fault.Invalid,
		file(t, append(bytes.Clone(data), "x"...)) + sumOf(data): fault.Invalid,
		file(t, []byte("no archive")):                            fault.Invalid,
		file(t, nil):                                             fault.Invalid,
	} {
		if _, err := s.ImportArchive(t.Context(), image.ImportOptions{Source: source}); fault.KindOf(err) != want || err == nil {
			t.Errorf("%s: %v, want kind %v", source, err, want)
		}
	}
	cut = true
	if _, err := s.ImportArchive(t.Context(), image.ImportOptions{Source: server.URL + "/small" + sumOf(data)}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a cut answer: %v", err)
	}
	cut = false
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := s.Get("small"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a refused archive is there: %v", err)
	}
	if img, err := s.ImportArchive(t.Context(), image.ImportOptions{Source: server.URL + "/small" + sumOf(data)}); err != nil || img.Name != "small" {
		t.Errorf("%v, %v", img, err)
	}
}

// TestArchiveDamage flips a bit of every byte of an archive: what is then imported,
// if anything, is the image as it was.
func TestArchiveDamage(t *testing.T) {
	from, data := exported(t)
	want, err := from.Get("small")
	if err != nil {
		t.Fatal(err)
	}
	rootfs, err := os.ReadFile(want.Rootfs.Image)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t)
	for i := 0; i < len(data); i += max(1, len(data)/300) {
		bad := bytes.Clone(data)
		bad[i] ^= 0x10
		img, err := s.ImportArchive(t.Context(), image.ImportOptions{Source: file(t, bad), Name: "bad", Replace: true})
		if err != nil {
			if k := fault.KindOf(err); k != fault.Invalid {
				t.Errorf("byte %d: %v", i, err)
			}
			continue
		}
		if got, err := os.ReadFile(img.Rootfs.Image); err != nil || !bytes.Equal(got, rootfs) {
			t.Errorf("byte %d: the files have changed (%v)", i, err)
		}
	}
}

func TestArchiveIsInterrupted(t *testing.T) {
	_, data := exported(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := open(t)
	if _, err := s.ImportArchive(ctx, image.ImportOptions{Source: file(t, data)}); err == nil || fault.KindOf(err) == fault.Invalid {
		t.Errorf("got %v", err)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
