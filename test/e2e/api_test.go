package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

var traceID = regexp.MustCompile(`^trc_[a-z2-7]{20}$`)

// TestRefusals checks a few bad requests of each kind against the real server;
// the handler's own tests have every bound.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, body string
		header     http.Header
		status     int
		code       string // of the error
		message    string // part of it
	}{
		{"no key", `{"code":"1"}`, http.Header{"Authorization": nil}, 401, "unauthorized", "API key"},
		{"wrong key", `{"code":"1"}`, http.Header{"Authorization": {"Bearer sk-atoll-wrong"}}, 401, "unauthorized", ""},
		{"wrong scheme", `{"code":"1"}`, http.Header{"Authorization": {"Basic " + atolltest.Key}}, 401, "unauthorized", ""},
		{"wrong content type", `{"code":"1"}`, http.Header{"Content-Type": {"text/plain"}}, 415, "unsupported_media_type", "application/json"},
		{"no content type", `{"code":"1"}`, http.Header{"Content-Type": nil}, 415, "unsupported_media_type", ""},
		{"no body", "", nil, 400, "validation_error", ""},
		{"half a body", `{"code":"pri`, nil, 400, "validation_error", ""},
		{"two bodies", `{"code":"1"}{"code":"2"}`, nil, 400, "validation_error", ""},
		{"a list", `[]`, nil, 400, "validation_error", ""},
		{"no code", `{}`, nil, 400, "validation_error", "code is required"},
		{"empty code", `{"code":""}`, nil, 400, "validation_error", "code must be between 1 byte and 1 MB"},
		{"long code", `{"code":"` + strings.Repeat("#", 1<<20+1) + `"}`, nil, 400, "validation_error", "code must be between 1 byte and 1 MB"},
		{"code of another type", `{"code":1}`, nil, 400, "validation_error", "code must be a string"},
		{"body that is no UTF-8", "{\"code\":\"\xff\"}", nil, 400, "validation_error", "UTF-8"},
		{"huge body", `{"code":"` + strings.Repeat("#", 9<<20) + `"}`, nil, 413, "payload_too_large", ""},
		{"language", `{"code":"1","language":"ruby"}`, nil, 400, "validation_error", "language must be one of"},
		{"timeout 0", `{"code":"1","timeout":0}`, nil, 400, "validation_error", "timeout must be at least 1"},
		{"timeout of half a second", `{"code":"1","timeout":1.5}`, nil, 400, "validation_error", "timeout must be an integer"},
		{"timeout beyond the plan", `{"code":"1","timeout":3601}`, nil, 429, "rate_limited", "3600 seconds"},
		{"unknown field", `{"code":"1","colour":"red"}`, nil, 400, "validation_error", "colour"},
		{"field twice", `{"code":"1","code":"2"}`, nil, 400, "validation_error", "code"},
		{"thread that leads up", `{"code":"1","thread_id":"../x"}`, nil, 400, "validation_error", "thread_id"},
		{"lower-case variable", `{"code":"1","env_vars":{"a":"1"}}`, nil, 400, "validation_error", "env_vars"},
		{"reserved variable", `{"code":"1","env_vars":{"PATH":"/"}}`, nil, 400, "validation_error", "PATH"},
		{"variable of another type", `{"code":"1","env_vars":{"A":1}}`, nil, 400, "validation_error", "env_vars"},
		{"long metadata", `{"code":"1","metadata":{"k":"` + strings.Repeat("v", 257) + `"}}`, nil, 400, "validation_error", "256"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			r, err := shared(t).Post(t.Context(), []byte(c.body), c.header)
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != c.status || r.Reason() != c.code || !strings.Contains(r.Message, c.message) || r.Message == "" {
				t.Errorf("want %d %s with %q, got %d %s", c.status, c.code, c.message, r.Status, r.Body)
			}
			if !traceID.MatchString(r.Header.Get("X-Trace-Id")) {
				t.Errorf("X-Trace-Id is %q", r.Header.Get("X-Trace-Id"))
			}
		})
	}
}

// TestAccepted checks requests at the bounds that are to be accepted.
func TestAccepted(t *testing.T) {
	s := shared(t)
	for _, c := range []struct{ name, body, stdout string }{
		{"nulls", `{"code":"print(1)","language":null,"timeout":null,"env_vars":null,"metadata":null}`, "1\n"},
		{"longest code", `{"code":"print(2)` + strings.Repeat("#", 1<<20-8) + `"}`, "2\n"},
		{"escapes", `{"code":"print(\u0027\u00e9\ud83d\udc1a\u0027)"}`, "é🐚\n"},
		{"metadata", `{"code":"print(3)","metadata":{"a":"b"}}`, "3\n"},
		{"longest timeout", `{"code":"print(4)","timeout":3600}`, "4\n"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			r, err := s.Post(t.Context(), []byte(c.body), nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != http.StatusOK || r.Stdout != c.stdout || !r.Success {
				t.Error(r)
			}
			var fields map[string]any
			if err := json.Unmarshal(r.Body, &fields); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"success", "stdout", "stderr", "exit_code", "error", "stdout_truncated", "stderr_truncated"} {
				if _, ok := fields[name]; !ok {
					t.Errorf("the answer lacks %s: %s", name, r.Body)
				}
			}
			if fields["error"] != nil {
				t.Errorf("error is %v, not null", fields["error"])
			}
		})
	}
}

// TestPages checks what else the server answers.
func TestPages(t *testing.T) {
	s := shared(t)
	for _, c := range []struct {
		method, path string
		status       int
		part         string
	}{
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/readyz", 200, "ready"},
		{"GET", "/metrics", 200, "atoll_pool_idle"},
		{"GET", "/openapi.json", 200, "/v1/sandbox/execute"},
		{"GET", "/docs", 200, "html"},
		{"GET", "/nothing", 404, "not_found"},
		{"GET", "/v1/sandbox/execute", 405, "method_not_allowed"},
		{"DELETE", "/v1/sandbox/execute", 405, "method_not_allowed"},
		{"POST", "/healthz", 405, "method_not_allowed"},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != c.status || !bytes.Contains(body, []byte(c.part)) {
				t.Errorf("%d %v %.300s", res.StatusCode, err, body)
			}
			if !traceID.MatchString(res.Header.Get("X-Trace-Id")) {
				t.Errorf("X-Trace-Id is %q", res.Header.Get("X-Trace-Id"))
			}
		})
	}
}
