package execute_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func TestBadBodies(t *testing.T) {
	s := httpapitest.New(t)
	for _, c := range []struct{ name, body, want string }{
		{"empty", ``, "the request body is empty"},
		{"blank", "  \n", "the request body is empty"},
		{"not JSON", `hello`, "not valid JSON"},
		{"null", `null`, "must be a JSON object"},
		{"array", `[]`, "must be a JSON object"},
		{"string", `"code"`, "must be a JSON object"},
		{"truncated", `{"code":"pri`, "it ends in the middle of a value"},
		{"truncated after a field", `{"code":"x"`, "it ends in the middle of a value"},
		{"trailing comma", `{"code":"x",}`, "not valid JSON (at byte"},
		{"trailing data", `{"code":"x"} {}`, "not valid JSON (at byte"},
		{"comment", `{"code":"x"/**/}`, "not valid JSON"},
		{"single quotes", `{'code':'x'}`, "not valid JSON"},
		{"control character", "{\"code\":\"a\nb\"}", "not valid JSON"},
		{"byte order mark", "\ufeff{\"code\":\"x\"}", "not valid JSON"},
		{"UTF-16", "{\x00\"\x00", "not valid JSON"},
		{"invalid UTF-8", "{\"code\":\"\xff\"}", "must be valid UTF-8"},
		{"invalid UTF-8 in a name", "{\"\xc3\":1}", "must be valid UTF-8"},
		{"half a surrogate pair", `{"code":"\ud800"}`, "not valid JSON"},
		{"deep nesting", `{"code":` + strings.Repeat("[", 20000), "more than 100 levels deep"},
		{"deep nesting elsewhere", `{"thread_id":` + strings.Repeat("[", 20000), "more than 100 levels deep"},

		{"unknown field", `{"code":"x","foo":1}`, `unknown field "foo"`},
		{"unknown field in other case", `{"Code":"x"}`, `unknown field "Code"`},
		{"unknown field with a slash", `{"code":"x","a/b~c":1}`, `unknown field "a/b~c"`},
		{"unknown empty field", `{"code":"x","":1}`, `unknown field ""`},
		{"unknown field of great length", `{"` + strings.Repeat("é", 100_000) + `":1}`, `unknown field "éé`},
		{"duplicate field", `{"code":"x","code":"y"}`, `duplicate field "code"`},
		{"duplicate variable", `{"code":"x","env_vars":{"A":"1","A":"2"}}`, `duplicate field "A"`},
		{"duplicate unknown field", `{"foo":1,"foo":1}`, `unknown field "foo"`},

		{"no code", `{}`, "code is required"},
		{"code null", `{"code":null}`, "code is required"},
		{"code empty", `{"code":""}`, "code must be between 1 byte and 1 MB"},
		{"code a number", `{"code":1}`, "code must be a string"},
		{"code an object", `{"code":{}}`, "code must be a string"},
		{"code over 1 MB", `{"code":"` + strings.Repeat("#", execution.MaxCode+1) + `"}`, "code must be between 1 byte and 1 MB"},

		{"language unknown", `{"code":"x","language":"ruby"}`, "language must be one of"},
		{"language empty", `{"code":"x","language":""}`, "language must be one of"},
		{"language a list", `{"code":"x","language":["python"]}`, "language must be a string"},

		{"timeout zero", `{"code":"x","timeout":0}`, "timeout must be at least 1 second"},
		{"timeout negative", `{"code":"x","timeout":-1}`, "timeout must be at least 1 second"},
		{"timeout very negative", `{"code":"x","timeout":-99999999999999999999}`, "timeout must be at least 1 second"},
		{"timeout with a fraction", `{"code":"x","timeout":1.5}`, "timeout must be an integer, in seconds"},
		{"timeout with a point", `{"code":"x","timeout":60.0}`, "timeout must be an integer, in seconds"},
		{"timeout a string", `{"code":"x","timeout":"60"}`, "timeout must be an integer, in seconds"},
		{"timeout a bool", `{"code":"x","timeout":true}`, "timeout must be an integer, in seconds"},

		{"variables a list", `{"code":"x","env_vars":[]}`, "env_vars must be an object whose values are strings"},
		{"variables a string", `{"code":"x","env_vars":"A=1"}`, "env_vars must be an object whose values are strings"},
		{"variable a number", `{"code":"x","env_vars":{"A":1}}`, "env_vars must be an object whose values are strings"},
		{"variable null", `{"code":"x","env_vars":{"A":null}}`, "env_vars must be an object whose values are strings"},
		{"variable reserved", `{"code":"x","env_vars":{"PATH":"/"}}`, `"PATH" is reserved`},
		{"variable lower-case", `{"code":"x","env_vars":{"a":"1"}}`, `env_vars name "a" must be`},
		{"variable with NUL", `{"code":"x","env_vars":{"A":"\u0000"}}`, "NUL"},
		{"variables too many after merging", `{"code":"x","env_vars":{` + vars(50) + `}}`, "together with those of the environment"},

		{"metadata a number", `{"code":"x","metadata":7}`, "metadata must be an object whose values are strings"},
		{"metadata nested", `{"code":"x","metadata":{"a":{}}}`, "metadata must be an object whose values are strings"},
		{"metadata null inside", `{"code":"x","metadata":{"a":null}}`, "metadata must be an object whose values are strings"},
		{"metadata with a long key", `{"code":"x","metadata":{"` + strings.Repeat("k", 41) + `":"v"}}`, "must be 1 to 40 characters"},

		{"partial no boolean", `{"code":"x","partial":"yes"}`, "partial must be"},
		{"thread empty", `{"code":"x","thread_id":""}`, "thread_id must not be empty"},
		{"thread a number", `{"code":"x","thread_id":7}`, "thread_id must be a string"},
		{"thread that begins badly", `{"code":"x","thread_id":"-t"}`, "thread_id must be 1 to 128 letters"},
		{"thread too long", `{"code":"x","thread_id":"` + strings.Repeat("t", 129) + `"}`, "thread_id must be 1 to 128 letters"},
		{"thread that leads up", `{"code":"x","thread_id":"../t"}`, "thread_id must be 1 to 128 letters"},
		{"webhook", `{"code":"x","webhook_url":"https://example.org"}`, "webhook_url needs Prefer: respond-async"},
		{"webhook a number", `{"code":"x","webhook_url":1}`, "webhook_url must be a string"},
		{"paths", `{"code":"x","sub_paths":["/data/other/x"]}`, "does not mount the connection \"other\""},
		{"paths that lead up", `{"code":"x","sub_paths":["/data/a/../b"]}`, "must not contain . or .."},
		{"paths a number", `{"code":"x","sub_paths":7}`, "sub_paths must be an array of strings"},
		{"a path that is none", `{"code":"x","sub_paths":[null]}`, "sub_paths must be an array of strings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			httpapitest.Refused(t, httpapitest.Post(s, c.body), 400, "validation_error", c.want)
		})
	}
}

