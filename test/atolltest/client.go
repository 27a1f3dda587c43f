package atolltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// Languages as requests name them.
const (
	Python = "python"
	Node   = "node"
	Bash   = "bash"
)

// Program is what a test wants run.
type Program struct {
	Language string            `json:"language,omitempty"`
	Code     string            `json:"code"`
	Timeout  int               `json:"timeout,omitempty"` // seconds
	Env      map[string]string `json:"env_vars,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Result is an answer of POST /v1/sandbox/execute, of any status.
type Result struct {
	Status  int // of HTTP
	Header  http.Header
	Body    []byte
	Elapsed time.Duration

	Success         bool    `json:"success"`
	Stdout          string  `json:"stdout"`
	Stderr          string  `json:"stderr"`
	ExitCode        int     `json:"exit_code"`
	Error           *string `json:"error"`
	StdoutTruncated bool    `json:"stdout_truncated"`
	StderrTruncated bool    `json:"stderr_truncated"`
	Message         string  `json:"message"`
	Code            string  `json:"code"`
}

// Reason is the answer's error, "" when there is none.
func (r *Result) Reason() string {
	if r.Error == nil {
		return ""
	}
	return *r.Error
}

func (r *Result) String() string {
	const most = 2000
	clip := func(s string) string {
		if len(s) > most {
			return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
		}
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("HTTP %d, exit code %d, error %q, truncated %v %v, %v\nstdout %s\nstderr %s",
		r.Status, r.ExitCode, r.Reason(), r.StdoutTruncated, r.StderrTruncated, r.Elapsed.Round(time.Millisecond), clip(r.Stdout), clip(r.Stderr))
}

// Run executes a program and fails the test if there is no answer to it.
func (s *Server) Run(t testing.TB, p Program) *Result {
	t.Helper()
	r, err := s.Execute(t.Context(), p)
	if err != nil {
		t.Fatalf("execute: %v\n%s", err, s.Log())
	}
	return r
}

// Execute executes a program; an answer of any status is a Result.
func (s *Server) Execute(ctx context.Context, p Program) (*Result, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return s.Post(ctx, body, nil)
}

// answerTime is longer than any program of the tests may take.
const answerTime = 5 * time.Minute

// Post sends a body to the execute endpoint with the usual headers, changed by
// header; a header without values is left out.
func (s *Server) Post(ctx context.Context, body []byte, header http.Header) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/sandbox/execute", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + Key}, "Content-Type": {"application/json"}}
	for name, values := range header {
		if req.Header.Del(name); len(values) > 0 {
			req.Header[name] = values
		}
	}
	begun := time.Now()
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	r := &Result{Status: res.StatusCode, Header: res.Header}
	if r.Body, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	r.Elapsed = time.Since(begun)
	if err := json.Unmarshal(r.Body, r); err != nil {
		return nil, errors.Join(err, fmt.Errorf("HTTP %d: %.200s", r.Status, r.Body))
	}
	return r, nil
}

// CheckHealthy fails the test unless the server answers and the next execution
// is a clean one in each language.
func (s *Server) CheckHealthy(t testing.TB) {
	t.Helper()
	if status, err := s.Get(t.Context(), "/healthz"); status != http.StatusOK {
		t.Fatalf("/healthz answers %d: %v\n%s", status, err, s.Log())
	}
	for _, p := range []Program{
		{Language: Python, Code: "import os; print(sorted(os.listdir('/tmp')), sorted(os.listdir('.')), len(os.listdir('/proc/self/fd')))"},
		{Language: Bash, Code: "echo $(ls /tmp) $(ls) $(ls /dev/shm)"},
	} {
		want := map[string]string{Python: "[] ['main.py'] 4\n", Bash: "main.sh\n"}[p.Language]
		if r := s.Run(t, p); r.Status != http.StatusOK || r.Stdout != want || r.Stderr != "" || r.ExitCode != 0 {
			t.Fatalf("the next %s execution is not clean: %v", p.Language, r)
		}
	}
}
