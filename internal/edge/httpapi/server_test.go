package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testKey is of the tenant "test", on the plan pro.
var testKey = gatewaytest.Token("test")

// testServer is a Server with the world behind it.
type testServer struct {
	*Server
	*gatewaytest.World
	caller *tenant.Principal
}

func newServer(t testing.TB, change ...func(*Config)) *testServer {
	t.Helper()
	w := gatewaytest.Open(t)
	programs(w.Executor)
	cfg := Config{
		Gateway: w.Gateway,
		Auth:    w,
		Usage:   w.DB.Usage(),
		Metrics: prometheus.NewRegistry(),
		Log:     slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Grace:   5 * time.Second,
		CheckURL: func(_ context.Context, url string) error {
			if !strings.HasPrefix(url, "https://hooks.example/") {
				return fault.New(fault.Invalid, "webhook_url is refused")
			}
			return nil
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	caller := w.Principal(t, "test", "pro", func(p *tenant.Principal) {
		p.Environment.Env = map[string]string{"FROM_ENVIRONMENT": "yes"}
	})
	return &testServer{s, w, caller}
}

// programs are what the tests of this package run.
func programs(x *gatewaytest.Executor) {
	x.Program("x", func(*gatewaytest.Run) int { return 0 })
	x.Program("err", func(r *gatewaytest.Run) int { r.Print(execution.Stderr, "err\n"); return 3 })
	x.Program("env", func(r *gatewaytest.Run) int {
		for _, name := range strings.Fields(r.Args) {
			value, ok := r.Env[name]
			if !ok {
				value = r.BaseEnv[name]
			}
			r.Print(execution.Stdout, value+"\n")
		}
		return 0
	})
	x.Program("bytes", func(r *gatewaytest.Run) int {
		r.Print(execution.Stdout, "\xe2\x82\xac \xff \xe2\x82\n")
		r.Print(execution.Stdout, "\xf0\x9f")
		return 0
	})
	x.Program("early", func(r *gatewaytest.Run) int { r.Print(execution.Stdout, "early\n"); <-r.Context.Done(); return 0 })
	x.Program("lines", func(r *gatewaytest.Run) int {
		r.Print(execution.Stdout, "one\n")
		r.Append(execution.Event{})
		r.Print(execution.Stderr, "two\n")
		r.Print(execution.Stdout, "no newline")
		return 0
	})
	x.Program("oom", func(r *gatewaytest.Run) int {
		r.Result = &execution.Result{Status: execution.OOM, ExitCode: 137, Error: "memory limit of 512 MiB exceeded", Start: execution.StartCold}
		return 0
	})
	x.Program("blocked", func(r *gatewaytest.Run) int {
		r.Result = &execution.Result{Status: execution.Blocked, ExitCode: -1, NotStarted: true, Kind: fault.Unavailable, Error: "the sandbox failed its readiness check"}
		return 0
	})
}

// ask sends a request with the test's key; headers replace its own, or with ""
// take them away.
func ask(s http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testKey)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// post sends body as an authenticated execute request.
func post(s http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	return ask(s, http.MethodPost, "/v1/sandbox/execute", body, headers...)
}

// ServeHTTP chooses between the two that a testServer is made of.
func (s *testServer) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.Server.ServeHTTP(w, r) }

func TestExecuteAnswers(t *testing.T) {
	s := newServer(t)
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"output", `{"code":"print Hello <b> & é"}`, 200, `{"success":true,"stdout":"Hello <b> & é\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"failure", `{"code":"err","language":"node"}`, 200, `{"success":false,"stdout":"","stderr":"err\n","exit_code":3,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"variables", `{"code":"env A FROM_ENVIRONMENT","language":"bash","env_vars":{"A":"b"},"metadata":{"k":"v"},"timeout":5,"thread_id":null,"webhook_url":null}`, 200, `{"success":true,"stdout":"b\nyes\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"a request's variable wins", `{"code":"env FROM_ENVIRONMENT","env_vars":{"FROM_ENVIRONMENT":"no"}}`, 200, `{"success":true,"stdout":"no\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"invalid UTF-8", `{"code":"bytes"}`, 200, `{"success":true,"stdout":"€ ` + "\ufffd \ufffd\ufffd\\n\ufffd\ufffd" + `","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"time-out", `{"code":"early","timeout":1}`, 504, `{"success":false,"stdout":"early\n","stderr":"","exit_code":-1,"error":"execution timed out after 1s","stdout_truncated":false,"stderr_truncated":false,"message":"execution timed out after 1s","code":"gateway_timeout"}`},
		{"memory", `{"code":"oom"}`, 200, `{"success":false,"stdout":"","stderr":"","exit_code":137,"error":"memory limit of 512 MiB exceeded","stdout_truncated":false,"stderr_truncated":false,"start":"cold"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := post(s, c.body)
			if w.Code != c.status || w.Body.String() != c.want {
				t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, c.status, c.want)
			}
			checkCommon(t, w.Result())
			if id := traceOf(w); ask(s, "GET", "/v1/executions/"+id, "").Code != 200 {
				t.Errorf("X-Trace-Id %s names no execution", id)
			}
		})
	}
	refused(t, post(s, `{"code":"blocked"}`), 503, "service_unavailable", "readiness")
	s.startPatience = time.Minute // however busy the machine is
	refused(t, post(s, `{"code":"blocked"}`, "Accept", ndjson), 503, "service_unavailable", "readiness")
}

// checkCommon checks what is true of every answer.
func checkCommon(t *testing.T, r *http.Response) {
	t.Helper()
	if id := r.Header.Get("X-Trace-Id"); !traceIDPattern.MatchString(id) {
		t.Errorf("X-Trace-Id is %q", id)
	}
}

// TestPlanRefusals is every row of the plans' table that a request can meet.
func TestPlanRefusals(t *testing.T) {
	s := newServer(t)
	for _, timeout := range []string{"3601", "99999999999999999999"} {
		refused(t, post(s, `{"code":"x","timeout":`+timeout+`}`), 429, "rate_limited", "timeout exceeds your plan's maximum of 3600 seconds")
	}
	s.Principal(t, "poor", "free", func(p *tenant.Principal) { p.Plan.Concurrency = 1 })
	s.Principal(t, "wide", "free", func(p *tenant.Principal) { p.Environment.Limits.CPU = 1.5 })
	s.Principal(t, "large", "free", func(p *tenant.Principal) {
		p.Environment.Limits = runtime.DefaultLimits()
		p.Environment.Limits.Memory = 2 << 30
	})
	for _, c := range []struct{ who, body, header, value, message string }{
		{"poor", `{"code":"x"}`, "Accept", ndjson, "Streaming execution requires a plan with streaming, such as pro or enterprise. Your plan is free; upgrade to pro."},
		{"poor", `{"code":"x"}`, "Prefer", "respond-async", "Webhook delivery requires a plan with asynchronous delivery, such as pro or enterprise. Your plan is free; upgrade to pro."},
		{"poor", `{"code":"x","timeout":61}`, "", "", "timeout exceeds your plan's maximum of 60 seconds; ask for 60 or less. Your plan is free; upgrade to pro for 3600 seconds."},
		{"wide", `{"code":"x"}`, "", "", "cpu of 1.5 exceeds the free plan's maximum of 1; upgrade to pro for 4 cores, or use a smaller environment"},
		{"large", `{"code":"x"}`, "", "", "memory of 2 GiB exceeds the free plan's maximum of 1 GiB; upgrade to pro for 4 GiB, or use a smaller environment"},
	} {
		refused(t, post(s, c.body, "Authorization", "Bearer "+gatewaytest.Token(c.who), c.header, c.value), 429, "rate_limited", c.message)
	}
}

func TestScopes(t *testing.T) {
	s := newServer(t)
	for who, scopes := range map[string][]tenant.Scope{"runs": {tenant.ScopeExecute}, "reads": {tenant.ScopeRead}, "admin": {tenant.ScopeAdmin}} {
		s.Principal(t, who, "pro", func(p *tenant.Principal) { p.Key.Scopes = scopes })
	}
	const unknown = "/v1/executions/trc_00000000000000000000000000000000"
	for _, c := range []struct {
		method, path string
		scope        string
	}{
		{"POST", "/v1/sandbox/execute", "runs"}, {"POST", unknown + "/cancel", "runs"},
		{"GET", "/v1/executions", "reads"}, {"GET", unknown, "reads"}, {"GET", unknown + "/output", "reads"}, {"GET", "/v1/usage", "reads"},
	} {
		for _, who := range []string{"runs", "reads", "admin"} {
			w := ask(s, c.method, c.path, `{"code":"x"}`, "Authorization", "Bearer "+gatewaytest.Token(who))
			if who != c.scope {
				refused(t, w, 403, "forbidden", "scope")
			} else if w.Code == 403 || w.Code == 401 {
				t.Errorf("%s may not %s %s: %s", who, c.method, c.path, w.Body)
			}
		}
	}
}

func TestNoExecutorHasRoom(t *testing.T) {
	s := newServer(t)
	s.Executor.Refuse(fault.New(fault.Unavailable, "every executor is full"))
	for _, header := range []string{"application/json", ndjson} {
		w := post(s, `{"code":"x"}`, "Accept", header)
		refused(t, w, 503, "service_unavailable", "")
		if w.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	w := post(s, `{"code":"x"}`, "Prefer", "respond-async")
	refused(t, w, 503, "service_unavailable", "")
}

func TestRunOutlivesItsClient(t *testing.T) {
	s := newServer(t)
	srv := httptest.NewServer(s)
	defer srv.Close()
	for _, accept := range []string{"application/json", ndjson} {
		t.Run(accept, func(t *testing.T) {
			started, finish := make(chan string), make(chan struct{})
			s.Executor.Program("wait", func(r *gatewaytest.Run) int { started <- r.TraceID; <-finish; return 0 })
			ctx, hangUp := context.WithCancel(t.Context())
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/sandbox/execute", strings.NewReader(`{"code":"wait"}`))
			r.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Content-Type": {"application/json"}, "Accept": {accept}}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if res, err := srv.Client().Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			}()
			id := <-started
			hangUp()
			<-gone
			close(finish)
			w := ask(s, "GET", "/v1/executions/"+id+"/output", "") // until its end
			if !strings.Contains(w.Body.String(), `"type":"result","trace_id":"`+id+`","status":"success"`) {
				t.Errorf("it ended as %s", w.Body)
			}
		})
	}
}
