package tool

import (
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// MCPTool is a tool as the Model Context Protocol lists it.
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

// ExecuteCodeRequest is the body of POST /v1/tools/execute_code.
type ExecuteCodeRequest struct {
	Code     *string              `json:"code" required:"true" minLength:"1" maxLength:"1048576" doc:"Code to execute: 1 byte to 1 MB (1,048,576 bytes of UTF-8)."`
	Language *language.Name       `json:"language,omitzero" default:"" doc:"What the code is written in."`
	Agent    *string              `json:"agent" required:"true" minLength:"1" maxLength:"128" doc:"Which agent calls. Its hourly cap counts the call."`
	Turn     *string              `json:"turn" required:"true" minLength:"1" maxLength:"128" doc:"Which of its turns this is. Calls of one turn share a sandbox that is fresh for it."`
	Template *string              `json:"template" required:"true" doc:"The agent's template, which must have opted in to the sandbox."`
	Timeout  *wire.Seconds        `json:"timeout,omitzero" minimum:"1" default:"60" doc:"Most seconds the program may run."`
	Metadata map[string]wire.Text `json:"metadata,omitzero" nullable:"true" doc:"Kept with the execution's record and the audit row, never shown to the program."`

	// A model must not choose which paths are mounted.
	SubPaths any `json:"sub_paths,omitzero" hidden:"true"`
}
