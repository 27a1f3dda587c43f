package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/agent/model/adapter"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// lie is how the requests of one model are answered.
type lie struct {
	status int
	header http.Header
	body   func(ctx context.Context) io.Reader
}

// liar is a transport whose providers are lies, by the model that is asked.
type liar map[string]lie

func (l liar) RoundTrip(r *http.Request) (*http.Response, error) {
	var in struct{ Model string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	told := l[in.Model]
	header := http.Header{"Content-Type": {"text/event-stream"}}
	for name, values := range told.header {
		header[name] = values
	}
	status := told.status
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: header, Body: io.NopCloser(told.body(r.Context())), ContentLength: -1,
	}, nil
}

// body says these bytes.
func body(s string) lie {
	return lie{body: func(context.Context) io.Reader { return strings.NewReader(s) }}
}

// endless repeats a text after another one, up to a number of bytes.
func endless(first, again string, bytes int64) lie {
	return lie{body: func(ctx context.Context) io.Reader {
		return io.MultiReader(strings.NewReader(first), io.LimitReader(&repeated{text: again}, bytes), waits{ctx})
	}}
}

// repeated is a text without end.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(b []byte) (n int, err error) {
	for n < len(b) {
		c := copy(b[n:], r.text[r.at:])
		n, r.at = n+c, (r.at+c)%len(r.text)
	}
	return n, nil
}

// waits says nothing until its reader leaves.
type waits struct{ context.Context }

func (w waits) Read([]byte) (int, error) {
	<-w.Done()
	return 0, context.Cause(w)
}

// reset is a connection that is cut.
type reset struct{}

func (reset) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// frames are the events of a stream.
func frames(stream string) []string {
	all := strings.SplitAfter(stream, "\n\n")
	return all[:len(all)-1]
}

// lies are the ways in which the provider of a protocol lies.
func lies(p model.Provider) map[string]lie {
	speech := scriptedmodel.Turn{Blocks: []scriptedmodel.Block{
		{Text: []string{"one ", "two ", "three "}}, {Call: &scriptedmodel.Call{ID: "c1", Name: "add", Arguments: []string{`{"a"`, `: 1}`}}},
		{Call: &scriptedmodel.Call{ID: "c2", Name: "add", Arguments: []string{`{}`}}},
	}, Usage: &model.Usage{Input: 10, Output: 5}, Stop: model.StopEnd}
	whole := speech.Stream(p)
	events := frames(whole)
	say := scriptedmodel.Say("well")
	said := say.Stream(p)
	call := func(name, arguments string) lie {
		turn := scriptedmodel.Ask("c1", name, arguments)
		return body(turn.Stream(p))
	}
	shuffled := slices.Clone(events)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	backwards := slices.Clone(events)
	slices.Reverse(backwards)
	var twice, strange strings.Builder
	for _, e := range events {
		twice.WriteString(e + e)
		strange.WriteString("event: of.the.future\ndata: {\"type\":\"of.the.future\",\"x\":[1,{}]}\n\n: a comment\n\n" + e)
	}
	all := map[string]lie{
		"nothing": body(""), "garbage": body(string(garbage(100_000))), "garbage in events": body("data: " + strings.ReplaceAll(string(garbage(10_000)), "\n", "\n\ndata: ") + "\n\n"),
		"no JSON": body("data: {\n\ndata: [1,2\n\n"), "other JSON": body("data: 7\n\ndata: null\n\ndata: []\n\ndata: \"x\"\n\ndata: {}\n\n"),
		"deep JSON":     body("data: " + strings.Repeat(`{"a":[`, 100_000) + "\n\n"),
		"out of order":  body(strings.Join(shuffled, "")),
		"backwards":     body(strings.Join(backwards, "")),
		"twice":         body(twice.String()),
		"twice whole":   body(whole + whole),
		"strange":       body(strange.String()),
		"after the end": body(said + strings.Join(events, "")),
		"never ends": {body: func(ctx context.Context) io.Reader {
			return io.MultiReader(strings.NewReader(strings.TrimSuffix(whole, events[len(events)-1])), waits{ctx})
		}},
		"one line":    endless("data: ", strings.Repeat("x", 256), 100<<20),
		"comments":    endless("", ": "+strings.Repeat("still here ", 100)+"\n\n", 160<<20),
		"broken JSON": call("add", `{"a": `), "no object": call("add", `"x"`), "unknown tool": call("rm", `{}`),
		"one id": body(strings.ReplaceAll(whole, `"c2"`, `"c1"`)), "no id": body(strings.ReplaceAll(whole, `"c2"`, `""`)),
		"no name": body(strings.ReplaceAll(whole, `"add"`, `""`)), "far index": body(strings.ReplaceAll(strings.ReplaceAll(whole, `"output_index":1`, `"output_index":99999999`), `"index":1`, `"index":-7`)),
		"HTML":                   {status: 200, header: http.Header{"Content-Type": {"text/html"}}, body: body("<html>").body},
		"asks to wait for years": {status: 429, header: http.Header{"Retry-After": {"99999999999"}}, body: body(`{"error":{"message":"wait"}}`).body},
		"asks to wait backwards": {status: 429, header: http.Header{"Retry-After": {"-5"}}, body: body(`{"error":{"message":"wait"}}`).body},
		"asks to wait for NaN":   {status: 503, header: http.Header{"Retry-After": {"NaN"}, "Retry-After-Ms": {"Inf"}}, body: body(`{"error":{"message":"wait"}}`).body},
		"refuses at length":      {status: 500, body: endless(`{"error":{"message":"`, "sorry ", 100<<20).body},
		"odd status":             {status: 299, body: body(whole).body},
		"no status":              {status: 100, body: body(whole).body},
	}
	for _, tokens := range []string{"-5", "1e300", `"many"`, "null", "[]", "9223372036854775807", "0.5"} {
		for _, field := range []string{"output_tokens", "completion_tokens", "input_tokens", "prompt_tokens"} {
			if s := strings.NewReplacer(`"`+field+`":5`, `"`+field+`":`+tokens, `"`+field+`":10`, `"`+field+`":`+tokens).Replace(whole); s != whole {
				all["counts "+tokens+" "+field] = body(s)
			}
		}
	}
	all["counts NaN"] = body(strings.NewReplacer(`_tokens":5`, `_tokens":NaN`, `_tokens":10`, `_tokens":NaN`).Replace(whole))
	for at, refusal := range map[string]scriptedmodel.Refusal{
		"overloaded": {Type: "overloaded_error", Code: "server_error", Message: "Overloaded"}, "empty": {},
		"key": {Type: "invalid_request_error", Code: "invalid_prompt", Message: "your key is " + lyingKey},
	} {
		all["error "+at] = body(strings.Join(events[:3], "") + scriptedmodel.Fault(p, refusal) + strings.Join(events[3:], ""))
	}
	// A stream that is cut within each of its events; that each byte is a place for it is
	// tested with the adapters alone.
	at := 0
	for i, e := range events {
		n := at + len(e)/2
		all[fmt.Sprintf("cut in event %d", i)] = lie{body: func(context.Context) io.Reader {
			return io.MultiReader(strings.NewReader(whole[:n]), reset{})
		}}
		at += len(e)
	}
	long := scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Text: []string{strings.Repeat("y", 300)}}}}
	spoken := frames(long.Stream(p))
	for i, e := range spoken {
		if strings.Contains(e, "yyy") {
			all["says too much"] = endless(strings.Join(spoken[:i], ""), e, 64<<20)
			break
		}
	}
	return all
}

