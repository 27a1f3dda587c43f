package adapter_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// stream answers every request with the same bytes.
type stream string

func (s stream) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(s))),
	}, nil
}

// FuzzStream gives adapters anything as a stream: what they make of it keeps to the
// contract of model.Model.
func FuzzStream(f *testing.F) {
	turns := []scriptedmodel.Turn{
		scriptedmodel.Say("hello"), scriptedmodel.Ask("c1", "run", `{"a":1}`),
		{Blocks: []scriptedmodel.Block{{Text: []string{"a"}, Cites: []model.Citation{{URL: "https://a.org", Title: "A", Start: 0, End: 1}}}}},
		{Blocks: []scriptedmodel.Block{{Thought: []string{"hm"}, State: "s"}, {Call: &scriptedmodel.Call{ID: "a", Name: "x", Arguments: []string{"{", "}"}}}, {Call: &scriptedmodel.Call{ID: "b", Name: "y", Arguments: []string{"{", "}"}}}}, Interleave: true},
	}
	for which, p := range model.Providers() {
		for _, turn := range turns {
			f.Add(uint8(which), turn.Stream(p))
		}
		f.Add(uint8(which), "data: {\"error\":{\"message\":\"x\",\"code\":429}}\n\n")
		f.Add(uint8(which), "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"a\"}},{\"index\":-1}]},\"finish_reason\":\"x\"}]}\n\ndata: [DONE]\n\n")
	}
	bounds := model.DefaultBounds
	bounds.Bytes = 1 << 16
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		rec := model.Record{Provider: model.Providers()[int(which)%len(model.Providers())], BaseURL: "https://provider.example/v1", Upstream: "m", Key: "sk-provider-key-of-length", Spec: model.Spec{Capabilities: model.Capabilities}}
		var fold model.Fold
		var last model.Delta
		total := 0
		for d, err := range open(t, rec, stream(text), bounds).Generate(t.Context(), hello) {
			if err != nil {
				e, ok := errors.AsType[*model.Error](err)
				if !ok || e.Msg == "" || strings.Contains(e.Msg, rec.Key) {
					t.Fatalf("the error is %v", err)
				}
				return
			}
			if last.Kind == model.Stopped {
				t.Fatal("more after the end")
			}
			last = d
			total += len(d.Text)
			fold.Add(d)
		}
		if last.Kind != model.Stopped || total > bounds.Bytes {
			t.Fatalf("it ended with %+v after %d bytes", last, total)
		}
		a := fold.Answer()
		seen := map[string]bool{}
		for _, c := range a.Calls() {
			if c.ID == "" || c.Name == "" || c.Arguments == "" || seen[c.ID] {
				t.Fatalf("the calls are %+v", a.Calls())
			}
			seen[c.ID] = true
		}
		if u, ok := a.Usage.Sound(); !ok || u != a.Usage {
			t.Fatalf("the usage is %+v", a.Usage)
		}
	})
}
