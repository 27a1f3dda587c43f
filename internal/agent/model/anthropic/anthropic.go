// Package anthropic speaks the Messages protocol by Anthropic's SDK, which makes requests
// and splits streams into events. Events are decoded here, as in package openai.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"unicode/utf8"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
)

// Protocol is Anthropic's Messages API.
var Protocol = model.Protocol{
	Name: "anthropic", DefaultURL: "https://api.anthropic.com", MaxTemperature: 1,
	Open: func(r model.Record, rt http.RoundTripper) model.Model { return New(r, rt) },
}

// Messages is a model behind the Messages protocol.
type Messages struct {
	rec     model.Record
	service sdk.MessageService
}

var _ model.Model = (*Messages)(nil)

// New returns the model of a record; rt reaches its provider. Nothing comes from the
// environment.
func New(rec model.Record, rt http.RoundTripper) *Messages {
	options := []option.RequestOption{
		option.WithHTTPClient(transport.Client(rt, rec.Key)), option.WithMaxRetries(0), option.WithBaseURL(strings.TrimSuffix(strings.TrimSuffix(rec.BaseURL, "/"), "/v1") + "/"),
	}
	if rec.Key != "" {
		options = append(options, option.WithAPIKey(rec.Key))
	}
	return &Messages{rec, sdk.NewMessageService(options...)}
}

// Generate implements model.Model.
func (m *Messages) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
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
		a := &answer{rec: &m.rec, yield: yield, requestID: transport.RequestID(res.Header), blocks: map[int]*block{}}
		if !yield(model.Delta{Kind: model.Started, RequestID: a.requestID}, nil) {
			return
		}
		decoder := ssestream.NewDecoder(res)
		for !a.over && !a.gone {
			if !decoder.Next() {
				yield(model.Delta{}, transport.Ended(ctx, decoder.Err()))
				return
			}
			data := strings.TrimSpace(string(decoder.Event().Data))
			if data == "" {
				continue
			}
			if err := a.take([]byte(data)); err != nil {
				yield(model.Delta{}, err)
				return
			}
		}
	}
}

// event is one of a stream, with the fields of all kinds.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Delta   json.RawMessage `json:"delta"`
	Block   json.RawMessage `json:"content_block"`
	Message struct {
		Usage *usage `json:"usage"`
	} `json:"message"`
	Usage *usage `json:"usage"`
}

type usage struct {
	Input      *int64 `json:"input_tokens"` // those of caches not counted in
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Details    struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// answer makes deltas of events.
type answer struct {
	rec       *model.Record
	yield     func(model.Delta, error) bool
	gone      bool // the caller reads no more
	over      bool
	requestID string
	blocks    map[int]*block
	stop      string
	// Counts so far; input is without caches.
	input, read, written, output, thinking int64
	counted                                bool
}

// block is a part of the answer while it comes.
type block struct {
	kind      string
	call      model.Call
	arguments strings.Builder
	state     model.State
	said      int              // characters
	citations []model.Citation // of a text
}

func (a *answer) send(d model.Delta) {
	if !a.gone && !a.yield(d, nil) {
		a.gone = true
	}
}

func (a *answer) take(data []byte) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return model.Errorf(model.Transient, "the provider sent an event that cannot be read")
	}
	switch e.Type {
	case "message_start":
		a.count(e.Message.Usage)
		a.used() // the answer may be cut before its end
	case "content_block_start":
		return a.begin(&e)
	case "content_block_delta":
		return a.add(&e)
	case "content_block_stop":
		a.end(e.Index)
	case "message_delta":
		var d struct {
			StopReason string `json:"stop_reason"`
		}
		_ = json.Unmarshal(e.Delta, &d) // it may have none
		if d.StopReason != "" {
			a.stop = d.StopReason
		}
		a.count(e.Usage)
	case "message_stop":
		a.finish()
	case "error":
		return transport.Streamed(transport.ReadError(data), a.requestID, a.rec.Key)
	}
	return nil // a ping, of a later version, or of no use
}

// count takes what is known of the tokens: later counts replace earlier ones.
func (a *answer) count(u *usage) {
	if u == nil {
		return
	}
	for _, f := range []struct {
		to   *int64
		from *int64
	}{{&a.input, u.Input}, {&a.read, u.CacheRead}, {&a.written, u.CacheWrite}, {&a.output, u.Output}} {
		if f.from != nil {
			*f.to, a.counted = *f.from, true
		}
	}
	a.thinking = max(a.thinking, u.Details.Thinking)
}

