package rig

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestSpans sends a collector the spans of two requests, the later one first and the
// children before their parents, as servers do.
func TestSpans(t *testing.T) {
	c, err := CollectSpans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	span := func(trace, id, parent, name string, begin, end uint64) *otlp.Span {
		return &otlp.Span{TraceId: []byte(trace), SpanId: []byte(id), ParentSpanId: []byte(parent), Name: name, StartTimeUnixNano: begin, EndTimeUnixNano: end}
	}
	for _, spans := range [][]*otlp.Span{
		{span("2", "e", "d", "run", 31, 32), span("2", "d", "", "POST", 30, 39)},
		{span("1", "c", "a", "answer", 15, 19), span("1", "b", "a", "run", 11, 14), span("1", "a", "", "POST", 10, 20)},
		{span("3", "f", "", "GET", 40, 41)},
	} {
		body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*otlp.ResourceSpans{{ScopeSpans: []*otlp.ScopeSpans{{Spans: spans}}}}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Post(c.URL+"/v1/traces", "application/x-protobuf", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	got, err := c.With("run")
	if err != nil || len(got) != 2 || len(got[0]) != 3 || len(got[1]) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	at := func(n int64) time.Time { return time.Unix(0, n) }
	for i, want := range []Span{{"POST", at(10), at(20), 0}, {"run", at(11), at(14), 1}, {"answer", at(15), at(19), 1}} {
		if got[0][i] != want {
			t.Errorf("span %d: %v, want %v", i, got[0][i], want)
		}
	}
	res, err := http.Post(c.URL+"/v1/traces", "application/x-protobuf", bytes.NewReader([]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if _, err := c.With("run"); err == nil {
		t.Error("spans that cannot be read were passed over")
	}
}

func TestWatchBetweenReadings(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	w := &Watch{at: []time.Time{at(10), at(20), at(40)}, used: []time.Duration{100, 200, 300}}
	for ms, want := range map[int]time.Duration{0: 100, 10: 100, 15: 150, 20: 200, 30: 250, 40: 300, 90: 300} {
		if got := w.UsedAt(at(ms)); got != want {
			t.Errorf("at %d ms: %d, want %d", ms, got, want)
		}
	}
}
