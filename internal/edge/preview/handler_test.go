package preview_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	previewproxy "github.com/atoll-run/atoll/internal/edge/preview"
	"github.com/atoll-run/atoll/internal/infra/forward"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a sandbox whose loopback interface is this machine's.
type machine struct {
	id      runtime.ID
	uses    atomic.Int64
	open    atomic.Int64
	carried atomic.Int64
	gone    atomic.Bool
	refuses atomic.Pointer[fault.Error]
	silent  atomic.Pointer[fault.Error] // instead of a connection
	until   atomic.Pointer[time.Time]   // something may listen

	instance atomic.Pointer[chan struct{}]

	listening atomic.Pointer[[]netip.AddrPort]
}

func (m *machine) Reach(_ context.Context, id runtime.ID) (preview.Use, error) {
	if id != m.id || m.gone.Load() {
		return nil, fault.New(fault.NotFound, "there is no sandbox %q", id)
	}
	if err := m.refuses.Load(); err != nil {
		return nil, err
	}
	m.uses.Add(1)
	m.open.Add(1)
	return m, nil
}

func (m *machine) Listening(context.Context) ([]netip.AddrPort, error) {
	return *m.listening.Load(), nil
}

func (m *machine) Connect(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error) {
	m.until.Store(new(time.Now().Add(wait)))
	if err := m.silent.Load(); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, preview.ErrRefused
	}
	return conn, err
}

func (m *machine) Carried(n int64)       { m.carried.Add(n) }
func (m *machine) Done() <-chan struct{} { return *m.instance.Load() }
func (m *machine) Close()                { m.open.Add(-1) }

// restart has the sandbox fall asleep and wake.
func (m *machine) restart() {
	next := make(chan struct{})
	if last := m.instance.Swap(&next); last != nil {
		close(*last)
	}
}

// rig is a server in a sandbox, and a preview of it.
type rig struct {
	*machine
	previews *preview.Previews
	handler  *previewproxy.Handler
	front    *httptest.Server
	back     *httptest.Server
	port     uint16
	url      *url.URL
	client   *http.Client
}

func newRig(t *testing.T, app http.HandlerFunc) *rig {
	t.Helper()
	db := storetest.SQLite(t)
	r := &rig{machine: &machine{id: addSandbox(t, db)}}
	r.restart()
	r.back = httptest.NewServer(app)
	t.Cleanup(r.back.Close)
	r.port = uint16(r.back.Listener.Addr().(*net.TCPAddr).Port)
	base, err := preview.ParseBase("http://*.localhost:8080")
	if err != nil {
		t.Fatal(err)
	}
	r.previews = preview.New(db.Previews(), storetest.Box(t), base)
	r.handler = previewproxy.NewHandler(previewproxy.Config{
		Previews: r.previews, Sandboxes: r.machine,
		Forwarder: forward.New(forward.Config{
			Client: func(*http.Request) string { return "203.0.113.7" }, Scheme: base.Scheme, Key: tenant.IsSecret, Log: slog.New(slog.DiscardHandler),
		}),
	})
	r.front = httptest.NewUnstartedServer(r.handler)
	r.front.Config.Protocols = &http.Protocols{}
	r.front.Config.Protocols.SetHTTP1(true)
	r.front.Config.Protocols.SetUnencryptedHTTP2(true)
	r.front.Start()
	t.Cleanup(r.front.Close)
	t.Cleanup(r.handler.Close)
	r.client = &http.Client{
		Transport:     &http.Transport{DialContext: r.dial, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(r.client.CloseIdleConnections)
	r.url = r.expose(t, r.port)
	return r
}

func addSandbox(t *testing.T, db *store.DB) runtime.ID {
	t.Helper()
	storetest.Operator(t, db)
	sb := &sandbox.Sandbox{ID: runtime.NewID(), Tenant: "ten_1", Environment: "env_1", Session: "s", Name: "default", Image: "default", State: sandbox.Running}
	if _, err := db.Sandboxes().Create(t.Context(), sb, sandbox.Quota{}); err != nil {
		t.Fatal(err)
	}
	return sb.ID
}

// dial leads every host to the server, as a browser does those of *.localhost.
func (r *rig) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, r.front.Listener.Addr().String())
}

