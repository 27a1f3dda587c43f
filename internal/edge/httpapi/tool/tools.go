package tool

import (
	"cmp"
	"net/http"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// executeCode answers an agent. What the agent can react to is a 200.
func (h *Handlers) executeCode(c *httpapi.Call, in *ExecuteCodeRequest) (out tools.CodeOutput, err error) {
	if in.SubPaths != nil {
		return out, httpapi.Invalid("sub_paths is not available to tools: a model could be talked into naming another path; narrow the key's grant, or use POST /v1/sandbox/execute")
	}
	if err := c.Draining(); err != nil {
		return out, err
	}
	ctx, stop := c.Living(c.Context())
	defer stop()
	res, err := h.ExecuteCode.Call(ctx, c.Caller, in.domain(c.TraceID()))
	if err != nil {
		return out, c.Unfinished(ctx, c.TraceID(), err)
	}
	return *res.Output(), nil
}

func (in *ExecuteCodeRequest) domain(traceID string) tools.Input {
	out := tools.Input{
		TraceID: traceID, Code: *in.Code, Agent: *in.Agent, Turn: *in.Turn, Template: *in.Template,
		Language: language.Default, Metadata: wire.StringMap(in.Metadata),
	}
	if in.Language != nil {
		out.Language = *in.Language
	}
	if in.Timeout != nil {
		timeout := in.Timeout.Duration()
		out.Timeout = &timeout
	}
	return out
}

// endTurn ends a turn of an agent.
func (h *Handlers) endTurn(c *httpapi.Call) error {
	return h.ExecuteCode.EndTurn(c.Context(), c.Caller, c.Text("agent"), c.Path("turn"))
}

// list answers with the array that an agent's model is given.
func (h *Handlers) list(c *httpapi.Call) error {
	all, strict := h.Tools.Definitions(), c.Bool("strict")
	if strict {
		for i := range all {
			all[i].Input = all[i].Strict
		}
	}
	var out any
	switch c.Text("format") {
	case "anthropic":
		out = httpapi.Each(all, func(d tools.Definition) AnthropicTool {
			return AnthropicTool{Name: d.Name, Description: d.Description, InputSchema: d.Input}
		})
	case "openai":
		out = httpapi.Each(all, func(d tools.Definition) OpenAITool {
			return OpenAITool{Type: "function", Function: OpenAIFunction{Name: d.Name, Description: d.Description, Parameters: d.Input, Strict: strict}}
		})
	case "openai-responses":
		out = httpapi.Each(all, func(d tools.Definition) OpenAIResponsesTool {
			return OpenAIResponsesTool{Type: "function", Name: d.Name, Description: d.Description, Parameters: d.Input, Strict: strict}
		})
	default:
		out = httpapi.Each(all, func(d tools.Definition) MCPTool {
			return MCPTool{
				Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.Input, OutputSchema: d.Output,
				Annotations: MCPAnnotations{d.Annotations.ReadOnly, d.Annotations.Destructive, d.Annotations.Idempotent, d.Annotations.OpenWorld},
			}
		})
	}
	return httpapi.WriteJSON(c.W, http.StatusOK, out)
}

// call serves a tool of sessions: the body is its input, the answer what it returns.
// Without a name it is the one in the path.
func (h *Handlers) call(name string) func(*httpapi.Call) error {
	return func(c *httpapi.Call) error {
		name := name
		if name == "" {
			name = c.Path("tool")
		}
		body, err := c.ReadJSON()
		if err == nil {
			err = c.HoldValues(body)
		}
		if err != nil {
			return err
		}
		if err := c.Draining(); err != nil {
			return err
		}
		ctx, stop := c.Living(c.Context())
		defer stop()
		agent := c.Text("agent")
		if id := session.ID(c.Path("session")); id.Valid() && h.Own != nil {
			in, own, err := h.Own(ctx, c.Caller, id)
			if err != nil {
				return err
			}
			c.Caller, agent = in, cmp.Or(agent, own)
		}
		out, err := h.Tools.Call(ctx, name, &tools.Caller{
			Principal: c.Caller, Session: c.Path("session"), TraceID: c.TraceID(), Agent: agent, Template: c.Text("template"),
		}, body)
		if err != nil {
			return c.Unfinished(ctx, c.TraceID(), err)
		}
		return httpapi.WriteJSON(c.W, http.StatusOK, out)
	}
}

func (h *Handlers) serveMCP(c *httpapi.Call) (err error) {
	var body []byte
	if c.R.Method == http.MethodPost {
		if body, err = c.ReadBody(); err != nil {
			return err
		}
		if err := c.HoldValues(body); err != nil && fault.KindOf(err) != fault.Invalid { // too many are refused below, by the protocol
			return err
		}
	}
	if c.R.Method != http.MethodDelete {
		if err := c.Draining(); err != nil {
			return err
		}
	}
	ctx, stop := c.Living(c.Context())
	defer stop()
	return h.MCP.Serve(c.W, c.R.WithContext(ctx), body, c.Caller)
}
