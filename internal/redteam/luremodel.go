package redteam

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// script gives the answers of the lure's model in the conversations that name the script.
type script struct {
	id string
	// next returns the answer after turn earlier answers with calls.
	next func(turn int) reply

	asked []string // bodies of the requests
}

// reply is one answer of the model.
type reply struct {
	Text  string
	Calls []toolCall
	Usage any  // that the provider reports: nil for a small honest one, noUsage for none
	Cut   bool // the connection breaks before the answer ends
}

// toolCall is a call that the model asks for.
type toolCall struct {
	Tool string
	Args any // a value to encode as JSON, or a string to send unchanged
}

// noUsage makes the provider report no token counts.
type noUsage struct{}

// steps returns answers that make one call after another and then end the turn.
func steps(calls ...toolCall) func(int) reply {
	return func(turn int) reply {
		if turn < len(calls) {
			return reply{Calls: calls[turn : turn+1]}
		}
		return reply{Text: "done"}
	}
}

// scriptName matches the id of a script in a message.
var scriptName = regexp.MustCompile(`redteam-script-[0-9a-f]+`)

// play registers a script. A user message that contains its id makes the model play it.
func (l *lure) play(next func(turn int) reply) *script {
	s := &script{id: "redteam-script-" + token(6), next: next}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scripts[s.id] = s
	return s
}

// prompts returns the bodies of the model requests that a script has answered.
func (l *lure) prompts(s *script) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// model answers requests of the Chat Completions API.
func (l *lure) model(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
			Calls   []json.RawMessage `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	name, turn := "", 0
	for _, m := range in.Messages {
		switch {
		case m.Role == "user" && scriptName.Match(m.Content):
			name, turn = scriptName.FindString(string(m.Content)), 0
		case m.Role == "assistant" && len(m.Calls) > 0:
			turn++
		}
	}
	answer := reply{Text: "ready"} // for a conversation without a script, such as the operator's test of the model
	l.mu.Lock()
	if s := l.scripts[name]; s != nil {
		s.asked = append(s.asked, string(body))
		answer = s.next(turn)
	}
	l.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range answer.events(turn) {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
	}
	_ = http.NewResponseController(w).Flush()
	if answer.Cut {
		panic(http.ErrAbortHandler)
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// events returns the chunks of an answer.
func (p reply) events(turn int) (out []string) {
	chunk := func(delta map[string]any, finish any) {
		out = append(out, asJSON(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "redteam",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		}))
	}
	chunk(map[string]any{"role": "assistant", "content": p.Text}, nil)
	if p.Cut {
		return out
	}
	finish := "stop"
	for i, c := range p.Calls {
		finish = "tool_calls"
		arguments, ok := c.Args.(string)
		if !ok {
			arguments = asJSON(c.Args)
		}
		chunk(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": fmt.Sprintf("call_%d_%d", turn, i), "type": "function", "function": map[string]any{"name": c.Tool, "arguments": arguments},
		}}}, nil)
	}
	chunk(map[string]any{}, finish)
	usage := p.Usage
	if usage == nil {
		usage = map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	}
	if _, none := usage.(noUsage); !none {
		out = append(out, asJSON(map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "redteam", "choices": []any{}, "usage": usage}))
	}
	return out
}

// asJSON encodes a value that a case defines. It panics if JSON cannot represent the value.
func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// resultsIn returns the tool results in a request to the model.
func resultsIn(prompt string) (out []string) {
	var in struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal([]byte(prompt), &in) // model has decoded it before
	for _, m := range in.Messages {
		if m.Role == "tool" {
			out = append(out, string(m.Content))
		}
	}
	return out
}
