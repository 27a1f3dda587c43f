package response

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Response is a response, by the open Responses specification and with what our contract
// adds.
type Response struct {
	ID                 string              `json:"id" required:"true" pattern:"^resp_[0-9a-f]{32}$"`
	Object             string              `json:"object" required:"true" enum:"response"`
	CreatedAt          int64               `json:"created_at" required:"true" doc:"Seconds since 1970."`
	CompletedAt        *int64              `json:"completed_at" required:"true" nullable:"true" doc:"When it ended, in seconds since 1970; null until then."`
	Status             string              `json:"status" required:"true" enum:"queued,in_progress,completed,requires_action,incomplete,failed,cancelled"`
	Background         bool                `json:"background" required:"true" doc:"Whether it was started in the background."`
	Error              *ResponseError      `json:"error" doc:"Why it failed; null if it did not."`
	IncompleteDetails  *ResponseIncomplete `json:"incomplete_details" doc:"Why the response is incomplete; null if it is not."`
	Instructions       *string             `json:"instructions" required:"true" nullable:"true" doc:"System prompt; null if none."`
	MaxOutputTokens    *int64              `json:"max_output_tokens" required:"true" nullable:"true" doc:"Tokens that all answers together may have, reasoning included."`
	MaxToolCalls       *int64              `json:"max_tool_calls" required:"true" nullable:"true" doc:"Calls of tools that the response may make."`
	Model              string              `json:"model" required:"true"`
	Output             []ResponseItem      `json:"output" required:"true" doc:"Output items of the model, in order."`
	ParallelToolCalls  bool                `json:"parallel_tool_calls" required:"true" doc:"Whether the model may make several calls at once."`
	PreviousResponseID *string             `json:"previous_response_id" required:"true" nullable:"true" doc:"The response that it continues; null if none."`
	PromptCacheKey     *string             `json:"prompt_cache_key" required:"true" nullable:"true" doc:"Which requests share the provider's cache."`
	Reasoning          *ResponseReasoning  `json:"reasoning" doc:"How the model thinks before it answers."`
	SafetyIdentifier   *string             `json:"safety_identifier" required:"true" nullable:"true" doc:"As the request has it; null if it has none."`
	ServiceTier        string              `json:"service_tier" required:"true" doc:"Which tier of the provider is used: there is one."`
	Store              bool                `json:"store" required:"true" doc:"Whether the response is kept."`
	Temperature        float64             `json:"temperature" required:"true" doc:"How freely the model chooses words, 0 to 2."`
	Text               ResponseText        `json:"text" required:"true" doc:"The form of the answer's text."`
	ToolChoice         jsontext.Value      `json:"tool_choice" required:"true" doc:"Whether the model has to call a tool, and which."`
	Tools              []jsontext.Value    `json:"tools" required:"true"`
	TopP               float64             `json:"top_p" required:"true" doc:"From how much of the likely words the model chooses, 0 to 1."`
	TopLogProbs        int                 `json:"top_logprobs" required:"true" doc:"Always 0: they are not supported."`
	PresencePenalty    float64             `json:"presence_penalty" required:"true" doc:"Always 0: it is not supported."`
	FrequencyPenalty   float64             `json:"frequency_penalty" required:"true" doc:"Always 0: it is not supported."`
	Truncation         string              `json:"truncation" required:"true" enum:"auto,disabled" doc:"Handling of input beyond the model's context: auto drops the beginning, disabled returns an error."`
	Usage              *ResponseUsage      `json:"usage" doc:"Tokens that it used, and their price."`
	Metadata           map[string]string   `json:"metadata" required:"true"`
}

// CancelledResponse is a response that was cancelled. The open specification has the
// response, another vendor's client reads response_id.
type CancelledResponse struct {
	Response
	ResponseID string `json:"response_id" required:"true" doc:"The same as id."`
}

// ResponseError is why a response failed.
type ResponseError struct {
	Code    string `json:"code" required:"true" doc:"Error code for programs."`
	Message string `json:"message" required:"true"`
	Type    string `json:"type" required:"true"`
}

// ResponseIncomplete say which limit ended a response.
type ResponseIncomplete struct {
	Reason  string `json:"reason" required:"true" doc:"Why, as a word or in words."`
	Message string `json:"message" required:"true"`
}