// garbage is noise, the same each time.
func garbage(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

const lyingKey = "sk-provider-key-that-is-not-shown"

// lied are the models that lie.
type lied struct {
	provider model.Provider
	rt       liar
	bounds   model.Bounds
}

func (l lied) Use(_ context.Context, _ tenant.ID, name string) (model.Model, *model.Record, error) {
	if _, ok := l.rt[name]; !ok {
		return nil, nil, fault.New(fault.NotFound, "no model %q", name)
	}
	rec := &model.Record{
		ID: "mdl_0000000000000001", Name: name, Provider: l.provider, Upstream: name, BaseURL: "https://provider.example/v1", Key: lyingKey,
		Spec: model.Spec{Capabilities: model.Capabilities},
	}
	m, err := adapter.Open(*rec, l.rt, l.bounds)
	return m, rec, err
}

// TestLyingProviders runs responses whose providers lie in every way: each ends with a
// status and a reason, within bounds of memory, and nothing is left of it.
func TestLyingProviders(t *testing.T) {
	for _, p := range model.Providers() {
		t.Run(string(p), func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) })
			t.Run("all", func(t *testing.T) { lyingProvider(t, p) })
		})
	}
}

// maxHeap bounds what the heap may grow by while all lies are told at once.
const maxHeap = 256 << 20

func lyingProvider(t *testing.T, p model.Provider) {
	all := liar(lies(p))
	bounds := model.DefaultBounds
	bounds.Bytes, bounds.Idle = 1<<20, 500*time.Millisecond
	k := newKit(t, nil)
	l := New(Config{
		Store: k.store, Models: lied{p, all, bounds}, Handlers: map[string]Handler{"add": k.adder}, Events: k.bus.RunEvents(storetest.Box(t)),
		Log: slog.New(slog.DiscardHandler), Holder: "a",
	})
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	idle := m.HeapAlloc

	ids := map[string]run.ID{}
	for name := range all {
		q := request("hello")
		q.Models, q.Limits.Steps = []string{name}, 5 // some ask for calls without end
		ids[name], _ = k.begin(t, l, q)
	}
	var peak uint64
	for name, id := range ids {
		atolltest.Until(t, 2*time.Minute, "the run of "+name+" has ended", func() bool {
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
			r, err := k.store.Run(t.Context(), owner, id)
			if err != nil {
				t.Fatal(err)
			}
			return r.Status.Final()
		})
		s := k.state(t, id)
		switch {
		case s.End.Status == run.Completed && s.End.Reason == run.Done:
		case s.End.Status == run.Failed && s.End.Reason == run.ModelError && s.End.Message != "":
		case s.End.Status == run.Incomplete && (s.End.Reason == run.RepeatedFailure || s.End.Reason == run.MaxSteps) && s.End.Message != "":
		default:
			t.Errorf("%s: it ended with %+v", name, s.End)
		}
		if log := show(s); strings.Contains(log, lyingKey) {
			t.Errorf("%s: the key is in the log", name)
		}
		if s.Usage.Input < 0 || s.Usage.Output < 0 || s.Usage.Output > 1<<40 {
			t.Errorf("%s: it used %+v", name, s.Usage)
		}
		var seen run.Published
		for i, e := range k.events(t, id) {
			if !seen.Apply(&e) {
				t.Errorf("%s: event %d cannot follow those before it", name, i)
			}
		}
		if missing := seen.Missing(s); len(missing) > 0 {
			t.Errorf("%s: readers were not told of %s", name, show(missing))
		}
	}
	if grown := int64(peak) - int64(idle); grown > maxHeap {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	t.Logf("%d lies, the heap grew by %d MiB at most", len(all), (int64(peak)-int64(idle))>>20)
}
