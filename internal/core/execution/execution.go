// Package execution is the life of one run of code in a sandbox: admit, claim,
// run, collect, record.
//
// The domain knows one Execution. The dialects that callers speak (inline JSON,
// NDJSON, agent tools) are renderers at the edge. A gateway admits a Request,
// records it in a Store and hands it as a Job to an executor; the executor
// writes Events to a log and ends with one Result, which the gateway records.
package execution

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/language"
)

// Language names the language of a request's code. Package language holds the table.
type Language = language.Name

// The languages of examples and tests.
const (
	Python = language.Python
	Node   = language.Node
	Bash   = language.Bash
)

// Languages lists every language; the first is the default.
var Languages = language.Names()

// Status is the state of an execution. All but Running are final.
type Status string

const (
	Running   Status = "running"
	Success   Status = "success"   // the program exited with 0
	Failed    Status = "failed"    // the program exited with another status, or its exit was never seen
	Timeout   Status = "timeout"   // the wall-clock limit ended the program
	OOM       Status = "oom"       // the memory limit ended the program
	Blocked   Status = "blocked"   // the platform did not let it run (NotStarted: a policy, or a sandbox that failed its readiness check), or a permission of the environment ended it
	Cancelled Status = "cancelled" // the caller cancelled the program
)

// Statuses lists every status.
var Statuses = []Status{Running, Success, Failed, Timeout, OOM, Blocked, Cancelled}

// Stream names one of a program's two output streams.
type Stream string

const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Source names the interface that requested an execution.
type Source string

const (
	SourceAPI         Source = "execute"      // POST /v1/sandbox/execute
	SourceExecuteCode Source = "execute_code" // the agent tool
	SourceResponse    Source = "response"     // the sandbox tool of POST /v1/responses
)

// Sources lists every source.
var Sources = []Source{SourceAPI, SourceExecuteCode, SourceResponse}

// Cut returns how many bytes of each stream an interface returns. most is the installation's limit,
// for interfaces whose contract sets none.
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

// WebhookStatus is the delivery state of an execution's webhook; "" if it has none.
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
	Key         string // id of the key that made the request
	Environment string // id
	Source      Source
	Delivery    Delivery
	Agent, Turn string // for execute_code; empty otherwise
	By          Origin // set for a model's tool call
	Text        string // redacted code for the activity; "" for none. Set for Store.Admit, which stores it apart from the execution
	Run         string // id of the run that made this tool call, which is deleted with the run; "" for none
	Thread      string // id of the thread whose home the execution used; "" for none
	ThreadState string // state of that thread at the start; set by Store.Admit, not recorded
	Language    Language
	Timeout     time.Duration
	Metadata    map[string]string
	Mounts      []string // labels of the storage mounted for the program; see storage.Mount
	CodeSHA256  [32]byte // of the code's bytes
	CPU         float64  // cores and bytes of memory of the sandbox, for the ledger
	Memory      int64
	Webhook     WebhookTarget

	Status Status

	// Output is redacted and cut at the answer's length. If it is too large for the record, Stored
	// is set and the blob store holds it. The byte counts cover everything the program wrote.
	Stdout, Stderr                   []byte
	StdoutBytes, StderrBytes         int64
	StdoutTruncated, StderrTruncated bool
	Stored                           bool

	// OutputTruncated says that the reconnect buffer has dropped events.
	OutputTruncated bool
	LastSeq         int64 // seq of the last event before the result

	// ExitCode is the program's exit status, 128+n if signal n ended it, or -1 if the exit was not
	// seen (a timeout, a lost sandbox).
	ExitCode int

	// Error says what ended the run if it was not the program, such as "memory limit of 512 MiB
	// exceeded"; empty otherwise.
	Error string
	// Hint says how the caller can fix a failure, such as a command that opens the network; empty
	// if Atoll knows none.
	Hint string
	// NotStarted says that no code ran; Error has the reason.
	NotStarted bool

	CreatedAt     time.Time
	CompletedAt   time.Time // zero while running
	PeakMemory    int64     // bytes; 0 when not known
	Files         OutputFiles
	Kept          int64     // bytes stored of both streams and of Files; 0 in records of versions that did not count them
	Start         Start     // "" while running, and if no code ran
	Windows       int       // as Result.Windows
	Isolation     Isolation // as Result.Isolation; "" in records of older versions
	WebhookStatus WebhookStatus
}

// WebhookTarget says where to deliver the webhook of an execution. Secret is the key's webhook
// secret at the time of the request.
type WebhookTarget struct {
	URL    string
	Secret string
}

// Duration returns the time from admission to completion.
func (e *Execution) Duration() time.Duration { return e.CompletedAt.Sub(e.CreatedAt) }

// Sink receives output as it arrives, in order per stream. It must not keep p. Atoll calls it from
// one goroutine at a time.
type Sink func(stream Stream, p []byte)