// ResponseReasoning is how long the model was to think, and what of it is shown.
type ResponseReasoning struct {
	Effort  *string `json:"effort" required:"true" nullable:"true" doc:"How much the model thinks before it answers."`
	Summary *string `json:"summary" required:"true" nullable:"true" doc:"How the model's thinking is summarized."`
}

// ResponseText is the form of the answer.
type ResponseText struct {
	Format    jsontext.Value `json:"format" required:"true" doc:"The form of the text: plain, or JSON by a schema."`
	Verbosity string         `json:"verbosity" required:"true" doc:"How long answers are: medium alone is supported."`
}

// ResponseUsage is what a response used.
type ResponseUsage struct {
	InputTokens         int64                      `json:"input_tokens" required:"true" doc:"Tokens of the input, cached ones too."`
	InputTokensDetails  ResponseInputDetails       `json:"input_tokens_details" required:"true" doc:"How many of them were read from a cache or written to it."`
	OutputTokens        int64                      `json:"output_tokens" required:"true" doc:"Tokens of the output, reasoning included."`
	OutputTokensDetails ResponseOutputDetails      `json:"output_tokens_details" required:"true" doc:"How many of them were reasoning."`
	TotalTokens         int64                      `json:"total_tokens" required:"true" doc:"Tokens of input and output together."`
	EstimatedTokens     int64                      `json:"estimated_tokens,omitzero" doc:"The part of total_tokens that Atoll estimated from the text, because an answer was cut before its provider counted them, or its provider counts none. Atoll charges them like the others."`
	Cost                ResponseCost               `json:"cost" required:"true" doc:"Cost in US dollars."`
	SandboxWindows      int                        `json:"sandbox_windows,omitzero" doc:"Windows of 20 minutes of the sandbox that began with this response."`
	ToolCallsDetails    map[string]ResponseInvoked `json:"tool_calls_details,omitzero" doc:"How many calls each tool had."`
}

// ResponseInputDetails are the input's tokens by where they came from.
type ResponseInputDetails struct {
	CachedTokens int64 `json:"cached_tokens" required:"true" doc:"Tokens that were read from the provider's cache, as OpenAI's clients read them."`
	CacheWrites  int64 `json:"cache_write_tokens" required:"true" doc:"Tokens that were written to the provider's cache, as OpenAI's clients read them."`
	CacheRead    int64 `json:"cache_read_input_tokens" required:"true" doc:"Tokens that were read from the provider's cache."`
	CacheWrite   int64 `json:"cache_creation_input_tokens" required:"true" doc:"Tokens that were written to the provider's cache."`
}

// ResponseOutputDetails are the output's tokens by what they are.
type ResponseOutputDetails struct {
	ReasoningTokens int64 `json:"reasoning_tokens" required:"true" doc:"Tokens of reasoning."`
}

// ResponseCost is what the tokens cost by the price list of the models, and the tool calls
// and windows of the sandbox by that of the server.
type ResponseCost struct {
	Currency   string  `json:"currency" required:"true" enum:"USD" doc:"The currency of all amounts."`
	Input      float64 `json:"input_cost" required:"true" doc:"US dollars for input."`
	Output     float64 `json:"output_cost" required:"true" doc:"US dollars for output."`
	CacheRead  float64 `json:"cache_read_cost" required:"true" doc:"US dollars for input that was read from the provider's cache."`
	CacheWrite float64 `json:"cache_creation_cost" required:"true" doc:"US dollars for input that was written to the provider's cache."`
	ToolCalls  float64 `json:"tool_calls_cost" required:"true" doc:"Of tool calls and of the sandbox's windows of 20 minutes."`
	Total      float64 `json:"total_cost" required:"true" doc:"US dollars for all of it."`
}

// ResponseInvoked counts the calls of a tool.
type ResponseInvoked struct {
	Invocation int `json:"invocation" required:"true" doc:"How many calls there were."`
}

