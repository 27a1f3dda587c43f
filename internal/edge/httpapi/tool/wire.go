package tool

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// MCPTool is a tool as the Model Context Protocol lists it.
type MCPTool struct {
	Name         string         `json:"name"`
	Title        string         `json:"title"`
	Description  string         `json:"description"`
	InputSchema  any            `json:"inputSchema" doc:"JSON Schema of the arguments."`
	OutputSchema any            `json:"outputSchema" doc:"JSON Schema of the result."`
	Annotations  MCPAnnotations `json:"annotations" doc:"Hints at what the tool does."`
}

// MCPAnnotations are MCP's hints of what a tool does.
type MCPAnnotations struct {
	ReadOnlyHint    bool `json:"readOnlyHint" doc:"Whether it changes nothing."`
	DestructiveHint bool `json:"destructiveHint" doc:"Whether it may destroy something."`
	IdempotentHint  bool `json:"idempotentHint" doc:"Whether a second call with the same arguments changes nothing more."`
	OpenWorldHint   bool `json:"openWorldHint" doc:"Whether it reaches what is outside of the sandbox."`
}

// MCPError is a refusal of the endpoint of the Model Context Protocol: an error of JSON-RPC.
type MCPError struct {
	JSONRPC string         `json:"jsonrpc" required:"true" enum:"2.0" doc:"The version of JSON-RPC."`
	ID      any            `json:"id" required:"true" doc:"Id of the message; null if it has none or could not be read."`
	Error   MCPErrorObject `json:"error" required:"true" doc:"Why the request was refused."`
}

// MCPErrorObject says what is wrong.
type MCPErrorObject struct {
	Code    int                   `json:"code" required:"true" doc:"The JSON-RPC error code; -32000 for errors of the key, a limit or the server's state, -32001 for an unknown session."`
	Message string                `json:"message" required:"true" doc:"A sentence for people."`
	Data    httpapi.ErrorResponse `json:"data,omitzero" doc:"Error code, as on other paths."`
}

// refuseMCP answers with a refusal as JSON-RPC has it.
func refuseMCP(w http.ResponseWriter, _ *http.Request, err error) {
	httpapi.WriteRefusal(w, err, func(status int, body httpapi.ErrorResponse) any { return mcpError(err, status, body) })
}

// mcpError tells a refusal as JSON-RPC. The id of a message stays away from a session that
// there is not: official clients otherwise take it for the message's own failure and open
// no other session.
func mcpError(err error, status int, body httpapi.ErrorResponse) any {
	out := MCPError{JSONRPC: "2.0", Error: MCPErrorObject{Code: -32000, Message: body.Message, Data: body}}
	switch status {
	case http.StatusNotFound:
		out.Error.Code = -32001
		return out
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		out.Error.Code = -32600
	case http.StatusInternalServerError:
		out.Error.Code = -32603
	}
	var of interface{ MessageID() jsontext.Value }
	if errors.As(err, &of) {
		out.ID = of.MessageID()
	}
	return out
}

// AnthropicTool is a tool as the Messages API takes it.
type AnthropicTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	InputSchema any    `json:"input_schema" doc:"JSON Schema of the arguments."`
}

// OpenAITool is a tool as the Chat Completions API takes it.
type OpenAITool struct {
	Type     string         `json:"type" enum:"function"`
	Function OpenAIFunction `json:"function" doc:"Description of the function for the model."`
}

// OpenAIFunction is the function of an OpenAITool.
type OpenAIFunction struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  any    `json:"parameters" doc:"JSON Schema of the arguments."`
	Strict      bool   `json:"strict,omitzero" doc:"The model keeps to parameters."`
}

// OpenAIResponsesTool is a tool as the Responses API takes it.
type OpenAIResponsesTool struct {
	Type        string `json:"type" enum:"function"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  any    `json:"parameters" doc:"JSON Schema of the arguments."`
	Strict      bool   `json:"strict" doc:"The model keeps to parameters."`
}

// ExecuteCodeRequest is the body of POST /v1/tools/execute_code.
type ExecuteCodeRequest struct {
	Code     *string              `json:"code" required:"true" minLength:"1" maxLength:"1048576" doc:"Code to execute: 1 byte to 1 MB (1,048,576 bytes of UTF-8)."`
	Language *language.Name       `json:"language,omitzero" default:"" doc:"Language of the code."`
	Agent    *string              `json:"agent" required:"true" minLength:"1" maxLength:"128" doc:"Which agent calls. Its hourly cap counts the call."`
	Turn     *string              `json:"turn" required:"true" minLength:"1" maxLength:"128" doc:"Which of its turns this is. Calls of one turn share a sandbox that is fresh for it."`
	Template *string              `json:"template" required:"true" doc:"The agent's template, which must have opted in to the sandbox."`
	Timeout  *wire.Seconds        `json:"timeout,omitzero" minimum:"1" default:"60" doc:"Most seconds the program may run."`
	Metadata map[string]wire.Text `json:"metadata,omitzero" nullable:"true" doc:"Kept with the execution's record and the audit row, never shown to the program."`

	// A model must not choose which paths are mounted.
	SubPaths any `json:"sub_paths,omitzero" hidden:"true" doc:"For each mounted connection by its path, the part of it that the program sees."`
}
