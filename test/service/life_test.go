package service

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// record is an execution as the API shows it.
type record struct {
	TraceID       string `json:"trace_id"`
	Status        string `json:"status"`
	Stdout        *string
	ExitCode      *int    `json:"exit_code"`
	Error         *string `json:"error"`
	WebhookStatus *string `json:"webhook_delivery_status"`
}

// begin starts an asynchronous execution.
func begin(t *testing.T, s *atolltest.Server, body map[string]any) string {
	t.Helper()
	a, err := s.Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sandbox/execute", body, http.Header{"Prefer": {"respond-async"}})
	if err != nil {
		t.Fatal(err)
	}
	var r record
	a.Into(t, http.StatusAccepted, &r)
	if r.Status != "running" || r.TraceID == "" || r.TraceID != a.Header.Get("X-Trace-Id") {
		t.Fatalf("got %s", a.Body)
	}
	return r.TraceID
}

// ended returns an execution's record once it has ended, which its stream tells.
func ended(t *testing.T, s *atolltest.Server, traceID string) record {
	t.Helper()
	read := func() (r record) {
		s.Must(t, atolltest.Key, http.MethodGet, "/v1/executions/"+traceID, nil).Into(t, http.StatusOK, &r)
		return r
	}
	if r := read(); r.Status == "running" {
		if r.ExitCode != nil || r.Stdout != nil {
			t.Fatalf("a running execution has an end: %+v", r)
		}
		follow(t, s, traceID, nil)
	}
	r := read()
	if r.Status == "running" {
		t.Fatalf("%s is still running after its stream\n%s", traceID, s.Log())
	}
	return r
}

