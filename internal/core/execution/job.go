package execution

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// Job is an admitted request on its way to an executor: what a run needs, and
// nothing of who pays for it.
type Job struct {
	TraceID  string
	Tenant   string // names the tenant's part of the blob store
	Code     string
	Language Language
	Timeout  time.Duration
	Env      map[string]string // the request's own variables
	Input    Input

	// StartBy is the deadline for starting without a decision of StartGuard, by the gateway's
	// clock; zero for none. Within it no gateway counts the job as lost.
	StartBy time.Time `json:",omitzero"`

	Image string // name in the executor's image store, or a reference that stands for one
	// Extras are programs that a new sandbox should have if Image is the default image or a variant
	// of it: see package requirement. The job waits for those of NeedExtras to be made.
	Extras     []string `json:",omitempty"`
	NeedExtras []string `json:",omitempty"`

	Limits  runtime.Limits    // of the sandbox
	BaseEnv map[string]string // the environment's variables, known before any request

	Isolation Isolation `json:",omitempty"` // "" for IsolationRun
	Key       string    `json:",omitempty"` // id of the key, where its executions may share a kernel

	Permissions runtime.Permissions // of the environment
	Thread      *Thread             // whose home the program gets; nil for none
	Mounts      []storage.Mount     // with the credentials that they need

	// Turn names the sandbox that jobs of the same turn share; empty for one
	// that is used once. It is unguessable to other tenants.
	Turn string
	// Window is how long the turn's sandbox stays for certain after a job began to use it,
	// and what such uses are counted by; 0 for none. See Result.Windows.
	Window time.Duration `json:",omitzero"`

	// Skills are folders that the turn's sandbox has for reading.
	Skills []SkillRef `json:",omitempty"`
	// Files are copies that the turn's sandbox has of uploaded files.
	Files []FileRef `json:",omitempty"`

	Partial bool `json:",omitempty"` // as Request has it

	MaxOutput   int64 // bytes of each stream in the Result; 0 for none
	StoreOutput int64 // bytes of each stream that are kept whole and streamed; what is beyond is counted and dropped

	Secrets      []string      // values that must not be seen in output
	BoundSecrets []BoundSecret // what the program's requests are given; without a network, nothing
	Redact       []string      // names of the redaction rules that apply

	Web *WebAccess // to the services of the web, from inside the sandbox; nil for none
}

// InlineOutput is how many bytes of both streams together travel in a Result
// and live in the record; what is longer goes to the blob store.
const InlineOutput = 64 << 10

// MaxChunk bounds the data of one Event, and the Events that are appended to a
// log together, in bytes.
const MaxChunk = 64 << 10

// MaxEvents is how many chunks of an execution's log are kept for those who
// reconnect.
const MaxEvents = 10_000

// PartialAfter is how long a program is silent before the beginning of a line is an Event
// of its own, where Job.Partial asks for that: progress bars and prompts end without a newline.
const PartialAfter = 100 * time.Millisecond

// Event is a piece of output with its place in the execution's log: a line with
// its newline, a piece of a line longer than MaxChunk, or the last line; with Job.Partial
// also a piece of a line that the program paused in. An
// Event without a Stream is a keepalive. The first Event has Seq 2: 1 is the
// status that every stream begins with; the result comes after the last.
type Event struct {
	Seq    int64
	Stream Stream
	Data   []byte
}

// Result is how a Job ended.
type Result struct {
	TraceID string
	Status  Status
	// ExitCode, Error, Hint, NotStarted and the byte counts are as in Execution.
	ExitCode                         int
	Error                            string
	Hint                             string
	NotStarted                       bool
	Kind                             fault.Kind // with NotStarted: what the refusal is
	Stdout, Stderr                   []byte     // empty with Stored
	StdoutBytes, StderrBytes         int64
	StdoutTruncated, StderrTruncated bool // there is more than MaxOutput
	Stored                           bool // both streams are in the blob store, up to StoreOutput
	OutputTruncated                  bool
	LastSeq                          int64 // of the last Event; 1 when there was none
	StartedAt                        time.Time
	CompletedAt                      time.Time
	PeakMemory                       int64
	Start                            Start     // "" with NotStarted
	Reused                           bool      // an earlier job of the same turn had made the sandbox
	Isolation                        Isolation `json:",omitempty"` // "" with NotStarted
	// Windows is how many windows of the turn's sandbox began with this job: one when it
	// made the sandbox or found the last window over, and each one that it ran into.
	Windows int
	Traffic Traffic
	Files   OutputFiles // their contents are in the blob store
	Kept    int64       // bytes of both streams and of Files that are kept, in the record or in the blob store

	// Thread is the state that the job's thread has from now on; nil leaves it as
	// it was. It counts only if this Result is the one that is recorded.
	Thread *ThreadState
}

