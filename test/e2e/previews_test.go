package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

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

// everything answers as browsers may ask: bodies that are large, slow or come by
// and by, and WebSockets.
const everything = `
const http = require("http"), crypto = require("crypto")
let told = []
const server = http.createServer((q, r) => {
  if (q.url == "/events") { r.setHeader("Content-Type", "text/event-stream"); r.write("data: begun\n\n"); told.push(r); return }
  if (q.url == "/tell") { told.forEach(t => t.write("data: told\n\n")); return r.end() }
  if (q.url == "/echo") return q.pipe(r)
  if (q.url == "/count") { let n = 0; q.on("data", d => n += d.length); return q.on("end", () => r.end(String(n))) }
  if (q.url == "/large") {
    const piece = Buffer.alloc(1 << 20); let left = 1 << 10
    const more = () => { while (left-- > 0) if (!r.write(piece)) return r.once("drain", more); r.end() }
    return more()
  }
  r.end("page of " + q.headers.host + " by " + q.headers["x-forwarded-proto"])
})
server.on("upgrade", (q, s) => {
  const key = crypto.createHash("sha1").update(q.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64")
  s.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + key + "\r\n\r\n")
  let got = Buffer.alloc(0)
  s.on("error", () => {}).on("data", d => {
    for (got = Buffer.concat([got, d]); got.length >= 6; ) { // short frames only
      const n = got[1] & 127
      if (got.length < 6 + n) return
      const text = got.subarray(6, 6 + n).map((c, i) => c ^ got[2 + i % 4])
      s.write(Buffer.concat([Buffer.from([got[0], n]), text]))
      got = got.subarray(6 + n)
    }
  })
})
server.listen(+process.argv[1].split("-").pop(), "127.0.0.1")
`