func (r *rig) expose(t *testing.T, port uint16) *url.URL {
	t.Helper()
	p, err := r.previews.Open(t.Context(), r.id, port)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// do sends a request, and returns its answer and what it says.
func (r *rig) do(t *testing.T, method, url string, header map[string]string, body io.Reader) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func TestRequestsArriveAsTheyAre(t *testing.T) {
	var got *http.Request
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		got = req
		w.Header().Set("X-Own", "yes")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s", req.Method, req.RequestURI, body)
	})
	res, text := r.do(t, "PATCH", r.url.String()+"a%2Fb/c?x=1&y=;", map[string]string{
		"Cookie": "mine=1", "Authorization": "Basic eDp5", "X-Forwarded-For": "10.9.9.9", "X-Forwarded-Host": "evil", "Forwarded": "for=10.9.9.9", "X-Real-IP": "10.9.9.9",
	}, strings.NewReader("body"))
	if res.StatusCode != http.StatusTeapot || text != "PATCH /a%2Fb/c?x=1&y=; body" || res.Header.Get("X-Own") != "yes" {
		t.Errorf("%d %q %v", res.StatusCode, text, res.Header)
	}
	if got.Host != r.url.Host {
		t.Errorf("its host is %s", got.Host)
	}
	for name, want := range map[string]string{
		"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": r.url.Host, "X-Forwarded-Proto": "http", "Cookie": "mine=1", "Authorization": "Basic eDp5",
		"Forwarded": "", "X-Real-Ip": "",
	} {
		if value := strings.Join(got.Header.Values(name), "|"); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
	r.client.CloseIdleConnections()
	r.front.Close() // when all is over
	if r.open.Load() != 0 || r.uses.Load() != 1 || r.carried.Load() != int64(len(text)) {
		t.Errorf("%d open of %d uses, %d bytes", r.open.Load(), r.uses.Load(), r.carried.Load())
	}
}

func TestKeysAndCookiesStayApart(t *testing.T) {
	var header http.Header
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		header = req.Header
		w.Header().Add("Set-Cookie", "a=1; Domain=localhost; Path=/; HttpOnly")
		w.Header().Add("Set-Cookie", "b=2; domain = .localhost; Secure")
		w.Header().Add("Set-Cookie", "c=domain; Path=/x")
		w.Header().Set("Clear-Site-Data", `"cookies"`)
		w.Header().Set("Alt-Svc", `h3=":443"`)
	})
	for name, value := range map[string]string{
		"Authorization": "Bearer tk-atoll-abc", "X-Api-Key": "sk-atoll-abc", "Api-Key": "tk-atoll-abc", "X-Any": "a, sk-atoll-abc", "X-Basic": "Basic " + base64.StdEncoding.EncodeToString([]byte("me:sk-atoll-abc")),
	} {
		if r.do(t, "GET", r.url.String(), map[string]string{name: value}, nil); header.Get(name) != "" {
			t.Errorf("%s reached the sandbox: %s", name, header.Get(name))
		}
	}
	r.do(t, "GET", r.url.String(), map[string]string{"Authorization": "Bearer own", "Cookie": "a=1; key=tk-atoll-abc; b=2"}, nil)
	if header.Get("Authorization") != "Bearer own" || header.Get("Cookie") != "a=1; b=2" {
		t.Errorf("%v", header)
	}
	res, _ := r.do(t, "GET", r.url.String(), map[string]string{"Authorization": "bearer sk-atoll-abc"}, nil)
	if header.Get("Authorization") != "" {
		t.Error("an API key reached the sandbox")
	}
	if want := []string{"a=1; Path=/; HttpOnly", "b=2; Secure", "c=domain; Path=/x"}; !slices.Equal(res.Header["Set-Cookie"], want) {
		t.Errorf("%q", res.Header["Set-Cookie"])
	}
	if res.Header.Get("Clear-Site-Data")+res.Header.Get("Alt-Svc") != "" || res.Header.Get("Referrer-Policy") != "same-origin" {
		t.Errorf("%v", res.Header)
	}
}

