// Package httpapitest has servers and clients for the tests of the HTTP interface.
package httpapitest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/api/routes"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/activity"
	"github.com/atoll-run/atoll/internal/edge/httpapi/execute"
	"github.com/atoll-run/atoll/internal/edge/httpapi/usage"
	"github.com/atoll-run/atoll/test/openapitest"
)

// Key is of the tenant "test", on the plan pro.
var Key = gatewaytest.Token("test")

// Setup is what a Server is made of. The operations of its Config are added to those of
// its Handlers.
type Setup struct {
	httpapi.Config
	routes.Handlers
	World *gatewaytest.World
}

// Server is a server with the world behind it.
type Server struct {
	*httpapi.Server
	*gatewaytest.World
	Caller *tenant.Principal

	t testing.TB
}

// Registry returns a registry of metrics of its own.
func Registry() *prometheus.Registry { return prometheus.NewRegistry() }

// NoLog drops what is logged.
var NoLog = slog.New(slog.DiscardHandler)

// ServeHTTP answers a request. The test fails if the answer contradicts the OpenAPI document.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := openapitest.Serve(s.Server, w, r); err != nil {
		s.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
}

// New returns a server of executions and usage, and of what change adds.
func New(t testing.TB, change ...func(*Setup)) *Server {
	t.Helper()
	w := gatewaytest.Open(t)
	programs(w.Executor)
	setup := &Setup{
		World: w,
		Config: httpapi.Config{
			Auth: w, Metrics: prometheus.NewRegistry(), Grace: 5 * time.Second,
			Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		},
		Handlers: routes.Handlers{
			Execute: &execute.Handlers{Gateway: w.Gateway, CheckURL: func(_ context.Context, url string) error {
				if !strings.HasPrefix(url, "https://hooks.example/") {
					return fault.New(fault.Invalid, "webhook_url is refused")
				}
				return nil
			}},
			Usage:    &usage.Handlers{Ledger: w.DB.Usage(), Keep: 30 * 24 * time.Hour},
			Activity: &activity.Handlers{Store: w.DB.Activity(), Names: tenant.NewAdmin(tenant.AdminConfig{Store: w.DB.Tenants()})},
		},
	}
	for _, f := range change {
		f(setup)
	}
	setup.Config.Operations = append(setup.Handlers.Operations(), setup.Config.Operations...)
	s, err := httpapi.New(setup.Config)
	if err != nil {
		t.Fatal(err)
	}
	caller := w.Principal(t, "test", "pro", func(p *tenant.Principal) {
		p.Environment.Env = map[string]string{"FROM_ENVIRONMENT": "yes"}
	})
	return &Server{s, w, caller, t}
}

// programs are what the tests run.
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

// Ask sends a request with the test's key; headers replace its own, or remove them
// with "".
func Ask(s http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+Key)
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

// Get sends a request without a key.
func Get(s http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// Post sends body as an execute request with the test's key.
func Post(s http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	return Ask(s, http.MethodPost, "/v1/sandbox/execute", body, headers...)
}

// TraceID is the trace id of an answer.
func TraceID(w *httptest.ResponseRecorder) string { return w.Header().Get(httpapi.TraceHeader) }

var traceID = regexp.MustCompile(`^trc_[a-z2-7]{20}$`)

// CheckCommon checks what is true of every answer.
func CheckCommon(t *testing.T, r *http.Response) {
	t.Helper()
	if id := r.Header.Get(httpapi.TraceHeader); !traceID.MatchString(id) {
		t.Errorf("X-Trace-Id is %q", id)
	}
}

// Decode returns the JSON body of an answer with a status.
func Decode[T any](t *testing.T, w *httptest.ResponseRecorder, status int) (out T) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("%d %s, want %d", w.Code, w.Body, status)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Refused checks that w is a refusal of that status and code, whose message has a part,
// in the one envelope.
func Refused(t *testing.T, w *httptest.ResponseRecorder, status int, code, part string) {
	t.Helper()
	CheckCommon(t, w.Result())
	var body struct {
		Error, Message, Dimension string
		ResetsAt                  time.Time `json:"resets_at"`
	}
	strict := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&body); err != nil {
		t.Fatalf("got %d %q: %v", w.Code, w.Body, err)
	}
	if w.Code != status || body.Error != code || !strings.Contains(body.Message, part) || (body.Dimension != "") != (status == 429) {
		t.Errorf("got %d %s\nwant %d %s with %q", w.Code, w.Body, status, code, part)
	}
	if ct := w.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type is %q", ct)
	}
}

// Answers sends a request, checks its status and part of its answer, and returns the
// answer.
func Answers(t *testing.T, s http.Handler, status int, says, method, path, body string, headers ...string) string {
	t.Helper()
	w := Ask(s, method, path, body, headers...)
	if w.Code != status || !strings.Contains(w.Body.String(), says) {
		t.Errorf("%s %s: got %d %.300s, want %d and %q", method, path, w.Code, w.Body, status, says)
	}
	return w.Body.String()
}

// Open sends a request with the test's key on a real connection.
func Open(t testing.TB, srv *httptest.Server, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + Key}, "Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}
