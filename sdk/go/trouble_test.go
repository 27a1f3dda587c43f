package atoll

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// numbers serves the events of one execution, of which there are so many, and cuts every
// connection after some.
type numbers struct {
	all, cut int

	mu     sync.Mutex
	starts []string // guarded by mu: what each request asked for
	keys   []string // guarded by mu
}

func (n *numbers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	n.mu.Lock()
	n.starts, n.keys = append(n.starts, r.Method+" "+r.URL.Query().Get("after")), append(n.keys, r.Header.Get(idempotencyKey))
	n.mu.Unlock()
	w.Header().Set("Content-Type", mediaNDJSON)
	for seq := after + 1; seq <= n.all; seq++ {
		if seq > after+n.cut {
			panic(http.ErrAbortHandler)
		}
		kind := "output"
		switch seq {
		case 1:
			kind = "status"
		case 2:
			kind = keepalive
		case n.all:
			kind = "result"
		}
		fmt.Fprintf(w, `{"type":%q,"trace_id":"trc_1","seq":%d}`+"\n", kind, seq)
		_ = http.NewResponseController(w).Flush()
	}
}

// take returns what was asked for since the last time, and the keys.
func (n *numbers) take() (starts, keys []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	starts, keys = n.starts, n.keys
	n.starts, n.keys = nil, nil
	return starts, keys
}

func TestStreamGoesOn(t *testing.T) {
	n := &numbers{all: 11, cut: 4}
	c := serve(t, n.ServeHTTP)
	got, err := collect(c.StreamExecution(t.Context(), ExecuteRequest{Code: "1"}))
	var seqs []int64
	for _, ev := range got {
		seqs = append(seqs, ev.Seq)
	}
	if err != nil || !slices.Equal(seqs, []int64{1, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("got %v %v", seqs, err)
	}
	if starts, keys := n.take(); !slices.Equal(starts, []string{"POST ", "GET 4", "GET 8"}) || keys[0] == "" || keys[1] != "" {
		t.Errorf("the requests are %q with keys %q", starts, keys)
	}
	got, err = collect(c.With(WithReconnect(false)).FollowExecution(t.Context(), "trc_1", 2))
	if starts, _ := n.take(); !errors.Is(err, ErrConnection) || len(got) != 4 || len(starts) != 1 {
		t.Errorf("without going on: %v %v %q", got, err, starts)
	}
	// A server that never gets further is given up.
	stuck := &numbers{all: 11}
	_, err = collect(serve(t, stuck.ServeHTTP).FollowExecution(t.Context(), "trc_1", 0))
	if starts, _ := stuck.take(); !errors.Is(err, ErrConnection) || len(starts) != 1+DefaultRetries {
		t.Errorf("got %v after %q", err, starts)
	}
}

func TestRetries(t *testing.T) {
	var asked atomic.Int64
	var failure atomic.Value // func(http.ResponseWriter)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if asked.Add(1) == 1 {
			failure.Load().(func(http.ResponseWriter))(w)
			return
		}
		fmt.Fprintf(w, `{"stdout":%q,"name":%q}`, r.Header.Get(idempotencyKey), body)
	})
	lost := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	status := func(code int, after string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(code)
		}
	}
	half := func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"stdout":`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	run := func(c *Client) error { _, err := c.Execute(t.Context(), ExecuteRequest{Code: "1"}); return err }
	get := func(c *Client) error { _, err := c.Tenant(t.Context(), "x"); return err }
	made := func(c *Client) error { _, err := c.CreateVault(t.Context(), NewVault{}); return err }
	post := func(c *Client) error { _, err := c.CreateToken(t.Context(), NewToken{}); return err }
	ends := func(c *Client) error { _, err := c.CreateResponse(t.Context(), CreateResponse{}); return err }
	chosen := func(c *Client) error { return ends(c.With(WithIdempotencyKey("k"))) }
	seeks := func(c *Client) error {
		f, err := c.ThreadFiles("t").Write(t.Context(), "f", strings.NewReader("whole"))
		if err == nil && f.Name != "whole" {
			err = fmt.Errorf("the server got %q", f.Name)
		}
		return err
	}
	pipes := func(c *Client) error {
		_, err := c.ThreadFiles("t").Write(t.Context(), "f", io.LimitReader(strings.NewReader("whole"), 9))
		return err
	}
	for i, test := range []struct {
		fail func(http.ResponseWriter)
		call func(*Client) error
		ok   bool
	}{
		{lost, run, true}, {lost, get, true}, {lost, post, false}, {lost, seeks, true}, {lost, pipes, false},
		{half, run, true}, {half, get, true}, {half, post, false},
		{lost, made, true}, {half, made, true}, {lost, ends, false}, {lost, chosen, true},
		{status(502, ""), made, true}, {status(409, ""), made, false}, {status(409, "1"), made, true}, {status(409, "1"), post, false},
		{status(503, ""), get, true}, {status(503, ""), post, false}, {status(503, "1"), post, true}, {status(503, "3600"), get, false},
		{status(429, ""), get, false}, {status(429, "1"), post, true}, {status(502, ""), run, true}, {status(500, ""), get, false}, {status(404, ""), get, false},
	} {
		asked.Store(0)
		failure.Store(test.fail)
		if err := test.call(c); (err == nil) != test.ok || test.ok && asked.Load() != 2 || !test.ok && asked.Load() != 1 {
			t.Errorf("%d: %v after %d requests", i, err, asked.Load())
		}
	}
	asked.Store(0)
	failure.Store(lost)
	if err := run(c.With(WithRetries(0))); !errors.Is(err, ErrConnection) || asked.Load() != 1 {
		t.Errorf("without retries: %v after %d requests", err, asked.Load())
	}
}

// TestDeletedBefore shows that a deletion whose answer was lost is none of what is not there.
func TestDeletedBefore(t *testing.T) {
	asked := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusNotFound)
	})
	if err := c.DeleteThread(t.Context(), "t"); err != nil || asked != 2 {
		t.Errorf("got %v after %d requests", err, asked)
	}
	if err := c.DeleteThread(t.Context(), "t"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestExecuteCancels shows how the id of an inline execution is found to end it.
func TestExecuteCancels(t *testing.T) {
	begun, cancelled := make(chan string, 4), make(chan string, 1)
	var late atomic.Bool
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/cancel"):
			cancelled <- r.URL.Path
			_, _ = io.WriteString(w, `{}`)
		case r.Header.Get("Prefer") != "":
			begun <- r.Header.Get(idempotencyKey)
			if late.Load() {
				time.Sleep(100 * time.Millisecond) // the load: a slow answer
			}
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"trace_id":"trc_7","status":"running"}`)
		default:
			_, _ = io.Copy(io.Discard, r.Body)
			begun <- r.Header.Get(idempotencyKey)
			<-r.Context().Done()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan string, 1)
	go func() {
		first <- <-begun
		cancel()
	}()
	_, err := c.Execute(ctx, ExecuteRequest{Code: "1"})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrCanceled) {
		t.Errorf("got %v", err)
	}
	if a, b := <-first, <-begun; a == "" || a != b {
		t.Errorf("the keys are %q and %q", a, b)
	}
	if path := <-cancelled; path != "/v1/executions/trc_7/cancel" {
		t.Errorf("ended was %s", path)
	}
	// What is ended takes longer than the timeout.
	late.Store(true)
	if _, err := c.With(WithTimeout(50*time.Millisecond)).Execute(t.Context(), ExecuteRequest{Code: "1"}); !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	select {
	case <-cancelled:
	default:
		t.Error("what was given up was not ended")
	}
}

