package execution

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// Job is an admitted request on its way to an executor. It holds what the run needs and nothing
// about billing.
type Job struct {
	TraceID  string
	Tenant   string // selects the tenant's part of the blob store
	Code     string
	Language Language
	Timeout  time.Duration
	Env      map[string]string // the request's own variables
	Input    Input

	// StartBy is the deadline, by the gateway's clock, for starting without asking StartGuard; zero
	// for none. Until then no gateway treats the job as lost.
	StartBy time.Time `json:",omitzero"`

	Image string // name in the executor's image store, or a reference that resolves to one
	// Extras are programs that a new sandbox should have if Image is the default image or a variant
	// of it; see package requirement. The job waits until those in NeedExtras are built.
	Extras     []string `json:",omitempty"`
	NeedExtras []string `json:",omitempty"`

	Limits  runtime.Limits    // of the sandbox
	BaseEnv map[string]string // the environment's variables

	Isolation Isolation `json:",omitempty"` // "" for IsolationRun
	Key       string    `json:",omitempty"` // id of the key whose executions may share a kernel

	Permissions runtime.Permissions // of the environment
	Thread      *Thread             // whose home the program uses; nil for none
	Mounts      []storage.Mount     // with credentials

	// Turn identifies the sandbox that jobs of one turn share; "" for a single-use sandbox. Other
	// tenants cannot guess it.
	Turn string
	// Window is the minimum time that the turn's sandbox stays after a job starts to use it, and
	// the unit of Result.Windows; 0 for none.
	Window time.Duration `json:",omitzero"`

	// Skills are directories that the turn's sandbox mounts read-only.
	Skills []SkillRef `json:",omitempty"`
	// Files are uploaded files that Atoll copies into the turn's sandbox.
	Files []FileRef `json:",omitempty"`

	Partial bool `json:",omitempty"` // as Request.Partial

	MaxOutput   int64 // bytes of each stream in the Result; 0 for none
	StoreOutput int64 // bytes of each stream that are stored and streamed; the rest is only counted

	Secrets      []string      // values to redact from output
	BoundSecrets []BoundSecret // secrets for the program's requests; unused without a network
	Redact       []string      // names of the redaction rules to apply

	Web *WebAccess // access to the web services from the sandbox; nil for none
}

// InlineOutput limits the bytes of both streams together that a Result carries and the record
// holds. The blob store holds longer output.
const InlineOutput = 64 << 10

// MaxChunk limits, in bytes, the data of one Event and of all Events in one append to a log.
const MaxChunk = 64 << 10

// MaxEvents limits how many chunks of an execution's log stay available to clients that reconnect.
const MaxEvents = 10_000

// PartialAfter is how long a program must be silent before an incomplete line becomes an Event,
// with Job.Partial. Progress bars and prompts end without a newline.
const PartialAfter = 100 * time.Millisecond

// Event is a piece of output with its position in the execution's log: a line with its newline, a
// piece of a line longer than MaxChunk, or the last line. With Job.Partial it may also be an
// incomplete line. An Event without a Stream is a keepalive. The first Event has Seq 2, because 1
// is the status that opens every stream; the result follows the last Event.
type Event struct {
	Seq    int64
	Stream Stream
	Data   []byte
}

// Result is the outcome of a Job.
type Result struct {
	TraceID string
	Status  Status
	// ExitCode, Error, Hint, NotStarted and the byte counts are as in Execution.
	ExitCode                         int
	Error                            string
	Hint                             string
	NotStarted                       bool
	Kind                             fault.Kind // with NotStarted: the kind of the fault
	Stdout, Stderr                   []byte     // empty with Stored
	StdoutBytes, StderrBytes         int64
	StdoutTruncated, StderrTruncated bool // the program wrote more than MaxOutput
	Stored                           bool // both streams are in the blob store, up to StoreOutput
	OutputTruncated                  bool
	LastSeq                          int64 // of the last Event; 1 if there was no Event
	StartedAt                        time.Time
	CompletedAt                      time.Time
	PeakMemory                       int64
	Start                            Start     // "" with NotStarted
	Reused                           bool      // an earlier job of the turn created the sandbox
	Isolation                        Isolation `json:",omitempty"` // "" with NotStarted
	// Windows is how many windows of the turn's sandbox began with this job: one if it created the
	// sandbox or the last window had ended, plus each one that it ran into.
	Windows int
	Traffic Traffic
	Files   OutputFiles // their contents are in the blob store
	Kept    int64       // bytes stored of both streams and of Files, in the record or the blob store

	// Thread is the new state of the job's thread; nil leaves the state unchanged. It takes effect
	// only if this Result is the one that is recorded.
	Thread *ThreadState
}

