package response

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
)

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
