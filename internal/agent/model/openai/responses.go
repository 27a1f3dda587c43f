package openai

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
)

// Responses is a model that speaks the Responses protocol. The provider stores nothing, so each
// request carries the whole context.
type Responses struct {
	rec     model.Record
	service sdk.ResponseService
}

var _ model.Model = (*Responses)(nil)

// NewResponses returns the model of a record; rt sends the requests to its provider.
func NewResponses(rec model.Record, rt http.RoundTripper) *Responses {
	return &Responses{rec, sdk.NewResponseService(options(&rec, rt)...)}
}

// Generate implements model.Model.
func (m *Responses) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		params, err := m.params(&r)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		var res *http.Response
		stream := m.service.NewStreaming(ctx, params, option.WithResponseInto(&res))
		if err := stream.Err(); err != nil || res == nil {
			yield(model.Delta{}, transport.Failure(ctx, err))
			return
		}
		defer res.Body.Close()
		a := &answer{rec: &m.rec, yield: yield, requestID: transport.RequestID(res.Header), calls: map[int]*growing{}, said: map[int]bool{}, cited: map[int]bool{}}
		if !yield(model.Delta{Kind: model.Started, RequestID: a.requestID}, nil) {
			return
		}
		in := events{decoder: ssestream.NewDecoder(res)}
		for !a.over && !a.gone {
			if ok, _ := in.next(); !ok {
				yield(model.Delta{}, transport.Ended(ctx, in.decoder.Err()))
				return
			}
			if err := a.take(in.data); err != nil {
				yield(model.Delta{}, err)
				return
			}
		}
	}
}

// event is an event of a stream. Fields whose meaning depends on the event's type are decoded
// later.
type event struct {
	Type        string          `json:"type"`
	Delta       json.RawMessage `json:"delta"`
	OutputIndex int             `json:"output_index"`
	Annotation  json.RawMessage `json:"annotation"`
	Item        json.RawMessage `json:"item"`
	Response    json.RawMessage `json:"response"`
}

// outputItem is a part of an answer.
type outputItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"`
	Encrypted string `json:"encrypted_content"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`

		Annotations []json.RawMessage `json:"annotations"`
	} `json:"content"`
}

