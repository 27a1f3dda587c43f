package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/core/model"
)

type object = map[string]any

// render is the data of a turn's events in the protocol of a request.
func (t *Turn) render(in Request) []string {
	switch in.Provider {
	case "openai":
		return t.responses(in)
	case "anthropic":
		return t.messages(in)
	}
	return t.chat(in)
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a script cannot have what JSON has not
	}
	return string(text)
}

// body is a refusal as a body.
func (r *Refusal) body(p model.Provider) string {
	if p == "anthropic" {
		return encode(object{"type": "error", "error": object{"type": r.Type, "message": r.Message}})
	}
	return encode(object{"error": object{"message": r.Message, "type": r.Type, "code": r.Code, "param": nil}})
}

// event is a refusal as an event.
func (r *Refusal) event(p model.Provider) string {
	if p == "openai" {
		return encode(object{"type": "error", "code": r.Code, "message": r.Message, "param": nil})
	}
	return r.body(p)
}

// calls are the consecutive calls from a block on.
func calls(blocks []Block) (out []*Call) {
	for _, b := range blocks {
		if b.Call == nil {
			break
		}
		out = append(out, b.Call)
	}
	return out
}

// events collects events.
type events struct{ list []string }

func (e *events) add(v object) { e.list = append(e.list, encode(v)) }