func (a *answer) begin(e *event) error {
	var start struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Text  string          `json:"text"`
		Data  string          `json:"data"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(e.Block, &start); err != nil {
		return model.Errorf(model.Transient, "the provider sent an event that cannot be read")
	}
	b := &block{kind: start.Type, state: model.State{Origin: a.rec.Origin()}}
	a.blocks[e.Index] = b
	switch start.Type {
	case "text":
		if start.Text != "" {
			b.said += utf8.RuneCountInString(start.Text)
			a.send(model.Delta{Kind: model.Said, Index: e.Index, Text: start.Text})
		}
	case "redacted_thinking":
		b.state.ID, b.state.Data = redacted, start.Data
	case "tool_use":
		b.call = model.Call{ID: start.ID, Name: start.Name}
		if text := string(start.Input); text != "" && text != "null" && text != "{}" { // whole at once
			b.call.Arguments = text
		}
		a.send(model.Delta{Kind: model.CallBegun, Index: e.Index, Call: model.Call{ID: start.ID, Name: start.Name}})
	}
	return nil
}

// maxCitations bounds the citations of one block.
const maxCitations = 1000

// redacted is the id of the state of thinking that is not shown.
const redacted = "redacted"

func (a *answer) add(e *event) error {
	var d struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Partial   string `json:"partial_json"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Citation  struct {
			URL    string `json:"url"`    // of a search of the provider's
			Source string `json:"source"` // of a result of ours
			Title  string `json:"title"`
		} `json:"citation"`
	}
	if err := json.Unmarshal(e.Delta, &d); err != nil {
		return model.Errorf(model.Transient, "the provider sent an event that cannot be read")
	}
	b := a.blocks[e.Index]
	if b == nil {
		return model.Errorf(model.Broken, "the parts of the model's answer contradict each other")
	}
	switch {
	case d.Type == "text_delta" && d.Text != "":
		b.said += utf8.RuneCountInString(d.Text)
		a.send(model.Delta{Kind: model.Said, Index: e.Index, Text: d.Text})
	case d.Type == "citations_delta" && len(b.citations) < maxCitations:
		b.citations = append(b.citations, model.Citation{URL: cmp.Or(d.Citation.URL, d.Citation.Source), Title: d.Citation.Title})
	case d.Type == "thinking_delta" && d.Thinking != "":
		a.send(model.Delta{Kind: model.Thinking, Index: e.Index, Text: d.Thinking})
	case d.Type == "signature_delta":
		b.state.Data += d.Signature
	case d.Type == "input_json_delta" && d.Partial != "":
		b.arguments.WriteString(d.Partial)
		a.send(model.Delta{Kind: model.CallArguments, Index: e.Index, Text: d.Partial})
	}
	return nil
}

// end ends a block, once.
func (a *answer) end(at int) {
	b := a.blocks[at]
	if b == nil {
		return
	}
	switch b.kind {
	case "text": // a text that cites something is a block of its own
		for _, c := range b.citations {
			c.End = b.said
			if c, ok := c.Sound(); ok && b.said > 0 {
				a.send(model.Delta{Kind: model.Cited, Index: at, Citation: &c})
			}
		}
	case "thinking", "redacted_thinking":
		a.send(model.Delta{Kind: model.ThoughtEnded, Index: at, State: b.state})
	case "tool_use":
		if text := b.arguments.String(); text != "" {
			b.call.Arguments = text
		}
		if strings.TrimSpace(b.call.Arguments) == "" {
			b.call.Arguments = "{}"
		}
		a.send(model.Delta{Kind: model.CallEnded, Index: at, Call: b.call})
	}
	b.kind = ""
}

var stops = map[string]model.StopReason{
	"tool_use": model.StopToolCalls, "max_tokens": model.StopMaxTokens, "model_context_window_exceeded": model.StopMaxTokens, "refusal": model.StopRefusal,
}

// used tells the tokens so far.
func (a *answer) used() {
	if a.counted {
		a.send(model.Delta{Kind: model.Used, Usage: model.Usage{
			Input: a.input + a.read + a.written, CacheRead: a.read, CacheWrite: a.written, Output: a.output, Reasoning: a.thinking,
		}})
	}
}

func (a *answer) finish() {
	a.used()
	stop, known := stops[a.stop]
	if !known {
		stop = model.StopEnd
	}
	a.over = true
	a.send(model.Delta{Kind: model.Stopped, Stop: stop})
}