// ResponseItem is an item of the output; which fields it has depends on its type.
type ResponseItem struct {
	Type   string `json:"type" required:"true" enum:"message,reasoning,function_call,function_call_output,custom_tool_call,custom_tool_call_output,sandbox_results,sandbox_write_file,sandbox_read_file,sandbox_edit_file,sandbox_grep,sandbox_glob,sandbox_apply_patch,share_file,code_interpreter_call,search_results,fetch_url_results,web_search_call,mcp_list_tools,mcp_call,mcp_approval_request,mcp_approval_response"`
	ID     string `json:"id,omitzero"`
	Status string `json:"status,omitzero"`

	Role    string           `json:"role,omitzero" doc:"Role of the speaker."`
	Content *ResponseContent `json:"content,omitzero" doc:"Content: a text, or parts."`

	Summary          *[]ResponsePart `json:"summary,omitzero" doc:"The part of its reasoning that the model shows."`
	EncryptedContent *string         `json:"encrypted_content,omitzero" doc:"The reasoning in the provider's encrypted form, which it takes back."`

	CallID    string         `json:"call_id,omitzero" doc:"The id by which a call and its output belong together."`
	Name      string         `json:"name,omitzero"`
	Arguments *string        `json:"arguments,omitzero" doc:"The arguments of the call, a JSON object as text."`
	Input     *string        `json:"input,omitzero" doc:"Of custom_tool_call: the text that the model gives the tool."`
	Output    jsontext.Value `json:"output,omitzero" doc:"Result of the call."`

	ContainerID *string        `json:"container_id,omitzero" doc:"The container that it is in."`
	Language    string         `json:"language,omitzero"`
	Code        *string        `json:"code,omitzero" doc:"The code that is run."`
	Results     jsontext.Value `json:"results,omitzero" doc:"Of sandbox_results: stdout, stderr, exit_code, duration_ms and status of each run. Of search_results: id, title, url, snippet, date and last_updated of each page."`

	Outputs jsontext.Value `json:"outputs,omitzero" doc:"Of code_interpreter_call: output of its code (logs) and its images (image, with a data URL as url); null unless include requests it."`

	Queries  []string        `json:"queries,omitzero" doc:"Search queries."`
	Contents *[]ResponsePage `json:"contents,omitzero" doc:"Pages that were read."`
	Action   *ResponseAction `json:"action,omitzero" doc:"Action of a web search."`

	ServerLabel       string                 `json:"server_label,omitzero" doc:"The MCP server, by its label in the request."`
	Tools             *[]ResponseToolOfOther `json:"tools,omitzero" doc:"Tools that the MCP server has."`
	ApprovalRequestID string                 `json:"approval_request_id,omitzero" doc:"The request that is answered."`
	Approve           *bool                  `json:"approve,omitzero" doc:"Whether the call may be made."`
	Reason            string                 `json:"reason,omitzero" doc:"Why, as a word or in words."`

	ResponseFileUse
}

// ResponseFileUse is what the items of the file tools have.
type ResponseFileUse struct {
	FilePath   string    `json:"file_path,omitzero" doc:"The path that was asked for."`
	SizeBytes  *int64    `json:"size_bytes,omitzero" doc:"Size in bytes."`
	StartLine  int64     `json:"start_line,omitzero" doc:"The first line that was returned, from 1."`
	TotalLines *int64    `json:"total_lines,omitzero" doc:"Lines that the file has."`
	Message    string    `json:"message,omitzero"`
	Files      *[]string `json:"files,omitzero" doc:"Paths that were found."`
	Count      *int64    `json:"count,omitzero" doc:"How many matches there are."`
	Truncated  *bool     `json:"truncated,omitzero" doc:"Whether there is more than is shown."`
	Added      *[]string `json:"added,omitzero" doc:"Paths of files that were made."`
	Modified   *[]string `json:"modified,omitzero" doc:"Paths of files that were changed."`
	Deleted    *[]string `json:"deleted,omitzero" doc:"Paths of files that were deleted."`
	FileID     string    `json:"file_id,omitzero" doc:"The file's id."`
	FileName   string    `json:"filename,omitzero"`
	Error      string    `json:"error,omitzero" doc:"Why the tool failed."`
}

// ResponseContent are the parts of a message or of reasoning, or the text of a file.
type ResponseContent struct {
	Parts []ResponsePart
	Text  *string
}

// MarshalJSON writes the text if there is one.
func (c ResponseContent) MarshalJSON() ([]byte, error) {
	if c.Text != nil {
		return json.Marshal(*c.Text)
	}
	return json.Marshal(c.Parts)
}

// Schema implements huma.SchemaProvider. Programs that read Go are made of it, which has no
// type for the one or the other.
func (ResponseContent) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "A list of parts; of sandbox_read_file a text."}
}

