// Package execution is the life of one run of code in a sandbox: admit, claim,
// run, collect, record.
//
// The domain knows one Execution. The dialects that callers speak (inline JSON,
// NDJSON, agent tools) are renderers at the edge. A gateway admits a Request,
// records it in a Store and hands it as a Job to an executor; the executor
// writes Events to a log and ends with one Result, which the gateway records.
package execution

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/language"
)

// Language is what a request's code is written in. The table of languages is package
// language.
type Language = language.Name

// The languages that examples and tests are written in.
const (
	Python = language.Python
	Node   = language.Node
	Bash   = language.Bash
)

// Languages lists every language, the default first.
var Languages = language.Names()

// Status is where an execution is in its life. Running is the only one that
// changes.
type Status string

const (
	Running   Status = "running"
	Success   Status = "success"   // the program exited with 0
	Failed    Status = "failed"    // it exited otherwise, or was never seen to
	Timeout   Status = "timeout"   // its wall-clock limit ended it
	OOM       Status = "oom"       // its memory limit ended it
	Blocked   Status = "blocked"   // the platform did not let it run (NotStarted: a policy, or a sandbox that failed its readiness check), or a permission of the environment ended it
	Cancelled Status = "cancelled" // the caller ended it
)

// Statuses lists every status.
var Statuses = []Status{Running, Success, Failed, Timeout, OOM, Blocked, Cancelled}

// Stream names one of a program's two outputs.
type Stream string

const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Source says which interface an execution was asked for by.
type Source string

const (
	SourceAPI         Source = "execute"      // POST /v1/sandbox/execute
	SourceExecuteCode Source = "execute_code" // the agent tool
	SourceResponse    Source = "response"     // the sandbox tool of POST /v1/responses
)

// Sources lists every interface.
var Sources = []Source{SourceAPI, SourceExecuteCode, SourceResponse}

// Cut is how many bytes of each stream an interface's answers hold; most is the
// installation's own bound, for those that have none in the contract.
func (s Source) Cut(most int64) (stdout, stderr int64) {
	if s == SourceExecuteCode {
		return 256 << 10, 32 << 10
	}
	return most, most
}

// Delivery is how the caller wants the result.
type Delivery string

const (
	Inline   Delivery = "inline"
	Streamed Delivery = "streaming"
	Async    Delivery = "webhook"
)

// WebhookStatus is where an execution's webhook is; empty when it has none.
type WebhookStatus string

const (
	WebhookPending   WebhookStatus = "pending"
	WebhookDelivered WebhookStatus = "delivered"
	WebhookFailed    WebhookStatus = "failed"
)

// Execution is the record of one run.
type Execution struct {
	TraceID     string // "trc_" and 20 letters and digits; 32 hexadecimal digits in older records
	Tenant      string // id
	Key         string // id of the key it was asked for with
	Environment string // id
	Source      Source
	Delivery    Delivery
	Agent, Turn string // of execute_code; empty otherwise
	By          Origin // set for a model's tool call
	Text        string // redacted code for the activity; "" for none. Set for Store.Admit, which stores it apart from the execution
	Run         string // id of the run that it is a tool call of, and goes with; "" for none
	Thread      string // id of the thread whose home it had; "" for none
	ThreadState string // of that thread as the run began; set by Store.Admit, not recorded
	Language    Language
	Timeout     time.Duration
	Metadata    map[string]string
	Mounts      []string // what of which connection it saw: storage.Mount's labels
	CodeSHA256  [32]byte // of the code's bytes
	CPU         float64  // cores and bytes the sandbox was given, for the ledger
	Memory      int64
	Webhook     WebhookTarget

	Status Status

	// Output as it may be shown, redacted and cut at the answer's length, while
	// it is small enough to live in the record; otherwise Stored is set and the
	// blob store has it. The byte counts are of everything the program wrote.
	Stdout, Stderr                   []byte
	StdoutBytes, StderrBytes         int64
	StdoutTruncated, StderrTruncated bool
	Stored                           bool

	// OutputTruncated says that events have left the reconnect buffer.
	OutputTruncated bool
	LastSeq         int64 // seq of the last event before the result

	// ExitCode is the program's exit status, 128+n when signal n ended it, and
	// -1 when none was seen (a time-out, a lost sandbox).
	ExitCode int

	// Error names what ended the run when it was not the program itself, such
	// as "memory limit of 512 MiB exceeded"; empty otherwise.
	Error string
	// Hint is what the caller can do about a failure, such as a command that opens
	// the network; empty for nothing known.
	Hint string
	// NotStarted says that no code was run; Error has the reason.
	NotStarted bool

	CreatedAt     time.Time
	CompletedAt   time.Time // zero while running
	PeakMemory    int64     // bytes; 0 when not known
	Files         OutputFiles
	Kept          int64     // bytes of both streams and of Files that are kept; 0 in records of versions that did not count them
	Start         Start     // "" while running, and when nothing was run
	Windows       int       // as Result.Windows
	Isolation     Isolation // likewise; "" of versions that did not know it
	WebhookStatus WebhookStatus
}

// WebhookTarget is where and how the end of an execution is told. The secret is
// the key's at the time of the request.
type WebhookTarget struct {
	URL    string
	Secret string
}

// Duration is the time from admission to completion.
func (e *Execution) Duration() time.Duration { return e.CompletedAt.Sub(e.CreatedAt) }

// Sink receives output as it comes, in order per stream. It must not keep p.
// It is called from one goroutine at a time.
type Sink func(stream Stream, p []byte)

// Executor runs requests. Execute returns an error (a *fault.Error where the
// caller can be told why) only when nothing was run; every end of a program,
// limits included, is an Execution. The run ends early only when ctx does.
type Executor interface {
	Execute(ctx context.Context, req Request, sink Sink) (*Execution, error)
}
