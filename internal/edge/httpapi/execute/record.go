package execute

import (
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/language"
)

// ExecutionSummary is the record of an execution without its output. Fields that are known
// at its end are null while it runs.
type ExecutionSummary struct {
	TraceID      string            `json:"trace_id" doc:"trc_ and 20 letters and digits, of older records 32 hexadecimal digits."`
	Status       string            `json:"status" enum:"running,success,failed,timeout,oom,blocked,cancelled" doc:"blocked: the platform did not let it run."`
	Language     language.Name     `json:"language"`
	DeliveryMode string            `json:"delivery_mode" enum:"inline,streaming,webhook" doc:"How its caller asked for the result."`
	Key          string            `json:"key" doc:"Id of the key that asked for it."`
	ThreadID     *string           `json:"thread_id" doc:"The thread whose home it had; null for none."`
	Metadata     map[string]string `json:"metadata" doc:"As given with the request."`
	ExitCode     *int              `json:"exit_code" doc:"The program's exit code, 128+n when signal n ended it, -1 when none was seen."`
	Ending
	Hint                  string     `json:"hint,omitzero" doc:"How to fix a failure, such as a command that allows a host; absent if Atoll has no suggestion."`
	DurationMS            int64      `json:"duration_ms" doc:"From admission to completion, or so far while it runs."`
	CreatedAt             time.Time  `json:"created_at"`
	CompletedAt           *time.Time `json:"completed_at" doc:"When it ended; null until then."`
	WebhookDeliveryStatus *string    `json:"webhook_delivery_status" enum:"pending,delivered,failed" doc:"null when there is no webhook."`
	OutputTruncated       *bool      `json:"output_truncated" doc:"True if events have left the reconnect buffer."`
	StdoutTruncated       *bool      `json:"stdout_truncated" doc:"True if the program wrote more to stdout than is returned here."`
	StderrTruncated       *bool      `json:"stderr_truncated" doc:"Likewise for stderr."`
	Start                 *string    `json:"start" enum:"warm,cold" doc:"warm: the sandbox was ready before the request came; cold: it was made for the request; null when nothing was run, or when the start was not seen."`
	Isolation             *string    `json:"isolation" enum:"run,key" doc:"run: it had a kernel of its own; key: others of its key had the kernel before, or after it; null when nothing was run, or when that was not noted."`
	OutputFiles
}

// Execution is the record of an execution with its output.
type Execution struct {
	ExecutionSummary
	Stdout *string `json:"stdout" stream:"stdout" doc:"Standard output. Bytes that are not UTF-8 are replaced by U+FFFD."`
	Stderr *string `json:"stderr" stream:"stderr" doc:"Standard error. Bytes that are not UTF-8 are replaced by U+FFFD."`
}

// ExecutionPage is a part of a list, newest first.
type ExecutionPage struct {
	Data     []ExecutionSummary `json:"data"`
	NextPage *string            `json:"next_page" doc:"Give it as page to get the next part; null at the end."`
}

// note says in a record that the output which the program wrote is not stored anymore.
func (s *ExecutionSummary) note(e *execution.Execution, out outputs) {
	stdout, stderr := gateway.Gone(e, execution.Stdout, out.stdout), gateway.Gone(e, execution.Stderr, out.stderr)
	if !stdout && !stderr {
		return
	}
	stdout, stderr = stdout || e.StdoutTruncated, stderr || e.StderrTruncated
	s.StdoutTruncated, s.StderrTruncated = &stdout, &stderr
	if s.Hint == "" {
		s.Hint = gateway.HintGone
	}
}

// summarize renders a record. coded is for a caller that takes error for a code.
func summarize(e *execution.Execution, coded bool) ExecutionSummary {
	s := ExecutionSummary{
		TraceID:      e.TraceID,
		Status:       string(e.Status),
		Language:     e.Language,
		DeliveryMode: string(e.Delivery),
		Key:          e.Key,
		Metadata:     e.Metadata,
		CreatedAt:    e.CreatedAt.UTC(),
		OutputFiles:  filesOf(e),
	}
	if e.WebhookStatus != "" {
		s.WebhookDeliveryStatus = (*string)(&e.WebhookStatus)
	}
	if e.Thread != "" {
		s.ThreadID = &e.Thread
	}
	if e.Status == execution.Running {
		s.DurationMS = max(0, time.Since(e.CreatedAt).Milliseconds())
		return s
	}
	s.Ending = endingOf(e, coded)
	s.Hint = e.Hint
	ended := e.CompletedAt.UTC()
	s.ExitCode, s.DurationMS, s.CompletedAt = &e.ExitCode, e.Duration().Milliseconds(), &ended
	if e.Start != "" {
		s.Start = (*string)(&e.Start)
	}
	if e.Isolation != "" {
		s.Isolation = (*string)(&e.Isolation)
	}
	s.OutputTruncated, s.StdoutTruncated, s.StderrTruncated = &e.OutputTruncated, &e.StdoutTruncated, &e.StderrTruncated
	return s
}
