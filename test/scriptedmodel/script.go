// Package scriptedmodel is a provider for tests: an HTTP server that speaks the wire
// protocols of providers, and answers what the test says, faults and quirks included.
package scriptedmodel

import (
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Turn is what the provider does with one request. The zero Turn is an empty answer.
type Turn struct {
	Blocks []Block // of the answer, in their order
	Usage  *model.Usage
	// Stop is why the answer ended, if it is not what follows from the blocks: an end, or
	// tool calls where there are some.
	Stop model.StopReason
	// Interleave has the fragments of consecutive calls take turns.
	Interleave bool

	// Refuse answers with an error in place of a stream.
	Refuse *Refusal
	// Events are sent as they are, in place of an answer: the data of server-sent events.
	Events []string
	// Body is sent as it is, with Header, in place of everything.
	Body []byte

	Header http.Header   // of the answer
	Wait   time.Duration // before the answer begins
	Pace   time.Duration // before each event
	// Sent, if it is not nil, is called after each event, with how many of all were sent;
	// Left when the client has gone before the end of its answer.
	Sent func(events, all int)
	Left func()
	// After this many events, if it is not 0, the stream is cut, goes silent until the
	// client leaves, or ends with an error event.
	After  int
	Ending Ending
	Fault  Refusal // of EndError
}

// Ending is how a stream ends after Turn.After events.
type Ending uint8

// Endings.
const (
	EndCut     Ending = iota // the connection is reset
	EndEarly                 // the body ends as if it were whole
	EndSilent                // nothing comes any more
	EndError                 // an error event
	EndGarbage               // an event that is no JSON
)

// Block is a part of an answer. One kind of field is set.
type Block struct {
	Text    []string         // fragments of a text
	Cites   []model.Citation // of Text: the Messages protocol has no places in it
	Refusal string
	Thought []string // fragments of reasoning
	Summary []string // parts of a summary of reasoning
	State   string   // with Thought or Summary: what the provider wants back
	Call    *Call
}

// Call is a tool call.
type Call struct {
	ID, Name  string
	Arguments []string // fragments, cut anywhere
	// Custom is a call of a tool with free text, which the Messages protocol has not.
	Custom bool
}

// Refusal is an error of a provider, in the form of its protocol.
type Refusal struct {
	Status              int // 0 within a stream
	Type, Code, Message string
}

// Say is a turn of one text.
func Say(text string) Turn {
	return Turn{Blocks: []Block{{Text: []string{text}}}, Usage: &model.Usage{Input: 10, Output: 5}}
}

// Ask is a turn of one tool call.
func Ask(id, name, arguments string) Turn {
	return Turn{Blocks: []Block{{Call: &Call{ID: id, Name: name, Arguments: []string{arguments}}}}, Usage: &model.Usage{Input: 10, Output: 5}}
}

// stop is why the answer ended.
func (t *Turn) stop() model.StopReason {
	if t.Stop != "" {
		return t.Stop
	}
	for _, b := range t.Blocks {
		if b.Call != nil {
			return model.StopToolCalls
		}
	}
	return model.StopEnd
}

// fragment is a fragment of a call's arguments.
type fragment struct {
	call int // of the calls
	text string
}

// fragments are the arguments of calls in the order in which they are sent.
func fragments(calls []*Call, interleave bool) (out []fragment) {
	if !interleave {
		for i, c := range calls {
			for _, text := range c.Arguments {
				out = append(out, fragment{i, text})
			}
		}
		return out
	}
	for at, more := 0, true; more; at++ {
		more = false
		for i, c := range calls {
			if at < len(c.Arguments) {
				out, more = append(out, fragment{i, c.Arguments[at]}), true
			}
		}
	}
	return out
}
