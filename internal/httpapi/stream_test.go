package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/atoll-run/atoll/internal/execution"
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

func TestOpenAPIIsCommitted(t *testing.T) {
	committed, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, Document()) {
		t.Error("api/openapi.json is not what the types say now: run make generate")
	}
}

var traceID = regexp.MustCompile(`trc_[0-9a-f]{32}`)

// TestStreams checks whole streams: one event a line, output by lines, the
// result last.
func TestStreams(t *testing.T) {
	s := newServer(t, hostExecutor{})
	for name, body := range map[string]string{
		"lines":   `{"code":"print('one'); print('two'); print('no newline', end='')"}`,
		"failure": `{"code":"echo err >&2; exit 3","language":"bash"}`,
		"timeout": `{"code":"echo early; exec sleep 30","language":"bash","timeout":1}`,
		"bytes":   `{"code":"printf '\\xe2\\x82\\xac \\xff \\xe2\\x82\\n\\xf0\\x9f'","language":"bash"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := post(s, body, "Accept", "application/x-ndjson, application/json;q=0.5")
			if w.Code != 200 || w.Header().Get("Content-Type") != ndjson {
				t.Fatalf("got %d %s", w.Code, w.Header())
			}
			checkCommon(t, w.Result())
			id := w.Header().Get("X-Trace-Id")
			for _, seen := range traceID.FindAllString(w.Body.String(), -1) {
				if seen != id {
					t.Errorf("the stream has the trace id %s, the header %s", seen, id)
				}
			}
			golden(t, "stream-"+name+".ndjson", traceID.ReplaceAll(w.Body.Bytes(), []byte("trc_0")))
		})
	}
}

func TestAccepts(t *testing.T) {
	for accept, want := range map[string]bool{
		"":                                       false,
		"*/*":                                    false,
		"application/*":                          false,
		"application/json":                       false,
		"application/x-ndjson":                   true,
		"Application/X-NDJSON":                   true,
		"text/html, application/x-ndjson;q=0.9":  true,
		"application/x-ndjson;q=0":               false,
		"application/x-ndjson-but-longer":        false,
		"application/json, application/x-ndjson": true,
	} {
		if got := accepts(http.Header{"Accept": {accept}}, ndjson); got != want {
			t.Errorf("%q: got %v", accept, got)
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxPiece+10)
	for _, c := range []struct {
		name   string
		writes []string
		want   []string
	}{
		{"none", nil, nil},
		{"whole lines", []string{"a\nb\n"}, []string{"a\n", "b\n"}},
		{"empty lines", []string{"\n\n"}, []string{"\n", "\n"}},
		{"a line in pieces", []string{"a", "b", "\nc"}, []string{"ab\n", "c"}},
		{"a character in pieces", []string{"\xe2", "\x82", "\xac"}, []string{"€"}},
		{"a long line", []string{long + "\n"}, []string{long[:maxPiece], "xxxxxxxxxx\n"}},
		{"a line of the most", []string{long[:maxPiece-1] + "\n", "b\n"}, []string{long[:maxPiece-1] + "\n", "b\n"}},
		{"a character across the cut", []string{long[:maxPiece-1] + "€\n"}, []string{long[:maxPiece-1], "€\n"}},
		{"a broken character across the cut", []string{long[:maxPiece-1] + "\xe2\n"}, []string{long[:maxPiece-1], "\xe2\n"}},
		{"only tails", []string{strings.Repeat("\x82", maxPiece)}, []string{strings.Repeat("\x82", maxPiece)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			l := lines{emit: func(p []byte) { got = append(got, string(p)) }}
			for _, w := range c.writes {
				l.write([]byte(w))
			}
			l.flush()
			if !slices.Equal(got, c.want) {
				t.Errorf("got %.100q\nwant %.100q", got, c.want)
			}
		})
	}
}

// TestSlowReaderLosesTheOldest checks that a program is never held up, that
// memory is bounded, and that the client is told.
func TestSlowReaderLosesTheOldest(t *testing.T) {
	const written = 50_000
	q := newQueue()
	emit := q.output(execution.Stdout)
	for range written {
		emit([]byte("line\n"))
	}
	events := q.take()
	if len(events) != maxQueued || q.dropped() != written-maxQueued {
		t.Errorf("%d events are left and %d dropped", len(events), q.dropped())
	}
	if first, last := events[0].Seq, events[len(events)-1].Seq; last != written+1 || first != written+1-maxQueued+1 {
		t.Errorf("seq %d to %d are left", first, last)
	}
	big := bytes.Repeat([]byte("x"), maxPiece)
	for range 1000 {
		emit(big)
	}
	if n := len(q.take()) * maxPiece; n > maxQueuedBytes {
		t.Errorf("%d bytes are kept", n)
	}
	q.close()
	emit(big)
	if len(q.take()) != 0 {
		t.Error("output is kept for nobody")
	}
}

// TestStreamIsLive checks that a line arrives while the program runs, and that
// the result says when output was dropped.
func TestStreamIsLive(t *testing.T) {
	read := make(chan struct{})
	s := newServer(t, executorFunc(func(_ context.Context, _ execution.Request, sink execution.Sink) (*execution.Execution, error) {
		sink(execution.Stdout, []byte("first\n"))
		<-read
		flood := bytes.Repeat([]byte("x\n"), 4*maxQueued)
		sink(execution.Stdout, flood)
		return &execution.Execution{Status: execution.Success, Stdout: []byte("all of it")}, nil
	}))
	srv := httptest.NewServer(s)
	defer srv.Close()
	r, _ := http.NewRequest(http.MethodPost, srv.URL+"/v1/sandbox/execute", strings.NewReader(`{"code":"x"}`))
	r.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Content-Type": {"application/json"}, "Accept": {ndjson}}
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var seq int64
	var last Event
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		last = Event{}
		if err := json.Unmarshal(in.Bytes(), &last); err != nil {
			t.Fatal(err)
		}
		if last.Seq <= seq {
			t.Fatalf("seq %d after %d", last.Seq, seq)
		}
		seq = last.Seq
		if last.Type == eventKeepalive {
			t.Error("output waited for a keepalive")
		}
		if last.Data == "first\n" {
			close(read)
		}
	}
	if last.Type != eventResult || last.Result == nil || last.Result.Stdout != "all of it" || last.OutputTruncated == nil || !*last.OutputTruncated {
		t.Errorf("the last event is %+v", last)
	}
}

// TestKeepalive checks, on a clock of its own, that a silent program's stream
// is kept open, and that its status comes without output.
func TestKeepalive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		s := newServer(t, executorFunc(func(ctx context.Context, _ execution.Request, _ execution.Sink) (*execution.Execution, error) {
			<-ended
			return &execution.Execution{Status: execution.Success}, nil
		}))
		go func() {
			defer close(ended)
			wait(t, 2*keepaliveEvery+keepaliveEvery/2)
		}()
		w := post(s, `{"code":"x"}`, "Accept", ndjson)
		golden(t, "stream-keepalive.ndjson", traceID.ReplaceAll(w.Body.Bytes(), []byte("trc_0")))
	})
}

// TestLateFailure checks that a run which fails after its stream has begun
// ends it with a result.
func TestLateFailure(t *testing.T) {
	s := newServer(t, executorFunc(func(_ context.Context, _ execution.Request, sink execution.Sink) (*execution.Execution, error) {
		sink(execution.Stdout, []byte("some\n"))
		panic("secret")
	}))
	w := post(s, `{"code":"x"}`, "Accept", ndjson)
	var last Event
	lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
	if w.Code == 200 {
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatal(err)
		}
		if last.Status != "failed" || last.Result == nil || last.Result.Error == nil || last.Result.ExitCode != -1 || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("got %s", w.Body)
		}
	} else {
		refused(t, w, 500, "internal_error", "log") // it failed before the status was sent
	}
}
