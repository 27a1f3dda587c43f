package packages

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/outbound"
)

// archive starts a mirror of Debian's archive, and of one for security updates, and
// returns what answers a request written by hand, and what the two were asked for.
func archive(t *testing.T, allowed ...string) (ask func(request string) (int, string), asked *[]string) {
	t.Helper()
	asked = new([]string)
	written := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := r.RequestURI
		for _, h := range []string{"Range", "If-Modified-Since", "If-Range", "Cookie", "X-Secret"} {
			if v := r.Header.Get(h); v != "" {
				line += " " + h + ": " + v
			}
		}
		*asked = append(*asked, line)
		if strings.HasPrefix(r.URL.Path, "/moved/") {
			http.Redirect(w, r, "http://169.254.169.254"+r.URL.Path, http.StatusFound)
			return
		}
		http.ServeContent(w, r, "file", written, strings.NewReader("0123456789"))
	}))
	t.Cleanup(up.Close)
	l, err := ParseList(allowed)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{
		Kind: Apt, Upstream: up.URL + "/main", Security: up.URL + "/moved", Base: "http://mirror:1", Allowed: l, Allow: outbound.List{},
		Hosts: []string{"deb.example.com", "security.example.com"}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(request string) (int, string) {
		t.Helper()
		a, b := net.Pipe()
		defer a.Close()
		go m.Serve(b)
		_ = a.SetDeadline(time.Now().Add(time.Minute))
		go func() { _, _ = io.WriteString(a, request) }()
		res, err := http.ReadResponse(bufio.NewReader(a), nil)
		if err != nil {
			t.Fatalf("%.100q: %v", request, err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}, asked
}

// wants is a request as apt writes it to a proxy.
func wants(target string, headers ...string) string {
	return "GET " + target + " HTTP/1.1\r\n" + strings.Join(append(append([]string{"Host: deb.example.com"}, headers...), "", ""), "\r\n")
}

func TestArchive(t *testing.T) {
	ask, asked := archive(t, "apt:hello", "apt:g++")
	const deb = "http://deb.example.com/debian/"
	for _, c := range []struct {
		request, body, upstream string
		code                    int
	}{
		{wants(deb + "dists/testing/InRelease"), "0123456789", "/main/dists/testing/InRelease", 200},
		{wants("http://security.example.com/debian/dists/a-b/main/binary-amd64/by-hash/SHA256/0af9"), "0123456789", "/main/dists/a-b/main/binary-amd64/by-hash/SHA256/0af9", 200},
		{wants(deb + "pool/main/h/hello/hello_2.10-3%7ebpo12%2b1_amd64.deb"), "0123456789", "/main/pool/main/h/hello/hello_2.10-3~bpo12%2B1_amd64.deb", 200},
		{wants(deb + "pool/main/g/gcc/g++_12_amd64.deb"), "0123456789", "/main/pool/main/g/gcc/g%2B%2B_12_amd64.deb", 200},
		{wants(deb+"dists/testing/InRelease", "Range: bytes=4-", "If-Range: Fri, 02 Jan 2026 03:04:05 GMT"), "456789", "/main/dists/testing/InRelease Range: bytes=4- If-Range: Fri, 02 Jan 2026 03:04:05 GMT", 206},
		{wants(deb+"dists/testing/InRelease", "If-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT"), "", "/main/dists/testing/InRelease If-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT", 304},
		{wants(deb+"dists/testing/InRelease", "Range: bytes=secret", "If-Range: \"secret\"", "If-Modified-Since: secret", "Cookie: secret", "X-Secret: x"), "0123456789", "/main/dists/testing/InRelease", 200},
	} {
		code, body := ask(c.request)
		if got := (*asked)[len(*asked)-1]; code != c.code || body != c.body || got != c.upstream {
			t.Errorf("%q: %d %q, the archive was asked for %q", c.request, code, body, got)
		}
	}
	if code, _ := ask(wants("http://deb.example.com/debian-security/dists/x/InRelease")); code != http.StatusForbidden || (*asked)[len(*asked)-1] != "/moved/dists/x/InRelease" {
		t.Errorf("a redirect to where clouds hand out credentials: %d, %q", code, *asked)
	}

	before := len(*asked)
	for _, target := range []string{
		"/debian/dists/testing/InRelease", "http://evil.test/debian/dists/x", "http://deb.example.com.evil.test/debian/dists/x", "http://deb.example.com:81/debian/dists/x",
		"https://deb.example.com/debian/dists/x", "http://u:p@deb.example.com/debian/dists/x", "ftp://deb.example.com/debian/dists/x", "*",
		deb + "dists/x?y", deb + "dists/x?", deb + "dists/../../x", deb + "dists/%2e%2e/x", deb + "dists/..%2f..%2fx", deb + "dists/%252e%252e/x", deb + "dists//x",
		deb + "dists/x/", deb + "dists/.x", deb + "dists/x%00", deb + "dists/x%0d%0aX:y", deb + "dists/x%5c..", deb + "dists/x%3fy", deb + "dists/x%23y", deb + "dists/x;y", deb + "dists/ü",
		deb, deb + "dists", deb + "dists/", deb + "pool/", deb + "project/x", deb + "x", "http://deb.example.com/", "http://deb.example.com/debian", "http://deb.example.com/ubuntu/dists/x",
		"http://deb.example.com//debian/dists/x", deb + "dists/" + strings.Repeat("x", maxPath),
		deb + "pool/main/e/evil/evil_1_amd64.deb", deb + "pool/main/h/hello/hello", deb + "pool/main/h/hello/hello-evil_1_amd64.deb", deb + "pool/_", deb + "pool/main/h/hello_1/evil_1.deb",
	} {
		code, body := ask(wants(target))
		if named := strings.HasSuffix(target, "/hello/hello"); (code != http.StatusForbidden && code != http.StatusBadRequest) != named {
			t.Errorf("%s: %d %q", target, code, body)
		}
	}
	for _, request := range []string{
		"POST " + deb + "dists/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "DELETE " + deb + "dists/x HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT deb.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if code, _ := ask(request); code != http.StatusMethodNotAllowed {
			t.Errorf("%q: %d", request, code)
		}
	}
	if got := (*asked)[before:]; len(got) > 1 {
		t.Errorf("the archive was asked for %q", got)
	}
}

// apt is told to ask the Mirror in the place of the archive's hosts alone.
func TestAptSettings(t *testing.T) {
	m, err := New(Config{Kind: Apt, Upstream: "http://up/debian", Security: "http://up/debian-security", Base: "http://198.51.100.1:3142", Hosts: []string{"deb.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const want = "Acquire::http::Proxy::deb.example.com \"http://198.51.100.1:3142/\";\nAcquire::https::Proxy::deb.example.com \"DIRECT\";\n"
	if got := string(m.Files()["apt.conf"]); got != want || m.Variables()["APT_CONFIG"] != "/.atoll/apt.conf" {
		t.Errorf("got %q, and %v", got, m.Variables())
	}
}

// Whatever a URL is, what is asked of the archive is a file below its folder.
func FuzzArchivePath(f *testing.F) {
	for _, s := range []string{"http://h/debian/dists/x/InRelease", "http://h/debian-security/pool/a/b_1%2b2_all.deb", "http://h/debian/dists/../x", "/debian/pool/%2e%2e/x?y", "http://u@h/debian/dists/x#y"} {
		f.Add(s)
	}
	upstream, _ := url.Parse("http://up/a%2fb/tree")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.ParseRequestURI(text)
		if err != nil {
			return
		}
		tree, file, ok := archivePath(u)
		if !ok {
			return
		}
		at := within(upstream, file)
		again, err := url.Parse(at.String())
		if err != nil || again.Path != "/a/b/tree/"+file || again.RawQuery != "" || again.Fragment != "" || again.Host != "up" || again.User != nil {
			t.Errorf("%q asks for %s, %v", text, at, err)
		}
		if path.Clean(again.Path) != again.Path || u.Path != "/"+tree+"/"+file || strings.ContainsAny(at.String(), "\\ \r\n\x00?#+;") {
			t.Errorf("%q asks for %s", text, at)
		}
	})
}