// Thread is a home directory that outlives its executions, as a Job sees it.
type Thread struct {
	ID    string // the caller's name for it, unique within the tenant
	State string // names what was saved of it last; "" for nothing
	Quota int64  // bytes it may have; 0 for no bound
}

// ThreadState is a saved state of a thread.
type ThreadState struct {
	State string // as Thread.State
	Bytes int64  // of its files
	Files int64
}

// OutputName is the name in the blob store of an execution's whole stream.
func OutputName(tenant, traceID string, s Stream) string {
	return "outputs/" + tenant + "/" + traceID + "/" + string(s)
}

// Runner is an executor as gateways see it, wherever it is.
type Runner interface {
	// Start hands the job to an executor that has room. It returns once one has
	// taken it on; from then on exactly one Result follows. An error is a
	// *fault.Error and says that nothing was or will be run.
	Start(ctx context.Context, job Job) error
	// Cancel ends a running job at once. It returns when the job's Result is
	// stored; a job that no executor knows gives a NotFound fault.
	Cancel(ctx context.Context, traceID string) error
	// EndTurn ends a turn: its sandbox goes as soon as no job uses it, and a later
	// job of the turn begins with a fresh one. A turn that no executor has is no error.
	EndTurn(ctx context.Context, turn string) error
	// Alive reports whether an executor has the job, waiting or running.
	Alive(ctx context.Context, traceID string) (bool, error)
}

// StartTime is how long after its offer an executor may start a job without asking
// StartGuard. It is also how far the clocks of two machines may differ before the executor
// asks for every job.
const StartTime = 2 * time.Second

// Doubtful reports whether an executor must ask StartGuard before it starts the job at a time
// of its own clock: the deadline has passed, or the clocks differ.
func (j *Job) Doubtful(now time.Time) bool {
	left := j.StartBy.Sub(now)
	return !j.StartBy.IsZero() && (left < 0 || left > 2*StartTime)
}

// StartGuard decides, across machines, whether a job that waited long may still start. An
// executor that was paused, or a message that was delayed, must not start a job whose
// caller was told that it is lost or cancelled.
type StartGuard interface {
	// Begin reports whether the executor may start the job, unless Void came first.
	Begin(ctx context.Context, traceID string) (bool, error)
	// Void rules out that an executor starts the job. It reports false if one was
	// allowed to start it.
	Void(ctx context.Context, traceID string) (bool, error)
}

// LogReader reads the logs of executions, living and ended.
type LogReader interface {
	// Follow passes the events after a seq to yield, in order, and goes on with
	// those to come, until the Result, which it returns. Events that have left
	// the buffer are skipped; the caller sees it by their seq. Follow ends with
	// yield's error, ctx's cause, or ErrNoLog.
	Follow(ctx context.Context, traceID string, after int64, yield func([]Event) error) (*Result, error)
}

// ErrNoLog says that an execution has no log and no executor has it: its record
// says how it ended, or it is being taken over.
var ErrNoLog = errors.New("this execution has no log")

// LogWriter is the executor's end of the logs.
type LogWriter interface {
	// Append adds events, of at most MaxChunk bytes and with consecutive seqs, to
	// a log. It may return before they are stored, but blocks when too much is
	// on its way.
	Append(traceID string, events []Event) error
	// Last returns the seq of the last event stored, 1 if there is none.
	Last(ctx context.Context, traceID string) (int64, error)
	// Finish stores the Result after everything appended, and returns when it
	// cannot be lost by the end of any process. It may be repeated.
	Finish(ctx context.Context, r Result) error
}
