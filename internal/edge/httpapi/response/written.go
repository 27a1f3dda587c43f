package response

import (
	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Calls of code_interpreter and of MCP servers are told of while the model writes them: code
// as the text that it is in the arguments' JSON, other arguments as they come. What the call
// is made with follows when it is made. A call that was on record before readers heard of it
// is told of at once.

// writes tells what the model has added to a call.
func (s *stream) writes(it *open, at *int, text string) error {
	kind := "response.mcp_call_arguments.delta"
	if it.kind == "code_interpreter_call" {
		kind = "response.code_interpreter_call_code.delta"
	}
	if text = it.writes.Write(text, it.kind == "code_interpreter_call"); text == "" {
		return nil
	}
	return s.send(&ResponseEvent{Type: kind, ItemID: it.id, OutputIndex: at, Delta: &text})
}

// called tells that a call is made which the model wrote.
func (s *stream) called(e *run.ItemEvent) error {
	it, err := response.Recorded(e, s.full)
	if err != nil {
		return err
	}
	return s.written(it, &e.Index)
}

// written tells what a call is made with, beside what was told of it.
func (s *stream) written(it *run.Item, at *int) error {
	if it.Use == nil || it.Use.Input == nil || it.Use.Server == "" && it.Use.Tool != interpreter.Name {
		return nil
	}
	o := &s.items[*at]
	whole, delta := string(it.Use.Input), "response.mcp_call_arguments.delta"
	after := []ResponseEvent{{Type: "response.mcp_call_arguments.done", Arguments: &whole}}
	if it.Use.Server == "" {
		code, err := interpreter.CodeOf(it.Use)
		if err != nil {
			return err
		}
		whole, delta = code, "response.code_interpreter_call_code.delta"
		after = []ResponseEvent{{Type: "response.code_interpreter_call_code.done", Code: &whole}, {Type: "response.code_interpreter_call.interpreting"}}
	}
	if o.writes == nil { // it was on record
		o.writes = &response.Writing{}
	}
	for _, piece := range o.writes.End(whole) {
		if err := s.send(&ResponseEvent{Type: delta, ItemID: o.id, OutputIndex: at, Delta: &piece}); err != nil {
			return err
		}
	}
	o.writes = nil
	for i := range after {
		after[i].ItemID, after[i].OutputIndex = o.id, at
		if err := s.send(&after[i]); err != nil {
			return err
		}
	}
	return nil
}
