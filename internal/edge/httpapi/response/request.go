package response

import (
	"github.com/go-json-experiment/json/jsontext"
)

// CreateResponse is the body of POST /v1/responses. A field that the open specification
// has and that is not here is refused by name.
type CreateResponse struct {
	Model              *string             `json:"model,omitzero" doc:"The name of a model; GET /v1/models lists them."`
	Models             []string            `json:"models,omitzero" doc:"Up to 5 names of models: the next one is asked when one fails. It takes precedence over model."`
	Input              jsontext.Value      `json:"input,omitzero" doc:"A text, or a list of items."`
	Instructions       *string             `json:"instructions,omitzero" doc:"System prompt."`
	PreviousResponseID *string             `json:"previous_response_id,omitzero" doc:"The id of a completed response that this one continues."`
	Tools              []jsontext.Value    `json:"tools,omitzero" doc:"Tools that the model may call: sandbox, code_interpreter, and your functions."`
	ToolChoice         jsontext.Value      `json:"tool_choice,omitzero" doc:"auto, none, required, or an object that names a function."`
	ParallelToolCalls  *bool               `json:"parallel_tool_calls,omitzero" default:"true" doc:"Whether the model may make several calls at once."`
	Background         *bool               `json:"background,omitzero" default:"false" doc:"Answer at once; the response is made in the background."`
	Stream             *bool               `json:"stream,omitzero" default:"false" doc:"Answer with server-sent events."`
	StreamOptions      *StreamOptions      `json:"stream_options,omitzero" doc:"Settings of a stream."`
	Store              *bool               `json:"store,omitzero" default:"true" doc:"Keep the response, to be read or continued later."`
	Metadata           map[string]string   `json:"metadata,omitzero" doc:"Up to 16 pairs: keys of up to 64, values of up to 512 characters."`
	Include            []string            `json:"include,omitzero" doc:"Fields of output items to send that are omitted otherwise."`
	Temperature        *float64            `json:"temperature,omitzero" doc:"How freely the model chooses words, 0 to 2."`
	TopP               *float64            `json:"top_p,omitzero" doc:"From how much of the likely words the model chooses, 0 to 1."`
	MaxOutputTokens    *int64              `json:"max_output_tokens,omitzero" doc:"Tokens that all answers together may have, reasoning included."`
	MaxToolCalls       *int64              `json:"max_tool_calls,omitzero" doc:"Calls of tools that the response may make."`
	MaxSteps           *int64              `json:"max_steps,omitzero" doc:"How many times a model may be asked; 100 if omitted."`
	MaxCost            *float64            `json:"max_cost,omitzero" doc:"US dollars that the response may cost: models, tools and the sandbox. No model is asked once that is reached."`
	MaxTotalTokens     *int64              `json:"max_total_tokens,omitzero" doc:"Tokens of all requests to models and of their answers. No model is asked once that is reached."`
	Reasoning          *ReasoningSettings  `json:"reasoning,omitzero" doc:"How the model thinks before it answers."`
	Text               *TextSettings       `json:"text,omitzero" doc:"The form of the answer's text."`
	ResponseFormat     *ResponseFormat     `json:"response_format,omitzero" doc:"In place of text.format."`
	Truncation         *string             `json:"truncation,omitzero" enum:"auto,disabled" default:"disabled" doc:"Handling of input beyond the model's context: auto drops the beginning, disabled returns an error."`
	ContextManagement  []ContextManagement `json:"context_management,omitzero" doc:"How a long conversation is kept within what the model reads."`
	PromptCacheKey     *string             `json:"prompt_cache_key,omitzero" doc:"Which requests share the provider's cache."`
	SafetyIdentifier   *string             `json:"safety_identifier,omitzero" doc:"Shown in the response; the provider does not get it."`
	ClientMetadata     map[string]string   `json:"client_metadata,omitzero" doc:"Accepted for clients that send it, such as Codex. Atoll neither stores it nor sends it to the provider."`
	User               *string             `json:"user,omitzero" doc:"Taken for clients that send it, and not used."`
	ServiceTier        *string             `json:"service_tier,omitzero" enum:"auto,default" doc:"Which tier of the provider is used: there is one."`
}

// ContextManagement is a way to keep a conversation within what the model reads.
type ContextManagement struct {
	Type             *string `json:"type" required:"true" enum:"compaction" doc:"compaction: the model summarizes the beginning of the conversation."`
	CompactThreshold *int64  `json:"compact_threshold,omitzero" minimum:"1000" doc:"Summarize from this many tokens on, if the model reads more. If omitted, before the conversation is longer than the model reads."`
}

// StreamOptions say what a stream has beside its events.
type StreamOptions struct {
	IncludeUsage       *bool `json:"include_usage,omitzero" doc:"The last event has it in any case."`
	IncludeObfuscation *bool `json:"include_obfuscation,omitzero" doc:"Only false: nothing is added."`
}

// ReasoningSettings say how long a model thinks and what of it is shown.
type ReasoningSettings struct {
	Effort  *string `json:"effort,omitzero" enum:"none,minimal,low,medium,high,xhigh" doc:"How much the model thinks before it answers."`
	Summary *string `json:"summary,omitzero" enum:"auto,concise,detailed" doc:"How the model's thinking is summarized."`
}

// TextSettings say what form the answer has.
type TextSettings struct {
	Format    *TextFormat `json:"format,omitzero" doc:"The form of the text: plain, or JSON by a schema."`
	Verbosity *string     `json:"verbosity,omitzero" enum:"medium" doc:"How long answers are: medium alone is supported."`
}

// TextFormat is the form of an answer.
type TextFormat struct {
	Type        *string        `json:"type" required:"true" enum:"text,json_schema"`
	Name        *string        `json:"name,omitzero"`
	Description *string        `json:"description,omitzero"`
	Schema      jsontext.Value `json:"schema,omitzero" doc:"JSON Schema of the answer."`
	Strict      *bool          `json:"strict,omitzero" doc:"Whether the answer must fit the schema exactly."`
}

// ResponseFormat is the form of an answer as Chat Completions has it.
type ResponseFormat struct {
	Type       *string     `json:"type" required:"true" enum:"text,json_schema"`
	JSONSchema *JSONSchema `json:"json_schema,omitzero" doc:"Of json_schema: the schema and its name."`
}

// JSONSchema is a named schema.
type JSONSchema struct {
	Name        *string        `json:"name,omitzero"`
	Description *string        `json:"description,omitzero"`
	Schema      jsontext.Value `json:"schema" required:"true" doc:"JSON Schema of the answer."`
	Strict      *bool          `json:"strict,omitzero" doc:"Whether the answer must fit the schema exactly."`
}
