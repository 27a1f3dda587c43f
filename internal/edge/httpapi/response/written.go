package response

import (
	"strings"

	"github.com/atoll-run/atoll/internal/agent/interpreter"
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
		if it.code == nil {
			it.code = codeIn()
		}
		text = it.code.Write(text)
	}
	it.text = append(it.text, text...)
	if text == "" {
		return nil
	}
	return s.send(&ResponseEvent{Type: kind, ItemID: it.id, OutputIndex: at, Delta: &text})
}

// called tells that a call is made which the model wrote.
func (s *stream) called(e *run.ItemEvent) error {
	it, err := s.recorded(e)
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
		code, err := codeOf(it.Use)
		if err != nil {
			return err
		}
		whole, delta = code, "response.code_interpreter_call_code.delta"
		after = []ResponseEvent{{Type: "response.code_interpreter_call_code.done", Code: &whole}, {Type: "response.code_interpreter_call.interpreting"}}
	}
	rest, ok := strings.CutPrefix(whole, string(o.text))
	if !ok {
		rest = "" // the provider has said two things: the last one counts
	}
	o.writes, o.code, o.text = false, nil, nil
	for rest != "" {
		piece := rest[:pieceOf(rest)]
		rest = rest[len(piece):]
		if err := s.send(&ResponseEvent{Type: delta, ItemID: o.id, OutputIndex: at, Delta: &piece}); err != nil {
			return err
		}
	}
	for i := range after {
		after[i].ItemID, after[i].OutputIndex = o.id, at
		if err := s.send(&after[i]); err != nil {
			return err
		}
	}
	return nil
}

// pieceOf is how much of a text goes into one event.
func pieceOf(text string) int {
	n := min(len(text), run.MaxDelta)
	for n < len(text) && n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return n
}
