package openai

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
)

// Chat is a model behind Chat Completions.
type Chat struct {
	rec     model.Record
	service sdk.ChatCompletionService
}

var _ model.Model = (*Chat)(nil)

// NewChat returns the model of a record; rt reaches its provider.
func NewChat(rec model.Record, rt http.RoundTripper) *Chat {
	return &Chat{rec, sdk.NewChatCompletionService(options(&rec, rt)...)}
}

// Blocks of an answer: reasoning, text, and then each call.
const (
	chatThought = iota
	chatText
	chatCalls
)

// Generate implements model.Model.
func (c *Chat) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		params, err := c.params(&r)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		var res *http.Response
		stream := c.service.NewStreaming(ctx, params, option.WithResponseInto(&res))
		if err := stream.Err(); err != nil || res == nil {
			yield(model.Delta{}, transport.Failure(ctx, err))
			return
		}
		defer res.Body.Close()
		a := &chatAnswer{rec: &c.rec, yield: yield, requestID: transport.RequestID(res.Header)}
		if !yield(model.Delta{Kind: model.Started, RequestID: a.requestID}, nil) {
			return
		}
		in := events{decoder: ssestream.NewDecoder(res)}
		for {
			ok, done := in.next()
			switch {
			case ok:
				if err := a.take(in.data); err != nil {
					yield(model.Delta{}, err)
					return
				}
				if a.gone {
					return
				}
			case done || a.finish != "" && in.decoder.Err() == nil && ctx.Err() == nil:
				a.end()
				return
			default:
				yield(model.Delta{}, transport.Ended(ctx, in.decoder.Err()))
				return
			}
		}
	}
}

// chatChunk is an event of a stream, with the fields of the dialects.
type chatChunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Delta struct {
			Content          json.RawMessage `json:"content"` // text; some send null or parts
			Refusal          *string         `json:"refusal"`
			ReasoningContent *string         `json:"reasoning_content"` // DeepSeek, vLLM, Qwen
			Reasoning        *string         `json:"reasoning"`         // OpenRouter, Ollama, newer vLLM
			ToolCalls        []chatCall      `json:"tool_calls"`

			Annotations []json.RawMessage `json:"annotations"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
}

// chatCall is a fragment of a tool call.
type chatCall struct {
	Index    *int   `json:"index"` // Gemini leaves it out
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // text; some send the object itself
	} `json:"function"`
	Custom struct { // in place of Function
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"custom"`
	ExtraContent json.RawMessage `json:"extra_content"` // Gemini's signature of the thought before it
}

