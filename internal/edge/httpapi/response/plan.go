package response

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// maxTools bounds the tools of a request.
const maxTools = 128

// reader decodes the parts of a request for its plan.
type reader struct {
	*response.Plan
	in  *CreateResponse
	env *tenant.Environment // of the key
}

// plan decodes a request.
func (h *Handlers) plan(c *httpapi.Call, in *CreateResponse) (*response.Request, error) {
	r := &reader{h.Service.Plan(c.Context(), c.Caller, in.options()), in, &c.Caller.Environment}
	if err := r.Models(in.Model, in.Models); err != nil {
		return nil, err
	}
	for _, step := range []func() error{r.input, r.tools, r.choice, r.format} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.End()
}

func (in *CreateResponse) options() *response.Options {
	o := &response.Options{
		Parallel: in.ParallelToolCalls, Background: in.Background, Store: in.Store, Instructions: in.Instructions, Previous: in.PreviousResponseID,
		Temperature: in.Temperature, TopP: in.TopP, MaxCost: in.MaxCost, MaxOutputTokens: in.MaxOutputTokens, MaxToolCalls: in.MaxToolCalls, MaxSteps: in.MaxSteps,
		MaxTotalTokens: in.MaxTotalTokens, Include: in.Include, Metadata: in.Metadata, ClientMetadata: in.ClientMetadata, CacheKey: in.PromptCacheKey, SafetyIdentifier: in.SafetyIdentifier,
	}
	if in.Truncation != nil {
		o.Truncate = new(*in.Truncation == "auto")
	}
	if in.Reasoning != nil {
		o.Effort, o.Summary = in.Reasoning.Effort, in.Reasoning.Summary
	}
	if in.StreamOptions != nil {
		o.Obfuscation = in.StreamOptions.IncludeObfuscation
	}
	for _, m := range in.ContextManagement {
		o.Compact = append(o.Compact, m.CompactThreshold)
	}
	return o
}

// Function is a tool of the client's.
type Function struct {
	Type        *string        `json:"type" required:"true"`
	Name        *string        `json:"name" required:"true"`
	Description *string        `json:"description,omitzero"`
	Parameters  jsontext.Value `json:"parameters,omitzero"`
	Strict      *bool          `json:"strict,omitzero"`
}

// onlyType is a tool without fields.
type onlyType struct {
	Type *string `json:"type" required:"true"`
}

func (r *reader) tools() error {
	if len(r.in.Tools) > maxTools {
		return invalid("tools must have at most %d", maxTools)
	}
	for i, text := range r.in.Tools {
		kind, _ := kindOf(text)
		if err := r.tool(fmt.Sprintf("tools[%d]", i), kind, text); err != nil {
			return err
		}
	}
	return r.EndTools()
}

func (r *reader) tool(path, kind string, text jsontext.Value) error {
	switch kind {
	case "sandbox":
		if err := decode(path, text, &onlyType{}); err != nil {
			return err
		}
		r.Sandbox()
		return nil
	case "code_interpreter":
		return r.interpreter(path, text)
	case "function":
		var in Function
		if err := decode(path, text, &in); err != nil {
			return err
		}
		return r.Function(path, *in.Name, in.Description, in.Parameters, in.Strict)
	case customTool:
		return r.custom(path, text)
	case "mcp":
		return r.mcp(path, text)
	}
	if !response.IsWebTool(kind) {
		return invalid("%s.type %q is not a tool of this server; use sandbox, code_interpreter, function, custom, mcp, web_search, fetch_url or people_search", path, kind)
	}
	return r.webTool(path, kind, text)
}

// Choice is a tool_choice that is an object.
type Choice struct {
	Type  *string          `json:"type" required:"true"`
	Name  *string          `json:"name,omitzero"`
	Mode  *string          `json:"mode,omitzero" enum:"auto,required,none"`
	Tools []jsontext.Value `json:"tools,omitzero"`
	// Of mcp.
	ServerLabel *string `json:"server_label,omitzero"`
}

func (r *reader) choice() error {
	given := r.in.ToolChoice
	switch given.Kind() {
	case 'n', 0:
		r.Choose("", jsontext.Value(`"auto"`))
		return nil
	case '"':
		var mode string
		if err := json.Unmarshal(given, &mode); err == nil && slices.Contains([]string{"auto", "none", "required"}, mode) {
			r.Choose(model.ToolMode(mode), given)
			return r.EndChoice()
		}
	case '{':
		var c Choice
		if err := decode("tool_choice", given, &c); err != nil {
			return err
		}
		if *c.Type == "allowed_tools" {
			return r.allow(&c)
		}
		return r.choose(&c)
	}
	return invalid("tool_choice must be auto, none, required, or an object that names a function")
}

// choose decodes a choice that names a tool.
func (r *reader) choose(c *Choice) error {
	r.Choose(model.ToolNamed, r.in.ToolChoice)
	switch kind := *c.Type; {
	case kind == "mcp" && c.ServerLabel != nil && c.Name != nil:
		r.ChooseRemote(*c.ServerLabel, *c.Name)
		return nil
	case (kind == "function" || kind == customTool) && c.Name != nil:
		return r.ChooseClient(*c.Name)
	}
	if ok, err := r.ChooseServer(*c.Type); ok {
		return err
	}
	return invalid(`tool_choice must be auto, none, required, {"type": "function", "name": …}, {"type": "custom", "name": …}, {"type": "mcp", "server_label": …, "name": …}, or {"type": …} of code_interpreter or a web tool`)
}

// allow leaves a model those of the tools that a choice allows.
func (r *reader) allow(c *Choice) error {
	if c.Mode == nil || len(c.Tools) == 0 {
		return invalid("tool_choice of type allowed_tools must have a mode and tools")
	}
	r.Choose("", r.in.ToolChoice)
	for i, text := range c.Tools {
		var only struct {
			Type *string `json:"type" required:"true"`
			Name *string `json:"name,omitzero"`
		}
		path := fmt.Sprintf("tool_choice.tools[%d]", i)
		if err := decode(path, text, &only); err != nil {
			return err
		}
		if err := r.Allow(path, *only.Type, only.Name); err != nil {
			return err
		}
	}
	r.AllowOnly(model.ToolMode(*c.Mode))
	return nil
}

func (r *reader) format() error {
	f, path := (*TextFormat)(nil), "text.format"
	if r.in.Text != nil {
		f = r.in.Text.Format
	}
	if other := r.in.ResponseFormat; other != nil {
		if f != nil {
			return invalid("response_format and text.format are the same; give one of them")
		}
		path = "response_format.json_schema"
		f = &TextFormat{Type: other.Type}
		if j := other.JSONSchema; j != nil {
			f.Name, f.Description, f.Schema, f.Strict = j.Name, j.Description, j.Schema, j.Strict
		}
	}
	if f == nil || *f.Type == "text" {
		return r.Format(path, nil)
	}
	return r.Format(path, &response.Format{Name: f.Name, Description: f.Description, Schema: f.Schema, Strict: f.Strict})
}