func TestUnknownHosts(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })
	label, rest, _ := strings.Cut(r.url.Host, ".")
	flip := func(i int) string {
		c := byte('a')
		if label[i] == c {
			c = 'b'
		}
		return label[:i] + string(c) + label[i+1:]
	}
	answers := map[string]bool{}
	for _, host := range []string{flip(len(label) - 1), flip(len(label) - 26), "1" + label, "x", flip(8)} {
		res, text := r.do(t, "GET", "http://"+host+"."+rest, nil, nil)
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", host, res.StatusCode)
		}
		answers[text] = true
	}
	if len(answers) != 1 || r.uses.Load() != 0 {
		t.Errorf("unknown hosts are told apart: %v; %d uses", answers, r.uses.Load())
	}

	if _, text := r.do(t, "GET", r.url.String(), nil, nil); text != "here" {
		t.Fatal(text)
	}
	if again := r.expose(t, r.port); again.Host != r.url.Host {
		t.Errorf("opened again it is at %s", again.Host)
	}
	if err := r.previews.Close(t.Context(), r.id, r.port); err != nil {
		t.Fatal(err)
	}
	if res, text := r.do(t, "GET", r.url.String(), nil, nil); res.StatusCode != http.StatusNotFound || !answers[text] {
		t.Errorf("a revoked one: %d %s", res.StatusCode, text)
	}
	fresh := r.expose(t, r.port)
	if fresh.Host == r.url.Host {
		t.Error("a revoked name is given again")
	}
	r.gone.Store(true)
	if res, text := r.do(t, "GET", fresh.String(), nil, nil); res.StatusCode != http.StatusNotFound || !answers[text] {
		t.Errorf("of a sandbox that is gone: %d %s", res.StatusCode, text)
	}
	// Another server may have the sandbox: a visit here takes nothing away.
	if all, err := r.previews.List(t.Context(), r.id); err != nil || len(all) != 1 {
		t.Errorf("after a visit at a server that has no such sandbox there is %v, %v", all, err)
	}
}

// TestWhatHoldsIsSaid: who may not come, or not now, is told which of the two.
func TestWhatHoldsIsSaid(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	for _, test := range []struct {
		kind   fault.Kind
		status int
		again  string
		says   string
	}{
		{fault.Unauthorized, http.StatusForbidden, "", "No valid key remains for the sandbox"},
		{fault.Exhausted, http.StatusServiceUnavailable, "60", "a limit of the plan"},
		{fault.Unavailable, http.StatusServiceUnavailable, "1", "Try again"},
		{fault.Conflict, http.StatusBadGateway, "", "is lost"},
	} {
		r.refuses.Store(fault.New(test.kind, "the budget of acme is used up"))
		resp, err := r.client.Get(r.url.String())
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != test.status || resp.Header.Get("Retry-After") != test.again || !strings.Contains(string(body), test.says) || strings.Contains(string(body), "acme") {
			t.Errorf("for a refusal of kind %d: %d, Retry-After %q, %s", test.kind, resp.StatusCode, resp.Header.Get("Retry-After"), body)
		}
	}
	r.refuses.Store(nil)
	if resp, err := r.client.Get(r.url.String()); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

func TestNothingListens(t *testing.T) {
	r := newRig(t, func(http.ResponseWriter, *http.Request) {})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(ln.Addr().(*net.TCPAddr).Port)
	u := r.expose(t, port)
	go func() { // says what is no HTTP
		conn, err := ln.Accept()
		if err == nil {
			_, _ = conn.Write([]byte("SSH-2.0-x\r\n"))
			conn.Close()
		}
	}()
	if res, text := r.do(t, "GET", u.String(), nil, nil); res.StatusCode != http.StatusBadGateway || !strings.Contains(text, "no answer that HTTP allows") {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	ln.Close()
	var many []netip.AddrPort
	for i := range uint16(30) {
		many = append(many, netip.AddrPortFrom(netip.IPv4Unspecified(), 7000+i))
	}
	local := netip.MustParseAddr("127.0.0.1")
	for says, listens := range map[string][]netip.AddrPort{
		fmt.Sprintf("of this sandbox. Start a server on port %d", port): nil,
		"Something does on port 7000. Start":                            many[:1],
		"on the ports 7000, 7001 and 7002. Start":                       {many[0], netip.AddrPortFrom(local, 7000), many[1], many[2]},
		"on 30 others, such as 7000. Start":                             many,
		"something does at 10.0.0.2. Have it":                           {many[0], netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), port)},
	} {
		r.listening.Store(&listens)
		began := time.Now()
		res, text := r.do(t, "GET", u.String(), map[string]string{"Accept": "text/html"}, nil)
		if res.StatusCode != http.StatusBadGateway || !strings.Contains(text, fmt.Sprintf("Nothing listens on port %d", port)) || !strings.Contains(text, says) || !strings.HasPrefix(text, "<!doctype html>") {
			t.Errorf("%d %s", res.StatusCode, text)
		}
		answered := time.Now()
		if until := r.until.Load(); until.Before(began.Add(10*time.Second)) || until.After(answered.Add(10*time.Second)) {
			t.Errorf("it waits until %v, asked at %v and answered at %v", until, began, answered)
		}
	}
}

func TestEventsComeAsTheyAreSent(t *testing.T) {
	next := make(chan struct{})
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Length", "8") // also with a length nothing waits
		for i := range 4 {
			fmt.Fprintf(w, "%d\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-req.Context().Done():
				return
			}
		}
	})
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.url.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 4 {
		if line, err := lines.ReadString('\n'); line != fmt.Sprintf("%d\n", i) {
			t.Fatalf("%q, %v", line, err)
		}
		next <- struct{}{}
	}
}

