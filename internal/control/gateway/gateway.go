// Package gateway manages executions from request to end. It checks a request
// against its caller's plan, records it, passes it to an executor, records how it
// ended with the charges and webhooks, and wakes the waiting callers.
//
// Any number of gateways share one store and one bus, and any of them can continue
// the work of another. The end of a run reaches the record in two ways: through the
// waiting request and through the bus's durable results. The first one counts, so
// no single failure loses the end or records it twice.
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
	"github.com/atoll-run/atoll/internal/core/proof"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Waiter waits for the Result of one execution. The caller of Close says whether this
// process has recorded it.
type Waiter interface {
	Result() <-chan execution.Result
	Close(recorded bool)
}

// Log stores the output logs of executions.
type Log interface {
	execution.LogReader
	// Result returns how an execution ended according to its log, or ErrNoLog.
	Result(ctx context.Context, traceID string) (*execution.Result, error)
	// Last and Finish are the methods of execution.LogWriter; the gateway ends lost runs with them.
	Last(ctx context.Context, traceID string) (int64, error)
	Finish(ctx context.Context, r execution.Result) error
	// Purge deletes the log of an ended execution; a missing log is not an error.
	Purge(ctx context.Context, traceID string) error
}

// Outputs stores complete outputs in the blob store. A missing output is a NotFound fault.
type Outputs interface {
	Put(ctx context.Context, name string, r io.Reader) error
	Size(ctx context.Context, name string) (int64, error)
	// Open reads length bytes from offset; a negative length reads to the end.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, name string) error // a missing output is not an error
}

// Trail records the audit rows of calls that never became executions.
type Trail interface {
	Append(ctx context.Context, r audit.Row) error
}

// Config configures a Gateway. All fields except Starts, ThreadKey, Disk and Recordable are required.
type Config struct {
	Store   execution.Store
	Runner  execution.Runner
	Log     Log
	Starts  execution.StartGuard        // nil if no executor starts jobs late
	Await   func(traceID string) Waiter // called once per execution, before it starts
	Outputs Outputs
	Trail   Trail
	// ThreadKey returns the key of a tenant for the homes of threads, see execution.Thread.Key, for
	// executors without the operator's key; may be nil.
	ThreadKey func(tenant string) []byte
	Disk      func() error // rejects new executions, such as when the disk is full; may be nil
	// Recordable rejects callers whose calls the audit trail cannot record; may be nil.
	Recordable func(ctx context.Context, p *tenant.Principal) error

	// Signer proves to gateways that executors in other processes may read the skills and uploaded
	// files of their jobs; nil if executors read them from the records.
	Signer proof.Signer

	Prices     usage.Prices
	Rules      []string      // all redaction rules
	MaxTimeout time.Duration // for plans without one
	MaxOutput  int64         // bytes of each stream in an answer
	Keep       time.Duration // retention of ended executions, for the plan's storage limit

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
	ending map[string]*conclusion // guarded by mu: executions whose end this process is recording
	full   map[string]crowd       // guarded by mu: recent rejections by executors, by tenant
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

// CallerKey returns the Call.IdempotencyKey for a key that a client chose. It includes the id of
// the API key, so callers share keys neither with each other nor with the platform's own calls.
func CallerKey(p *tenant.Principal, key string) string {
	if key == "" {
		return ""
	}
	return p.Key.ID + " " + key
}

// Call describes a request apart from its program.
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

// Policy returns the limits and defaults of a caller's plan and environment.
func (g *Gateway) Policy(p *tenant.Principal) execution.Policy {
	return p.Policy(g.cfg.MaxTimeout)
}

// EndTurn ends a turn of the caller's agent and deletes the sandbox that its calls
// shared; a later call gets a new one. An unknown turn is not an error.
func (g *Gateway) EndTurn(ctx context.Context, p *tenant.Principal, agent, turn string) error {
	return g.cfg.Runner.EndTurn(ctx, turnName(p, Call{Agent: agent, Turn: turn}))
}

// Get returns a tenant's execution without its output.
func (g *Gateway) Get(ctx context.Context, tenantID tenant.ID, traceID string) (*execution.Execution, error) {
	return g.cfg.Store.Get(ctx, tenantID, traceID)
}

// GetOutput returns a tenant's execution with its output, unless the output is
// Stored.
func (g *Gateway) GetOutput(ctx context.Context, tenantID tenant.ID, traceID string) (*execution.Execution, error) {
	return g.cfg.Store.Output(ctx, tenantID, traceID)
}

// List returns a page of executions without output, newest first.
func (g *Gateway) List(ctx context.Context, f execution.Filter) (page []*execution.Execution, next string, err error) {
	return g.cfg.Store.List(ctx, f)
}

// refusal returns the error for the caller of an execution that never started.
func refusal(kind fault.Kind, reason string) error {
	if kind == fault.Internal { // also when the kind is not known any more
		kind = fault.Unavailable
	}
	return fault.New(kind, "%s", reason)
}
