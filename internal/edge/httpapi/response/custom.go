package response

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
)

// Custom tools are client functions that take free text instead of JSON.

// Types of tools and items.
const (
	customTool = "custom"
	customCall = "custom_tool_call"
)

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

func (r *reader) custom(path string, text jsontext.Value) error {
	var in Custom
	if err := decode(path, text, &in); err != nil {
		return err
	}
	var g *response.Grammar
	if f := in.Format; f != nil && *f.Type == "grammar" {
		g = &response.Grammar{Syntax: f.Syntax, Definition: f.Definition}
	}
	return r.Custom(path, *in.Name, in.Description, g)
}

func (r *reader) customCall(path string, text jsontext.Value) error {
	var in CustomCallInput
	if err := decode(path, text, &in); err != nil {
		return err
	}
	r.Call(&model.Call{ID: *in.CallID, Name: *in.Name, Arguments: *in.Input, Custom: true})
	return nil
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
