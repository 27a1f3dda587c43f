package packages

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/core/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// upstream is a mirror of an operator's; it notes what it was asked for.
func upstream(t *testing.T) (*httptest.Server, *[]string) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.EscapedPath())
		switch r.URL.EscapedPath() {
		case "/root/simple/some-name/":
			if strings.Contains(r.Header.Get("Accept"), simpleJSON) {
				w.Header().Set("Content-Type", simpleJSON)
				io.WriteString(w, `{"meta":{"api-version":"1.1"},"name":"some-name","files":[{"filename":"a-1.whl","url":"../../files/a-1.whl","hashes":{"sha256":"00"},"size":12345678901234567}]}`)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, `<html><body><a href="../../files/a-1.whl#sha256=00" data-requires-python="&gt;=3">a-1.whl</a></body></html>`)
		case "/root/files/a-1.whl":
			io.WriteString(w, "the file")
		case "/root/files/a-1.whl.metadata":
			io.WriteString(w, "its metadata")
		case "/root/@scope%2Fname":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"name":"@scope/name","versions":{"1.0.0":{"dist":{"tarball":"http://`+r.Host+`/root/files/a-1.whl","integrity":"sha512-x"}}}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s, &asked
}

// start starts a Mirror and returns a client whose every connection it serves.
func start(t *testing.T, kind Kind, url string, allowed ...string) *http.Client {
	t.Helper()
	return startAllowing(t, kind, url, nil, allowed...)
}

// startAllowing is start with private hosts that the upstream's links may lead to.
func startAllowing(t *testing.T, kind Kind, url string, allow []string, allowed ...string) *http.Client {
	t.Helper()
	l, err := ParseList(allowed)
	if err != nil {
		t.Fatal(err)
	}
	private, err := outbound.Parse(allow)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{Kind: kind, Upstream: url, Base: "http://mirror:1", Allowed: l, Allow: private, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		go m.Serve(b)
		return a, nil
	}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return &http.Client{Transport: tr}
}

func get(t *testing.T, c *http.Client, url, accept string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestPipInstallsWhatIsAllowed(t *testing.T) {
	up, asked := upstream(t)
	c := start(t, Pip, up.URL+"/root/simple/", "pip:Some.Name", "npm:other")
	for _, accept := range []string{simpleJSON, "text/html"} {
		code, page := get(t, c, "http://mirror:1/simple/some-name/", accept)
		if code != http.StatusOK || strings.Contains(page, up.URL) {
			t.Fatalf("%d %s", code, page)
		}
		_, rest, _ := strings.Cut(page, "http://mirror:1/file/")
		link, _, _ := strings.Cut(rest, `"`)
		link, hash, _ := strings.Cut(link, "#")
		link = "http://mirror:1/file/" + link
		if !strings.HasSuffix(link, "/a-1.whl") || accept == "text/html" && (hash != "sha256=00" || !strings.Contains(page, `data-requires-python="&gt;=3"`)) {
			t.Errorf("the page is %s", page)
		}
		if accept == simpleJSON && !strings.Contains(page, "12345678901234567") {
			t.Errorf("a number has changed: %s", page)
		}
		if code, body := get(t, c, link, "*/*"); code != http.StatusOK || body != "the file" {
			t.Errorf("the file is %d %q", code, body)
		}
		if code, body := get(t, c, link+".metadata", "*/*"); code != http.StatusOK || body != "its metadata" {
			t.Errorf("its metadata are %d %q", code, body)
		}
		forged := strings.Replace(link, "/file/", "/file/A", 1)
		if code, _ := get(t, c, forged, "*/*"); code != http.StatusForbidden {
			t.Errorf("a link that no page has returns %d", code)
		}
	}
	before := len(*asked)
	for _, path := range []string{"/simple/other/", "/simple/..%2f..%2ffiles/", "/simple/some-name%3fx=secret/", "/simple/", "/files/a-1.whl", "/other"} {
		if code, body := get(t, c, "http://mirror:1"+path, "text/html"); code != http.StatusForbidden && code != http.StatusNotFound {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if got := (*asked)[before:]; len(got) > 0 {
		t.Errorf("the mirror was asked for %q", got)
	}
}

func TestNPMInstallsWhatIsAllowed(t *testing.T) {
	up, _ := upstream(t)
	c := start(t, NPM, up.URL+"/root", "npm:@scope/*")
	for _, path := range []string{"/@scope%2fname", "/@scope/name"} {
		code, page := get(t, c, "http://mirror:1"+path, "application/json")
		var doc struct {
			Versions map[string]struct {
				Dist struct{ Tarball, Integrity string }
			}
		}
		if code != http.StatusOK || json.Unmarshal([]byte(page), &doc) != nil || doc.Versions["1.0.0"].Dist.Integrity != "sha512-x" {
			t.Fatalf("%d %s", code, page)
		}
		if code, body := get(t, c, doc.Versions["1.0.0"].Dist.Tarball, "*/*"); code != http.StatusOK || body != "the file" {
			t.Errorf("the file is %d %q", code, body)
		}
	}
	if code, _ := get(t, c, "http://mirror:1/left-pad", "*/*"); code != http.StatusForbidden {
		t.Errorf("a package that is not allowed: %d", code)
	}
}

func TestListsAreChecked(t *testing.T) {
	for _, bad := range []string{"requests", "gem:x", "pip:", "pip:../x", "npm:a/b", "npm:@x/", "pip:a b", "npm:@/*"} {
		if _, err := ParseList([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, bad := range []string{"", "ftp://x/simple", "http:///x", "http://x/?q", "::"} {
		if m, err := New(Config{Kind: Pip, Upstream: bad}); err == nil {
			m.Close()
			t.Errorf("the URL %q is taken", bad)
		}
	}
}

// No page has a link that leads past the Mirror.
func FuzzPages(f *testing.F) {
	f.Add([]byte(`{"files":[{"url":"x"}],"versions":{"1":{"dist":{"tarball":"//h/y"}}}}`))
	f.Add([]byte(`<base href="http://else/"><a href='a b'>x</a><a HREF=http://y/>`))
	page, _ := url.Parse("http://up/simple/x/")
	m := &Mirror{cfg: Config{Base: "http://mirror:1"}, key: []byte("k"), upstream: page}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = m.rewriteFiles(body, page)
		_, _ = m.rewriteTarballs(body, page)
		out, err := m.rewriteHTML(body, page)
		if err != nil {
			return
		}
		again, err := m.rewriteHTML(out, page)
		if err != nil || strings.Count(string(again), "mirror:1") < strings.Count(string(out), `href="http://mirror:1/`) {
			t.Errorf("%q became %q, %v", out, again, err)
		}
	})
}

func TestAMirrorsUnknownAuthority(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	began := time.Now()
	trouble := &Trouble{}
	m, err := New(Config{Kind: Pip, Upstream: s.URL + "/simple", Base: "http://mirror:1", Allowed: List{}, Trouble: trouble, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	w := httptest.NewRecorder()
	m.fail(w, m.ask(t, s.URL+"/simple/six/"))
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "SSL_CERT_FILE") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if why := trouble.Since(began); !strings.Contains(why, "mirror of pip") || !strings.Contains(why, "SSL_CERT_FILE") {
		t.Errorf("the trouble is %q", why)
	}
	if why := trouble.Since(time.Now().Add(time.Second)); why != "" {
		t.Errorf("the trouble of later is %q", why)
	}
}

// ask is how a request of the upstream fails.
func (m *Mirror) ask(t *testing.T, at string) error {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.fetch(r, u, "")
	if err == nil {
		a.Body.Close()
	}
	return err
}
