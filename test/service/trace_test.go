package service

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/atoll-run/atoll/test/atolltest"
)

// spans takes OTLP over HTTP, as a collector does.
type spans struct {
	*httptest.Server

	mu   sync.Mutex
	took map[string][]*otlp.Span // guarded by mu; by trace id, in hexadecimal
	raw  bytes.Buffer            // guarded by mu
	news chan struct{}           // guarded by mu; closed and made anew with each message
}

func collect(t *testing.T) *spans {
	t.Helper()
	c := &spans{took: map[string][]*otlp.Span{}, news: make(chan struct{})}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var message collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &message)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		for _, rs := range message.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					id := hex.EncodeToString(s.GetTraceId())
					c.took[id] = append(c.took[id], s)
				}
			}
		}
		close(c.news)
		c.news = make(chan struct{})
	}))
	t.Cleanup(c.Close)
	return c
}

// await returns the spans of a trace once they are as wanted below the caller's.
func (c *spans) await(t *testing.T, trace, want string) []*otlp.Span {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		c.mu.Lock()
		got, next := slices.Clone(c.took[trace]), c.news
		c.mu.Unlock()
		drawn := "\n" + tree(got, caller)
		if drawn == want {
			return got
		}
		select {
		case <-next:
		case <-late:
			t.Fatalf("%d spans; got%swant%s", len(got), drawn, want)
		}
	}
}

// caller is the span that the test's requests say they belong to.
const caller = "b7ad6b7169203331"

// tree draws what is below a span: each name, deeper by one step than its
// parent's. Of siblings the one that began first comes first. Who records the
// end of a run that is streamed is a race: the record is drawn only where no client
// follows.
func tree(all []*otlp.Span, parent string) string {
	var below []*otlp.Span
	for _, s := range all {
		if hex.EncodeToString(s.GetParentSpanId()) == parent {
			below = append(below, s)
		}
	}
	slices.SortFunc(below, func(a, b *otlp.Span) int {
		return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano()))
	})
	followed := slices.ContainsFunc(all, func(s *otlp.Span) bool { return s.GetName() == "execution.follow" })
	var out strings.Builder
	for _, s := range below {
		if followed && s.GetName() == "execution.conclude" {
			continue
		}
		fmt.Fprintln(&out, s.GetName())
		for line := range strings.Lines(tree(all, hex.EncodeToString(s.GetSpanId()))) {
			out.WriteString("  " + line)
		}
	}
	return out.String()
}

// traces checks that all that is done for a request is one tree below the
// caller's span, from the request to the guest, and tells no secrets.
func traces(t *testing.T) {
	c := collect(t)
	o := atolltest.Options{Env: []string{"ATOLL_TRACE_ENDPOINT=" + c.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "ATOLL_SHUTDOWN_GRACE=1ms", "ATOLL_ON_EXIT=detach"}}
	s := atolltest.Start(t, o)
	o.Data = s.Keep(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const secret = "geheimnis"
	execute := func(trace, code string, header http.Header, seconds int) *atolltest.Answer {
		t.Helper()
		header.Set("Traceparent", "00-"+trace+"-"+caller+"-01")
		a, err := s.Call(ctx, atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{
			"code": code, "env_vars": map[string]string{"NAME": secret}, "timeout": seconds,
		}, header)
		if err != nil || a.Status >= 300 {
			t.Fatalf("%v, %v", a, err)
		}
		return a
	}
	const run = `
      execution.run
        execution.wait
        sandbox.claim
        guest.run
        execution.finish
`
	for name, test := range map[string]struct {
		trace  string
		header http.Header
		want   string
	}{
		"inline": {strings.Repeat("1", 32), http.Header{}, `
POST /v1/sandbox/execute
  execution.execute
    execution.admit
    execution.start` + run + `    execution.conclude
`},
		"stream": {strings.Repeat("2", 32), http.Header{"Accept": {"application/x-ndjson"}}, `
POST /v1/sandbox/execute
  execution.execute
    execution.admit
    execution.start` + run + `  execution.follow
`},
		"async": {strings.Repeat("3", 32), http.Header{"Prefer": {"respond-async"}}, `
POST /v1/sandbox/execute
  execution.execute
    execution.admit
    execution.start` + run + `          execution.conclude
`},
	} {
		t.Run(name, func(t *testing.T) {
			traceID := execute(test.trace, "import os; print('"+secret+"', os.environ['NAME'])", test.header, 60).Header.Get("X-Trace-Id")
			var named int
			for _, span := range c.await(t, test.trace, test.want) {
				for _, a := range span.GetAttributes() {
					if a.GetKey() == "atoll.trace_id" && a.GetValue().GetStringValue() == traceID {
						named++
					}
				}
				if span.GetEndTimeUnixNano() < span.GetStartTimeUnixNano() || span.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR {
					t.Errorf("%s: %v", span.GetName(), span)
				}
			}
			if named < 3 { // the request, the execution, the run
				t.Errorf("%d spans name the execution", named)
			}
		})
	}

	t.Run("taken over", func(t *testing.T) {
		trace := strings.Repeat("4", 32)
		// It ends by its time limit, without a follower: a request that cancels or follows an execution
		// may record its end in its own trace.
		id := execute(trace, "import time; print('begun', flush=True); time.sleep(600)", http.Header{"Prefer": {"respond-async"}}, 15).Header.Get("X-Trace-Id")
		begun := make(chan struct{})
		go last(t, s, id, begun)
		atolltest.Heard(t, begun, "the program begins")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = atolltest.Start(t, o)
		var r record
		atolltest.Until(t, time.Minute, "the execution has ended", func() bool {
			s.Must(t, atolltest.Key, http.MethodGet, "/v1/executions/"+id, nil).Into(t, http.StatusOK, &r)
			return r.Status != "running"
		})
		if r.Status != "timeout" {
			t.Errorf("got %+v", r)
		}
		const want = `
POST /v1/sandbox/execute
  execution.execute
    execution.admit
    execution.start
      execution.run
        execution.wait
        sandbox.claim
        guest.run
      execution.run
        guest.run
        execution.finish
          execution.conclude
`
		c.await(t, trace, want)
	})

	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes.Contains(c.raw.Bytes(), []byte(secret)) {
		t.Error("the spans hold what the program was given or printed")
	}
}
