package redteam

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestCasesAreWhole(t *testing.T) {
	all := Cases()
	seen := map[string]bool{}
	for _, c := range all {
		if !regexp.MustCompile(`^[a-z]+/[a-z0-9-]+$`).MatchString(c.ID) || seen[c.ID] {
			t.Errorf("%q is no id of its own", c.ID)
		}
		seen[c.ID] = true
		if c.Tries == "" || c.Holds == "" || c.run == nil || strings.HasSuffix(c.Tries, ".") {
			t.Errorf("%s is not whole: %+v", c.ID, c)
		}
		switch c.Severity {
		case Critical, High, Medium, Low:
		default:
			t.Errorf("%s has the severity %q", c.ID, c.Severity)
		}
	}
}

func TestMatch(t *testing.T) {
	all := []Case{{ID: "a/one"}, {ID: "a/two"}, {ID: "b/one"}}
	for pattern, want := range map[string]string{"": "a/one a/two b/one", "a": "a/one a/two", "*/one": "a/one b/one", "b/one,a/*": "b/one a/one a/two", "a,a/one": "a/one a/two"} {
		got, err := Match(all, pattern)
		var ids []string
		for _, c := range got {
			ids = append(ids, c.ID)
		}
		if err != nil || strings.Join(ids, " ") != want {
			t.Errorf("%q: %q, %v", pattern, ids, err)
		}
	}
	for _, pattern := range []string{"c", "a/three", "[", "a,"} {
		if got, err := Match(all, pattern); err == nil {
			t.Errorf("%q matches %v", pattern, got)
		}
	}
}

// TestCleanUp checks that what was made is removed when a run is cut short.
func TestCleanUp(t *testing.T) {
	var made, removed, disabled, plans atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		switch {
		case r.Method == http.MethodGet && strings.Count(path, "/") == 4:
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Method == http.MethodGet && strings.HasSuffix(path, "/environments"):
			_, _ = io.WriteString(w, `{"data":[{"id":"env_1","name":"x"}]}`)
			return
		case r.Method == http.MethodGet && strings.HasSuffix(path, "/keys"):
			_, _ = io.WriteString(w, `{"data":[{"id":"key_1"},{"id":"key_2","revoked_at":"2026-01-01T00:00:00Z"}]}`)
			return
		case r.Method == http.MethodGet && path == "/v1/sandboxes":
			_, _ = io.WriteString(w, `{"data":[{"sandbox_id":"sb-1"}]}`)
			return
		case r.Method == http.MethodPost:
			made.Add(1)
		case r.Method == http.MethodDelete && strings.HasPrefix(path, "/v1/admin/plans/"):
			plans.Add(1)
		case r.Method == http.MethodDelete:
			removed.Add(1)
			if strings.HasSuffix(path, "key_2") {
				t.Error("a key was revoked twice")
			}
		case r.Method == http.MethodPatch:
			disabled.Add(1)
		}
		_, _ = io.WriteString(w, `{"id":"x_1","key":"k","data":[]}`)
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	second := false
	cases := []Case{
		{ID: "a/one", run: func(ctx context.Context, _ *arena) error { cancel(); <-ctx.Done(); return ctx.Err() }},
		{ID: "a/two", run: func(context.Context, *arena) error { second = true; return nil }},
	}
	report, err := Run(ctx, Options{URL: s.URL, Key: "k", Cases: cases, Parallel: 1})
	if !errors.Is(err, context.Canceled) || len(report.Results) != 0 || second {
		t.Errorf("%+v, %v, second case: %v", report, err, second)
	}
	// Of each tenant: a sandbox, a key, an environment.
	if made.Load() == 0 || removed.Load() != 6 || disabled.Load() != 2 || plans.Load() != 2 {
		t.Errorf("%d made, %d removed, %d tenants disabled, %d plans removed", made.Load(), removed.Load(), disabled.Load(), plans.Load())
	}
}

// TestNotRun checks that Run skips a case and names the missing setting if the server cannot reach
// the attacker's model.
func TestNotRun(t *testing.T) {
	reached := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached = true
		if strings.HasSuffix(r.URL.Path, "/admin/models") {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, `{"error":"base_url must not lead to a private address"}`)
	}))
	defer s.Close()
	for url, want := range map[string]string{"http://192.0.2.1": "not run: needs an address", s.URL: "not run: needs model_allow"} {
		a, err := newArena(t.Context(), Options{URL: url, Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		r := try(t.Context(), a, Case{ID: "policy/denied", run: policyDenied})
		if r.Verdict != Skip || !strings.HasPrefix(r.Evidence, want) {
			t.Errorf("%s: %s", url, r.Line())
		}
		for _, do := range a.undone {
			_ = do(t.Context())
		}
	}
	if !reached {
		t.Error("the case did not call the server")
	}
}

// TestBusy checks that a second run does not disturb the first.
func TestBusy(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && !strings.HasPrefix(r.URL.Path, "/v1/admin/plans/") {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		_, _ = io.WriteString(w, `{"id":"ten_1","plan":"redteam","data":[{"id":"key_1","name":"redteam-other"}]}`)
	}))
	defer s.Close()
	_, err := Run(t.Context(), Options{URL: s.URL, Key: "k"})
	if err == nil || !strings.Contains(err.Error(), "another run is in progress") {
		t.Error(err)
	}
}

func outcome(run func(context.Context, *arena) error) Result {
	return try(context.Background(), nil, Case{ID: "g/x", Severity: High, Tries: "tries", Holds: "holds", run: run})
}

func TestReports(t *testing.T) {
	r := &Report{Server: "http://x", Took: time.Second, Results: []Result{
		outcome(func(context.Context, *arena) error { return nil }),
		outcome(func(context.Context, *arena) error { return found("saw <%s>\x1b[31m", "secret") }),
		outcome(func(context.Context, *arena) error { return skip("it is off") }),
		outcome(func(context.Context, *arena) error { return io.ErrUnexpectedEOF }),
	}}
	var text, raw, junit bytes.Buffer
	if err := errors.Join(r.Text(&text), r.JSON(&raw), r.JUnit(&junit)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PASS  g/x", "FAIL  g/x", "saw <secret>�[31m", "SKIP  g/x", "it is off", "could not be tried: unexpected EOF", "1 passed, 2 failed, 1 skipped"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &text)
		}
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Error("the text has control characters")
	}
	var j jsonReport
	if err := json.Unmarshal(raw.Bytes(), &j); err != nil || j.Passed != 1 || j.Failed != 2 || j.Skipped != 1 || j.Cases[1].Verdict != Fail || j.Cases[1].Group != "g" {
		t.Errorf("%+v, %v", j, err)
	}
	var x junitSuites
	if err := xml.Unmarshal(junit.Bytes(), &x); err != nil || x.Failures != 2 || x.Skipped != 1 || len(x.Suites) != 1 || x.Suites[0].Tests != 4 {
		t.Errorf("%+v, %v\n%s", x, err, &junit)
	}
	if strings.Count(junit.String(), "<failure ") != 2 || !strings.Contains(junit.String(), "&lt;secret&gt;") {
		t.Errorf("got %s", &junit)
	}
}
