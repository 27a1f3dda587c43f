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
	CompletedAt        *int64              `json:"completed_at" required:"true" nullable:"true"`
	Status             string              `json:"status" required:"true" enum:"queued,in_progress,completed,requires_action,incomplete,failed,cancelled"`
	Background         bool                `json:"background" required:"true"`
	Error              *ResponseError      `json:"error"`
	IncompleteDetails  *ResponseIncomplete `json:"incomplete_details"`
	Instructions       *string             `json:"instructions" required:"true" nullable:"true"`
	MaxOutputTokens    *int64              `json:"max_output_tokens" required:"true" nullable:"true"`
	MaxToolCalls       *int64              `json:"max_tool_calls" required:"true" nullable:"true"`
	Model              string              `json:"model" required:"true"`
	Output             []ResponseItem      `json:"output" required:"true"`
	ParallelToolCalls  bool                `json:"parallel_tool_calls" required:"true"`
	PreviousResponseID *string             `json:"previous_response_id" required:"true" nullable:"true"`
	PromptCacheKey     *string             `json:"prompt_cache_key" required:"true" nullable:"true"`
	Reasoning          *ResponseReasoning  `json:"reasoning"`
	SafetyIdentifier   *string             `json:"safety_identifier" required:"true" nullable:"true"`
	ServiceTier        string              `json:"service_tier" required:"true"`
	Store              bool                `json:"store" required:"true"`
	Temperature        float64             `json:"temperature" required:"true"`
	Text               ResponseText        `json:"text" required:"true"`
	ToolChoice         jsontext.Value      `json:"tool_choice" required:"true"`
	Tools              []jsontext.Value    `json:"tools" required:"true"`
	TopP               float64             `json:"top_p" required:"true"`
	TopLogProbs        int                 `json:"top_logprobs" required:"true"`
	PresencePenalty    float64             `json:"presence_penalty" required:"true"`
	FrequencyPenalty   float64             `json:"frequency_penalty" required:"true"`
	Truncation         string              `json:"truncation" required:"true" enum:"auto,disabled"`
	Usage              *ResponseUsage      `json:"usage"`
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
	Code    string `json:"code" required:"true"`
	Message string `json:"message" required:"true"`
	Type    string `json:"type" required:"true"`
}

// ResponseIncomplete say which limit ended a response.
type ResponseIncomplete struct {
	Reason  string `json:"reason" required:"true"`
	Message string `json:"message" required:"true"`
}

// ResponseReasoning is how long the model was to think, and what of it is shown.
type ResponseReasoning struct {
	Effort  *string `json:"effort" required:"true" nullable:"true"`
	Summary *string `json:"summary" required:"true" nullable:"true"`
}

// ResponseText is the form of the answer.
type ResponseText struct {
	Format    jsontext.Value `json:"format" required:"true"`
	Verbosity string         `json:"verbosity" required:"true"`
}

// ResponseUsage is what a response used.
type ResponseUsage struct {
	InputTokens         int64                      `json:"input_tokens" required:"true"`
	InputTokensDetails  ResponseInputDetails       `json:"input_tokens_details" required:"true"`
	OutputTokens        int64                      `json:"output_tokens" required:"true"`
	OutputTokensDetails ResponseOutputDetails      `json:"output_tokens_details" required:"true"`
	TotalTokens         int64                      `json:"total_tokens" required:"true"`
	Cost                ResponseCost               `json:"cost" required:"true"`
	SandboxWindows      int                        `json:"sandbox_windows,omitzero" doc:"Windows of 20 minutes of the sandbox that began with this response."`
	ToolCallsDetails    map[string]ResponseInvoked `json:"tool_calls_details,omitzero"`
}

// ResponseInputDetails are the input's tokens by where they came from.
type ResponseInputDetails struct {
	CachedTokens int64 `json:"cached_tokens" required:"true"`
	CacheRead    int64 `json:"cache_read_input_tokens" required:"true"`
	CacheWrite   int64 `json:"cache_creation_input_tokens" required:"true"`
}

// ResponseOutputDetails are the output's tokens by what they are.
type ResponseOutputDetails struct {
	ReasoningTokens int64 `json:"reasoning_tokens" required:"true"`
}

// ResponseCost is what the tokens cost by the price list of the models, and the tool calls
// and windows of the sandbox by that of the server.
type ResponseCost struct {
	Currency   string  `json:"currency" required:"true" enum:"USD"`
	Input      float64 `json:"input_cost" required:"true"`
	Output     float64 `json:"output_cost" required:"true"`
	CacheRead  float64 `json:"cache_read_cost" required:"true"`
	CacheWrite float64 `json:"cache_creation_cost" required:"true"`
	ToolCalls  float64 `json:"tool_calls_cost" required:"true" doc:"Of tool calls and of the sandbox's windows of 20 minutes."`
	Total      float64 `json:"total_cost" required:"true"`
}

