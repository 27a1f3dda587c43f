package atoll

import (
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// serve serves every request with f, and returns a client of it.
func serve(t *testing.T, f http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return New(s.URL+"/", "sk-atoll-test")
}

func TestRequest(t *testing.T) {
	var got, body string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = r.Method+" "+r.URL.String(), string(text)
		if r.Header.Get("Authorization") != "Bearer sk-atoll-test" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %v", r.Header)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"env_1","name":"a/b","a field of a later version":1}`)
	})
	off := false
	e, err := c.ChangeEnvironment(t.Context(), "ac me", "a/b", EnvironmentChange{Permissions: &PermissionsChange{
		Network: &NetworkChange{Enabled: &off, AllowedHosts: &[]string{}},
	}})
	if err != nil || e.ID != "env_1" || e.Name != "a/b" {
		t.Errorf("got %+v %v", e, err)
	}
	// What was not given is left out, an empty list is given.
	if got != "PATCH /v1/admin/tenants/ac%20me/environments/a%2Fb" || body != `{"permissions":{"network":{"allowed_hosts":[],"enabled":false}}}` {
		t.Errorf("got %s %s", got, body)
	}
}

func TestError(t *testing.T) {
	status, body := http.StatusTooManyRequests, `{"error":"rate_limited","message":"too many","dimension":"concurrency","resets_at":"2026-01-31T12:00:00Z"}`
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Trace-Id", "trc_1")
		w.Header().Set("Location", "https://elsewhere.example")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	var e *Error
	if _, err := c.Tenants().All(t.Context(), 0); !errors.As(err, &e) ||
		*e != (Error{Status: 429, Code: ErrRateLimited, Message: "too many", Dimension: "concurrency", ResetsAt: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), TraceID: "trc_1"}) {
		t.Errorf("got %+v", e)
	}
	// Something between client and server, and a redirect, which is not followed.
	c = c.With(WithRetries(0))
	codes := map[int]Code{502: ErrBadGateway, 307: "no code"}
	for status, body = range map[int]string{502: "<html>", 307: ""} {
		if err := c.DeletePlan(t.Context(), "p"); !errors.As(err, &e) || e.Status != status || e.Code != codes[status] || !strings.Contains(e.Message, "the server answered") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := New("http://127.0.0.1:1", "k").Tenants().All(t.Context(), 0); err == nil || strings.Contains(err.Error(), "/v1/") {
		t.Errorf("got %v", err)
	}
}

func TestList(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("prefix") != "a" {
			t.Errorf("got %v", q)
		}
		_, _ = io.WriteString(w, map[string]string{
			"":  `{"data":[{"thread_id":"a1"},{"thread_id":"a2"}],"next_page":"n"}`,
			"n": `{"data":[{"thread_id":"a3"}],"next_page":null}`,
		}[q.Get("page")])
	})
	for limit, want := range map[int]int{0: 3, 1: 1, 2: 2, 3: 3, 9: 3} {
		query := url.Values{"prefix": {"a"}}
		all, err := c.Threads(query).All(t.Context(), limit)
		if err != nil || len(all) != want || all[0].ThreadID != "a1" || len(query) != 1 {
			t.Errorf("at most %d: %+v %v", limit, all, err)
		}
	}
}

// TestPager checks that a pager reads each kind of list: with page tokens, with the last item's id, and
// with a single page.
func TestPager(t *testing.T) {
	broken := false
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		at := r.URL.Path + " " + q.Get("page") + q.Get("after")
		if broken && at == "/v1/containers c1" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, map[string]string{
			"/v1/threads ":         `{"data":[{"thread_id":"a1"}],"next_page":"n"}`,
			"/v1/threads n":        `{"data":[{"thread_id":"a2"}],"next_page":null}`,
			"/v1/containers ":      `{"data":[{"id":"c1"}],"has_more":true,"last_id":"c1"}`,
			"/v1/containers c1":    `{"data":[{"id":"c2"}],"has_more":false,"last_id":"c2"}`,
			"/v1/threads/t/files ": `{"files":[{"path":"f"}]}`,
		}[at])
	})
	first, err := c.Threads(nil).Page(t.Context(), "")
	if err != nil || len(first.Data) != 1 || first.Next != "n" {
		t.Errorf("the first page is %+v, %v", first, err)
	}
	last, err := c.Threads(nil).Page(t.Context(), first.Next)
	if err != nil || len(last.Data) != 1 || last.Data[0].ThreadID != "a2" || last.Next != "" {
		t.Errorf("the last page is %+v, %v", last, err)
	}
	containers, err := collect(c.Containers(nil).Each(t.Context()))
	if err != nil || len(containers) != 2 || containers[1].ID != "c2" {
		t.Errorf("the containers are %+v, %v", containers, err)
	}
	files, err := c.ThreadFiles("t").List("").All(t.Context(), 0)
	if err != nil || len(files) != 1 || files[0].Path != "f" {
		t.Errorf("the files are %+v, %v", files, err)
	}
	broken = true
	if containers, err = collect(c.Containers(nil).Each(t.Context())); err == nil || len(containers) != 1 {
		t.Errorf("before an error there come %+v, %v", containers, err)
	}
	if all, err := c.Containers(nil).All(t.Context(), 1); err != nil || len(all) != 1 {
		t.Errorf("the first one is %+v, %v", all, err)
	}
}

func TestFollowProcess(t *testing.T) {
	body := `{"type":"output","stream":"stdout","data":"aGk=","cursor":2}` + "\n" + `{"type":"exit","exit_code":0,"cursor":2}` + "\n"
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/sandboxes/dev/processes/p1/output" || r.URL.RawQuery != "after=0&encoding=base64&follow=true&session=s" {
			t.Errorf("got %s", r.URL)
		}
		_, _ = io.WriteString(w, body)
	})
	ref := SandboxRef{Session: "s", Name: "dev"}
	got, err := collect(c.FollowProcess(t.Context(), ref, "p1", 0, true))
	if err != nil || len(got) != 2 || got[0].Data != "hi" || got[1].ExitCode == nil || *got[1].ExitCode != 0 {
		t.Errorf("got %+v %v", got, err)
	}
	body = body[:20]
	if _, err := collect(c.With(WithReconnect(false)).FollowProcess(t.Context(), ref, "p1", 0, true)); !errors.Is(err, ErrConnection) {
		t.Errorf("a stream that breaks off ends with %v", err)
	}
}

// collect reads a stream to its end.
func collect[T any](events iter.Seq2[T, error]) (all []T, err error) {
	for ev, err := range events {
		if err != nil {
			return all, err
		}
		all = append(all, ev)
	}
	return all, nil
}

func TestFiles(t *testing.T) {
	var got string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.String() + " " + string(text)
		_, _ = io.WriteString(w, "{}")
	})
	ref := SandboxRef{Session: "s", Name: "dev"}
	if _, err := c.SandboxFiles(ref).Write(t.Context(), "/a b", 0o755, strings.NewReader("\x00\xff")); err != nil || got != "PUT /v1/sandboxes/dev/files?mode=755&path=%2Fa+b&session=s \x00\xff" {
		t.Errorf("got %q %v", got, err)
	}
	if _, err := c.ThreadFiles("t").Write(t.Context(), "/a b/c#d", strings.NewReader("x")); err != nil || got != "PUT /v1/threads/t/files/a%20b/c%23d x" {
		t.Errorf("got %q %v", got, err)
	}
	var out strings.Builder
	if err := c.ThreadFiles("t").Read(t.Context(), "x", &out); err != nil || out.String() != "{}" {
		t.Errorf("got %q %v", out.String(), err)
	}
}