// vars returns n variables as the inside of a JSON object.
func vars(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"V%d":""`, i)
	}
	return strings.Join(all, ",")
}

func TestBadRequests(t *testing.T) {
	s := httpapitest.New(t)
	const good = `{"code":"x"}`
	t.Run("content type", func(t *testing.T) {
		for _, ct := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "application/json;;", "multipart/form-data; boundary=x"} {
			httpapitest.Refused(t, httpapitest.Post(s, good, "Content-Type", ct), 415, "unsupported_media_type", "Content-Type must be application/json")
		}
		httpapitest.Refused(t, httpapitest.Post(s, good, "Content-Encoding", "gzip"), 415, "unsupported_media_type", "Content-Encoding")
	})
	t.Run("key", func(t *testing.T) {
		for _, key := range []string{"", "Bearer", "Bearer ", "Basic " + httpapitest.Key, httpapitest.Key, "Bearer sk-atoll-wrong", "Bearer " + httpapitest.Key + "x", "Bearer " + httpapitest.Key[:len(httpapitest.Key)-1]} {
			w := httpapitest.Post(s, "this is not read", "Authorization", key)
			httpapitest.Refused(t, w, 401, "unauthorized", "API key")
			if w.Header().Get("WWW-Authenticate") == "" {
				t.Error("no WWW-Authenticate")
			}
		}
	})
	t.Run("twice", func(t *testing.T) {
		for name, status := range map[string]int{"Authorization": 401, "Content-Type": 415} {
			r := httptest.NewRequest("POST", "/v1/sandbox/execute", strings.NewReader(good))
			r.Header = http.Header{"Authorization": {"Bearer " + httpapitest.Key}, "Content-Type": {"application/json"}}
			r.Header[name] = append(r.Header[name], r.Header[name]...)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			httpapitest.Refused(t, w, status, map[int]string{401: "unauthorized", 415: "unsupported_media_type"}[status], "")
		}
	})
	t.Run("method", func(t *testing.T) {
		for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(method, "/v1/sandbox/execute", nil))
			httpapitest.Refused(t, w, 405, "method_not_allowed", "answers to POST")
			if allow := w.Header().Get("Allow"); allow != "POST" {
				t.Errorf("Allow is %q", allow)
			}
		}
	})
	t.Run("path", func(t *testing.T) {
		for _, path := range []string{"/v1", "/v1/sandbox/execute/", "/v1/sandbox/execute/x", "/v2/sandbox/execute", "/docs/none", "/.env"} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest("POST", path, nil))
			httpapitest.Refused(t, w, 404, "not_found", "/docs")
		}
	})
	t.Run("no path", func(t *testing.T) {
		r := httptest.NewRequest("CONNECT", "example.com:443", nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		httpapitest.Refused(t, w, 404, "not_found", "/docs")
	})
	t.Run("too large", func(t *testing.T) {
		body := `{"code":"` + strings.Repeat("#", httpapi.MaxBody) + `"}`
		httpapitest.Refused(t, httpapitest.Post(s, body), 413, "payload_too_large", "at most 8388608 bytes")
		r := httptest.NewRequest("POST", "/v1/sandbox/execute", iotest.OneByteReader(strings.NewReader("")))
		r.Body = io.NopCloser(strings.NewReader(body)) // of unknown length
		r.ContentLength = -1
		r.Header = http.Header{"Authorization": {"Bearer " + httpapitest.Key}, "Content-Type": {"application/json"}}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		httpapitest.Refused(t, w, 413, "payload_too_large", "at most 8388608 bytes")
	})
	t.Run("largest", func(t *testing.T) {
		s.Executor.Program(strings.Repeat("#", execution.MaxCode), func(*gatewaytest.Run) int { return 7 })
		body := `{"code":"` + strings.Repeat(`\u0023`, execution.MaxCode) + `"}`
		if w := httpapitest.Post(s, body); w.Code != 200 || !strings.Contains(w.Body.String(), `"exit_code":7`) {
			t.Errorf("got %d %.200s", w.Code, w.Body)
		}
	})
}