// TestCancel checks that a running program is ended at once, that its stream
// says so, and that an ended one cannot be cancelled.
func TestCancel(t *testing.T) {
	s := shared(t)
	id := begin(t, s, map[string]any{"code": "print('begun', flush=True)\nimport time\ntime.sleep(60)"})
	streamed := make(chan []string, 1)
	go func() { streamed <- follow(t, s, id, nil) }()
	at := time.Now()
	var r record
	s.Must(t, atolltest.Key, http.MethodPost, "/v1/executions/"+id+"/cancel", nil).Into(t, http.StatusOK, &r)
	if took := time.Since(at); took > 5*time.Second || r.Status != "cancelled" {
		t.Errorf("cancelling took %v: %+v", took, r)
	}
	lines := atolltest.Heard(t, streamed, "the stream ends")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"status":"cancelled"`) || !strings.Contains(last, "Cancelled by user") {
		t.Errorf("the stream ends with %s", last)
	}
	s.Must(t, atolltest.Key, http.MethodPost, "/v1/executions/"+id+"/cancel", nil).Into(t, http.StatusConflict, nil)
	if r := ended(t, s, id); r.Status != "cancelled" || *r.ExitCode != -1 || *r.Error != "Cancelled by user" {
		t.Errorf("the record says %+v", r)
	}
}

// follow returns the lines of an execution's output stream.
func follow(t *testing.T, s *atolltest.Server, traceID string, header http.Header) []string {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v1/executions/"+traceID+"/output", nil)
	if err != nil {
		t.Error(err)
		return []string{""}
	}
	req.Header.Set("Authorization", "Bearer "+atolltest.Key)
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return []string{""}
	}
	defer func() { _ = res.Body.Close() }()
	var lines []string
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		lines = append(lines, in.Text())
	}
	return append([]string{""}, lines...)
}

// TestShutdownFailsWhatItCuts checks that a run that a shutdown ends is failed
// with the reason, in its stream and on record.
func TestShutdownFailsWhatItCuts(t *testing.T) {
	o := atolltest.Options{Env: []string{"ATOLL_SHUTDOWN_GRACE=1s"}}
	s := atolltest.Start(t, o)
	o.Data = s.Keep(t)
	id := begin(t, s, map[string]any{"code": "print('begun', flush=True)\nimport time\ntime.sleep(60)"})
	begun, streamed := make(chan struct{}), make(chan string, 1)
	go func() { streamed <- last(t, s, id, begun) }()
	atolltest.Heard(t, begun, "the program begins")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const reason = "the server is shutting down"
	if end := atolltest.Heard(t, streamed, "the stream ends"); !strings.Contains(end, `"status":"failed"`) || !strings.Contains(end, reason) {
		t.Errorf("the stream ends with %s", end)
	}
	again := atolltest.Start(t, o)
	if r := ended(t, again, id); r.Status != "failed" || *r.ExitCode != -1 || *r.Error != reason {
		t.Errorf("the record says %+v", r)
	}
}

// last returns the last line of an execution's stream; begun is closed with the
// first output.
func last(t *testing.T, s *atolltest.Server, traceID string, begun chan<- struct{}) (line string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v1/executions/"+traceID+"/output", nil)
	if err != nil {
		t.Error(err)
		close(begun)
		return ""
	}
	req.Header.Set("Authorization", "Bearer "+atolltest.Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		close(begun)
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	told := false
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		line = in.Text()
		if !told && strings.Contains(line, `"type":"output"`) {
			told = true
			close(begun)
		}
	}
	if !told {
		close(begun)
	}
	return line
}

// TestReconnect checks that a stream can be taken up at any event, as NDJSON and
// as server-sent events, while it runs and afterwards.
func TestReconnect(t *testing.T) {
	s := shared(t)
	id := begin(t, s, map[string]any{"code": "import time\nfor i in range(10):\n print(i, flush=True)\n time.sleep(0.1)"})
	whole := follow(t, s, id, nil)
	afterwards := follow(t, s, id, nil)
	if strings.Join(whole, "\n") != strings.Join(afterwards, "\n") {
		t.Errorf("live:\n%s\nafterwards:\n%s", strings.Join(whole, "\n"), strings.Join(afterwards, "\n"))
	}
	seq := 0
	for _, line := range whole[1:] {
		var e struct {
			Type, Data string
			Seq        int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if seq++; e.Seq != seq {
			t.Errorf("event %d where %d follows: %s", e.Seq, seq, line)
		}
		if e.Type == "output" && e.Data != fmt.Sprintf("%d\n", seq-2) {
			t.Errorf("event %d is %q", seq, e.Data)
		}
	}
	if seq != 12 {
		t.Errorf("%d events", seq)
	}
	sse := strings.Join(follow(t, s, id, http.Header{"Accept": {"text/event-stream"}, "Last-Event-Id": {"10"}}), "\n")
	if strings.Contains(sse, `"seq":10`) || !strings.Contains(sse, "id: 11") || !strings.Contains(sse, `"data":"9\n"`) || !strings.Contains(sse, `"type":"result"`) {
		t.Errorf("taken up after event 10:\n%s", sse)
	}
}

// TestIdempotencyKey checks that one key stands for one execution.
func TestIdempotencyKey(t *testing.T) {
	s := shared(t)
	header := http.Header{"Idempotency-Key": {"order-17"}}
	ids := map[string]bool{}
	for range 3 {
		a, err := s.Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "import uuid; print(uuid.uuid4())"}, header)
		if err != nil {
			t.Fatal(err)
		}
		var r record
		a.Into(t, http.StatusOK, &r)
		ids[*r.Stdout] = true
	}
	if len(ids) != 1 {
		t.Errorf("one key, %d executions", len(ids))
	}
	a, err := s.Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "print(2)"}, header)
	if err != nil {
		t.Fatal(err)
	}
	a.Into(t, http.StatusConflict, nil)
}

// TestLongOutput checks that all of a long output is kept, byte for byte, beside
// the answer that is cut.
func TestLongOutput(t *testing.T) {
	s := shared(t)
	ran := s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{
		"code": "import sys\nfor i in range(300000): sys.stdout.buffer.write(b'%08d \\xff\\x00 line that is long enough for this\\n' % i)",
	})
	var r struct {
		Stdout          string
		StdoutTruncated bool `json:"stdout_truncated"`
	}
	ran.Into(t, http.StatusOK, &r)
	if !r.StdoutTruncated {
		t.Errorf("an answer with %d bytes is not cut", len(r.Stdout))
	}
	raw := s.Must(t, atolltest.Key, http.MethodGet, "/v1/executions/"+ran.Header.Get("X-Trace-Id")+"/output?stream=stdout", nil)
	if raw.Status != http.StatusOK || len(raw.Body) != 300000*46 {
		t.Fatalf("HTTP %d, %d bytes", raw.Status, len(raw.Body))
	}
	for i, line := range strings.SplitAfter(strings.TrimSuffix(string(raw.Body), "\n"), "\n") {
		if !strings.HasPrefix(line, fmt.Sprintf("%08d \xff\x00 line", i)) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}