// response has the fields read from the object that ends a stream.
type response struct {
	Status            string          `json:"status"`
	Error             json.RawMessage `json:"error"`
	IncompleteDetails struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		InputTokens        int64 `json:"input_tokens"`
		OutputTokens       int64 `json:"output_tokens"`
		InputTokensDetails struct {
			CachedTokens     int64 `json:"cached_tokens"`
			CacheWriteTokens int64 `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputTokensDetails struct {
			ReasoningTokens int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// answer converts events to deltas.
type answer struct {
	rec       *model.Record
	yield     func(model.Delta, error) bool
	gone      bool // the caller reads no more
	over      bool
	requestID string
	calls     map[int]*growing
	said      map[int]bool // messages of which text has come
	cited     map[int]bool // messages of which citations have come
	refused   bool
}

func (a *answer) send(d model.Delta) {
	if !a.gone && !a.yield(d, nil) {
		a.gone = true
	}
}

// texts are the events that add text.
var texts = map[string]model.DeltaKind{
	"response.output_text.delta": model.Said, "response.refusal.delta": model.Refused, "response.reasoning_summary_text.delta": model.Summarized,
	"response.reasoning_text.delta": model.Thinking, "response.function_call_arguments.delta": model.CallArguments,
	"response.custom_tool_call_input.delta": model.CallArguments,
}

func (a *answer) take(data []byte) error {
	if name, at, delta, ok := flatText(data); ok {
		if kind, is := texts[name]; is {
			return a.quoted(kind, at, delta)
		}
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return unreadable()
	}
	if kind, is := texts[e.Type]; is {
		return a.quoted(kind, e.OutputIndex, e.Delta)
	}
	switch e.Type {
	case "response.reasoning_summary_part.done":
		a.send(model.Delta{Kind: model.SummaryEnded, Index: e.OutputIndex})
	case "response.output_text.annotation.added":
		a.cite(e.OutputIndex, e.Annotation)
	case "response.output_item.added", "response.output_item.done":
		var item outputItem
		if err := json.Unmarshal(e.Item, &item); err != nil {
			return unreadable()
		}
		a.item(e.OutputIndex, &item, e.Type == "response.output_item.done")
	case "response.completed", "response.incomplete", "response.failed":
		var r response
		if err := json.Unmarshal(e.Response, &r); err != nil {
			return unreadable()
		}
		return a.end(e.Type, &r)
	case "error":
		return transport.Streamed(transport.ReadError(data), a.requestID, a.rec.Key)
	}
	return nil // of a later version, or of no use
}

// quoted adds text that is encoded as a JSON string.
func (a *answer) quoted(kind model.DeltaKind, at int, delta []byte) error {
	if n := len(delta); n >= 2 && delta[0] == '"' && utf8.Valid(delta) && !escaped(delta) {
		return a.text(kind, at, string(delta[1:n-1]))
	}
	var text string
	if err := json.Unmarshal(delta, &text); err != nil {
		return unreadable()
	}
	return a.text(kind, at, text)
}

func (a *answer) text(kind model.DeltaKind, at int, text string) error {
	if text == "" {
		return nil
	}
	switch kind {
	case model.Said:
		a.said[at] = true
	case model.Refused:
		a.said[at], a.refused = true, true
	case model.CallArguments:
		g := a.calls[at]
		if g == nil {
			return model.Errorf(model.Broken, "the model's answer has arguments of no tool call")
		}
		g.arguments.WriteString(text)
	}
	a.send(model.Delta{Kind: kind, Index: at, Text: text})
	return nil
}

func (a *answer) item(at int, item *outputItem, done bool) {
	switch item.Type {
	case "function_call", "custom_tool_call":
		a.call(at, item, done)
	case "reasoning":
		if done {
			a.send(model.Delta{Kind: model.ThoughtEnded, Index: at, State: model.State{Origin: a.rec.Origin(), ID: item.ID, Data: item.Encrypted}})
		}
	case "message":
		if !done {
			return
		}
		said, cited := a.said[at], a.cited[at]
		for _, part := range item.Content { // of a server that streams no text, or no citations
			if !said {
				_ = a.text(model.Said, at, part.Text) // fails for arguments alone
				_ = a.text(model.Refused, at, part.Refusal)
			}
			for _, raw := range part.Annotations {
				if !cited {
					a.cite(at, raw)
				}
			}
		}
	}
}

func (a *answer) call(at int, item *outputItem, done bool) {
	g := a.calls[at]
	if g == nil {
		g = &growing{call: model.Call{ID: item.CallID, Name: item.Name, Custom: item.Type == "custom_tool_call"}, begun: true}
		a.calls[at] = g
		a.send(model.Delta{Kind: model.CallBegun, Index: at, Call: g.call})
	}
	if done {
		a.endCall(at, g, item.Arguments+item.Input) // a call has one of them
	}
}

// endCall ends a call, once. The whole arguments win over the fragments.
func (a *answer) endCall(at int, g *growing, whole string) {
	if !g.begun {
		return
	}
	g.begun = false
	if g.call.Arguments = whole; whole == "" {
		g.call.Arguments = g.arguments.String()
	}
	if !g.call.Custom && strings.TrimSpace(g.call.Arguments) == "" {
		g.call.Arguments = "{}"
	}
	a.send(model.Delta{Kind: model.CallEnded, Index: at, Call: g.call})
}

func (a *answer) end(kind string, r *response) error {
	if u := r.Usage; u != nil {
		a.send(model.Delta{Kind: model.Used, Usage: model.Usage{
			Input: u.InputTokens, CacheRead: u.InputTokensDetails.CachedTokens, CacheWrite: u.InputTokensDetails.CacheWriteTokens,
			Output: u.OutputTokens, Reasoning: u.OutputTokensDetails.ReasoningTokens,
		}})
	}
	if kind == "response.failed" || r.Status == "failed" {
		return transport.Streamed(transport.ReadError(r.Error), a.requestID, a.rec.Key)
	}
	indexes := make([]int, 0, len(a.calls))
	for at := range a.calls {
		indexes = append(indexes, at)
	}
	slices.Sort(indexes)
	for _, at := range indexes {
		a.endCall(at, a.calls[at], "")
	}
	stop := model.StopEnd
	switch {
	case r.IncompleteDetails.Reason == "content_filter":
		stop = model.StopFilter
	case kind == "response.incomplete":
		stop = model.StopMaxTokens
	case len(a.calls) > 0:
		stop = model.StopToolCalls
	case a.refused:
		stop = model.StopRefusal
	}
	a.over = true
	a.send(model.Delta{Kind: model.Stopped, Stop: stop})
	return nil
}
