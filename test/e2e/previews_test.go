package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/atoll-run/atoll/test/atolltest"
)

// visitor asks for pages of a preview, as a browser that knows where *.localhost is.
type visitor struct {
	t      *testing.T
	at     *url.URL
	client *http.Client
}

func previewed(t *testing.T, address string) visitor {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+port)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return visitor{t, at, &http.Client{Transport: transport}}
}

// do sends a request, whose answer the end of the test closes.
func (v visitor) do(method, path string, body io.Reader) *http.Response {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, strings.TrimSuffix(v.at.String(), "/")+path, body)
	if err != nil {
		v.t.Fatal(err)
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func (v visitor) get(path string) *http.Response {
	v.t.Helper()
	return v.do(http.MethodGet, path, nil)
}

// serve starts a program that listens on a port of a sandbox, and returns its
// preview.
func (s session) serve(sandbox, language, code string, port int) visitor {
	s.t.Helper()
	name := fmt.Sprintf("server-%d", port)
	s.tool("write_file", object{"sandbox": sandbox, "path": name, "content": code}, http.StatusOK)
	out := s.tool("shell", object{"sandbox": sandbox, "timeout_ms": 60_000, "command": fmt.Sprintf(
		`(%s %s > %s.log 2>&1 &); for i in $(seq 600); do (: < /dev/tcp/127.0.0.1/%d) 2> /dev/null && exit 0; sleep 0.05; done; cat %s.log; exit 1`, language, name, name, port, name)}, http.StatusOK)
	if out["exit_code"] != 0.0 {
		s.t.Fatal(out)
	}
	return previewed(s.t, s.tool("browse", object{"sandbox": sandbox, "port": port}, http.StatusOK)["url"].(string))
}

// apart is a page, and what the server was sent as cookies.
const apart = `
const http = require("http")
http.createServer((q, r) => {
  if (q.url == "/sw.js") { r.setHeader("Content-Type", "text/javascript"); r.setHeader("Service-Worker-Allowed", "/"); return r.end("self.addEventListener('fetch', e => e.respondWith(new Response('worked')))") }
  if (q.url == "/cookies") return r.end(q.headers.cookie || "none")
  r.setHeader("Set-Cookie", ["mine=1", "wide=1; Domain=localhost", "dotted=1; Domain=.localhost; Path=/"])
  r.setHeader("Content-Type", "text/html")
  r.end("<title>apart</title><p>page of " + q.headers.host)
}).listen(+process.argv[1].split("-").pop(), "127.0.0.1")
`

// TestPreviewsAreApart: a page of a preview reaches neither the API nor what other
// previews have.
func TestPreviewsAreApart(t *testing.T) {
	server := shared(t)
	s := newSession(t, server, atolltest.Key, t.Name())
	one, other := s.serve("default", "node", apart, 8000), s.serve("default", "node", apart, 8001)
	b := newBrowser(t)
	page := b.open(one.at.String())
	api := server.URL
	local := strings.Replace(api, "127.0.0.1", "localhost", 1)
	const own = "mine=1; wide=1; dotted=1" // each of its host alone
	for name, c := range map[string]struct{ script, want string }{
		"its own cookies": {`return (await fetch("/cookies")).text()`, own},
		// Refused by the browser, since the API allows no origin, and by the API.
		"the API":           {`return (await fetch("` + api + `/v1/tools")).text()`, "thrown: TypeError"},
		"the API, by name":  {`return (await fetch("` + local + `/v1/tools", {credentials: "include"})).text()`, "thrown: TypeError"},
		"the API, with key": {`return (await fetch("` + local + `/v1/sandboxes", {headers: {Authorization: "Bearer ` + atolltest.Key + `"}})).text()`, "thrown: TypeError"},
		"the API, blindly":  {`return (await fetch("` + local + `/v1/tools", {mode: "no-cors"})).type`, "opaque"},
		"the API's events":  {`return new Promise(done => { const e = new EventSource("` + local + `/v1/sandboxes/x/files/watch"); e.onerror = () => done("refused"); e.onopen = () => done("open") })`, "refused"},
		"the API's sockets": {`return new Promise(done => { const w = new WebSocket("` + strings.Replace(local, "http", "ws", 1) + `/v1/sandboxes/x/terminal"); w.onerror = () => done("refused"); w.onopen = () => done("open") })`, "refused"},
		"another's page":    {`return (await fetch("` + other.at.String() + `")).text()`, "thrown: TypeError"},
		"another's worker":  {`return navigator.serviceWorker.register("` + other.at.String() + `sw.js")`, "thrown: SecurityError"},
		"cookies for all":   {`document.cookie = "script=1; domain=localhost"; document.cookie = "script=2; domain=.localhost"; return document.cookie`, own},
		"another's frame": {`const f = document.createElement("iframe"); f.src = "` + other.at.String() + `"; const loaded = new Promise(done => f.onload = done)
			document.body.append(f); await loaded; return f.contentWindow.document.title`, "thrown: SecurityError"},
		"the API's frame": {`const f = document.createElement("iframe"); f.src = "` + local + `/v1/tools"; const loaded = new Promise(done => f.onload = done)
			document.body.append(f); await loaded; return f.contentWindow.document.title`, "thrown: SecurityError"},
	} {
		if got := page.says(c.script); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// What one has stored, and a worker of it, is not there for the other.
	if got := page.says(`localStorage.kept = document.cookie = "kept=1"; await navigator.serviceWorker.register("/sw.js"); await navigator.serviceWorker.ready; return "ready"`); got != "ready" {
		t.Fatal(got)
	}
	page.do(page.ctx, chromedp.Reload())
	if got := page.says(`return (await fetch("/anything")).text()`); got != "worked" {
		t.Errorf("its own worker: %q", got)
	}
	second := b.open(other.at.String())
	for name, c := range map[string]struct{ script, want string }{
		"cookies":       {`return document.cookie`, own},
		"cookies sent":  {`return (await fetch("/cookies")).text()`, own},
		"what was kept": {`return localStorage.kept`, "undefined"},
		"workers":       {`return (await navigator.serviceWorker.getRegistrations()).length`, "0"},
		"the page":      {`return document.querySelector("p").textContent`, "page of " + other.at.Host},
	} {
		if got := second.says(c.script); got != c.want {
			t.Errorf("%s of the other: %q, want %q", name, got, c.want)
		}
	}
	// Nothing of either goes to the API.
	third := b.open(local + "/healthz")
	if got := third.says(`return document.cookie + (await navigator.serviceWorker?.getRegistrations() || []).length`); got != "0" {
		t.Errorf("the API's origin has %q", got)
	}
}