func TestLargeBodies(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) { _, _ = io.Copy(w, req.Body) })
	data := make([]byte, 24<<20)
	rand.Read(data)
	for _, transport := range []http.RoundTripper{r.client.Transport, h2c(r)} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", r.url.String(), bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes came back, %v", res.Proto, len(got), err)
		}
	}
}

// h2c speaks HTTP/2 without TLS.
func h2c(r *rig) *http.Transport {
	tr := &http.Transport{DialContext: r.dial, Protocols: &http.Protocols{}}
	tr.Protocols.SetUnencryptedHTTP2(true)
	return tr
}

// echo answers an upgrade, and then says again what it is told.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" {
		http.Error(w, "no upgrade", http.StatusBadRequest)
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
	_, _ = io.Copy(conn, buf)
}

func (r *rig) upgrade(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", r.url.Host)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", res, err)
	}
	return conn, in
}

func TestUpgrade(t *testing.T) {
	r := newRig(t, echo)
	conn, in := r.upgrade(t)
	for i := range 100 {
		fmt.Fprintf(conn, "line %d\n", i)
		if line, err := in.ReadString('\n'); line != fmt.Sprintf("line %d\n", i) {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if r.open.Load() != 1 {
		t.Errorf("%d uses", r.open.Load())
	}
	// A shutdown cuts what HTTP knows nothing of any more.
	over := make(chan struct{})
	go func() { r.handler.Close(); close(over) }()
	if _, err := in.ReadString('\n'); err == nil {
		t.Error("the connection continues")
	}
	<-over
	if r.open.Load() != 0 || r.carried.Load() == 0 {
		t.Errorf("%d uses, %d bytes", r.open.Load(), r.carried.Load())
	}
}

func TestClientThatGoes(t *testing.T) {
	gone := make(chan struct{})
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", r.url.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	res.Body.Close()
	<-gone
}

func TestConnectionsAreKept(t *testing.T) {
	var mu sync.Mutex
	from := map[string]bool{}
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from[req.RemoteAddr] = true
	})
	for range 50 {
		r.do(t, "GET", r.url.String(), nil, nil)
	}
	if len(from) != 1 {
		t.Errorf("50 requests took %d connections", len(from))
	}
}

func TestTunnelsAreRefused(t *testing.T) {
	r := newRig(t, func(http.ResponseWriter, *http.Request) {})
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: %s\r\n\r\n", r.url.Host)
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode == http.StatusOK || r.uses.Load() != 0 {
		t.Errorf("%v, %v", res, err)
	}
}

// TestHTTP2OverTLS: many requests share one connection, as browsers have them do.
func TestHTTP2OverTLS(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%s %s", req.Proto, body)
	})
	front := httptest.NewUnstartedServer(r.handler)
	front.EnableHTTP2 = true
	front.StartTLS()
	defer front.Close()
	client := front.Client()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), "POST", front.URL, strings.NewReader(fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
				return
			}
			req.Host = r.url.Host
			res, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if text, err := io.ReadAll(res.Body); string(text) != fmt.Sprintf("HTTP/1.1 %d", i) || res.ProtoMajor != 2 || err != nil {
				t.Errorf("%s: %q, %v", res.Proto, text, err)
			}
		})
	}
	all.Wait()
}

// TestEarlyAnswers: an answer that does not wait for the request's body comes,
// whichever way the client speaks.
func TestEarlyAnswers(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	})
	over2 := h2c(r)
	defer over2.CloseIdleConnections()
	for range 10 {
		for _, transport := range []http.RoundTripper{r.client.Transport, over2} {
			req, err := http.NewRequestWithContext(t.Context(), "PUT", r.url.String(), bytes.NewReader(make([]byte, 8<<20)))
			if err != nil {
				t.Fatal(err)
			}
			res, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusRequestEntityTooLarge || string(text) != "too large\n" || err != nil {
				t.Errorf("%s: %s %q, %v", res.Proto, res.Status, text, err)
			}
		}
	}
}

// TestSandboxesThatDoNotAnswer are not taken for servers that say what is no HTTP.
func TestSandboxesThatDoNotAnswer(t *testing.T) {
	r := newRig(t, func(http.ResponseWriter, *http.Request) {})
	r.silent.Store(fault.New(fault.Conflict, "the sandbox does not respond"))
	res, text := r.do(t, "GET", r.url.String(), nil, nil)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" || !strings.Contains(text, "does not answer now") {
		t.Errorf("%d %s", res.StatusCode, text)
	}
}
