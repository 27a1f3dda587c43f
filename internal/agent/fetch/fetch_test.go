package fetch

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/test/check"
)

// site serves what is at a path, with a type.
func site(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	page := func(path, media, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{media}
			_, _ = io.WriteString(w, text)
		})
	}
	page("/html", "text/html", "<title>T</title><p>text")
	page("/text", "text/plain; charset=iso-8859-1", "caf\xe9\r\n\r\n\r\nb\x00c  \n")
	page("/japanese", "text/html", "<meta charset=shift_jis><title>\x93\xfa\x96\x7b</title>")
	page("/json", "application/problem+json", `{"a":1}`)
	page("/pdf", "application/pdf", "%PDF-1.7")
	page("/image", "image/png", "\x89PNG")
	page("/untyped", "", "<html><body>sniffed")
	page("/mistyped", "; ;", "x")
	mux.HandleFunc("/packed", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") })
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for piece := make([]byte, 1<<20); ; {
			for i := range piece {
				piece[i] = 'a'
			}
			if _, err := z.Write(piece); err != nil {
				return // the reader has gone
			}
		}
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/text", http.StatusFound) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/inside", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
	})
	mux.HandleFunc("/private", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(http.StatusFound)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

func open(t *testing.T, allow ...string) *Fetcher {
	list, err := outbound.Parse(allow)
	if err != nil {
		t.Fatal(err)
	}
	f := New(list, "test")
	t.Cleanup(f.Close)
	return f
}

func TestFetch(t *testing.T) {
	srv, f := site(t), open(t, "127.0.0.1")
	for path, want := range map[string]struct {
		title, text string
		cut         bool
	}{
		"/html": {"T", "text", false}, "/text": {"", "café\n\nbc", false}, "/japanese": {"日本", "", false}, "/json": {"", `{"a":1}`, false},
		"/untyped": {"", "sniffed", false}, "/bomb": {"", strings.Repeat("a", maxPage), true}, "/moved": {"", "café\n\nbc", false},
	} {
		p, err := f.Fetch(t.Context(), srv.URL+path, nil)
		if err != nil || p.Title != want.title || p.Text != want.text || p.Cut != want.cut {
			t.Errorf("%s: %.200q %.200q %t, %v", path, p.Title, p.Text, p.Cut, err)
		}
		if path == "/moved" && p.URL != srv.URL+"/text" {
			t.Errorf("it was at %s", p.URL)
		}
	}
	for path, says := range map[string]string{
		"/pdf": "pages of type application/pdf", "/image": "pages of type image/png", "/mistyped": "no content type", "/packed": "unsupported content encoding", "/none": "answers 404",
		"/loop": "redirects more than 5", "/inside": "private, local and reserved", "/private": "private, local and reserved", "/file": "http:// or https://",
	} {
		if _, err := f.Fetch(t.Context(), srv.URL+path, nil); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestMay: what a caller may not be given is not fetched, also by a redirect.
func TestMay(t *testing.T) {
	srv, f := site(t), open(t, "127.0.0.1")
	may := func(u *url.URL) error {
		if u.Path == "/text" {
			return fault.New(fault.Invalid, "not this")
		}
		return nil
	}
	for path, says := range map[string]string{"/text": "not this", "/moved": "not this", "/json": ""} {
		if p, err := f.Fetch(t.Context(), srv.URL+path, may); (err == nil) != (says == "") || err != nil && err.Error() != says {
			t.Errorf("%s: %q, %v", path, p.Text, err)
		}
	}
}

// TestAddresses: what is not public is not fetched, by whatever name.
func TestAddresses(t *testing.T) {
	srv, f := site(t), open(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "http://"), ":")
	for _, where := range []string{
		srv.URL + "/text", "http://localhost:" + port + "/text", "http://[::ffff:127.0.0.1]:" + port, "http://[::1]/", "http://0.0.0.0:" + port, "http://0x7f000001:" + port,
		"http://2130706433:" + port, "http://169.254.169.254/", "http://10.1.2.3/", "http://u:p@example.org/", "ftp://example.org/", "file:///etc/passwd", "//example.org", "", "http://", "http://a b/", "http:example.org",
	} {
		if p, err := f.Fetch(t.Context(), where, nil); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %q, %v", where, p.Text, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open(t, "127.0.0.1").Fetch(gone, srv.URL+"/text", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that goes away: %v", err)
	}
}

func TestAPagesUnknownAuthority(t *testing.T) {
	_, err := open(t, "127.0.0.1").Fetch(t.Context(), check.UntrustedServer(t).URL, nil)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}
