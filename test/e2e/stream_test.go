package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// event is a line of a stream.
type event struct {
	Type, Status, Stream, Data string
	TraceID                    string `json:"trace_id"`
	Result                     *atolltest.Result
	Seq                        int
}

// stream asks for a program's output as it comes and hands each event to f.
func stream(t *testing.T, s *atolltest.Server, p atolltest.Program, f func(event)) {
	t.Helper()
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	events(t, s, http.MethodPost, "/v1/sandbox/execute", body, f)
}

// events makes a request and hands each event of the stream that answers it to f.
func events(t *testing.T, s *atolltest.Server, method, path string, body []byte, f func(event)) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + atolltest.Key}, "Content-Type": {"application/json"}, "Accept": {"application/x-ndjson"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	for lines := json.NewDecoder(res.Body); lines.More(); {
		var e event
		if err := lines.Decode(&e); err != nil {
			t.Fatal(err)
		}
		f(e)
	}
}

// TestStream checks what a stream has, and how it ends.
func TestStream(t *testing.T) {
	out := map[string]string{}
	var last event
	stream(t, shared(t), atolltest.Program{Language: atolltest.Bash, Code: "echo first; echo e >&2; echo second; exit 3"}, func(e event) {
		if e.Type == "output" {
			out[e.Stream] += e.Data
		}
		if e.Seq <= last.Seq && last.Type != "" {
			t.Errorf("event %d comes after %d", e.Seq, last.Seq)
		}
		last = e
	})
	if out["stdout"] != "first\nsecond\n" || out["stderr"] != "e\n" {
		t.Errorf("got %q", out)
	}
	if last.Type != "result" || last.Status != "failed" || last.Result == nil || last.Result.ExitCode != 3 || last.Result.Stdout != "first\nsecond\n" {
		t.Errorf("the last event is %+v", last)
	}
}

// TestStreamIsOfWhatRuns checks that output comes while the program runs: only one that
// runs can be cancelled.
func TestStreamIsOfWhatRuns(t *testing.T) {
	s := shared(t)
	var id string
	var seen int
	var last event
	stream(t, s, atolltest.Program{Language: atolltest.Bash, Code: "echo first; echo e >&2; sleep 60"}, func(e event) {
		if last = e; e.Type == "status" {
			id = e.TraceID
		}
		if e.Type != "output" {
			return
		}
		if seen++; seen == 1 {
			s.Must(t, atolltest.Key, http.MethodPost, "/v1/executions/"+id+"/cancel", nil).Into(t, http.StatusOK, nil)
		}
	})
	if seen == 0 || last.Type != "result" || last.Status != "cancelled" {
		t.Errorf("after %d events of output the last event is %+v", seen, last)
	}
}

// TestStreamTimeout checks how a stream ends when the time does. It runs from the program's
// start: one that is kept from its first line for so long gets twice as much.
func TestStreamTimeout(t *testing.T) {
	for timeout := 1; ; timeout *= 2 {
		var last event
		stream(t, shared(t), atolltest.Program{Code: "import time\nprint('so far', flush=True)\ntime.sleep(60)", Timeout: timeout}, func(e event) { last = e })
		if last.Type != "result" || last.Status != "timeout" || last.Result == nil || last.Result.ExitCode != -1 || last.Result.Reason() != fmt.Sprintf("execution timed out after %ds", timeout) {
			t.Fatalf("the last event is %+v %v", last, last.Result)
		}
		if last.Result.Stdout == "so far\n" {
			return
		}
		if last.Result.Stdout != "" || timeout > 10 {
			t.Fatalf("after %d s there is %q", timeout, last.Result.Stdout)
		}
	}
}

// TestClientGoesAway checks that a run goes on to its end without its client,
// and leaves nothing.
func TestClientGoesAway(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.Execute(ctx, atolltest.Program{Language: atolltest.Bash, Code: "sleep 5; yes | head -c 20000000"})
		gone <- err
	}()
	awaitExecutions(t, s, 1)
	leave()
	if err := <-gone; err == nil {
		t.Fatal("the client got its answer after all")
	}
	atolltest.Until(t, 20*time.Second, "the execution has ended", func() bool {
		return s.Metrics(t).Sum("atoll_executions_total", "status=success") == 1
	})
	s.Settle(t)
	s.CheckHealthy(t)
}
