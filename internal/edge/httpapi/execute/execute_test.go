package execute_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExecuteAnswers(t *testing.T) {
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Execute.StartPatience = time.Minute // however busy the machine is
	})
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"output", `{"code":"print Hello <b> & é"}`, 200, `{"success":true,"stdout":"Hello <b> & é\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false,"start":"cold"}`},
		{"failure", `{"code":"err","language":"node"}`, 200, `{"success":false,"stdout":"","stderr":"err\n","exit_code":3,"error":null,"stdout_truncated":false,"stderr_truncated":false,"start":"cold"}`},
		{"variables", `{"code":"env A FROM_ENVIRONMENT","language":"bash","env_vars":{"A":"b"},"metadata":{"k":"v"},"timeout":5,"thread_id":null,"webhook_url":null}`, 200, `{"success":true,"stdout":"b\nyes\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false,"start":"cold"}`},
		{"a request's variable wins", `{"code":"env FROM_ENVIRONMENT","env_vars":{"FROM_ENVIRONMENT":"no"}}`, 200, `{"success":true,"stdout":"no\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false,"start":"cold"}`},
		{"invalid UTF-8", `{"code":"bytes"}`, 200, `{"success":true,"stdout":"€ ` + "\ufffd \ufffd\ufffd\\n\ufffd\ufffd" + `","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false,"start":"cold"}`},
		{"time-out", `{"code":"early","timeout":1}`, 504, `{"success":false,"stdout":"early\n","stderr":"","exit_code":-1,"error":"execution timed out after 1s","stdout_truncated":false,"stderr_truncated":false,"start":"cold","message":"execution timed out after 1s","code":"gateway_timeout"}`},
		{"memory", `{"code":"oom"}`, 200, `{"success":false,"stdout":"","stderr":"","exit_code":137,"error":"memory limit of 512 MiB exceeded","stdout_truncated":false,"stderr_truncated":false,"start":"cold"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httpapitest.Post(s, c.body)
			if w.Code != c.status || w.Body.String() != c.want {
				t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, c.status, c.want)
			}
			httpapitest.CheckCommon(t, w.Result())
			if id := httpapitest.TraceID(w); httpapitest.Ask(s, "GET", "/v1/executions/"+id, "").Code != 200 {
				t.Errorf("X-Trace-Id %s names no execution", id)
			}
		})
	}
	httpapitest.Refused(t, httpapitest.Post(s, `{"code":"blocked"}`), 503, "service_unavailable", "readiness")
	httpapitest.Refused(t, httpapitest.Post(s, `{"code":"blocked"}`, "Accept", httpapi.NDJSON), 503, "service_unavailable", "readiness")
}

// TestPlanRefusals is every row of the plans' table that a request can meet.
func TestPlanRefusals(t *testing.T) {
	s := httpapitest.New(t)
	for _, timeout := range []string{"3601", "99999999999999999999"} {
		httpapitest.Refused(t, httpapitest.Post(s, `{"code":"x","timeout":`+timeout+`}`), 429, "rate_limited", "timeout exceeds your plan's maximum of 3600 seconds")
	}
	s.Principal(t, "poor", "free", func(p *tenant.Principal) { p.Plan.Concurrency = 1 })
	s.Principal(t, "wide", "free", func(p *tenant.Principal) { p.Environment.Limits.CPU = 1.5 })
	s.Principal(t, "large", "free", func(p *tenant.Principal) {
		p.Environment.Limits = runtime.DefaultLimits()
		p.Environment.Limits.Memory = 2 << 30
	})
	for _, c := range []struct{ who, body, header, value, message string }{
		{"poor", `{"code":"x"}`, "Accept", httpapi.NDJSON, "Streaming execution requires a plan with streaming, such as pro or enterprise. Your plan is free; upgrade to pro."},
		{"poor", `{"code":"x"}`, "Prefer", "respond-async", "Webhook delivery requires a plan with asynchronous delivery, such as pro or enterprise. Your plan is free; upgrade to pro."},
		{"poor", `{"code":"x","timeout":61}`, "", "", "timeout exceeds your plan's maximum of 60 seconds; ask for 60 or less. Your plan is free; upgrade to pro for 3600 seconds."},
		{"wide", `{"code":"x"}`, "", "", "cpu of 1.5 exceeds the free plan's maximum of 1; upgrade to pro for 4 cores, or use a smaller environment"},
		{"large", `{"code":"x"}`, "", "", "memory of 2 GiB exceeds the free plan's maximum of 1 GiB; upgrade to pro for 4 GiB, or use a smaller environment"},
	} {
		httpapitest.Refused(t, httpapitest.Post(s, c.body, "Authorization", "Bearer "+gatewaytest.Token(c.who), c.header, c.value), 429, "rate_limited", c.message)
	}
}

func TestScopes(t *testing.T) {
	s := httpapitest.New(t)
	for who, scopes := range map[string][]tenant.Scope{"runs": {tenant.ScopeExecute}, "reads": {tenant.ScopeRead}, "admin": {tenant.ScopeAdmin}} {
		s.Principal(t, who, "pro", func(p *tenant.Principal) { p.Key.Scopes = scopes })
	}
	const unknown = "/v1/executions/trc_00000000000000000000000000000000"
	for _, c := range []struct {
		method, path string
		scope        string
	}{
		{"POST", "/v1/sandbox/execute", "runs"}, {"POST", unknown + "/cancel", "runs"}, {"DELETE", unknown, "runs"},
		{"GET", "/v1/executions", "reads"}, {"GET", unknown, "reads"}, {"GET", unknown + "/output", "reads"}, {"GET", unknown + "/file?path=a", "reads"}, {"GET", "/v1/usage", "reads"},
	} {
		for _, who := range []string{"runs", "reads", "admin"} {
			w := httpapitest.Ask(s, c.method, c.path, `{"code":"x"}`, "Authorization", "Bearer "+gatewaytest.Token(who))
			if who != c.scope {
				httpapitest.Refused(t, w, 403, "forbidden", "scope")
			} else if w.Code == 403 || w.Code == 401 {
				t.Errorf("%s may not %s %s: %s", who, c.method, c.path, w.Body)
			}
		}
	}
}

func TestNoExecutorHasRoom(t *testing.T) {
	s := httpapitest.New(t)
	s.Executor.Refuse(fault.New(fault.Unavailable, "every executor is full"))
	for _, header := range []string{"application/json", httpapi.NDJSON} {
		w := httpapitest.Post(s, `{"code":"x"}`, "Accept", header)
		httpapitest.Refused(t, w, 503, "service_unavailable", "")
		if w.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	w := httpapitest.Post(s, `{"code":"x"}`, "Prefer", "respond-async")
	httpapitest.Refused(t, w, 503, "service_unavailable", "")
}

func TestRunOutlivesItsClient(t *testing.T) {
	s := httpapitest.New(t)
	srv := httptest.NewServer(s)
	defer srv.Close()
	for _, accept := range []string{"application/json", httpapi.NDJSON} {
		t.Run(accept, func(t *testing.T) {
			started, finish := make(chan string), make(chan struct{})
			s.Executor.Program("wait", func(r *gatewaytest.Run) int { started <- r.TraceID; <-finish; return 0 })
			ctx, hangUp := context.WithCancel(t.Context())
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/sandbox/execute", strings.NewReader(`{"code":"wait"}`))
			r.Header = http.Header{"Authorization": {"Bearer " + httpapitest.Key}, "Content-Type": {"application/json"}, "Accept": {accept}}
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
			w := httpapitest.Ask(s, "GET", "/v1/executions/"+id+"/output", "") // until its end
			if !strings.Contains(w.Body.String(), `"type":"result","trace_id":"`+id+`","status":"success"`) {
				t.Errorf("it ended as %s", w.Body)
			}
		})
	}
}

// A run whose thread could not be saved has failed, in each place that says so.
func TestAnswerAndRecordAgreeOnSuccess(t *testing.T) {
	s := httpapitest.New(t)
	s.Executor.Program("unsaved", func(r *gatewaytest.Run) int {
		r.Result = &execution.Result{Status: execution.Failed, Error: "the thread was not saved"}
		return 0
	})
	answer := httpapitest.Post(s, `{"code":"unsaved"}`)
	if body := answer.Body.String(); !strings.Contains(body, `"success":false`) || !strings.Contains(body, "not saved") {
		t.Errorf("answered %s", body)
	}
	record := httpapitest.Ask(s, "GET", "/v1/executions/"+httpapitest.TraceID(answer), "")
	if body := record.Body.String(); !strings.Contains(body, `"status":"failed"`) || !strings.Contains(body, "not saved") {
		t.Errorf("recorded %s", body)
	}
}
