package execute

import (
	"bytes"
	"io"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

var texts = map[string]string{
	"empty":             "",
	"short":             "hello\n",
	"looks like JSON":   `","stderr":"x"}`,
	"looks like fields": fields,
	"control bytes":     strings.Repeat("\x00\x1b\n\"\\\b\f\r\t\x7f/", wire.StreamPiece),
	"cut characters":    "x" + strings.Repeat("漢🙂", wire.StreamPiece),
	"not UTF-8":         strings.Repeat("a\xff\xe6\xbc", wire.StreamPiece),
	"surrogates":        "\xed\xa0\x80\ufffd\xf4\x90\x80\x80",
	"HTML and U+2028":   strings.Repeat("<&>\u2028", 100),
	"exactly a piece":   strings.Repeat("x", wire.StreamPiece),
	"cut at its end":    strings.Repeat("x", wire.StreamPiece-1) + "\xf0\x9f",
	"tails alone":       strings.Repeat("\x82", wire.StreamPiece+1),
	"only a character":  "🙂",
}

func reader(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// fields is the text of the two fields as the encoder writes them without output.
const fields = `"stdout":"","stderr":""`

// later is an answer as a later version could have it: with fields before, between and
// after the outputs, and with one of their names further inside.
type later struct {
	Before string         `json:"before"`
	Stderr string         `json:"stderr" stream:"stderr"`
	Middle map[string]any `json:"middle"`
	Left   *string        `json:"left,omitzero"`
	Stdout *string        `json:"stdout" stream:"stdout"`
	After  []string       `json:"after"`
}

func TestOutputIsWrittenAsTheEncoderWould(t *testing.T) {
	for name, text := range texts {
		reason := fields + "\x00"
		full, second := text, text+"!"
		inside := map[string]any{"stdout": "", "stderr": map[string]any{"stdout": fields}}
		summary := ExecutionSummary{TraceID: "trc_1", Ending: Ending{Error: &reason}, Metadata: map[string]string{"stderr": fields}}
		answer := func(stdout, stderr string) ExecuteResponse {
			return ExecuteResponse{Success: true, Ending: Ending{Error: &reason}, Stdout: stdout, Stderr: stderr, Start: "warm"}
		}
		event := func(r ExecuteResponse) Event {
			return Event{Type: eventResult, TraceID: "trc_1", Status: "success", Result: &r, Seq: 7}
		}
		late := func(r ExecuteResponse) TimeoutResponse {
			return TimeoutResponse{ExecuteResponse: r, Message: reason, Code: codeTimeout}
		}
		for kind, c := range map[string]struct{ body, whole any }{
			"answer":   {new(answer("", "")), new(answer(full, second))},
			"event":    {new(event(answer("", ""))), new(event(answer(full, second)))},
			"record":   {Execution{ExecutionSummary: summary}, Execution{ExecutionSummary: summary, Stdout: &full, Stderr: &second}},
			"time-out": {late(answer("", "")), late(answer(full, second))},
			"later":    {later{fields, "", inside, nil, nil, []string{fields}}, later{fields, second, inside, nil, &full, []string{fields}}},
		} {
			var got bytes.Buffer
			if err := (outputs{stdout: reader(text), stderr: reader(text + "!")}).write(&got, c.body); err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(c.whole, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			if kind == "later" { // whose map has no order
				if !sameJSON(t, got.Bytes(), want) {
					t.Errorf("%s %s: %.200q, want %.200q", kind, name, got.Bytes(), want)
				}
			} else if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s %s: %.200q, want %.200q", kind, name, got.Bytes(), want)
			}
		}
	}
}

// sameJSON compares two documents whose objects may be ordered differently.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	if x.Canonicalize() != nil || y.Canonicalize() != nil {
		return false
	}
	return bytes.Equal(x, y)
}

func TestEventsAreWrittenAsTheEncoderWould(t *testing.T) {
	for name, text := range texts {
		for _, stream := range []execution.Stream{execution.Stdout, execution.Stderr} {
			got := appendEvent(nil, execution.Event{Seq: 12, Stream: stream, Data: []byte(text)})
			want, err := json.Marshal(struct {
				Type   string `json:"type"`
				Stream string `json:"stream"`
				Data   string `json:"data"`
				Seq    int64  `json:"seq"`
			}{eventOutput, string(stream), text, 12}, jsontext.AllowInvalidUTF8(true))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: %.200q, want %.200q", name, got, want)
			}
		}
	}
	if got := string(appendEvent(nil, execution.Event{Seq: 3})); got != `{"type":"keepalive","seq":3}` {
		t.Errorf("a keepalive is %s", got)
	}
}

func FuzzText(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text[:min(len(text), 100)]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, _ := jsontext.AppendQuote(nil, text)
		if got := wire.AppendText(nil, text); !bytes.Equal(got, want[1:len(want)-1]) {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	})
}

func TestALargeResultTakesLittleMemoryToWrite(t *testing.T) {
	r := ExecuteResponse{}
	text := strings.Repeat("\x00", 2<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := (outputs{stdout: reader(text), stderr: reader("")}).write(io.Discard, &r); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("writing 2 MiB of output allocated %d KiB", used>>10)
	}
}

func BenchmarkEvents(b *testing.B) {
	line := append(bytes.Repeat([]byte("x"), 1023), '\n')
	batch := make([]execution.Event, 64)
	for i := range batch {
		batch[i] = execution.Event{Seq: int64(i + 2), Stream: execution.Stdout, Data: line}
	}
	b.SetBytes(int64(len(batch) * len(line)))
	var buf []byte
	for b.Loop() {
		buf = buf[:0]
		for _, e := range batch {
			buf = append(appendEvent(buf, e), '\n')
		}
	}
}

// A stream whose result cannot show the output still ends with a result that says so.
func TestAResultSaysThatItsOutputCannotBeRead(t *testing.T) {
	w := httptest.NewRecorder()
	st := newStream(w, httpapi.NDJSON, "trc_1", 1)
	defer st.end()
	e := &execution.Execution{TraceID: "trc_1", Status: execution.Success, StdoutBytes: 100_000, Stored: true, LastSeq: 1}
	if err := st.result(e, noOutputs()); err != nil {
		t.Fatal(err)
	}
	var end Event
	if err := json.Unmarshal(w.Body.Bytes(), &end); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if r := end.Result; end.Type != eventResult || !r.Success || !r.StdoutTruncated || r.StderrTruncated || !strings.Contains(r.Hint, "/v1/executions/trc_1") {
		t.Errorf("got %s", w.Body)
	}
}
