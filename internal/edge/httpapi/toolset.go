package httpapi

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const (
	toolsPath       = "/v1/tools"
	sessionToolPath = "/v1/sessions/{session}/tools/{tool}"
)

// MCPTool is a tool as the Model Context Protocol lists it, and as the contract
// writes it.
type MCPTool struct {
	Name         string         `json:"name"`
	Title        string         `json:"title"`
	Description  string         `json:"description"`
	InputSchema  any            `json:"inputSchema"`
	OutputSchema any            `json:"outputSchema"`
	Annotations  MCPAnnotations `json:"annotations"`
}

// MCPAnnotations are MCP's hints of what a tool does.
type MCPAnnotations struct {
	ReadOnlyHint    bool `json:"readOnlyHint"`
	DestructiveHint bool `json:"destructiveHint"`
	IdempotentHint  bool `json:"idempotentHint"`
	OpenWorldHint   bool `json:"openWorldHint"`
}

// AnthropicTool is a tool as the Messages API takes it.
type AnthropicTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	InputSchema any    `json:"input_schema"`
}

// OpenAITool is a tool as the Chat Completions API takes it.
type OpenAITool struct {
	Type     string         `json:"type" enum:"function"`
	Function OpenAIFunction `json:"function"`
}

// OpenAIFunction is the function of an OpenAITool.
type OpenAIFunction struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  any    `json:"parameters"`
}

// listTools answers with the array that an agent's model is given.
func (s *Server) listTools(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.authorize(r, tenant.ScopeTools); err != nil {
		return err
	}
	q, err := parseQuery(r, "format")
	if err != nil {
		return err
	}
	all := s.tools.Definitions()
	switch format := q.Get("format"); {
	case !q.Has("format"), format == "mcp":
		return writeJSON(w, http.StatusOK, rendered(all, func(d tools.Definition) MCPTool {
			return MCPTool{
				Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.Input, OutputSchema: d.Output,
				Annotations: MCPAnnotations{d.Annotations.ReadOnly, d.Annotations.Destructive, d.Annotations.Idempotent, d.Annotations.OpenWorld},
			}
		}))
	case format == "anthropic":
		return writeJSON(w, http.StatusOK, rendered(all, func(d tools.Definition) AnthropicTool {
			return AnthropicTool{Name: d.Name, Description: d.Description, InputSchema: d.Input}
		}))
	case format == "openai":
		return writeJSON(w, http.StatusOK, rendered(all, func(d tools.Definition) OpenAITool {
			return OpenAITool{Type: "function", Function: OpenAIFunction{Name: d.Name, Description: d.Description, Parameters: d.Input}}
		}))
	}
	return invalid("format must be one of mcp, anthropic, openai")
}

func rendered[T any](all []tools.Definition, as func(tools.Definition) T) []T {
	out := make([]T, len(all))
	for i, d := range all {
		out[i] = as(d)
	}
	return out
}

// postTool calls a tool: the body is its input, the answer what it returns.
func (s *Server) postTool(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeTools)
	if err != nil {
		return err
	}
	q, err := parseQuery(r, "agent", "template")
	if err != nil {
		return err
	}
	name := r.PathValue("tool")
	if len(q) > 0 && name != tools.ExecuteCodeName {
		return invalid("agent and template are for %s alone", tools.ExecuteCodeName)
	}
	body, err := readJSON(w, r)
	if err != nil {
		return err
	}
	if s.isDraining() {
		return fault.New(fault.Unavailable, "%s", errShutdown)
	}
	ctx, stop := s.living(r.Context())
	defer stop()
	out, err := s.tools.Call(ctx, name, &tools.Caller{
		Principal: caller, Session: r.PathValue("session"), TraceID: traceOf(w), Agent: q.Get("agent"), Template: q.Get("template"),
	}, body)
	if err != nil {
		return s.parted(ctx, traceOf(w), err)
	}
	return writeJSON(w, http.StatusOK, out)
}

// toolset adds the tools of sessions to the document.
func (d describer) toolset(doc *huma.OpenAPI) {
	listed := d.json("Every tool, as an array that can be given to a model.", []MCPTool{})
	listed.Content["application/json"].Schema = &huma.Schema{OneOf: []*huma.Schema{
		d.media([]MCPTool{}).Schema, d.media([]AnthropicTool{}).Schema, d.media([]OpenAITool{}).Schema,
	}}
	doc.AddOperation(&huma.Operation{
		OperationID: "listTools", Method: http.MethodGet, Path: toolsPath, Summary: "List the tools", Tags: []string{"tools"}, Security: keySecurity,
		Parameters: []*huma.Param{queryParam("format", "How they are written; mcp if not given.", &huma.Schema{Type: huma.TypeString, Enum: []any{"mcp", "anthropic", "openai"}})},
		Responses:  d.refusals(map[string]*huma.Response{"200": listed}),
	})
	for _, t := range tools.Definitions() {
		params := []*huma.Param{{Name: "session", In: "path", Required: true, Description: "Names the pool of sandboxes; it comes into being with its first use.", Schema: &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(128)}}}
		if t.Name == tools.ExecuteCodeName {
			params = append(params, queryParam("agent", "Which agent calls; the key's name if not given.", text()), queryParam("template", "The agent's template; default if not given.", text()))
		}
		doc.AddOperation(&huma.Operation{
			OperationID: "tool_" + t.Name, Method: http.MethodPost, Path: "/v1/sessions/{session}/tools/" + t.Name, Summary: t.Title, Tags: []string{"tools"}, Security: keySecurity,
			Description: t.Description,
			Parameters:  params,
			RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: d.schemas.Of(t.In)}}},
			Responses: d.refusals(map[string]*huma.Response{
				"200": d.json("What the tool returns.", reflect.New(t.Out).Elem().Interface()),
				"404": d.json("not_found: there is no such tool, sandbox or file.", ErrorResponse{}),
				"409": d.json("conflict: the sandbox has another image, is lost, or is full.", ErrorResponse{}),
				"413": d.json("payload_too_large: the body is over 8 MiB.", ErrorResponse{}),
				"415": d.json("unsupported_media_type: the body is not application/json.", ErrorResponse{}),
				"429": d.json("rate_limited: over a limit of the plan; the message and dimension name it.", ErrorResponse{}),
				"503": d.json("service_unavailable: nothing was started, try again after Retry-After seconds.", ErrorResponse{}),
			}),
		})
	}
}
