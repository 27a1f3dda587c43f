// Package gateway takes executions through their life as a service: it checks
// a request against its caller's plan, records it, hands it to an executor,
// records how it ended and what follows from that, and tells the callers that wait.
//
// Gateways keep nothing that another one could not go on with: any number of
// them share one store and one bus. The end of a run reaches the record by two
// ways, the request that waits for it and the bus's durable results; the first
// one counts, so that no failure between them loses or doubles it.
package gateway

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Waiter waits for the Result of one execution. Close says whether this process
// has recorded it.
type Waiter interface {
	Result() <-chan execution.Result
	Close(recorded bool)
}

// Log is the output logs of executions.
type Log interface {
	execution.LogReader
	// Result returns how an execution ended according to its log, or ErrNoLog.
	Result(ctx context.Context, traceID string) (*execution.Result, error)
	// Last and Finish are the LogWriter's: a run that was lost is ended here.
	Last(ctx context.Context, traceID string) (int64, error)
	Finish(ctx context.Context, r execution.Result) error
	// Purge deletes the log of an execution that has ended; none is no error.
	Purge(ctx context.Context, traceID string) error
}

// Outputs are whole outputs in the blob store. What is not there is a NotFound fault.
type Outputs interface {
	Put(ctx context.Context, name string, r io.Reader) error
	Size(ctx context.Context, name string) (int64, error)
	// Open reads length bytes from offset, or all that follow if length is
	// negative.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, name string) error // what is not there is no error
}

// Trail takes the audit rows of calls that never became executions.
type Trail interface {
	Append(ctx context.Context, r audit.Row) error
}

// Config is what a Gateway is made of. All but Starts, Disk and Recordable are required.
type Config struct {
	Store   execution.Store
	Runner  execution.Runner
	Log     Log
	Starts  execution.StartGuard        // nil where no executor starts jobs late
	Await   func(traceID string) Waiter // registers, before the start; once for an execution
	Outputs Outputs
	Trail   Trail
	Disk    func() error // says why nothing new may be begun, such as a full disk; may be nil
	// Recordable says why no call of a caller may be added to the audit trail; may be nil.
	Recordable func(ctx context.Context, p *tenant.Principal) error

	Prices     usage.Prices
	Rules      []string      // every redaction rule there is
	MaxTimeout time.Duration // of a plan that names none
	MaxOutput  int64         // bytes of each stream in an answer
	Keep       time.Duration // how long ended executions are kept, for the plan's bound on what they keep

	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Gateway admits, starts and concludes executions. It is safe for concurrent
// use.
type Gateway struct {
	cfg     Config
	metrics *metrics
	sets    redact.Sets

	mu     sync.Mutex
	ending map[string]*conclusion // guarded by mu: ends that this process is recording
	full   map[string]crowd       // guarded by mu: by tenant, what executors refused
}

// New returns a Gateway.
func New(cfg Config) (*Gateway, error) {
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, err
	}
	if cfg.Disk == nil {
		cfg.Disk = func() error { return nil }
	}
	if cfg.Recordable == nil {
		cfg.Recordable = func(context.Context, *tenant.Principal) error { return nil }
	}
	return &Gateway{
		cfg:     cfg,
		metrics: m,
		ending:  map[string]*conclusion{},
		full:    map[string]crowd{},
	}, nil
}

// CallerKey is the Call.IdempotencyKey of a key that a client chose. Two callers of a tenant do
// not share such keys, and none is one that the platform makes for its own calls.
func CallerKey(p *tenant.Principal, key string) string {
	if key == "" {
		return ""
	}
	return p.Key.ID + " " + key
}

// Call is how a request is made, besides the program.
type Call struct {
	Source         execution.Source
	Delivery       execution.Delivery
	Agent, Turn    string               // of execute_code: calls of one turn share a sandbox
	By             execution.Origin     // of a model's tool call
	Shown          string               // text that the activity shows instead of the code; "" for the code
	Network        tenant.Network       // of execute_code: of the agent's template
	WebhookURL     string               // of an Async call; "" for the key's
	IdempotencyKey string               // of the tenant, see CallerKey; "" for none
	Run            string               // id of the run that the execution goes with; "" for none
	Window         time.Duration        // of the turn: execution.Job.Window
	Skills         []execution.SkillRef // of the turn's sandbox
	Extras         []string             // likewise: execution.Job.Extras
	NeedExtras     []string             // likewise: execution.Job.NeedExtras
	Files          []execution.FileRef  // likewise
	// Web lets the program call the services of the web with the caller's key.
	Web bool
	// WebLeft is what these calls may cost together; nil for no bound.
	WebLeft *usage.Money
	// Held holds these calls to the network of the caller's environment.
	Held bool
}

// Policy is what a caller's plan and environment make of its requests.
func (g *Gateway) Policy(p *tenant.Principal) execution.Policy {
	return p.Policy(g.cfg.MaxTimeout)
}

// EndTurn ends a turn of an agent of the caller's: what its calls share goes, and
// a later call begins anew. A turn that there is not is no error.
func (g *Gateway) EndTurn(ctx context.Context, p *tenant.Principal, agent, turn string) error {
	return g.cfg.Runner.EndTurn(ctx, turnName(p, Call{Agent: agent, Turn: turn}))
}

// Get returns a tenant's execution without its output.
func (g *Gateway) Get(ctx context.Context, tenantID tenant.ID, traceID string) (*execution.Execution, error) {
	return g.cfg.Store.Get(ctx, tenantID, traceID)
}

// GetOutput returns a tenant's execution with its output, unless that is
// Stored.
func (g *Gateway) GetOutput(ctx context.Context, tenantID tenant.ID, traceID string) (*execution.Execution, error) {
	return g.cfg.Store.Output(ctx, tenantID, traceID)
}

// List returns a page of executions without output, newest first.
func (g *Gateway) List(ctx context.Context, f execution.Filter) (page []*execution.Execution, next string, err error) {
	return g.cfg.Store.List(ctx, f)
}

// refusal is what the caller of an execution is told that was never started.
func refusal(kind fault.Kind, reason string) error {
	if kind == fault.Internal { // also when the kind is not known any more
		kind = fault.Unavailable
	}
	return fault.New(kind, "%s", reason)
}
