package channel

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// webs makes the calls of tests, and keeps them.
type webs struct {
	made []execution.WebCall
	err  error
}

func (w *webs) CallWeb(_ context.Context, c execution.WebCall) (execution.WebAnswer, error) {
	w.made = append(w.made, c)
	return execution.WebAnswer{Status: http.StatusTooManyRequests, RetryAfter: "7\r\nX: y", Body: []byte(`{"a":1}`)}, w.err
}

func newChannel(w execution.Web) *Channel {
	return &Channel{Calls: w, TraceID: "trc_1", Tenant: "ten_1", Access: &execution.WebAccess{Key: "key_1", Token: "secret"}, Log: slog.New(slog.DiscardHandler)}
}

// response reads what was answered to a request.
func response(t *testing.T, b []byte) (*http.Response, string) {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
	if err != nil {
		t.Fatalf("%v: %q", err, b)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || !bytes.HasSuffix(b, body) {
		t.Fatalf("%v: %q", err, b)
	}
	return r, string(body)
}

func TestCalls(t *testing.T) {
	w := &webs{}
	calls := newChannel(w)
	for request, want := range map[string]string{
		"GET /search HTTP/1.1\r\nHost: a\r\n\r\n":                                                         "405 method_not_allowed",
		"POST /v1/responses HTTP/1.1\r\nHost: a\r\n\r\n":                                                  "404 not_found",
		"POST /../search HTTP/1.1\r\nHost: a\r\n\r\n":                                                     "404 not_found",
		"POST /search HTTP/1.1\r\nHost: a\r\n\r\n":                                                        "401 unauthorized",
		"POST /search HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secre\r\n\r\n":                         "401 unauthorized",
		"POST /search HTTP/1.1\r\nHost: a\r\nAuthorization: Basic secret\r\n\r\n":                         "401 unauthorized",
		"POST /search HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\nContent-Length: 9\r\n\r\n{}": "400 validation_error",
		"nonsense":               "400 validation_error",
		"":                       "400 validation_error",
		"POST  HTTP/1.1\r\n\r\n": "400 validation_error",
	} {
		r, body := response(t, calls.Serve(t.Context(), []byte(request)))
		if status, code, _ := strings.Cut(want, " "); !strings.HasPrefix(r.Status, status) || !strings.Contains(body, `"error":"`+code+`"`) {
			t.Errorf("%q: %s %s", request, r.Status, body)
		}
	}
	if len(w.made) > 0 {
		t.Fatalf("made %+v", w.made)
	}
	for _, path := range []string{"/search", "/v1/search?x=y", "/fetch", "/v1/fetch"} {
		request := "POST " + path + " HTTP/1.1\r\nHost: a\r\nauthorization: bearer  secret \r\nContent-Length: 2\r\n\r\n{}"
		r, body := response(t, calls.Serve(t.Context(), []byte(request)))
		if r.StatusCode != http.StatusTooManyRequests || body != `{"a":1}` || r.Header.Get("Retry-After") != "7  X: y" || r.Header.Get("X") != "" {
			t.Errorf("%s: %s %v %s", path, r.Status, r.Header, body)
		}
	}
	want := execution.WebCall{TraceID: "trc_1", Tenant: "ten_1", Key: "key_1", Path: "/v1/fetch", Body: []byte("{}")}
	if len(w.made) != 4 || w.made[2].Path != want.Path || w.made[2].Key != want.Key || w.made[2].Tenant != want.Tenant || w.made[2].TraceID != want.TraceID || string(w.made[2].Body) != "{}" {
		t.Errorf("made %+v", w.made)
	}
	good := []byte("POST /search HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\nContent-Length: 2\r\n\r\n{}")
	w.err = fault.New(fault.Unavailable, "no gateway")
	if r, body := response(t, calls.Serve(t.Context(), good)); r.StatusCode != http.StatusBadGateway || !strings.Contains(body, "no gateway") {
		t.Errorf("without a gateway: %s %s", r.Status, body)
	}
	w.err = fault.New(fault.Internal, "secret detail")
	if r, body := response(t, calls.Serve(t.Context(), good)); r.StatusCode != http.StatusBadGateway || strings.Contains(body, "detail") {
		t.Errorf("after a failure: %s %s", r.Status, body)
	}
	w.err = nil
	calls.made.Store(maxCalls - 1)
	for _, made := range []int{7, 7} {
		calls.Serve(t.Context(), good)
		if len(w.made) != made {
			t.Errorf("%d calls were made", len(w.made))
		}
	}
}

func TestVariables(t *testing.T) {
	of := map[string]string{"A": "b"}
	env := Env(of, "secret", func(string) bool { return false })
	if len(of) != 1 || env["A"] != "b" || env["ATOLL_WEB_URL"] != "http://127.0.0.1:980" || env["PERPLEXITY_BASE_URL"] != env["ATOLL_WEB_URL"] || env["PERPLEXITY_API_KEY"] != "secret" || env["ATOLL_WEB_TOKEN"] != "secret" {
		t.Errorf("got %v", env)
	}
	for _, own := range []string{"PERPLEXITY_API_KEY", "PERPLEXITY_BASE_URL"} {
		env := Env(nil, "secret", func(name string) bool { return name == own })
		if env["PERPLEXITY_API_KEY"] != "" || env["PERPLEXITY_BASE_URL"] != "" || env["ATOLL_WEB_TOKEN"] != "secret" {
			t.Errorf("got %v where %s is set", env, own)
		}
	}
}

// FuzzCalls: whatever a program sends, it gets one HTTP response, and no call is made
// without its token.
func FuzzCalls(f *testing.F) {
	f.Add([]byte("POST /search HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\nContent-Length: 2\r\n\r\n{}"))
	f.Add([]byte("POST /fetch HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"))
	f.Add([]byte("POST http://b/search HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer\x00secret\r\n\r\n"))
	f.Fuzz(func(t *testing.T, request []byte) {
		w := &webs{}
		r, _ := response(t, newChannel(w).Serve(t.Context(), request))
		if len(w.made) > 0 && !bytes.Contains(request, []byte("secret")) || len(w.made) == 0 && r.StatusCode < 400 {
			t.Errorf("%q made %+v and got %s", request, w.made, r.Status)
		}
	})
}
