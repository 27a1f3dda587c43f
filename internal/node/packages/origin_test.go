package packages

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// inside are hosts that no link of an upstream leads to; %s is the port of a
// server that listens on all addresses of the machine.
var inside = []string{
	"127.0.0.1:%s", "127.9.9.9:%s", "localhost:%s", "[::1]:%s", "[::ffff:127.0.0.1]:%s", "[64:ff9b::7f00:1]:%s", "0.0.0.0:%s", "2130706433:%s",
	"10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "[fe80::1]",
}

// everywhere starts a server that listens on all addresses of the machine, and
// counts its requests.
func everywhere(t *testing.T) (port string, asked *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int32)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w, "secret")
	}))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, asked
}

// index starts an upstream whose page links to url, and whose other answers, the
// page "moved" among them, redirect to it.
func index(t *testing.T, target string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/simple/name/" {
			fmt.Fprintf(w, `<a href="%s/x-1.whl">x</a><a href="/hop/x-2.whl">x</a>`, target)
			return
		}
		http.Redirect(w, r, target+"/x-1.whl", http.StatusFound)
	}))
	t.Cleanup(s.Close)
	return s
}

// links returns the links of an index's page.
func links(t *testing.T, c *http.Client) []string {
	t.Helper()
	code, page := get(t, c, "http://mirror:1/simple/name/", "text/html")
	if code != http.StatusOK {
		t.Fatalf("the page is %d %s", code, page)
	}
	var out []string
	for _, part := range strings.Split(page, `href="`)[1:] {
		link, _, _ := strings.Cut(part, `"`)
		out = append(out, link)
	}
	return out
}

// What an upstream links or redirects to is asked for at public addresses alone,
// though the upstream itself is at a private one.
func TestLinksLeadToPublicAddresses(t *testing.T) {
	port, asked := everywhere(t)
	for _, host := range inside {
		if strings.Contains(host, "%") {
			host = fmt.Sprintf(host, port)
		}
		c := start(t, Pip, index(t, "http://"+host).URL+"/simple", "*")
		for _, link := range append(links(t, c), "http://mirror:1/simple/moved/") {
			code, body := get(t, c, link, "*/*")
			// A name that does not exist here leads nowhere; what exists is refused.
			if code != http.StatusForbidden && (code != http.StatusBadGateway || strings.Trim(host, "0123456789:") != "") {
				t.Errorf("%s by %s: %d %q", host, link, code, body)
			}
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("a server inside was asked %d times", n)
	}
}

// The operator opens hosts beside the upstream's own, and no port of the
// upstream's host is open by that of the upstream.
func TestLinksThatAreAllowed(t *testing.T) {
	port, asked := everywhere(t)
	for _, allow := range []string{"localhost", "127.0.0.0/8"} {
		c := startAllowing(t, Pip, index(t, "http://localhost:"+port).URL+"/simple", []string{allow, "::1"}, "*")
		for _, link := range links(t, c) {
			if code, body := get(t, c, link, "*/*"); code != http.StatusOK || body != "secret" {
				t.Errorf("with %s allowed: %d %q", allow, code, body)
			}
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("the server was asked %d times", n)
	}
}

// A password in the upstream's URL reaches the upstream with every request, and
// neither a link nor another host.
func TestThePasswordStays(t *testing.T) {
	var other string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "reader" || password != "hunter2" {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/simple/name/" {
			fmt.Fprintf(w, `<a href="../../x-1.whl">x</a><a href="http://%s/x-2.whl">x</a><a href="%s/x-3.whl">x</a>`, r.Host, other)
			return
		}
		io.WriteString(w, "the file")
	}))
	defer s.Close()
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "the file"+r.Header.Get("Authorization"))
	}))
	defer outside.Close()
	other = outside.URL
	u, _ := url.Parse(s.URL + "/simple")
	u.User = url.UserPassword("reader", "hunter2")
	c := startAllowing(t, Pip, u.String(), []string{"127.0.0.1"}, "*")
	all := links(t, c)
	if len(all) != 3 {
		t.Fatalf("the page has the links %q", all)
	}
	for _, link := range all {
		if text := decoded(link); strings.Contains(text, "hunter2") || strings.Contains(text, "reader") {
			t.Errorf("the link %s shows the password: %s", link, text)
		}
		if code, body := get(t, c, link, "*/*"); code != http.StatusOK || body != "the file" {
			t.Errorf("%s: %d %q", link, code, body)
		}
	}
}

// decoded is what a link says to those who decode it.
func decoded(link string) string {
	text, _ := base64.RawURLEncoding.DecodeString(strings.Split(link, "/")[5])
	return string(text)
}
