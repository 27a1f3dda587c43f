package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/execution"
	"github.com/atoll-run/atoll/internal/tenant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-atoll-test"

// hostExecutor runs code with this machine's interpreters, with no isolation
// at all. It is for the tests of this package, whose own code is all it runs.
type hostExecutor struct {
	started chan struct{} // gets a token when a program runs; may be nil
}

type sinkWriter struct {
	stream execution.Stream
	sink   execution.Sink
	buf    *bytes.Buffer
	mu     chan struct{} // one token: the sink is called from one goroutine at a time
}

func (w sinkWriter) Write(p []byte) (int, error) {
	<-w.mu
	defer func() { w.mu <- struct{}{} }()
	w.buf.Write(p)
	if w.sink != nil {
		w.sink(w.stream, p)
	}
	return len(p), nil
}

func (x hostExecutor) Execute(ctx context.Context, req execution.Request, sink execution.Sink) (*execution.Execution, error) {
	limited, cancel := context.WithTimeout(ctx, req.Timeout)
	defer cancel()
	argv := map[execution.Language][]string{
		execution.Python: {"python3", "-uc"}, execution.Node: {"node", "-e"}, execution.Bash: {"bash", "-c"},
	}[req.Language]
	cmd := exec.CommandContext(limited, argv[0], append(argv[1:], req.Code)...)
	cmd.Env = os.Environ()
	for k, v := range req.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	mu := make(chan struct{}, 1)
	mu <- struct{}{}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = sinkWriter{execution.Stdout, sink, &stdout, mu}, sinkWriter{execution.Stderr, sink, &stderr, mu}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if x.started != nil {
		x.started <- struct{}{}
	}
	err := cmd.Wait()
	out := &execution.Execution{TraceID: req.TraceID, Status: execution.Success, Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: cmd.ProcessState.ExitCode()}
	switch {
	case ctx.Err() != nil:
		out.Status, out.ExitCode = execution.Cancelled, -1
	case limited.Err() != nil:
		out.Status, out.ExitCode = execution.Timeout, -1
	case err != nil:
		out.Status = execution.Failed
	}
	return out, nil
}

// executorFunc makes an executor of a function, for what a host's interpreter
// cannot be made to do.
type executorFunc func(context.Context, execution.Request, execution.Sink) (*execution.Execution, error)

func (f executorFunc) Execute(ctx context.Context, req execution.Request, sink execution.Sink) (*execution.Execution, error) {
	return f(ctx, req, sink)
}

func newServer(t testing.TB, x execution.Executor, change ...func(*Config)) *Server {
	t.Helper()
	cfg := Config{
		Executor: x,
		Auth:     tenant.NewDevKey(testKey, execution.Policy{MaxTimeout: time.Hour, Env: map[string]string{"FROM_ENVIRONMENT": "yes"}}),
		Metrics:  prometheus.NewRegistry(),
		Log:      slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
		Grace:    5 * time.Second,
	}
	for _, f := range change {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// post sends body as an authenticated execute request.
func post(s http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/sandbox/execute", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testKey)
	r.Header.Set("Content-Type", "application/json")
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

func TestExecuteAnswers(t *testing.T) {
	s := newServer(t, hostExecutor{})
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"python", `{"code":"print('Hello <b> & é')"}`, 200, `{"success":true,"stdout":"Hello <b> & é\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"node", `{"code":"console.error(1); process.exit(3)","language":"node"}`, 200, `{"success":false,"stdout":"","stderr":"1\n","exit_code":3,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"variables", `{"code":"echo $A$FROM_ENVIRONMENT","language":"bash","env_vars":{"A":"b"},"metadata":{"k":"v"},"timeout":5,"thread_id":null}`, 200, `{"success":true,"stdout":"byes\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"a request's variable wins", `{"code":"echo $FROM_ENVIRONMENT","language":"bash","env_vars":{"FROM_ENVIRONMENT":"no"}}`, 200, `{"success":true,"stdout":"no\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"invalid UTF-8", `{"code":"printf 'a\\xff\\xe2\\x82|\\xc3\\xa9\\x00'","language":"bash"}`, 200, `{"success":true,"stdout":"a���|é\u0000","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false}`},
		{"time-out", `{"code":"echo early; exec sleep 30","language":"bash","timeout":1}`, 504, `{"success":false,"stdout":"early\n","stderr":"","exit_code":-1,"error":"execution timed out after 1s","stdout_truncated":false,"stderr_truncated":false,"message":"execution timed out after 1s","code":"gateway_timeout"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := post(s, c.body)
			if w.Code != c.status || w.Body.String() != c.want {
				t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, c.status, c.want)
			}
			checkCommon(t, w.Result())
		})
	}
}

// checkCommon checks what is true of every answer.
func checkCommon(t *testing.T, r *http.Response) {
	t.Helper()
	id := r.Header.Get("X-Trace-Id")
	if rest, ok := strings.CutPrefix(id, "trc_"); !ok || len(rest) != 32 {
		t.Errorf("X-Trace-Id is %q", id)
	}
}

func TestExecutorFailures(t *testing.T) {
	var fail atomic.Pointer[error]
	s := newServer(t, executorFunc(func(_ context.Context, req execution.Request, _ execution.Sink) (*execution.Execution, error) {
		if req.Code == "panic" {
			panic("the secret of the executor")
		}
		return nil, *fail.Load()
	}))
	for _, accept := range []string{"application/json", ndjson} {
		err := errors.New("a secret path")
		fail.Store(&err)
		for _, code := range []string{"panic", "fail"} {
			w := post(s, `{"code":"`+code+`"}`, "Accept", accept)
			if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), `"error":"internal_error"`) {
				t.Errorf("%s %s: got %d %s", accept, code, w.Code, w.Body)
			}
			checkCommon(t, w.Result())
		}
	}
}

func TestRunOutlivesItsClient(t *testing.T) {
	for _, accept := range []string{"application/json", ndjson} {
		t.Run(accept, func(t *testing.T) {
			started, finish, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			s := newServer(t, executorFunc(func(ctx context.Context, _ execution.Request, _ execution.Sink) (*execution.Execution, error) {
				close(started)
				<-finish
				ended <- ctx.Err()
				return &execution.Execution{Status: execution.Success}, nil
			}))
			srv := httptest.NewServer(s)
			defer srv.Close()
			ctx, hangUp := context.WithCancel(t.Context())
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/sandbox/execute", strings.NewReader(`{"code":"x"}`))
			r.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Content-Type": {"application/json"}, "Accept": {accept}}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if res, err := srv.Client().Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			}()
			<-started
			hangUp()
			<-gone
			close(finish)
			if err := <-ended; err != nil {
				t.Errorf("the run's context ended with its client: %v", err)
			}
			s.runs.Wait()
		})
	}
}

func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