// ResponsePart is a part of a message or of reasoning.
type ResponsePart struct {
	Type        string                `json:"type" required:"true"`
	Text        *string               `json:"text,omitzero"`
	Refusal     *string               `json:"refusal,omitzero" doc:"The model's refusal."`
	ImageURL    *string               `json:"image_url,omitzero" doc:"Of an image: its URL, or its bytes as a data URL."`
	Detail      string                `json:"detail,omitzero" doc:"Of an image: how closely the model looks at it."`
	FileName    string                `json:"filename,omitzero"`
	FileURL     string                `json:"file_url,omitzero" doc:"Of a file: where the provider reads it."`
	Annotations *[]ResponseAnnotation `json:"annotations,omitzero" doc:"References of the text, such as pages."`
	LogProbs    *[]jsontext.Value     `json:"logprobs,omitzero" doc:"Always empty: they are not supported."`
}

// ResponseAnnotation says which page a part of a text goes back to, as the model's provider
// has it.
type ResponseAnnotation struct {
	Type  string `json:"type" required:"true" enum:"url_citation"`
	URL   string `json:"url" required:"true"`
	Title string `json:"title" required:"true"`
	Start int    `json:"start_index" required:"true" doc:"The first character of the text that is cited."`
	End   int    `json:"end_index" required:"true" doc:"The character after the last one."`
}

func annotationOf(c model.Citation) ResponseAnnotation {
	return ResponseAnnotation{"url_citation", c.URL, c.Title, c.Start, c.End}
}

// ResponseSandboxResult is the outcome of one execution.
type ResponseSandboxResult struct {
	Stdout     string `json:"stdout" required:"true"`
	Stderr     string `json:"stderr" required:"true"`
	ExitCode   int    `json:"exit_code" required:"true"`
	DurationMS int64  `json:"duration_ms" required:"true"`
	Status     string `json:"status" required:"true" enum:"completed,timed_out,failed"`

	StdoutTruncated bool `json:"stdout_truncated,omitzero" doc:"stdout had more; an answer has at most 1 MiB of it."`
	StderrTruncated bool `json:"stderr_truncated,omitzero" doc:"Likewise of stderr."`
}

// ResponseEvent is an event of a stream; which fields it has depends on its type.
type ResponseEvent struct {
	Type     string `json:"type" required:"true"`
	Sequence int64  `json:"sequence_number" required:"true" doc:"Which event of the response it is, from 0, without gaps."`

	Response     *Response         `json:"response,omitzero" doc:"The response as it is now."`
	Item         *ResponseItem     `json:"item,omitzero" doc:"The item that was added or is done."`
	ItemID       string            `json:"item_id,omitzero" doc:"The item that the event is about."`
	OutputIndex  *int              `json:"output_index,omitzero" doc:"Which item of the output it is, from 0."`
	ContentIndex *int              `json:"content_index,omitzero" doc:"Which part of the item's content it is, from 0."`
	SummaryIndex *int              `json:"summary_index,omitzero" doc:"Which part of the summary it is, from 0."`
	Part         *ResponsePart     `json:"part,omitzero" doc:"The part that was added or is done."`
	Delta        *string           `json:"delta,omitzero" doc:"The next piece of a text."`
	Text         *string           `json:"text,omitzero"`
	Refusal      *string           `json:"refusal,omitzero" doc:"The model's refusal."`
	Arguments    *string           `json:"arguments,omitzero" doc:"The arguments of the call, a JSON object as text."`
	Input        *string           `json:"input,omitzero" doc:"The text that the model gives a custom tool."`
	Code         *string           `json:"code,omitzero" doc:"The code that the model has written, or what went wrong."`
	LogProbs     *[]jsontext.Value `json:"logprobs,omitzero" doc:"Always empty: they are not supported."`
	Error        *ResponseError    `json:"error,omitzero" doc:"Why it failed; null if it did not."`

	Queries  []string        `json:"queries,omitzero" doc:"Search queries."`
	URLs     []string        `json:"urls,omitzero" doc:"Pages that are read."`
	Results  jsontext.Value  `json:"results,omitzero" doc:"Results of the tool."`
	Contents *[]ResponsePage `json:"contents,omitzero" doc:"Pages that were read."`

	Annotation      *ResponseAnnotation `json:"annotation,omitzero" doc:"The annotation that was added."`
	AnnotationIndex *int                `json:"annotation_index,omitzero" doc:"Which annotation of the part it is, from 0."`
}
