// Package response serves POST /v1/responses: a model that writes and runs code.
package response

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/openaiwire"
)

// Handlers serve responses.
type Handlers struct {
	Service *response.Service
	Files   httpapi.Outputs
}

// agentPath is the other name of /v1/responses, which a vendor's documents use.
const agentPath = "/v1/agent"

// Operations are those of /v1/responses, and the same of /v1/agent.
func (h *Handlers) Operations() []httpapi.Operation {
	sandbox := []jsontext.Value{[]byte(`{"type":"sandbox"}`)}
	ops := h.under("/v1/responses", "Response", "", CreateResponse{Model: new("small"), Input: []byte(`"What is the 40th prime?"`), Tools: sandbox})
	return append(ops, h.under(agentPath, "AgentResponse", " The same as under /v1/responses.", CreateResponse{
		Model: new("small"), Input: []byte(`"Plot the sine of 0 to 10 into sine.png."`), Tools: sandbox, Background: new(true),
	})...)
}

func (h *Handlers) under(root, name, note string, example CreateResponse) []httpapi.Operation {
	const one = "/{response_id}"
	id := httpapi.Param{Name: "response_id", In: httpapi.InPath, Pattern: "^resp_[0-9a-f]{32}$", Doc: "The id of the response."}
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the response does not exist, or belongs to another tenant.")
	limited := httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a rate or another limit of the plan, or the budget; Retry-After says until when.")
	limited.Header = httpapi.RateHeaders()
	ops := []httpapi.Operation{
		{
			Method: http.MethodPost, Path: root, ID: "create" + name, Summary: "Create a response", Scope: tenant.ScopeExecute,
			Description: "Asks a model, does the tool calls that it asks for, and answers when it has said all; with `stream` as it goes; with `background` at once." + note,
			Body:        httpapi.JSON(example),
			Answers: []httpapi.Answer{
				{Status: http.StatusOK, Doc: "The response; with stream, its events.", Body: Response{}, Media: []httpapi.Media{{Type: httpapi.EventStream, Body: ResponseEvent{}}}, Header: httpapi.RateHeaders()},
				unknown,
				httpapi.Refusal(http.StatusConflict, "conflict: the previous response has not completed."),
				httpapi.Refusal(http.StatusFailedDependency, "external_connector_error: an MCP server among tools could not list its tools; message names it. Nothing was begun."),
				limited,
			},
			Serve: httpapi.WritesFrom(h.create),
		},
		{
			Method: http.MethodGet, Path: root + one, ID: "get" + name, Summary: "Get a response", Scope: tenant.ScopeRead,
			Description: "With `stream` its events, from the first one on or after `starting_after`." + note,
			Params: []httpapi.Param{
				id,
				{Name: "stream", Type: httpapi.Bool, Doc: "Answer with the events of a background response."},
				{Name: "starting_after", Type: httpapi.Int, Max: 1 << 40, Doc: "With stream: the sequence_number of the last event that the client has."},
				{Name: "include", Doc: "code_interpreter_call.outputs for what code has written and shown. reasoning.encrypted_content is there if the request asked for it."},
				{Name: "include[]", Hidden: true},
				{Name: "include_obfuscation", Type: httpapi.Bool, Doc: "Streams have none."},
			},
			Answers: []httpapi.Answer{
				{Status: http.StatusOK, Doc: "The response as it is now; with stream, its events.", Body: Response{}, Media: []httpapi.Media{{Type: httpapi.EventStream, Body: ResponseEvent{}}}},
				unknown,
			},
			Serve: httpapi.Writes(h.get),
		},
		{
			Method: http.MethodPost, Path: root + one + "/cancel", ID: "cancel" + name, Summary: "Cancel a response", Scope: tenant.ScopeExecute,
			Description: "Ends the request to the model and the program that is running. The answer comes when that is recorded." + note,
			Params:      []httpapi.Param{id},
			Answers:     []httpapi.Answer{httpapi.OK(CancelledResponse{}, "The response, cancelled."), unknown},
			Serve:       httpapi.Returns(h.cancel),
		},
		{
			Method: http.MethodDelete, Path: root + one, ID: "delete" + name, Summary: "Delete a response", Scope: tenant.ScopeExecute,
			Description: "Deletes the response and its content. Responses that continue it stay." + note,
			Params:      []httpapi.Param{id},
			Answers:     []httpapi.Answer{httpapi.OK(DeletedResponse{}, "It is deleted."), unknown, httpapi.Refusal(http.StatusConflict, "conflict: it has not ended.")},
			Serve:       httpapi.Returns(h.delete),
		},
		{
			Method: http.MethodGet, Path: root + one + "/input_items", ID: "list" + name + "Inputs", Summary: "List the input of a response", Scope: tenant.ScopeRead,
			Description: "The items of the request, newest first unless `order` is asc." + note,
			Params: []httpapi.Param{
				id,
				{Name: "limit", Type: httpapi.Int, Min: 1, Max: 100, Default: 20, Doc: "Most items of a page."},
				{Name: "order", Enum: []string{"asc", "desc"}, Doc: "desc if omitted."},
				{Name: "after", Doc: "The id of the last item that the client has."},
				{Name: "include", Doc: "Nothing more can be asked for."},
				{Name: "include[]", Hidden: true},
			},
			Answers: []httpapi.Answer{httpapi.OK(ResponseInput{}, "A page."), unknown},
			Serve:   httpapi.Returns(h.inputItems),
		},
	}
	ops = append(ops, h.fileOperations(root+one, name, note, id, unknown)...)
	for i := range ops {
		ops[i].Tag, ops[i].Compat = "responses", openaiwire.Compat()
	}
	return ops
}
