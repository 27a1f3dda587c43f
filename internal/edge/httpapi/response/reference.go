package response

import (
	"context"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// maxReferred bounds the responses that an input refers to items of: each is read as a
// whole.
const maxReferred = 256

// outputID is the id of an item of a response's output, which names the run.
var outputID = regexp.MustCompile(`^[a-z]+_([0-9a-f]{32})[0-9a-f]{4,}$`)

// ItemReference is an item of an earlier response in the input of a request, which the
// client does not repeat.
type ItemReference struct {
	Type *string `json:"type,omitzero"`
	ID   *string `json:"id" required:"true"`
}

// references returns what an item of an input stands for, if it is not one of a
// conversation itself: a reference to an item of an earlier response, or a call of a
// tool of the server, as clients repeat it from an output.
func (p *parser) references(path string, text jsontext.Value) (items []model.Item, ok bool, err error) {
	kind, _ := kindOf(text)
	switch {
	case kind == "item_reference":
		var in ItemReference
		if err := decode(path, text, &in); err != nil {
			return nil, true, err
		}
		items, err := p.find(*in.ID)
		if fault.KindOf(err) == fault.NotFound {
			err = fault.New(fault.NotFound, "%s: there is no item with the id %q; only items of responses that are kept can be referred to", path, *in.ID)
		}
		return items, true, err
	case slices.Contains(serverItems, kind):
		items, err := p.repeated(path, kind, text)
		return items, true, err
	}
	return nil, false, nil
}

// serverItems are the types of output items that calls of the server's tools are shown
// as.
var serverItems = []string{
	"sandbox_results", "share_file", "sandbox_write_file", "sandbox_read_file", "sandbox_edit_file", "sandbox_grep", "sandbox_glob", "sandbox_apply_patch",
	"code_interpreter_call", searchCall, "search_results", "fetch_url_results", "people_search_results",
}

// repeated is a call of a tool of the server, as the output of an earlier response shows
// it. The record says what the model was told of it; where there is none, what the client
// says is all that the model gets.
func (p *parser) repeated(path, kind string, text jsontext.Value) ([]model.Item, error) {
	var in struct {
		ID       string `json:"id"`
		CallID   string `json:"call_id"`
		Language string `json:"language"`
		Code     string `json:"code"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, invalid("an item of type %s has an id, call_id, language or code that is no text", kind)
	}
	switch items, err := p.find(in.ID); {
	case err == nil:
		return items, nil
	case fault.KindOf(err) != fault.NotFound:
		return nil, err
	}
	if kind == searchCall {
		return nil, nil // it does not say what was found
	}
	if both, ok, err := p.interpreterCall(path, text); ok {
		return both, err
	}
	call := &model.Call{ID: in.CallID, Name: kind, Arguments: "{}"}
	if call.ID == "" {
		call.ID = in.ID
	}
	if call.ID == "" {
		return nil, invalid("an item of type %s must have the id or the call_id that its response had", kind)
	}
	if in.Code != "" {
		arguments, err := json.Marshal(map[string]string{"language": in.Language, "code": in.Code}, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		call.Name, call.Arguments = sandboxtool.RunCode, string(arguments)
	}
	return []model.Item{{Call: call}, {Result: &model.Result{CallID: call.ID, Parts: []model.Part{{Kind: model.PartText, Text: string(text)}}}}}, nil
}

// finder returns a function that finds what a model was told of an item of an output.
func (h *Handlers) finder(ctx context.Context, t tenant.ID) func(id string) ([]model.Item, error) {
	none := fault.New(fault.NotFound, "there is no such item")
	states := map[run.ID]*run.State{} // a conversation has many items of few responses
	return func(id string) ([]model.Item, error) {
		match := outputID.FindStringSubmatch(id)
		if match == nil {
			return nil, none
		}
		name := run.ID("run_" + match[1])
		s, ok := states[name]
		if !ok {
			if len(states) == maxReferred {
				return nil, invalid("input has items of more than %d responses", maxReferred)
			}
			r, err := h.Store.Run(ctx, t, name)
			if fault.KindOf(err) == fault.NotFound || err == nil && (r.Keep == 0 || !r.Status.Final()) {
				return nil, none
			}
			if err != nil {
				return nil, err
			}
			if s, err = h.Loop.State(ctx, name); err != nil {
				return nil, err
			}
			states[name] = s
		}
		at := slices.IndexFunc(s.Output, func(it run.Item) bool { return it.ID == id })
		if at < 0 {
			return nil, none
		}
		return conversed(s, at), nil
	}
}

// conversed is an item of an output as it is in the conversation.
func conversed(s *run.State, at int) []model.Item {
	it := &s.Output[at]
	switch {
	case it.Message != nil:
		return []model.Item{{Message: it.Message}}
	case it.Reasoning != nil:
		return []model.Item{{Reasoning: it.Reasoning}}
	case it.Call != nil:
		return []model.Item{{Call: it.Call}}
	}
	call := calledBy(it)
	before := 0 // providers may use an id again
	for i := range s.Output[:at] {
		if calledBy(&s.Output[i]) == call {
			before++
		}
	}
	var calls, results []model.Item
	for _, said := range s.Conversation[len(s.Request.Input):] {
		switch {
		case said.Call != nil && said.Call.ID == call:
			calls = append(calls, said)
		case said.Result != nil && said.Result.CallID == call:
			results = append(results, said)
		}
	}
	if before >= len(calls) || before >= len(results) {
		return nil // it is shown of another call, such as a list of tools
	}
	return []model.Item{calls[before], results[before]}
}

// calledBy is the id of the call that an item shows; "" if it shows none.
func calledBy(it *run.Item) string {
	switch {
	case it.Code != nil:
		return it.Code.CallID
	case it.Use != nil:
		return it.Use.CallID
	}
	return ""
}