// ResponseInvoked counts the calls of a tool.
type ResponseInvoked struct {
	Invocation int `json:"invocation" required:"true"`
}

// ResponseItem is an item of the output; which fields it has depends on its type.
type ResponseItem struct {
	Type   string `json:"type" required:"true" enum:"message,reasoning,function_call,function_call_output,sandbox_results,sandbox_write_file,sandbox_read_file,sandbox_edit_file,sandbox_grep,sandbox_glob,sandbox_apply_patch,share_file,code_interpreter_call,search_results,fetch_url_results,web_search_call,mcp_list_tools,mcp_call,mcp_approval_request,mcp_approval_response"`
	ID     string `json:"id,omitzero"`
	Status string `json:"status,omitzero"`

	Role    string           `json:"role,omitzero"`
	Content *ResponseContent `json:"content,omitzero"`

	Summary          *[]ResponsePart `json:"summary,omitzero"`
	EncryptedContent *string         `json:"encrypted_content,omitzero"`

	CallID    string         `json:"call_id,omitzero"`
	Name      string         `json:"name,omitzero"`
	Arguments *string        `json:"arguments,omitzero"`
	Output    jsontext.Value `json:"output,omitzero"`

	ContainerID *string        `json:"container_id,omitzero"`
	Language    string         `json:"language,omitzero"`
	Code        *string        `json:"code,omitzero"`
	Results     jsontext.Value `json:"results,omitzero" doc:"Of sandbox_results: stdout, stderr, exit_code, duration_ms and status of each run. Of search_results: id, title, url, snippet, date and last_updated of each page."`

	Outputs jsontext.Value `json:"outputs,omitzero" doc:"Of code_interpreter_call: what its code has written (logs) and shown (image, with a data URL as url); null unless include asks for it."`

	Queries  []string        `json:"queries,omitzero"`
	Contents *[]ResponsePage `json:"contents,omitzero"`
	Action   *ResponseAction `json:"action,omitzero"`

	ServerLabel       string                 `json:"server_label,omitzero"`
	Tools             *[]ResponseToolOfOther `json:"tools,omitzero"`
	ApprovalRequestID string                 `json:"approval_request_id,omitzero"`
	Approve           *bool                  `json:"approve,omitzero"`
	Reason            string                 `json:"reason,omitzero"`

	ResponseFileUse
}

// ResponseFileUse is what the items of the file tools have.
type ResponseFileUse struct {
	FilePath   string    `json:"file_path,omitzero"`
	SizeBytes  *int64    `json:"size_bytes,omitzero"`
	StartLine  int64     `json:"start_line,omitzero"`
	TotalLines *int64    `json:"total_lines,omitzero"`
	Message    string    `json:"message,omitzero"`
	Files      *[]string `json:"files,omitzero"`
	Count      *int64    `json:"count,omitzero"`
	Truncated  *bool     `json:"truncated,omitzero"`
	Added      *[]string `json:"added,omitzero"`
	Modified   *[]string `json:"modified,omitzero"`
	Deleted    *[]string `json:"deleted,omitzero"`
	FileID     string    `json:"file_id,omitzero"`
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
	Refusal     *string               `json:"refusal,omitzero"`
	ImageURL    *string               `json:"image_url,omitzero"`
	Detail      string                `json:"detail,omitzero"`
	FileName    string                `json:"filename,omitzero"`
	FileURL     string                `json:"file_url,omitzero"`
	Annotations *[]ResponseAnnotation `json:"annotations,omitzero"`
	LogProbs    *[]jsontext.Value     `json:"logprobs,omitzero"`
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
	Sequence int64  `json:"sequence_number" required:"true"`

	Response     *Response         `json:"response,omitzero"`
	Item         *ResponseItem     `json:"item,omitzero"`
	ItemID       string            `json:"item_id,omitzero"`
	OutputIndex  *int              `json:"output_index,omitzero"`
	ContentIndex *int              `json:"content_index,omitzero"`
	SummaryIndex *int              `json:"summary_index,omitzero"`
	Part         *ResponsePart     `json:"part,omitzero"`
	Delta        *string           `json:"delta,omitzero"`
	Text         *string           `json:"text,omitzero"`
	Refusal      *string           `json:"refusal,omitzero"`
	Arguments    *string           `json:"arguments,omitzero"`
	Code         *string           `json:"code,omitzero"`
	LogProbs     *[]jsontext.Value `json:"logprobs,omitzero"`
	Error        *ResponseError    `json:"error,omitzero"`

	Queries  []string        `json:"queries,omitzero"`
	URLs     []string        `json:"urls,omitzero"`
	Results  jsontext.Value  `json:"results,omitzero"`
	Contents *[]ResponsePage `json:"contents,omitzero"`

	Annotation      *ResponseAnnotation `json:"annotation,omitzero"`
	AnnotationIndex *int                `json:"annotation_index,omitzero"`
}
