package openapitest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/openapitest"
)

const traceID = "trc_sqcxkwvsuzxzwr7l2pwm"

// TestContradictions answers as no server may, and as one does.
func TestContradictions(t *testing.T) {
	const refusal = `{"error":"not_found","message":"no"}`
	for _, c := range []struct {
		name, method, path string
		status             int
		header             []string // by pairs; those of every answer are added
		body, says         string   // nothing to say of a good answer
	}{
		{"a page", "GET", "/v1/threads", 200, nil, `{"data":[],"next_page":null}`, ""},
		{"a page with too little", "GET", "/v1/threads", 200, nil, `{"data":[]}`, "next_page"},
		{"a page with too much", "GET", "/v1/threads", 200, nil, `{"data":[],"next_page":null,"more":1}`, "more"},
		{"of another type", "GET", "/v1/threads", 200, nil, `{"data":{},"next_page":null}`, "data"},
		{"no JSON", "GET", "/v1/threads", 200, nil, `data`, "is no JSON"},
		{"an unknown status", "GET", "/v1/threads", 418, nil, refusal, "the status is not declared"},
		{"another media type", "GET", "/v1/threads", 200, []string{"Content-Type", "text/html"}, ``, "media type"},
		{"an unknown header", "GET", "/v1/threads", 200, []string{"X-Secret", "1"}, `{"data":[],"next_page":null}`, "X-Secret"},
		{"a header omitted", "GET", "/v1/threads", 200, []string{"X-Trace-Id", ""}, `{"data":[],"next_page":null}`, "X-Trace-Id"},
		{"a header of another type", "GET", "/v1/threads", 503, []string{"Retry-After", "soon"}, refusal, "Retry-After"},
		{"a refusal", "GET", "/v1/threads/x", 404, nil, refusal, ""},
		{"a refusal in slashes", "DELETE", "/v1/threads/x/files/a/b", 404, nil, refusal, ""},
		{"another envelope", "GET", "/v1/threads/x", 404, nil, `{"detail":"no"}`, "detail"},
		{"no such path", "GET", "/v2/threads", 404, nil, refusal, ""},
		{"no such path, another envelope", "GET", "/v2/threads", 404, nil, `{"detail":"no"}`, "detail"},
		{"a body with nothing", "DELETE", "/v1/threads/x", 204, []string{"Content-Type", "application/json"}, ``, ""},
		{"bytes", "GET", "/v1/threads/x/files/a", 200, []string{"Content-Type", "application/octet-stream"}, "\x00", ""},
		{"lines", "GET", "/v1/executions/" + traceID + "/output", 200, []string{"Content-Type", "application/x-ndjson"}, `{"seq":1,"type":"keepalive"}` + "\n", ""},
		{"a line that is wrong", "GET", "/v1/executions/" + traceID + "/output", 200, []string{"Content-Type", "application/x-ndjson"}, `{"seq":"one","type":"stdout"}` + "\n", "seq"},
		{"an event that is wrong", "GET", "/v1/executions/" + traceID + "/output", 200, []string{"Content-Type", "text/event-stream"}, "id: 1\ndata: {}\n\n", "contradicts"},
		{"a line that is no event", "GET", "/v1/executions/" + traceID + "/output", 200, []string{"Content-Type", "text/event-stream"}, "date: 1\n", "no line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("X-Trace-Id", traceID)
				for i := 0; i < len(c.header); i += 2 {
					w.Header().Set(c.header[i], c.header[i+1])
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			check := func(by string, err error) {
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%s says %v", by, err)
				}
			}
			r := httptest.NewRequest(c.method, c.path, nil)
			check("the handler", openapitest.Serve(h, httptest.NewRecorder(), r))

			srv := httptest.NewServer(h)
			defer srv.Close()
			r, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := (&http.Client{Transport: openapitest.Transport{Base: srv.Client().Transport}}).Do(r)
			if err == nil {
				_, err = io.ReadAll(res.Body)
				_ = res.Body.Close()
			}
			check("the transport", err)
		})
	}
	if len(openapitest.Operations()) < 131 || openapitest.Called("listThreads")[200] == 0 {
		t.Errorf("%d operations, of which listThreads was called %v", len(openapitest.Operations()), openapitest.Called("listThreads"))
	}
}
