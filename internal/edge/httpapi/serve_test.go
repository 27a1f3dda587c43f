package httpapi_test

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func TestProbes(t *testing.T) {
	var ready error = fault.New(fault.Unavailable, "not ready: sandboxes")
	s := httpapitest.New(t, func(c *httpapitest.Setup) { c.Ready = func(context.Context) error { return ready } })
	if w := httpapitest.Get(s, "/healthz"); w.Code != 200 || w.Body.String() != `{"status":"ok"}` {
		t.Errorf("healthz: %d %s", w.Code, w.Body)
	}
	httpapitest.Refused(t, httpapitest.Get(s, "/readyz"), 503, "service_unavailable", "not ready: sandboxes")
	ready = errors.New("no route to 10.0.0.7")
	w := httpapitest.Get(s, "/readyz")
	httpapitest.Refused(t, w, 503, "service_unavailable", "not ready")
	if strings.Contains(w.Body.String(), "10.0.0.7") {
		t.Errorf("readyz shows an address: %s", w.Body)
	}
	ready = nil
	if w := httpapitest.Get(s, "/readyz"); w.Code != 200 || w.Body.String() != `{"status":"ready"}` {
		t.Errorf("readyz: %d %s", w.Code, w.Body)
	}
	_, stop, done := listen(t, s)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	httpapitest.Refused(t, httpapitest.Get(s, "/readyz"), 503, "service_unavailable", "shutting down")
	httpapitest.Refused(t, httpapitest.Post(s, `{"code":"x"}`), 503, "service_unavailable", "shutting down")
	if w := httpapitest.Get(s, "/healthz"); w.Code != 200 {
		t.Errorf("healthz while draining: %d", w.Code)
	}
}

func TestMetrics(t *testing.T) {
	s := httpapitest.New(t)
	httpapitest.Post(s, `{"code":"x"}`)
	httpapitest.Post(s, `{"cod":"x"}`)
	httpapitest.Get(s, "/a/path/that/must/not/become/a/label")
	body := httpapitest.Get(s, "/metrics").Body.String()
	for _, want := range []string{
		`atoll_http_requests_total{route="/v1/sandbox/execute",status="200"} 1`,
		`atoll_http_requests_total{route="/v1/sandbox/execute",status="400"} 1`,
		`atoll_http_requests_total{route="other",status="404"} 1`,
		`atoll_http_requests_total{route="/v1/usage",status="200"} 0`,
		`atoll_http_requests_total{route="/metrics",status="200"} 0`,
		`atoll_http_requests_in_flight 1`,
		`atoll_http_request_duration_seconds_count{route="/v1/sandbox/execute"} 2`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

// TestDocsNeedNoNetwork checks that the page may load from its own server only, so that it
// works where there is no network.
func TestDocsNeedNoNetwork(t *testing.T) {
	s := httpapitest.New(t)
	const script = "/docs/scalar-1.72.1.js"
	for path, kind := range map[string]string{"/docs": "text/html", "/docs/page.js": "text/javascript", script: "text/javascript"} {
		w := httpapitest.Get(s, path)
		httpapitest.CheckCommon(t, w.Result())
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s", path, w.Code, w.Header())
		}
		if path != script && strings.Contains(w.Body.String(), "://") {
			t.Errorf("%s refers to somewhere else", path)
		}
	}
	page := httpapitest.Get(s, "/docs")
	csp := page.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none';", "script-src 'self';", "connect-src 'self';", "style-src-attr 'unsafe-inline';"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy is %q, without %s", csp, want)
		}
	}
	if strings.Count(csp, "unsafe") != 1 {
		t.Errorf("the policy is %q", csp)
	}
	if !strings.Contains(page.Body.String(), script) || csp == httpapitest.Get(s, "/docs").Header().Get("Content-Security-Policy") {
		t.Errorf("the page does not load %s, or has the nonce of another: %s", script, page.Body)
	}
	// The script is the published one, for clients with and without gzip.
	packed := httpapitest.Ask(s, http.MethodGet, script, "", "Accept-Encoding", "br, gzip")
	if packed.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("compressed: %s", packed.Header())
	}
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	for encoding, body := range map[string]io.Reader{"gzip": unpacked, "none": httpapitest.Get(s, script).Body} {
		sum := sha256.New()
		if _, err := io.Copy(sum, body); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != "bf091006bdc3af6067af77c2f534812e3e633e94a94e87138069f570f33b762c" {
			t.Errorf("%s: the script's digest is %s", encoding, got)
		}
	}
	if w := httpapitest.Get(s, "/"); w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != "/docs" {
		t.Errorf("/: %d %s", w.Code, w.Header())
	}
	if w := httpapitest.Get(s, "/openapi.json"); w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("/openapi.json: %d %s", w.Code, w.Header())
	}
	if w := httpapitest.Get(s, "//v1/sandbox/execute"); w.Header().Get("X-Trace-Id") == "" {
		t.Errorf("a redirect has no trace id: %s", w.Header())
	}
}

// listen starts s on a real port. stop begins a shutdown, done gets Serve's
// answer.
func listen(t *testing.T, s *httpapitest.Server) (url string, stop func(), done <-chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	return "http://" + ln.Addr().String(), cancel, ended
}

// answer is how a client saw a request end.
type answer struct {
	status int
	body   string
	err    error
}