type chatUsage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	PromptTokensDetails *struct {
		CachedTokens     int64 `json:"cached_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails *struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	PromptCacheHitTokens int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
}

func (u *chatUsage) usage() model.Usage {
	out := model.Usage{Input: u.PromptTokens, Output: u.CompletionTokens, CacheRead: u.PromptCacheHitTokens}
	if d := u.PromptTokensDetails; d != nil {
		out.CacheRead, out.CacheWrite = max(out.CacheRead, d.CachedTokens), d.CacheWriteTokens
	}
	if d := u.CompletionTokensDetails; d != nil {
		out.Reasoning = d.ReasoningTokens
	}
	return out
}

// chatAnswer makes deltas of chunks.
type chatAnswer struct {
	rec       *model.Record
	yield     func(model.Delta, error) bool
	gone      bool // the caller reads no more
	requestID string
	field     string // of the reasoning: the provider's name for it
	calls     []*growing
	finish    string
	said      bool // text has come
	refused   bool
}

// growing is a tool call of which not all has come.
type growing struct {
	index     int // the provider's
	call      model.Call
	given     string // the id as the provider gave it
	arguments strings.Builder
	begun     bool
}

func (a *chatAnswer) send(d model.Delta) {
	if !a.gone && !a.yield(d, nil) {
		a.gone = true
	}
}

func (a *chatAnswer) take(data []byte) error {
	var chunk chatChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return unreadable()
	}
	if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
		return transport.Streamed(transport.ReadError(data), a.requestID, a.rec.Key)
	}
	for _, choice := range chunk.Choices[:min(1, len(chunk.Choices))] {
		d := &choice.Delta
		a.think("reasoning_content", d.ReasoningContent)
		a.think("reasoning", d.Reasoning)
		if text := contentText(d.Content); text != "" {
			a.said = true
			a.send(model.Delta{Kind: model.Said, Index: chatText, Text: text})
		}
		for _, raw := range d.Annotations {
			if c := citationOf(raw); c != nil && a.said {
				a.send(model.Delta{Kind: model.Cited, Index: chatText, Citation: c})
			}
		}
		if d.Refusal != nil && *d.Refusal != "" {
			a.refused = true
			a.send(model.Delta{Kind: model.Refused, Index: chatText, Text: *d.Refusal})
		}
		for i := range d.ToolCalls {
			a.toolCall(&d.ToolCalls[i])
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			a.finish = *choice.FinishReason
		}
	}
	if chunk.Usage != nil {
		a.send(model.Delta{Kind: model.Used, Usage: chunk.Usage.usage()})
	}
	return nil
}

// think takes reasoning in a field. Of a server that fills both, one counts.
func (a *chatAnswer) think(field string, text *string) {
	if text == nil || *text == "" || a.field != "" && a.field != field {
		return
	}
	a.field = field
	a.send(model.Delta{Kind: model.Thinking, Index: chatThought, Text: *text})
}

// contentText is the text of a content, which is text or a list of parts.
func contentText(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] == 'n' {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(raw, &parts) // what is neither says nothing
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// toolCall takes a fragment. Which call it belongs to says its index; without one, or
// where a server counts every call as the first, a new id begins a call.
func (a *chatAnswer) toolCall(f *chatCall) {
	custom := f.Custom.Name != "" || len(f.Custom.Input) > 0
	if custom {
		f.Function.Name, f.Function.Arguments = f.Custom.Name, f.Custom.Input
	}
	var g *growing
	for _, c := range slices.Backward(a.calls) {
		same := f.Index == nil || *f.Index == c.index
		if same && (f.ID == "" || c.given == "" && f.Function.Name == "" || f.ID == c.given) {
			g = c
			break
		}
	}
	if g == nil || f.ID == "" && f.Function.Name != "" && g.begun && f.Index == nil {
		g = &growing{index: len(a.calls)}
		if f.Index != nil {
			g.index = *f.Index
		}
		a.calls = append(a.calls, g)
	}
	at := chatCalls + slices.Index(a.calls, g)
	if !g.begun && f.Function.Name != "" {
		g.begun, g.given = true, f.ID
		if g.call = (model.Call{ID: f.ID, Name: f.Function.Name, Custom: custom}); f.ID == "" {
			g.call.ID = "call_" + rand.Text()
		}
		a.send(model.Delta{Kind: model.CallBegun, Index: at, Call: g.call})
	}
	if len(f.ExtraContent) > 0 && string(f.ExtraContent) != "null" {
		g.call.State = model.State{Origin: a.rec.Origin(), Data: string(f.ExtraContent)}
	}
	text := string(f.Function.Arguments)
	var quoted string
	switch {
	case text == "" || text == "null":
		return
	case json.Unmarshal(f.Function.Arguments, &quoted) == nil:
		text = quoted
	}
	if text != "" {
		g.arguments.WriteString(text)
		a.send(model.Delta{Kind: model.CallArguments, Index: at, Text: text})
	}
}

// end says what is known only at the end.
func (a *chatAnswer) end() {
	if a.field != "" {
		a.send(model.Delta{Kind: model.ThoughtEnded, Index: chatThought, State: model.State{Origin: a.rec.Origin(), ID: a.field}})
	}
	for i, g := range a.calls {
		if g.call.Arguments = g.arguments.String(); !g.call.Custom && strings.TrimSpace(g.call.Arguments) == "" {
			g.call.Arguments = "{}"
		}
		a.send(model.Delta{Kind: model.CallEnded, Index: chatCalls + i, Call: g.call})
	}
	stop := model.StopEnd
	switch {
	case a.finish == "length":
		stop = model.StopMaxTokens
	case a.finish == "content_filter":
		stop = model.StopFilter
	case len(a.calls) > 0: // some say stop
		stop = model.StopToolCalls
	case a.refused:
		stop = model.StopRefusal
	}
	a.send(model.Delta{Kind: model.Stopped, Stop: stop})
}