func TestDownloadGoesOn(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	var changed atomic.Bool
	var ranges []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		from := 0
		ranges = append(ranges, r.Header.Get("Range"))
		w.Header().Set("ETag", `"1"`)
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil && !changed.Load() && r.Header.Get("If-Range") == `"1"` {
			w.WriteHeader(http.StatusPartialContent)
		}
		end := min(from+40_000, len(text))
		_, _ = io.WriteString(w, text[from:end])
		if end < len(text) {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	var got strings.Builder
	if err := c.ReadFile(t.Context(), "f", &got); err != nil || got.String() != text {
		t.Errorf("got %d bytes, %v", got.Len(), err)
	}
	if !slices.Equal(ranges, []string{"", "bytes=40000-", "bytes=80000-"}) {
		t.Errorf("asked for %q", ranges)
	}
	changed.Store(true)
	if err := c.ReadFile(t.Context(), "f", io.Discard); !errors.Is(err, ErrConnection) || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a file that changed meanwhile: %v", err)
	}
}

func TestVersion(t *testing.T) {
	for _, test := range []struct {
		tag, modified, date, want string
	}{
		{`"a"`, "", "", `"a"`},
		{`W/"a"`, "", "", ""},
		{"", "Thu, 26 Nov 2026 19:27:53 GMT", "Thu, 26 Nov 2026 19:27:53 GMT", ""}, // may change within the second
		{"", "Thu, 26 Nov 2026 19:27:53 GMT", "Thu, 26 Nov 2026 19:27:55 GMT", "Thu, 26 Nov 2026 19:27:53 GMT"},
	} {
		h := http.Header{}
		h.Set("Etag", test.tag)
		h.Set("Last-Modified", test.modified)
		h.Set("Date", test.date)
		if got := version(h); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

// TestLongLine has an event that is longer than the reader's buffer.
func TestLongLine(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaEvents)
		fmt.Fprintf(w, ": keepalive\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"delta\":%q}\n\n", long)
	})
	got, err := collect(c.FollowResponse(t.Context(), "r", -1))
	if err != nil || len(got) != 1 || got[0].Delta == nil || *got[0].Delta != long || !strings.Contains(string(got[0].Raw), long) {
		t.Errorf("got %d events, %v", len(got), err)
	}
}
