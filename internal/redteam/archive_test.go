package redteam

import (
	"archive/tar"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWithin takes archives from servers that unpack them in some wrong way.
func TestWithin(t *testing.T) {
	for name, c := range map[string]struct {
		kept []tar.Header // what the thread has afterwards
		want string
	}{
		"as it should be": {[]tar.Header{file("redteam-escape")}, ""},
		"lost":            {nil, "1 of 1 files are not in the thread"},
		"through a link":  {[]tar.Header{link("out", "/tmp"), file("out/redteam-escape")}, "behind a link"},
		"climbing":        {[]tar.Header{file("../redteam-escape")}, "the name ../redteam-escape"},
		"a device":        {[]tar.Header{{Typeflag: tar.TypeBlock, Name: "disk"}, file("redteam-escape")}, "is a device"},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := hostileArchive{entries: c.kept}.pack()
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				switch {
				case strings.HasSuffix(r.URL.Path, "own.txt"):
					_, _ = io.WriteString(w, "near")
				case r.Method == http.MethodGet:
					_, _ = w.Write(kept)
				}
			}))
			defer s.Close()
			a, err := newArena(t.Context(), Options{URL: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			a.plain = a.as("k")
			err = threadArchive(hostileArchive{name: "link", entries: []tar.Header{file("redteam-escape")}})(t.Context(), a)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