// start sends an execute request that is answered later.
func start(url, body string) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		r, err := http.NewRequest(http.MethodPost, url+"/v1/sandbox/execute", strings.NewReader(body))
		if err != nil {
			out <- answer{err: err}
			return
		}
		r.Header = http.Header{"Authorization": {"Bearer " + httpapitest.Key}, "Content-Type": {"application/json"}, "Connection": {"close"}}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			out <- answer{err: err}
			return
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		out <- answer{res.StatusCode, string(got), err}
	}()
	return out
}

func TestShutdownWaitsForRuns(t *testing.T) {
	s := httpapitest.New(t)
	began, finish := make(chan struct{}), make(chan struct{})
	s.Executor.Program("wait", func(r *gatewaytest.Run) int {
		close(began)
		<-finish
		r.Print(execution.Stdout, "finished\n")
		return 0
	})
	url, stop, done := listen(t, s)
	got := start(url, `{"code":"wait"}`)
	<-began
	stop()
	atolltest.Until(t, 10*time.Second, "the server begins nothing more", func() bool { return httpapitest.Get(s, "/readyz").Code == 503 })
	close(finish)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if a := <-got; a.err != nil || a.status != 200 || !strings.Contains(a.body, `"stdout":"finished\n"`) {
		t.Errorf("got %+v", a)
	}
	if a := <-start(url, `{"code":"x"}`); a.err == nil {
		t.Errorf("a server that has shut down answered %+v", a)
	}
}

// TestShutdownClosesUnusedConnections checks that a client's connection in
// reserve does not hold a shutdown up as one with a request does.
func TestShutdownClosesUnusedConnections(t *testing.T) {
	s := httpapitest.New(t)
	began, finish := make(chan struct{}), make(chan struct{})
	s.Executor.Program("wait", func(*gatewaytest.Run) int { close(began); <-finish; return 0 })
	url, stop, done := listen(t, s)
	reserve, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer reserve.Close()
	got := start(url, `{"code":"wait"}`) // accepted after the other
	<-began
	stop()
	// What Go gives it are five seconds.
	if err := reserve.SetReadDeadline(time.Now().Add(4 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := reserve.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the unused connection: %v", err)
	}
	close(finish)
	if a := <-got; a.err != nil || a.status != 200 {
		t.Errorf("got %+v", a)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestShutdownLosesPatience checks that a request is told when its execution
// continues without this server.
func TestShutdownLosesPatience(t *testing.T) {
	s := httpapitest.New(t, func(c *httpapitest.Setup) { c.Grace = 50 * time.Millisecond })
	began := make(chan string, 1)
	s.Executor.Program("wait", func(r *gatewaytest.Run) int { began <- r.TraceID; <-r.Context.Done(); return 0 })
	url, stop, done := listen(t, s)
	got := start(url, `{"code":"wait"}`)
	id := <-began
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if a := <-got; a.err != nil || a.status != 502 || !strings.Contains(a.body, `"error":"bad_gateway"`) || !strings.Contains(a.body, id) {
		t.Errorf("got %+v", a)
	}
	if e, err := s.World.Get(t.Context(), s.Caller.Tenant.ID, id); err != nil || e.Status != execution.Running {
		t.Errorf("the execution is %+v, %v", e, err)
	}
}

// TestShutdownEndsRuns checks that executions which end with this process are
// still answered.
func TestShutdownEndsRuns(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Grace = 50 * time.Millisecond
		c.Expire = func() { close(end) }
	})
	s.Executor.Program("wait", func(r *gatewaytest.Run) int {
		close(began)
		<-end
		r.Result = &execution.Result{Status: execution.Failed, ExitCode: -1, Error: "the server is shutting down"}
		return 0
	})
	url, stop, done := listen(t, s)
	got := start(url, `{"code":"wait"}`)
	<-began
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if a := <-got; a.err != nil || a.status != 200 || !strings.Contains(a.body, `"exit_code":-1,"error":"the server is shutting down"`) {
		t.Errorf("got %+v", a)
	}
}

// TestReaderThatStops checks that a program whose client reads nothing is not
// held up.
func TestReaderThatStops(t *testing.T) {
	s := httpapitest.New(t)
	ended := make(chan struct{})
	piece := strings.Repeat("x", 1023) + "\n"
	s.Executor.Program("flood", func(r *gatewaytest.Run) int {
		defer close(ended)
		events := make([]execution.Event, 32)
		for range 2_000 { // 64 MB: far beyond every buffer on the way
			for i := range events {
				events[i] = execution.Event{Stream: execution.Stdout, Data: []byte(piece)}
			}
			r.Append(events...)
		}
		return 0
	})
	url, stop, done := listen(t, s)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"code":"flood"}`
	_, err = io.WriteString(conn, "POST /v1/sandbox/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+httpapitest.Key+"\r\nContent-Type: application/json\r\nAccept: application/x-ndjson\r\nContent-Length: 16\r\n\r\n"+body)
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// BenchmarkRefusal measures the HTTP layer alone, over a real connection.
func BenchmarkRefusal(b *testing.B) {
	s := httpapitest.New(b, func(c *httpapitest.Setup) { c.Log = slog.New(slog.DiscardHandler) })
	srv := httptest.NewServer(s)
	defer srv.Close()
	srv.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, _ := http.NewRequest(http.MethodPost, srv.URL+"/v1/sandbox/execute", strings.NewReader(`{"code":"print(1)","foo":1}`))
			r.Header = http.Header{"Authorization": {"Bearer " + httpapitest.Key}, "Content-Type": {"application/json"}}
			res, err := srv.Client().Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode != 400 {
				b.Errorf("got %d", res.StatusCode)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