// Thread is a home directory that outlives its executions, as a Job sees it.
type Thread struct {
	ID    string // the caller's name for it, unique within the tenant
	State string // the last saved state; "" for none
	Quota int64  // limit in bytes; 0 for unlimited
	// Key is the tenant's key for the homes of threads, of 64 bytes; nil if the executor has the
	// operator's key.
	Key []byte `json:",omitempty"`
}

// String returns the thread without its key, so that logs and errors do not contain the key.
func (t Thread) String() string { return "thread " + t.ID + " " + t.State }

// LogValue implements slog.LogValuer.
func (t Thread) LogValue() slog.Value { return slog.StringValue(t.String()) }

// ThreadState is a saved state of a thread.
type ThreadState struct {
	State string // as Thread.State
	Bytes int64  // of its files
	Files int64
}

// OutputName returns the blob store name of an execution's whole stream.
func OutputName(tenant, traceID string, s Stream) string {
	return "outputs/" + tenant + "/" + traceID + "/" + string(s)
}

// Runner is a local or remote executor as gateways see it.
type Runner interface {
	// Start hands the job to an executor with free capacity and returns when the executor has
	// accepted it. Exactly one Result follows. An error is a *fault.Error and guarantees that the
	// job did not and will not run.
	Start(ctx context.Context, job Job) error
	// Cancel ends a running job immediately and returns when its Result is stored. It returns a
	// NotFound fault if no executor has the job.
	Cancel(ctx context.Context, traceID string) error
	// EndTurn ends a turn. Its sandbox is deleted when no job uses it, and a later job of the turn
	// starts in a new one. An unknown turn is not an error.
	EndTurn(ctx context.Context, turn string) error
	// Alive reports whether an executor has the job, waiting or running.
	Alive(ctx context.Context, traceID string) (bool, error)
}

// StartTime is how long after the offer an executor may start a job without asking StartGuard. It
// is also the largest tolerated clock difference between two machines; beyond it the executor asks
// for every job.
const StartTime = 2 * time.Second

// Doubtful reports whether an executor must ask StartGuard before it starts the job at now, by its
// own clock. It must if the deadline has passed or the clocks differ too much.
func (j *Job) Doubtful(now time.Time) bool {
	left := j.StartBy.Sub(now)
	return !j.StartBy.IsZero() && (left < 0 || left > 2*StartTime)
}

// StartGuard decides, across machines, whether a job that waited long may still start. A paused
// executor or a delayed message must not start a job that the caller was told is lost or cancelled.
type StartGuard interface {
	// Begin reports whether the executor may start the job. It may unless Void came first.
	Begin(ctx context.Context, traceID string) (bool, error)
	// Void prevents executors from starting the job. It returns false if an executor may already
	// have started it.
	Void(ctx context.Context, traceID string) (bool, error)
}

// LogReader reads the logs of running and ended executions.
type LogReader interface {
	// Follow passes the events after a seq to yield, in order, waits for new ones, and returns the
	// Result at the end. It skips events that have left the buffer; the caller sees the gap in
	// their seqs. Follow ends early with yield's error, ctx's cause, or ErrNoLog.
	Follow(ctx context.Context, traceID string, after int64, yield func([]Event) error) (*Result, error)
}

// ErrNoLog says that an execution has no log and no executor has it. Either its record says how it
// ended, or another executor is taking it over.
var ErrNoLog = errors.New("this execution has no log")

// LogWriter is the executor's side of the logs.
type LogWriter interface {
	// Append adds events of at most MaxChunk bytes, with consecutive seqs, to a log. It may return
	// before they are stored, but blocks while too much is in flight.
	Append(traceID string, events []Event) error
	// Last returns the seq of the last stored event, or 1 if the log has no events.
	Last(ctx context.Context, traceID string) (int64, error)
	// Finish stores the Result after all appended events and returns when it is durable. It may be
	// repeated.
	Finish(ctx context.Context, r Result) error
}
