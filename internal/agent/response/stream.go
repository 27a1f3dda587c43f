package response

import (
	"strings"

	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Recorded returns the item of an event. full reads the record if the event omits the item.
func Recorded(e *run.ItemEvent, full func() (*run.State, error)) (*run.Item, error) {
	if !e.Recorded {
		return &e.Item, nil
	}
	state, err := full()
	if err != nil {
		return nil, err
	}
	if e.Index >= len(state.Output) {
		return nil, run.ErrNoEvents
	}
	it := state.Output[e.Index]
	it.Status = e.Item.Status
	return &it, nil
}

// Unfinished returns an item as its stream begins with it: the result comes when the item is done.
func Unfinished(it *run.Item) *run.Item {
	out := *it
	switch {
	case it.Use != nil:
		use := *it.Use
		use.Output, use.Error, use.Images = nil, "", nil
		out.Use = &use
	case it.Listing != nil:
		out.Listing = &run.Listing{Server: it.Listing.Server}
	}
	return &out
}

// Writing is a call of code_interpreter or an MCP server while a model writes it. Clients read the code
// as text, and other arguments as JSON.
type Writing struct {
	code *wire.Partial // of code_interpreter
	text []byte        // that the client has
}

// Write returns the text to send for the next piece of the arguments.
func (w *Writing) Write(piece string, code bool) string {
	if code {
		if w.code == nil {
			w.code = interpreter.NewCode()
		}
		piece = w.code.Write(piece)
	}
	w.text = append(w.text, piece...)
	return piece
}

// End ends the writing of a call that is made with whole, and returns the text that the client lacks, in pieces
// of an event each. It returns none if the model has written something else: the call counts.
func (w *Writing) End(whole string) (pieces []string) {
	rest, ok := strings.CutPrefix(whole, string(w.text))
	*w = Writing{}
	for ok && rest != "" {
		n := min(len(rest), run.MaxDelta)
		for n < len(rest) && n > 0 && rest[n]&0xC0 == 0x80 {
			n--
		}
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	return pieces
}
