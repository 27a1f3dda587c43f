package execute

import (
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// ExecuteResponse is how an execution ended.
type ExecuteResponse struct {
	Success  bool   `json:"success" doc:"True if exit_code is 0."`
	Stdout   string `json:"stdout" stream:"stdout" doc:"Standard output. Bytes that are not UTF-8 are replaced by U+FFFD."`
	Stderr   string `json:"stderr" stream:"stderr" doc:"Standard error. Bytes that are not UTF-8 are replaced by U+FFFD."`
	ExitCode int    `json:"exit_code" doc:"The program's exit code, 128+n when signal n ended it, -1 when none was seen."`
	Ending
	StdoutTruncated bool   `json:"stdout_truncated" doc:"True if the program wrote more to stdout than is returned."`
	StderrTruncated bool   `json:"stderr_truncated" doc:"True if the program wrote more to stderr than is returned."`
	Hint            string `json:"hint,omitzero" doc:"How to fix a failure, such as a command that allows a host. Absent if Atoll has no suggestion. Not in the original contract."`
	Start           string `json:"start,omitzero" enum:"warm,cold" doc:"warm: the sandbox was ready before the request came; cold: it was made for the request. Omitted when nothing was run, or when the start was not seen. Not in the original contract."`
	OutputFiles
}

// TimeoutResponse is an ExecuteResponse with status 504. It also has the fields of an
// error, so that clients which look at the status alone find one.
type TimeoutResponse struct {
	ExecuteResponse
	Message string `json:"message" doc:"The same text as error."`
	Code    string `json:"code" enum:"gateway_timeout" doc:"The error's code."`
}

const codeTimeout = "gateway_timeout"

// AcceptedResponse says that an execution continues without its caller.
type AcceptedResponse struct {
	TraceID string `json:"trace_id" doc:"Names the execution, for GET /v1/executions/{trace_id}."`
	Status  string `json:"status" enum:"running,success,failed,timeout,oom,blocked,cancelled" doc:"running, unless the request repeats an earlier one whose execution has ended."`
}

// Event is one line of an NDJSON stream. Seq grows with every event; Type decides which of
// the other fields are there.
type Event struct {
	Type            string           `json:"type" enum:"status,output,keepalive,result" doc:"status comes first, result last."`
	TraceID         string           `json:"trace_id,omitzero" doc:"On status and result."`
	Status          string           `json:"status,omitzero" enum:"running,success,failed,timeout,cancelled" doc:"On status and result."`
	Stream          string           `json:"stream,omitzero" enum:"stdout,stderr" doc:"On output."`
	Data            string           `json:"data,omitzero" doc:"On output: a line with its newline, or a piece of one that is longer than 64 KiB. With partial also a piece that the program paused behind."`
	Result          *ExecuteResponse `json:"result,omitzero" doc:"On result: the fields of an inline response."`
	OutputTruncated *bool            `json:"output_truncated,omitzero" nullable:"false" doc:"On result: true if output events are missing that had left the reconnect buffer. The result's own output is complete."`
	Seq             int64            `json:"seq" doc:"Position in the stream."`
}

// Types of Event.
const (
	eventOutput    = "output"
	eventKeepalive = "keepalive"
	eventResult    = "result"
)

// responseOf renders an execution in this dialect, without its outputs. coded is for a
// caller that takes error for a code.
func responseOf(e *execution.Execution, coded bool) *ExecuteResponse {
	return &ExecuteResponse{
		Success:         e.Status == execution.Success,
		ExitCode:        e.ExitCode,
		StdoutTruncated: e.StdoutTruncated,
		StderrTruncated: e.StderrTruncated,
		Hint:            e.Hint,
		Start:           string(e.Start),
		OutputFiles:     filesOf(e),
		Ending:          endingOf(e, coded),
	}
}

// note says in a response that the output which the program wrote is not stored anymore.
func (r *ExecuteResponse) note(e *execution.Execution, out outputs) {
	if out.unreadable {
		r.StdoutTruncated, r.StderrTruncated = e.StdoutBytes > 0, e.StderrBytes > 0
		r.Hint = "the stored output cannot be read right now: retry GET /v1/executions/" + e.TraceID
		return
	}
	stdout, stderr := gateway.Gone(e, execution.Stdout, out.stdout), gateway.Gone(e, execution.Stderr, out.stderr)
	r.StdoutTruncated, r.StderrTruncated = r.StdoutTruncated || stdout, r.StderrTruncated || stderr
	if r.Hint == "" && (stdout || stderr) {
		r.Hint = gateway.HintGone
	}
}

// statusOf narrows a domain status to those of the dialect, which tells a limit by the
// result's error.
func statusOf(s execution.Status) string {
	if s == execution.OOM || s == execution.Blocked {
		s = execution.Failed
	}
	return string(s)
}