// TestBrokenBody sends bodies that end, or stop, before they are whole, on a
// real connection.
func TestBrokenBody(t *testing.T) {
	s := httpapitest.New(t)
	srv := httptest.NewServer(s)
	defer srv.Close()
	send := func(rest string, closeWrite bool) string {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/sandbox/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s", httpapitest.Key, rest)
		if closeWrite {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		res, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		return string(res)
	}
	// Clients that send all of it before they read are told why, too.
	for _, rest := range []string{"Content-Length: %d\r\n\r\n%s", "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"} {
		large := strings.Repeat("#", 3*httpapi.MaxBody)
		if res := send("Connection: close\r\n"+fmt.Sprintf(rest, len(large), large), false); !strings.HasPrefix(res, "HTTP/1.1 413 ") || !strings.Contains(res, `"payload_too_large"`) {
			t.Errorf("too large: got %.300q", res)
		}
	}
	if res := send("Connection: close\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", false); !strings.HasPrefix(res, "HTTP/1.1 413 ") {
		t.Errorf("too large, and asked first: got %.300q", res)
	}
	for name, rest := range map[string]string{
		"cut off":         "Content-Length: 100\r\n\r\n{\"code\":",
		"cut off chunk":   "Transfer-Encoding: chunked\r\n\r\n20\r\n{\"code\":",
		"malformed chunk": "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		if res := send(rest, true); !strings.HasPrefix(res, "HTTP/1.1 400 ") || !strings.Contains(res, "the request body ended early") {
			t.Errorf("%s: got %q", name, res)
		}
	}
}

// TestAClientThatDoesNotRead is no warning: it has closed the connection.
func TestAClientThatDoesNotRead(t *testing.T) {
	for _, c := range []struct {
		net  string
		warn bool
	}{{"tcp", false}, {"unix", true}} { // the other one is ours
		network := c.net
		var log bytes.Buffer
		s := httpapitest.New(t, func(c *httpapitest.Setup) {
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			c.Config.Operations = []httpapi.Operation{{
				Method: http.MethodGet, Path: "/x", Access: httpapi.Public, Serve: httpapi.Writes(func(call *httpapi.Call) error {
					call.W.WriteHeader(http.StatusOK)
					return fmt.Errorf("send: %w", &net.OpError{Op: "write", Net: network, Err: os.NewSyscallError("write", syscall.ECONNRESET)})
				}),
			}}
		})
		srv := httptest.NewServer(s)
		res, err := srv.Client().Get(srv.URL + "/x")
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		srv.Close()
		if err == nil {
			t.Error("half an answer looks whole")
		}
		if warned := log.Len() > 0; warned != c.warn {
			t.Errorf("%s: %q", c.net, log.String())
		}
	}
}