// responses are the events of the Responses protocol.
func (t *Turn) responses(in Request) []string {
	e := &events{}
	number := 0
	add := func(kind string, v object) {
		v["type"], v["sequence_number"] = kind, number
		number++
		e.add(v)
	}
	head := object{"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": in.Body["model"], "output": []any{}}
	add("response.created", object{"response": head})
	add("response.in_progress", object{"response": head})
	for at := 0; at < len(t.Blocks); at++ {
		b := t.Blocks[at]
		id := fmt.Sprintf("item_%d", at)
		part := func(kind string, fields object) {
			fields["item_id"], fields["output_index"] = id, at
			add(kind, fields)
		}
		switch {
		case b.Call != nil:
			group := calls(t.Blocks[at:])
			item := func(i int, status, arguments string) object {
				if group[i].Custom {
					return object{"type": "custom_tool_call", "id": fmt.Sprintf("item_%d", at+i), "call_id": group[i].ID, "name": group[i].Name, "input": arguments, "status": status}
				}
				return object{"type": "function_call", "id": fmt.Sprintf("item_%d", at+i), "call_id": group[i].ID, "name": group[i].Name, "arguments": arguments, "status": status}
			}
			for i := range group {
				add("response.output_item.added", object{"output_index": at + i, "item": item(i, "in_progress", "")})
			}
			for _, f := range fragments(group, t.Interleave) {
				kind := "response.function_call_arguments.delta"
				if group[f.call].Custom {
					kind = "response.custom_tool_call_input.delta"
				}
				add(kind, object{"item_id": fmt.Sprintf("item_%d", at+f.call), "output_index": at + f.call, "delta": f.text})
			}
			for i, c := range group {
				whole := strings.Join(c.Arguments, "")
				if c.Custom {
					add("response.custom_tool_call_input.done", object{"item_id": fmt.Sprintf("item_%d", at+i), "output_index": at + i, "input": whole})
				} else {
					add("response.function_call_arguments.done", object{"item_id": fmt.Sprintf("item_%d", at+i), "output_index": at + i, "arguments": whole})
				}
				add("response.output_item.done", object{"output_index": at + i, "item": item(i, "completed", whole)})
			}
			at += len(group) - 1
		case b.Thought != nil || b.Summary != nil || b.State != "":
			item := object{"type": "reasoning", "id": id, "summary": []any{}}
			add("response.output_item.added", object{"output_index": at, "item": item})
			for _, text := range b.Thought {
				part("response.reasoning_text.delta", object{"content_index": 0, "delta": text})
			}
			for i, text := range b.Summary {
				part("response.reasoning_summary_part.added", object{"summary_index": i, "part": object{"type": "summary_text", "text": ""}})
				part("response.reasoning_summary_text.delta", object{"summary_index": i, "delta": text})
				part("response.reasoning_summary_text.done", object{"summary_index": i, "text": text})
				part("response.reasoning_summary_part.done", object{"summary_index": i, "part": object{"type": "summary_text", "text": text}})
			}
			add("response.output_item.done", object{"output_index": at, "item": object{"type": "reasoning", "id": id, "summary": []any{}, "encrypted_content": b.State}})
		default:
			item := object{"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []any{}}
			add("response.output_item.added", object{"output_index": at, "item": item})
			for _, text := range b.Text {
				part("response.output_text.delta", object{"content_index": 0, "delta": text, "logprobs": []any{}})
			}
			for i, c := range b.Cites {
				part("response.output_text.annotation.added", object{"content_index": 0, "annotation_index": i, "annotation": annotation(c)})
			}
			if b.Refusal != "" {
				part("response.refusal.delta", object{"content_index": 0, "delta": b.Refusal})
			}
			content := object{"type": "output_text", "text": strings.Join(b.Text, ""), "annotations": annotations(b.Cites)}
			if b.Refusal != "" {
				content = object{"type": "refusal", "refusal": b.Refusal}
			}
			add("response.output_item.done", object{"output_index": at, "item": object{"type": "message", "id": id, "role": "assistant", "status": "completed", "content": []any{content}}})
		}
	}
	tail := object{"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": in.Body["model"], "output": []any{}}
	kind := "response.completed"
	switch t.stop() {
	case model.StopMaxTokens, model.StopFilter:
		kind = "response.incomplete"
		tail["status"], tail["incomplete_details"] = "incomplete", object{"reason": string(t.stop())}
	}
	if u := t.Usage; u != nil {
		tail["usage"] = object{
			"input_tokens": u.Input, "input_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
			"output_tokens": u.Output, "output_tokens_details": object{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Input + u.Output,
		}
	}
	add(kind, object{"response": tail})
	return e.list
}

func annotation(c model.Citation) object {
	return object{"type": "url_citation", "url": c.URL, "title": c.Title, "start_index": c.Start, "end_index": c.End}
}

func annotations(all []model.Citation) []any {
	out := make([]any, len(all))
	for i, c := range all {
		out[i] = annotation(c)
	}
	return out
}

// chat are the events of Chat Completions.
func (t *Turn) chat(in Request) []string {
	e := &events{}
	chunk := func(delta object, finish any) {
		e.add(object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": in.Body["model"],
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	before := 0 // calls of earlier groups
	for at := 0; at < len(t.Blocks); at++ {
		b := t.Blocks[at]
		switch {
		case b.Call != nil:
			group := calls(t.Blocks[at:])
			for i, c := range group {
				if c.Custom {
					chunk(object{"tool_calls": []any{object{"index": before + i, "id": c.ID, "type": "custom", "custom": object{"name": c.Name, "input": ""}}}}, nil)
				} else {
					chunk(object{"tool_calls": []any{object{"index": before + i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}}, nil)
				}
			}
			for _, f := range fragments(group, t.Interleave) {
				if group[f.call].Custom {
					chunk(object{"tool_calls": []any{object{"index": before + f.call, "custom": object{"input": f.text}}}}, nil)
				} else {
					chunk(object{"tool_calls": []any{object{"index": before + f.call, "function": object{"arguments": f.text}}}}, nil)
				}
			}
			before += len(group)
			at += len(group) - 1
		case b.Thought != nil:
			for _, text := range b.Thought {
				chunk(object{"reasoning_content": text}, nil)
			}
		default:
			for _, text := range b.Text {
				chunk(object{"content": text}, nil)
			}
			for _, c := range b.Cites {
				chunk(object{"annotations": []any{object{"type": "url_citation", "url_citation": annotation(c)}}}, nil)
			}
			if b.Refusal != "" {
				chunk(object{"refusal": b.Refusal}, nil)
			}
		}
	}
	finish := map[model.StopReason]string{model.StopToolCalls: "tool_calls", model.StopMaxTokens: "length", model.StopFilter: "content_filter"}[t.stop()]
	if finish == "" {
		finish = "stop"
	}
	chunk(object{}, finish)
	if u := t.Usage; u != nil {
		e.add(object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": in.Body["model"], "choices": []any{}, "usage": object{
			"prompt_tokens": u.Input, "prompt_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
			"completion_tokens": u.Output, "completion_tokens_details": object{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Input + u.Output,
		}})
	}
	e.list = append(e.list, "[DONE]")
	return e.list
}

// messages are the events of the Messages protocol. A call's fragments cannot take turns
// there: blocks come one after the other.
func (t *Turn) messages(in Request) []string {
	e := &events{}
	var u model.Usage
	start := object{"id": "msg_1", "type": "message", "role": "assistant", "model": in.Body["model"], "content": []any{}, "stop_reason": nil}
	if t.Usage != nil {
		u = *t.Usage
		start["usage"] = object{
			"input_tokens": u.Input - u.CacheRead - u.CacheWrite, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite, "output_tokens": 1,
		}
	}
	e.add(object{"type": "message_start", "message": start})
	e.add(object{"type": "ping"})
	for at, b := range t.Blocks {
		begin := func(block object) { e.add(object{"type": "content_block_start", "index": at, "content_block": block}) }
		delta := func(d object) { e.add(object{"type": "content_block_delta", "index": at, "delta": d}) }
		switch {
		case b.Call != nil:
			begin(object{"type": "tool_use", "id": b.Call.ID, "name": b.Call.Name, "input": object{}})
			for _, text := range b.Call.Arguments {
				delta(object{"type": "input_json_delta", "partial_json": text})
			}
		case b.Thought != nil:
			begin(object{"type": "thinking", "thinking": "", "signature": ""})
			for _, text := range b.Thought {
				delta(object{"type": "thinking_delta", "thinking": text})
			}
			delta(object{"type": "signature_delta", "signature": b.State})
		default:
			begin(object{"type": "text", "text": ""})
			for _, text := range b.Text {
				delta(object{"type": "text_delta", "text": text})
			}
			for _, c := range b.Cites {
				delta(object{"type": "citations_delta", "citation": object{"type": "web_search_result_location", "url": c.URL, "title": c.Title, "cited_text": "", "encrypted_index": ""}})
			}
			if b.Refusal != "" { // is a reason to stop there
				delta(object{"type": "text_delta", "text": b.Refusal})
			}
		}
		e.add(object{"type": "content_block_stop", "index": at})
	}
	stop := map[model.StopReason]string{
		model.StopToolCalls: "tool_use", model.StopMaxTokens: "max_tokens", model.StopRefusal: "refusal",
	}[t.stop()]
	if stop == "" {
		stop = "end_turn"
	}
	last := object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}}
	if t.Usage != nil {
		last["usage"] = object{"output_tokens": u.Output, "output_tokens_details": object{"thinking_tokens": u.Reasoning}}
	}
	e.add(last)
	e.add(object{"type": "message_stop"})
	return e.list
}

// Stream is the body of a turn's answer in a protocol.
func (t *Turn) Stream(p model.Provider) string {
	var out strings.Builder
	for _, data := range t.render(Request{Provider: p, Body: object{"model": "scripted-1"}}) {
		out.WriteString(frame(data))
	}
	return out.String()
}

// Fault is an error as an event of a stream in a protocol.
func Fault(p model.Provider, r Refusal) string { return frame(r.event(p)) }
