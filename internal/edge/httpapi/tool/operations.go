// Package tool serves the tools that agents call: execute_code with its turns, the tools
// of sessions, and all of them by the Model Context Protocol.
package tool

import (
	"context"
	"net/http"
	"reflect"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// MCP answers clients of the Model Context Protocol.
type MCP interface {
	// Serve answers a request whose body has been read. If it returns an error, it has
	// written nothing; one with a method MessageID says which message was refused.
	Serve(w http.ResponseWriter, r *http.Request, body []byte, p *tenant.Principal) error
}

// Handlers serve tools. All of it is required, but for Own where there are no agents.
type Handlers struct {
	ExecuteCode *tools.ExecuteCode
	Tools       *tools.Set
	MCP         MCP
	// Own returns a principal in the environment of a session, and the agent that owns its sandboxes.
	Own func(ctx context.Context, p *tenant.Principal, id session.ID) (in *tenant.Principal, agent string, err error)
}

const (
	executeCodePath = "/v1/tools/execute_code"
	sessionTools    = "/v1/sessions/{session}/tools/"
)

// Operations are those of /v1/tools, of the tools of sessions, and of /mcp.
func (h *Handlers) Operations() []httpapi.Operation {
	session := httpapi.Param{Name: "session", In: httpapi.InPath, Min: 1, Max: 128, Doc: "Names the pool of sandboxes, which its first use creates. The id of a session with an agent is for that one's sandboxes.", Example: "my-session"}
	ops := []httpapi.Operation{
		{
			Method: http.MethodPost, Path: executeCodePath, ID: "executeCode", Summary: "Run code for an agent",
			Description: "The agent tool. Policy, circuit breakers and the sandbox itself answer with a 200 whose error an agent can react to; other statuses are mistakes of the caller.",
			Body:        httpapi.JSON(ExecuteCodeRequest{Code: new("print(6 * 7)"), Agent: new("support-bot"), Turn: new("turn-1"), Template: new("default")}),
			Answers: []httpapi.Answer{
				httpapi.OK(tools.CodeOutput{}, "The result for the agent."),
				httpapi.Refusal(http.StatusServiceUnavailable, "service_unavailable: the server is shutting down, or cannot check the key."),
			},
			Serve: httpapi.Takes(h.executeCode),
		},
		{
			Method: http.MethodDelete, Path: "/v1/tools/turns/{turn}", ID: "endTurn", Summary: "End an agent's turn",
			Description: "The sandbox that the turn's calls shared is removed, at once or with the call that uses it. Without this it is removed a while after the last call.",
			Params:      []httpapi.Param{{Name: "turn", In: httpapi.InPath, Doc: "The turn."}, {Name: "agent", Required: true, Doc: "The agent."}},
			Answers: []httpapi.Answer{
				httpapi.NoContent("It is ended, or there was none."),
				httpapi.Refusal(http.StatusServiceUnavailable, "service_unavailable: its executor cannot be reached."),
			},
			Serve: httpapi.Does(h.endTurn),
		},
		{
			Method: http.MethodGet, Path: "/v1/tools", ID: "listTools", Summary: "List the tools", Description: "`format` says in whose form: of MCP, of Anthropic's or of OpenAI's APIs. `strict` has OpenAI's strict schemas.",
			Params: []httpapi.Param{
				{Name: "format", Enum: []string{"mcp", "anthropic", "openai", "openai-responses"}, Doc: "How they are written; mcp if not given. openai is for the Chat Completions API, openai-responses for the Responses API."},
				{Name: "strict", Type: httpapi.Bool, Doc: "true: every field of an input is required, and null leaves it out, as OpenAI's strict mode wants it."},
			},
			Answers: []httpapi.Answer{httpapi.OK(httpapi.OneOf{[]MCPTool{}, []AnthropicTool{}, []OpenAITool{}, []OpenAIResponsesTool{}}, "Every tool, as an array that can be given to a model.")},
			Serve:   httpapi.Writes(h.list),
		},
	}
	for _, t := range tools.Definitions() {
		params := []httpapi.Param{session}
		if t.Name == tools.ExecuteCodeName {
			params = append(params, httpapi.Param{Name: "agent", Doc: "Which agent calls; the key's name if not given."}, httpapi.Param{Name: "template", Doc: "The agent's template; default if not given."})
		}
		ops = append(ops, httpapi.Operation{
			Method: http.MethodPost, Path: sessionTools + t.Name, ID: "tool_" + t.Name, Summary: t.Title, Description: t.Description, Params: params,
			Body: httpapi.JSON(t.Example),
			Answers: []httpapi.Answer{
				httpapi.OK(reflect.New(t.Out).Elem().Interface(), "The result of the tool."),
				httpapi.Refusal(http.StatusNotFound, "not_found: the tool, sandbox or file does not exist."),
				httpapi.Refusal(http.StatusConflict, "conflict: the sandbox has another image, is lost, or is full."),
				httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a limit of the plan; message and dimension name it."),
			},
			Serve: httpapi.Writes(h.call(t.Name)),
		})
	}
	ops = append(ops, httpapi.Operation{ // whose tool is none of those
		Method: http.MethodPost, Path: sessionTools + "{tool}", Params: []httpapi.Param{{Name: "agent"}, {Name: "template"}},
		Body: &httpapi.Body{Media: "application/json"}, Serve: httpapi.Writes(h.call("")),
	})
	for i := range ops {
		ops[i].Tag, ops[i].Scope = "tools", tenant.ScopeTools
	}
	return append(ops, h.mcp()...)
}

// mcp is the endpoint of the Model Context Protocol, whose messages are that protocol's.
func (h *Handlers) mcp() []httpapi.Operation {
	message := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
	params := []httpapi.Param{
		{Name: "Mcp-Session-Id", In: httpapi.InHeader, Doc: "Of the session that initialize began; without it a request stands alone."},
		{Name: "MCP-Protocol-Version", In: httpapi.InHeader, Doc: "Of the protocol, as initialize agreed on."},
		{Name: "X-Atoll-Max-Event", In: httpapi.InHeader, Type: httpapi.Int, Doc: "Most bytes of an event that the client reads: at least 65536, or 0 for no bound; 1048576 if not given. Larger results are cut, and say so."},
		{Name: "session", Doc: "Names the pool of sandboxes. Default: the MCP session's."},
		{Name: "stateless", Type: httpapi.Bool, Doc: "true: no MCP session begins."},
		{Name: "agent", Doc: "As of execute_code."}, {Name: "template", Doc: "As of execute_code."},
	}
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the session does not exist or has ended; initialize again.")
	alone := httpapi.Refusal(http.StatusMethodNotAllowed, "method_not_allowed: with stateless there is no session.")
	answer := func(doc string) httpapi.Answer {
		return httpapi.Answer{Status: http.StatusOK, Doc: doc, Body: message, Media: []httpapi.Media{{Type: httpapi.EventStream, Body: message}}, Header: []httpapi.Param{
			{Name: "Mcp-Session-Id", Doc: "The session, of the answer to initialize."},
		}}
	}
	ops := []httpapi.Operation{
		{
			Method: http.MethodPost, ID: "mcpSend", Summary: "Send a message of the Model Context Protocol", Body: httpapi.JSON(message),
			Answers: []httpapi.Answer{answer("The answer, as one message or a stream of them."), {Status: http.StatusAccepted, Doc: "It was a notification or an answer."}, unknown},
		},
		{Method: http.MethodGet, ID: "mcpListen", Summary: "Listen to what the server has to say in a session", Answers: []httpapi.Answer{answer("A stream of messages."), unknown, alone}},
		{Method: http.MethodDelete, ID: "mcpEnd", Summary: "End a session", Answers: []httpapi.Answer{httpapi.NoContent("It is over."), unknown, alone}},
	}
	for i := range ops {
		op := &ops[i]
		op.Path, op.Tag, op.Access, op.Params = "/mcp", "mcp", httpapi.AnyKey, params
		op.Description, op.Serve = "Streamable HTTP; see https://modelcontextprotocol.io.", httpapi.Writes(h.serveMCP)
		op.Compat = &httpapi.Compat{Refuse: refuseMCP, Refusal: MCPError{}}
	}
	return ops
}
