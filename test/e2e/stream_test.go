package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// event is a line of a stream.
type event struct {
	Type, Status, Stream, Data string
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

// TestStream checks that output comes while the program runs, and how a stream
// ends.
func TestStream(t *testing.T) {
	s := shared(t)
	var first time.Time
	var out string
	var last event
	stream(t, s, atolltest.Program{Language: atolltest.Bash, Code: "echo first; echo e >&2; sleep 1; echo second; exit 3"}, func(e event) {
		if e.Type == "output" && first.IsZero() {
			first = time.Now()
		}
		if e.Type == "output" {
			out += e.Stream + ":" + e.Data
		}
		if e.Seq <= last.Seq && last.Type != "" {
			t.Errorf("event %d comes after %d", e.Seq, last.Seq)
		}
		last = e
	})
	if ahead := time.Since(first); first.IsZero() || ahead < 800*time.Millisecond {
		t.Errorf("the first line came %v ahead of the result; the program goes on for a second after it", ahead)
	}
	if out != "stdout:first\nstderr:e\nstdout:second\n" && out != "stderr:e\nstdout:first\nstdout:second\n" {
		t.Errorf("got %q", out)
	}
	if last.Type != "result" || last.Status != "failed" || last.Result == nil || last.Result.ExitCode != 3 || last.Result.Stdout != "first\nsecond\n" {
		t.Errorf("the last event is %+v", last)
	}
}

// TestStreamTimeout checks how a stream ends when the time does.
func TestStreamTimeout(t *testing.T) {
	var last event
	stream(t, shared(t), atolltest.Program{Code: "import time\nprint('so far', flush=True)\ntime.sleep(60)", Timeout: 1}, func(e event) { last = e })
	if last.Type != "result" || last.Status != "timeout" || last.Result == nil || last.Result.ExitCode != -1 || last.Result.Reason() != "execution timed out after 1s" || last.Result.Stdout != "so far\n" {
		t.Errorf("the last event is %+v %v", last, last.Result)
	}
}

// TestClientGoesAway checks that a run goes on to its end without its client,
// and leaves nothing.
func TestClientGoesAway(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.Execute(ctx, atolltest.Program{Language: atolltest.Bash, Code: "sleep 2; yes | head -c 20000000"})
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
