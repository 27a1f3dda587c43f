package response

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Custom tools are client functions that take free text instead of JSON.

// Types of tools and items.
const (
	customTool = "custom"
	customCall = "custom_tool_call"
)

// maxGrammar bounds the bytes of a custom tool's grammar.
const maxGrammar = 256 << 10

// Custom is a client tool that takes free text.
type Custom struct {
	Type        *string       `json:"type" required:"true"`
	Name        *string       `json:"name" required:"true"`
	Description *string       `json:"description,omitzero"`
	Format      *CustomFormat `json:"format,omitzero"`
}

// CustomFormat constrains the text that a custom tool takes.
type CustomFormat struct {
	Type       *string `json:"type" required:"true" enum:"text,grammar"`
	Syntax     *string `json:"syntax,omitzero" enum:"lark,regex"`
	Definition *string `json:"definition,omitzero"`
}

// CustomCallInput is a call of a custom tool that a model made earlier.
type CustomCallInput struct {
	Type   *string `json:"type" required:"true"`
	CallID *string `json:"call_id" required:"true"`
	Name   *string `json:"name" required:"true"`
	Input  *string `json:"input" required:"true"`
	ID     *string `json:"id,omitzero"`
	Status *string `json:"status,omitzero"`
}

func parseCustom(path string, text jsontext.Value) (*run.Tool, jsontext.Value, error) {
	var in Custom
	if err := decode(path, text, &in); err != nil {
		return nil, nil, err
	}
	if !toolName.MatchString(*in.Name) {
		return nil, nil, invalid("%s.name must have 1 to 64 letters, digits, _ and -", path)
	}
	t := &run.Tool{Tool: model.Tool{Name: *in.Name, Custom: &model.FreeText{}}}
	if in.Description != nil {
		t.Description = *in.Description
	}
	format := map[string]any{"type": "text"}
	if f := in.Format; f != nil && *f.Type == "grammar" {
		if f.Syntax == nil || f.Definition == nil || *f.Definition == "" || len(*f.Definition) > maxGrammar {
			return nil, nil, invalid("%s.format must have a syntax, lark or regex, and a definition of 1 to %d bytes with type grammar", path, maxGrammar)
		}
		t.Custom.Syntax, t.Custom.Grammar = model.Syntax(*f.Syntax), *f.Definition
		format = map[string]any{"type": "grammar", "syntax": *f.Syntax, "definition": *f.Definition}
	}
	out, err := json.Marshal(map[string]any{"type": customTool, "name": t.Name, "description": in.Description, "format": format}, json.Deterministic(true))
	return t, out, err
}

func parseCustomCall(path string, text jsontext.Value) (*model.Item, error) {
	var in CustomCallInput
	if err := decode(path, text, &in); err != nil {
		return nil, err
	}
	return &model.Item{Call: &model.Call{ID: *in.CallID, Name: *in.Name, Arguments: *in.Input, Custom: true}}, nil
}

func parseCustomOutput(path string, text jsontext.Value) (*model.Item, error) {
	var in FunctionCallOutputInput
	if err := decode(path, text, &in); err != nil {
		return nil, err
	}
	parts, err := parseContent(path+".output", in.Output, model.User)
	return &model.Item{Result: &model.Result{CallID: *in.CallID, Parts: parts}}, err
}

// clientType returns the wire type of a tool that the client runs.
func clientType(t *run.Tool) string {
	if t.Custom != nil {
		return customTool
	}
	return "function"
}

// isCustomResult reports whether an item is the result of a custom call.
func isCustomResult(items []model.Item, it *model.Item) bool {
	return it.Result != nil && response.OutputType(items, it.Result.CallID) == response.CustomOutput
}

// showCall fills in a call of a client tool.
func showCall(out *ResponseItem, c *model.Call) {
	out.CallID, out.Name = c.ID, c.Name
	if c.Custom {
		out.Type, out.Input = customCall, &c.Arguments
		return
	}
	out.Type, out.Arguments = "function_call", &c.Arguments
}

// argumentsDelta returns the type of the event that appends to an item's arguments.
func argumentsDelta(kind string) string {
	if kind == customCall {
		return "response.custom_tool_call_input.delta"
	}
	return "response.function_call_arguments.delta"
}

// argumentsDone returns the event with a call's complete arguments.
func argumentsDone(c *model.Call, item string, at *int) *ResponseEvent {
	if c.Custom {
		return &ResponseEvent{Type: "response.custom_tool_call_input.done", ItemID: item, OutputIndex: at, Input: &c.Arguments}
	}
	return &ResponseEvent{Type: "response.function_call_arguments.done", ItemID: item, OutputIndex: at, Arguments: &c.Arguments}
}