// TestPreviewBodies: what comes passes as it comes, and all of it.
func TestPreviewBodies(t *testing.T) {
	s := newSession(t, shared(t), atolltest.Key, t.Name())
	v := s.serve("default", "node", everything, 8000)

	res := v.get("/large")
	if n, err := io.Copy(io.Discard, res.Body); n != 1<<30 || err != nil {
		t.Errorf("%d bytes came, %v", n, err)
	}
	const sent = 256 << 20
	if got, err := io.ReadAll(v.do(http.MethodPost, "/count", io.LimitReader(zeros{}, sent)).Body); string(got) != strconv.Itoa(sent) || err != nil {
		t.Errorf("%s bytes arrived, %v", got, err)
	}
	// A body of which each byte waits for the one before to come back.
	in, out := io.Pipe()
	go func() { _, _ = out.Write([]byte("begun")) }()
	res = v.do(http.MethodPost, "/echo", in)
	if _, err := io.ReadFull(res.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		b := []byte{byte(i)}
		if _, err := out.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, b); err != nil || b[0] != byte(i) {
			t.Fatalf("byte %d came back as %d, %v", i, b[0], err)
		}
	}
	out.Close()
	if rest, err := io.ReadAll(res.Body); len(rest) > 0 || err != nil {
		t.Errorf("%q is left, %v", rest, err)
	}
	// An event comes before there is another.
	lines := bufio.NewScanner(v.get("/events").Body)
	for _, want := range []string{"begun", "told"} {
		if !lines.Scan() || lines.Text() != "data: "+want || !lines.Scan() {
			t.Fatalf("%q, %v, want %s", lines.Text(), lines.Err(), want)
		}
		if want == "begun" {
			v.get("/tell")
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// socket opens a WebSocket.
func (v visitor) socket() *websocket.Conn {
	v.t.Helper()
	conn, _, err := websocket.Dial(v.t.Context(), "ws"+strings.TrimPrefix(v.at.String(), "http"), &websocket.DialOptions{HTTPClient: v.client})
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

// said has a WebSocket say something that is to come back.
func said(ctx context.Context, conn *websocket.Conn, text string) error {
	if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		return err
	}
	if _, got, err := conn.Read(ctx); err != nil || string(got) != text {
		return fmt.Errorf("%q for %q: %w", got, text, err)
	}
	return nil
}

// TestPreviewWebSockets has many at a time, which end when their preview does.
func TestPreviewWebSockets(t *testing.T) {
	s := newSession(t, shared(t), atolltest.Key, t.Name())
	v := s.serve("default", "node", everything, 8000)
	other := s.serve("default", "node", everything, 8001)
	var all errgroup.Group
	conns := make([]*websocket.Conn, 100)
	for i := range conns {
		conns[i] = v.socket()
	}
	for i, conn := range conns {
		all.Go(func() error {
			for n := range 10 {
				if err := said(t.Context(), conn, fmt.Sprintf("%d of %d", n, i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	stays := other.socket()
	// Beside them there is room for other things.
	s.tool("shell", object{"command": "true"}, http.StatusOK)
	s.Must(t, s.key, http.MethodDelete, "/v1/sandboxes/default/previews/8000?session="+url.QueryEscape(s.name), nil).Into(t, http.StatusNoContent, nil)
	for _, conn := range conns {
		if _, _, err := conn.Read(t.Context()); err == nil {
			t.Error("a WebSocket outlives its preview")
		}
	}
	if res := v.get("/"); res.StatusCode != http.StatusNotFound {
		t.Error(res.Status)
	}
	if err := said(t.Context(), stays, "still"); err != nil {
		t.Error(err)
	}
}

// TestPreviewWakes: a request waits until the sandbox is awake, and finds what was
// there, also a connection that was kept.
func TestPreviewWakes(t *testing.T) {
	s := newSession(t, shared(t), atolltest.Key, t.Name())
	v := s.serve("default", "node", everything, 8000)
	path := "/v1/sandboxes/default?session=" + url.QueryEscape(s.name)
	for range 3 {
		if res := v.get("/"); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		s.Must(t, s.key, http.MethodPost, strings.Replace(path, "?", "/sleep?", 1), nil).Into(t, http.StatusOK, nil)
	}
	text, err := io.ReadAll(v.get("/").Body)
	if string(text) != "page of "+v.at.Host+" by http" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	// One that is frozen alone.
	s.Must(t, s.key, http.MethodPut, strings.Replace(path, "?", "/timeout?", 1), object{"sleep_after_ms": 1000}).Into(t, http.StatusOK, nil)
	atolltest.Until(t, time.Minute, "the sandbox sleeps", func() bool {
		var now struct{ Status string }
		s.Must(t, s.key, http.MethodGet, path, nil).Into(t, http.StatusOK, &now)
		return now.Status == "sleeping"
	})
	if text, err := io.ReadAll(v.get("/").Body); string(text) != "page of "+v.at.Host+" by http" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestPreviewOfWhatStarts: a request waits for a server that was just started, and one
// for a port that is not listened on is told which there are.
func TestPreviewOfWhatStarts(t *testing.T) {
	t.Parallel() // a preview waits 10 seconds for a program to listen
	s := newSession(t, shared(t), atolltest.Key, t.Name())
	expose := func(port int) visitor {
		return previewed(t, s.tool("browse", object{"sandbox": "default", "port": port}, http.StatusOK)["url"].(string))
	}
	s.tool("shell", object{"command": "(sleep 2; exec python3 -m http.server --bind 127.0.0.1 8000) >/dev/null 2>&1 & mkdir -p www"}, http.StatusOK)
	v, other := expose(8000), expose(8001)
	var all errgroup.Group
	for range 20 {
		all.Go(func() error {
			res := v.get("/")
			if text, err := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || !strings.Contains(string(text), "www/") {
				return fmt.Errorf("%s %s %w", res.Status, text, err)
			}
			return nil
		})
	}
	all.Go(func() error {
		began, res := time.Now(), other.get("/")
		text, err := io.ReadAll(res.Body)
		if took := time.Since(began); took < 9*time.Second || res.StatusCode != http.StatusBadGateway ||
			!strings.Contains(string(text), "Nothing listens on port 8001 of this sandbox. Something does on port 8000.") {
			return fmt.Errorf("after %v: %s %s %w", took, res.Status, text, err)
		}
		return nil
	})
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}

// TestPreviewDomain has previews below a domain of their own, behind a proxy that
// speaks HTTP/2 to the server.
func TestPreviewDomain(t *testing.T) {
	server := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=0", "ATOLL_PREVIEW_URL=https://*.preview.example.com"}})
	s := newSession(t, server, atolltest.Key, t.Name())
	v := s.serve("default", "node", everything, 8000)
	if !strings.HasSuffix(v.at.Host, ".preview.example.com") || v.at.Scheme != "https" {
		t.Fatalf("the preview is at %s", v.at)
	}
	proxy := &http.Transport{Protocols: new(http.Protocols)}
	proxy.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(proxy.CloseIdleConnections)
	get := func(host, path string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := proxy.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
	if res, text := get(v.at.Host, "/"); res.ProtoMajor != 2 || text != "page of "+v.at.Host+" by https" {
		t.Errorf("%s: %q", res.Proto, text)
	}
	for _, host := range []string{"preview.example.com", "api.preview.example.com"} {
		if res, text := get(host, "/healthz"); res.StatusCode != http.StatusNotFound || !strings.Contains(text, "nothing at this address") {
			t.Errorf("%s: %s %q", host, res.Status, text)
		}
	}
	if res, _ := get("atoll.example.com", "/healthz"); res.StatusCode != http.StatusOK {
		t.Errorf("the API beside it: %s", res.Status)
	}
}
