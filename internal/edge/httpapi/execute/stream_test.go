package execute_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/execute"
	"github.com/atoll-run/atoll/test/httpapitest"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs\ngot:\n%s\nwant:\n%s", name, got, want)
	}
}

var anyTraceID = regexp.MustCompile(`trc_[a-z2-7]{20}`)

// TestStreams checks whole streams: one event a line, output by lines, the
// result last; live, replayed, from the middle, and as server-sent events.
func TestStreams(t *testing.T) {
	s := httpapitest.New(t)
	for name, body := range map[string]string{
		"lines":   `{"code":"lines"}`,
		"failure": `{"code":"err"}`,
		"timeout": `{"code":"early","timeout":1}`,
		"bytes":   `{"code":"bytes"}`,
		"memory":  `{"code":"oom"}`,
		"silent":  `{"code":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := httpapitest.Post(s, body, "Accept", "application/x-ndjson, application/json;q=0.5")
			if w.Code != 200 || w.Header().Get("Content-Type") != httpapi.NDJSON {
				t.Fatalf("got %d %s", w.Code, w.Header())
			}
			httpapitest.CheckCommon(t, w.Result())
			id := w.Header().Get("X-Trace-Id")
			for _, seen := range anyTraceID.FindAllString(w.Body.String(), -1) {
				if seen != id {
					t.Errorf("the stream has the trace id %s, the header %s", seen, id)
				}
			}
			plain := func(w *httptest.ResponseRecorder) []byte {
				return anyTraceID.ReplaceAll(w.Body.Bytes(), []byte("trc_0"))
			}
			golden(t, "stream-"+name+".ndjson", plain(w))
			again := httpapitest.Ask(s, "GET", "/v1/executions/"+id+"/output", "")
			golden(t, "stream-"+name+".ndjson", plain(again))
			events := httpapitest.Ask(s, "GET", "/v1/executions/"+id+"/output", "", "Accept", httpapi.EventStream)
			golden(t, "stream-"+name+".sse", plain(events))
			if ct := events.Header().Get("Content-Type"); ct != httpapi.EventStream {
				t.Errorf("Content-Type is %q", ct)
			}

			lines := strings.SplitAfter(again.Body.String(), "\n")
			lines = lines[:len(lines)-1]
			for after := range len(lines) + 2 {
				rest := httpapitest.Ask(s, "GET", fmt.Sprintf("/v1/executions/%s/output?after=%d", id, after), "")
				want := strings.Join(lines[min(after, len(lines)):], "")
				if rest.Body.String() != want || (rest.Code == 204) != (want == "") {
					t.Errorf("after %d: %d %s\nwant %s", after, rest.Code, rest.Body, want)
				}
				seen := httpapitest.Ask(s, "GET", "/v1/executions/"+id+"/output?after=1", "", "Accept", httpapi.EventStream, "Last-Event-ID", fmt.Sprint(after))
				if got := strings.Count(seen.Body.String(), "data: "); got != len(lines)-min(after, len(lines)) || (seen.Code == 204) != (got == 0) {
					t.Errorf("after the event %d: %d %s", after, seen.Code, seen.Body)
				}
			}
		})
	}
}

// TestStreamIsLive checks that a line arrives while the program runs, also at
// a client that comes later, and the status before any line.
func TestStreamIsLive(t *testing.T) {
	s := httpapitest.New(t)
	srv := httptest.NewServer(s)
	defer srv.Close()
	next := make(chan string)
	s.Executor.Program("live", func(r *gatewaytest.Run) int {
		for line := range next {
			r.Print(execution.Stdout, line)
		}
		return 0
	})
	res := httpapitest.Open(t, srv, "POST", "/v1/sandbox/execute", `{"code":"live"}`, "Accept", httpapi.NDJSON)
	first := bufio.NewScanner(res.Body)
	if !first.Scan() || !strings.Contains(first.Text(), `"status":"running","seq":1}`) {
		t.Fatalf("the stream begins with %s", first.Text())
	}
	id := res.Header.Get("X-Trace-Id")
	second := bufio.NewScanner(httpapitest.Open(t, srv, "GET", "/v1/executions/"+id+"/output?after=1", "").Body)
	for i := range 5 {
		next <- fmt.Sprintf("%d\n", i)
		want := fmt.Sprintf(`{"type":"output","stream":"stdout","data":"%d\n","seq":%d}`, i, i+2)
		for _, in := range []*bufio.Scanner{first, second} {
			if !in.Scan() || in.Text() != want {
				t.Fatalf("got %s, want %s", in.Text(), want)
			}
		}
	}
	close(next)
	for _, in := range []*bufio.Scanner{first, second} {
		if !in.Scan() || !strings.Contains(in.Text(), `"type":"result"`) || in.Scan() {
			t.Errorf("it ends with %s", in.Text())
		}
	}
}

// TestCancelledStream checks that a stream ends with its cancellation.
func TestCancelledStream(t *testing.T) {
	s := httpapitest.New(t)
	srv := httptest.NewServer(s)
	defer srv.Close()
	res := httpapitest.Open(t, srv, "POST", "/v1/sandbox/execute", `{"code":"early"}`, "Accept", httpapi.NDJSON)
	id := res.Header.Get("X-Trace-Id")
	w := httpapitest.Ask(s, "POST", "/v1/executions/"+id+"/cancel", "")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"status":"cancelled"`) || !strings.Contains(w.Body.String(), `"error":"Cancelled by user"`) {
		t.Errorf("cancelling: %d %s", w.Code, w.Body)
	}
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"result","trace_id":"` + id + `","status":"cancelled","result":{"success":false,"stdout":"early\n","stderr":"","exit_code":-1,"error":"Cancelled by user","stdout_truncated":false,"stderr_truncated":false,"start":"cold"},"output_truncated":false,"seq":3}` + "\n"
	if !strings.HasSuffix(string(all), want) {
		t.Errorf("the stream is\n%s\nwant at its end\n%s", all, want)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", "/v1/executions/"+id+"/cancel", ""), 409, "conflict", "already ended (cancelled)")
}

// TestManyStreams has 40 clients follow 40 programs at 50 lines a second each.
func TestManyStreams(t *testing.T) {
	const streams, lines = 40, 100
	s := httpapitest.New(t)
	srv := httptest.NewServer(s)
	defer srv.Close()
	s.Executor.Program("tick", func(r *gatewaytest.Run) int {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for range lines {
			<-tick.C
			r.Print(execution.Stdout, fmt.Sprintf("%d\n", time.Now().UnixNano()))
		}
		return 0
	})
	var all sync.WaitGroup
	var mu sync.Mutex
	var worst time.Duration
	for range streams {
		all.Go(func() {
			res := httpapitest.Open(t, srv, "POST", "/v1/sandbox/execute", `{"code":"tick"}`, "Accept", httpapi.NDJSON)
			n := int64(0)
			for in := bufio.NewScanner(res.Body); in.Scan(); {
				var e execute.Event
				if err := json.Unmarshal(in.Bytes(), &e); err != nil {
					t.Error(err)
					return
				}
				if n++; e.Seq != n {
					t.Errorf("seq %d comes as number %d", e.Seq, n)
					return
				}
				if e.Type == "output" {
					var sent int64
					fmt.Sscan(e.Data, &sent)
					mu.Lock()
					worst = max(worst, time.Since(time.Unix(0, sent)))
					mu.Unlock()
				}
			}
			if n != lines+2 {
				t.Errorf("%d events", n)
			}
		})
	}
	all.Wait()
	t.Logf("the slowest line took %s", worst)
}
