package anthropic

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Types of events that clients send.
const (
	userMessage      = "user.message"
	userInterrupt    = "user.interrupt"
	userConfirmation = "user.tool_confirmation"
	userResult       = "user.custom_tool_result"
	userToolResult   = "user.tool_result"
	userOutcome      = "user.define_outcome"
	systemMessage    = "system.message"
)

// taken are the types that sessions take.
var taken = []string{userMessage, userInterrupt, userConfirmation, userResult, userOutcome, systemMessage}

// maxEvents bounds the events of a request.
const maxEvents = 50

func (d *Handlers) sendEvents(c *httpapi.Call, in *EventsFields) (out Sent, err error) {
	b, err := d.contents(c).batch(in.Events, "events", taken, 1)
	if err != nil {
		return out, err
	}
	s, err := d.find(c)
	if err != nil {
		return out, err
	}
	ctx, stop := c.Living(c.Context())
	defer stop()
	t, err := d.Conversations.Take(ctx, c.Starter(), s, &b.Batch)
	if err != nil {
		return out, err
	}
	return b.sent(s.ID, t), nil
}

// batch is what a request sends.
type batch struct {
	conversation.Batch
	messages []message
}

// message is one that a turn begins with.
type message struct {
	kind  string
	parts []model.Part
}

// sent are the events that were taken, with the ids that they have from then on.
func (b *batch) sent(of session.ID, t *conversation.Taken) Sent {
	out := Sent{Data: []Event{}}
	now := time.Now().UTC()
	if t.Interrupted != "" {
		out.Data = append(out.Data, Event{ID: interruptID(t.Interrupted), Type: userInterrupt})
	}
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind != run.EventResult || e.Tool != nil && e.Tool.Client {
			out.Data = append(out.Data, eventOf(of, &session.Event{SessionEvent: *e}))
		}
	}
	for i, m := range b.messages {
		e := Event{ID: messageID(t.Turn, i+1), Type: m.kind}
		if m.kind == userOutcome {
			e.outcome(&b.Outcome.Outcome)
		} else {
			e.Content = blocksOf(m.parts)
		}
		if !t.Queued {
			e.ProcessedAt = &now
		}
		out.Data = append(out.Data, e)
	}
	return out
}

// batch reads events, of some types: an interrupt comes first, then answers, then messages,
// and one of the system last.
func (of contents) batch(raw []jsontext.Value, path string, types []string, least int) (*batch, error) {
	if len(raw) < least || len(raw) > maxEvents {
		return nil, httpapi.Invalid("%s must have %d to %d events", path, least, maxEvents)
	}
	b := &batch{Batch: conversation.Batch{Queue: true}}
	was := ""
	for i, text := range raw {
		at := fmt.Sprintf("%s[%d]", path, i)
		var head struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(text, &head); err != nil || !slices.Contains(types, head.Type) {
			return nil, httpapi.Invalid("%s.type must be one of %s: others are not supported by this version", at, strings.Join(types, ", "))
		}
		in := &EventFields{}
		if err := decode(at, text, in); err != nil {
			return nil, err
		}
		if err := in.check(at); err != nil {
			return nil, err
		}
		if !slices.Contains(next[was], *in.Type) {
			return nil, httpapi.Invalid("%s has no place there: %s comes first and without answers to calls, then come messages, and at the end one %s, or one %s after a message or an answer",
				at, userInterrupt, userOutcome, systemMessage)
		}
		was = *in.Type
		parts, err := of.content(in, at)
		if err != nil {
			return nil, err
		}
		switch *in.Type {
		case userMessage, systemMessage:
			role, _, _ := strings.Cut(*in.Type, ".")
			b.messages = append(b.messages, message{*in.Type, parts})
			b.Messages = append(b.Messages, model.Item{Message: &model.Message{Role: model.Role(role), Parts: parts}})
		case userOutcome:
			if b.Outcome, err = of.outcome(in, at); err != nil {
				return nil, err
			}
			b.messages = append(b.messages, message{kind: userOutcome})
			b.Messages = append(b.Messages, model.Text(model.User, b.Outcome.Task()))
		case userInterrupt:
			b.Interrupt = true
		case userConfirmation:
			a := conversation.Answer{Of: *in.ToolUseID, Thread: in.thread(), Approve: new(*in.Result == "allow")}
			if in.DenyMessage != nil {
				a.Reason = *in.DenyMessage
			}
			b.Answers = append(b.Answers, a)
		case userResult:
			b.Answers = append(b.Answers, conversation.Answer{Of: *in.CustomToolUseID, Thread: in.thread(), Parts: parts, Failed: in.IsError != nil && *in.IsError})
		}
	}
	return b, nil
}

// next are the types of events that may come after one of a type; "" stands for the beginning.
var next = map[string][]string{
	"":               taken[:5],
	userInterrupt:    {userMessage, userOutcome},
	userConfirmation: {userConfirmation, userResult, userMessage},
	userResult:       {userConfirmation, userResult, userMessage, systemMessage},
	userMessage:      {userMessage, userOutcome, systemMessage},
}

// decode reads a part of a body at a path.
func decode(path string, text jsontext.Value, into any) error {
	if err := (wire.Decoder{Noun: path}).Decode(text, into); err != nil {
		return httpapi.Invalid("%s: %s", path, strings.TrimPrefix(err.Error(), path+" "))
	}
	return nil
}

// thread is the thread that a client says that the call was made in.
func (in *EventFields) thread() string {
	if in.Thread == nil {
		return ""
	}
	return *in.Thread
}

// check refuses what an event of its type cannot have.
func (in *EventFields) check(path string) error {
	for _, f := range []struct {
		name     string
		given    bool
		of       string
		optional bool
	}{
		{"tool_use_id", in.ToolUseID != nil, userConfirmation, false},
		{"result", in.Result != nil, userConfirmation, false},
		{"deny_message", in.DenyMessage != nil, userConfirmation, true},
		{"custom_tool_use_id", in.CustomToolUseID != nil, userResult, false},
		{"is_error", in.IsError != nil, userResult, true},
		{"description", in.Description != nil, userOutcome, false},
		{"rubric", len(in.Rubric) > 0, userOutcome, false},
		{"max_iterations", in.MaxIterations != nil, userOutcome, true},
	} {
		switch {
		case f.given && f.of != *in.Type:
			return httpapi.Invalid("%s.%s has no meaning in an event of the type %s", path, f.name, *in.Type)
		case !f.given && f.of == *in.Type && !f.optional:
			return httpapi.Invalid("%s.%s is required in an event of the type %s", path, f.name, *in.Type)
		}
	}
	says := *in.Type == userMessage || *in.Type == userResult || *in.Type == systemMessage
	switch {
	case in.Content != nil && !says:
		return httpapi.Invalid("%s.content has no meaning in an event of the type %s", path, *in.Type)
	case len(in.Content) == 0 && *in.Type != userResult && says || len(in.Content) > maxEvents:
		return httpapi.Invalid("%s.content must have 1 to %d blocks", path, maxEvents)
	case in.Thread != nil && *in.Type != userConfirmation && *in.Type != userResult:
		return httpapi.Invalid("%s.session_thread_id is not supported by this version in an event of the type %s: leave it out", path, *in.Type)
	case in.DenyMessage != nil && *in.Result == "allow":
		return httpapi.Invalid("%s.deny_message has a meaning with the result deny only", path)
	case in.DenyMessage != nil && len(*in.DenyMessage) > session.MaxReason:
		return httpapi.Invalid("%s.deny_message must be a text of at most %d bytes", path, session.MaxReason)
	}
	return nil
}
