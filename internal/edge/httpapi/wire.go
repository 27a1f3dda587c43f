package httpapi

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// ExecuteRequest is the body of POST /v1/sandbox/execute. Optional fields may
// be null, which is the same as leaving them out.
type ExecuteRequest struct {
	Code     *string         `json:"code" required:"true" nullable:"false" minLength:"1" maxLength:"1048576" doc:"Code to execute: 1 byte to 1 MB (1,048,576 bytes of UTF-8)." example:"print(\"Hello\")"`
	Language *string         `json:"language,omitzero" enum:"python,node,bash" default:"python" doc:"What the code is written in."`
	Timeout  *Seconds        `json:"timeout,omitzero" minimum:"1" default:"60" doc:"Most seconds the program may run. Above the plan's maximum the request is refused with 429."`
	EnvVars  map[string]Text `json:"env_vars,omitzero" nullable:"true" doc:"Environment variables for this execution: at most 50 and 64 KB together with those of the environment. Names: an uppercase letter, then uppercase letters, digits and underscores, at most 128 characters, none of the reserved names. Values: at most 4,096 characters."`
	Metadata map[string]Text `json:"metadata,omitzero" nullable:"true" doc:"Kept with the execution's record, never shown to the program. At most 10 keys of 1 to 40 characters with values of at most 256."`

	WebhookURL *Text `json:"webhook_url,omitzero" maxLength:"2048" doc:"Where the end is told, with Prefer: respond-async only; HTTPS, and no private address. Without it the key's own URL is used, if it has one."`

	SubPaths []Text `json:"sub_paths,omitzero" nullable:"true" maxItems:"10" doc:"Narrows mounted connections for this execution: /data/{slug}/{path}, at most 512 characters, one entry for each connection. Paths lie within the prefixes of the connection and of the key."`

	ThreadID *Text `json:"thread_id,omitzero" nullable:"true" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$" doc:"Names a thread: the home directory is what the thread's last execution left, and is saved for the next. One execution of a thread at a time; another is refused with 409."`
}

// What requests are made of.
type (
	Seconds = wire.Seconds
	Millis  = wire.Millis
	Text    = wire.Text
)

// ExecuteResponse is how an execution ended.
type ExecuteResponse struct {
	Success         bool    `json:"success" doc:"True if exit_code is 0."`
	Stdout          string  `json:"stdout" doc:"Standard output. Bytes that are not UTF-8 are replaced by U+FFFD."`
	Stderr          string  `json:"stderr" doc:"Standard error, likewise."`
	ExitCode        int     `json:"exit_code" doc:"The program's exit code, 128+n when signal n ended it, -1 when none was seen."`
	Error           *string `json:"error" doc:"What ended the run when it was not the program itself, such as a limit; null otherwise."`
	StdoutTruncated bool    `json:"stdout_truncated" doc:"True if the program wrote more to stdout than is returned."`
	StderrTruncated bool    `json:"stderr_truncated" doc:"True if the program wrote more to stderr than is returned."`
	Start           string  `json:"start,omitzero" enum:"warm,cold" doc:"warm: its sandbox was ready before the request came; cold: it was made for it. Not there when nothing was run, or when that was not seen. Beyond the original contract."`
}

// TimeoutResponse is an ExecuteResponse with status 504. It also has the
// fields of an error, so that clients which look at the status alone find one.
type TimeoutResponse struct {
	ExecuteResponse
	Message string `json:"message" doc:"The same text as error."`
	Code    string `json:"code" enum:"gateway_timeout" doc:"The error's code."`
}

// ErrorResponse is the body of every refusal and failure.
type ErrorResponse struct {
	Error   string `json:"error" doc:"A code for programs, such as validation_error." example:"validation_error"`
	Message string `json:"message" doc:"A sentence for people." example:"code must be between 1 byte and 1 MB"`

	Dimension string     `json:"dimension,omitzero" doc:"With rate_limited: which limit it is, such as concurrency, timeout or credits."`
	ResetsAt  *time.Time `json:"resets_at,omitzero" nullable:"false" doc:"With rate_limited: when the limit starts anew, if it does."`
}

// AcceptedResponse says that an execution goes on without its caller.
type AcceptedResponse struct {
	TraceID string `json:"trace_id" doc:"Names the execution, for GET /v1/executions/{trace_id}."`
	Status  string `json:"status" enum:"running,success,failed,timeout,oom,blocked,cancelled" doc:"running, unless the request repeats an earlier one whose execution has ended."`
}

// Event is one line of an NDJSON stream. Seq grows with every event; Type
// decides which of the other fields are there.
type Event struct {
	Type            string           `json:"type" enum:"status,output,keepalive,result" doc:"status comes first, result last."`
	TraceID         string           `json:"trace_id,omitzero" doc:"On status and result."`
	Status          string           `json:"status,omitzero" enum:"running,success,failed,timeout,cancelled" doc:"On status and result."`
	Stream          string           `json:"stream,omitzero" enum:"stdout,stderr" doc:"On output."`
	Data            string           `json:"data,omitzero" doc:"On output: a line with its newline, or a piece of one that is longer than 64 KiB."`
	Result          *ExecuteResponse `json:"result,omitzero" doc:"On result: what an inline response holds."`
	OutputTruncated *bool            `json:"output_truncated,omitzero" nullable:"false" doc:"On result: true if output events are missing that had left the reconnect buffer. The result's own output is complete."`
	Seq             int64            `json:"seq" doc:"Position in the stream."`
}

// Types of Event.
const (
	eventStatus    = "status"
	eventOutput    = "output"
	eventKeepalive = "keepalive"
	eventResult    = "result"
)

// toWire renders an execution in this dialect, without its outputs.
func toWire(e *execution.Execution) *ExecuteResponse {
	out := &ExecuteResponse{
		Success:         e.ExitCode == 0,
		ExitCode:        e.ExitCode,
		StdoutTruncated: e.StdoutTruncated,
		StderrTruncated: e.StderrTruncated,
		Start:           string(e.Start),
	}
	if e.Error != "" {
		out.Error = &e.Error
	}
	return out
}

// wireStatus narrows a domain status to those of the dialect, which tells a
// limit by the result's error.
func wireStatus(s execution.Status) string {
	if s == execution.OOM || s == execution.Blocked {
		s = execution.Failed
	}
	return string(s)
}
