package interpreter

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// machine has the sandboxes and the one context of a test, which do as the test says.
type machine struct {
	sandbox.Directory

	scopes  []tenant.Scope
	sb      *sandbox.Sandbox // nil for none
	run     func(ctx context.Context, sink codecontext.Sink) (*codecontext.Result, error)
	collect func(ctx context.Context, sink codecontext.Sink) (*codecontext.Result, error)
	exit    *process.Exit // of the context
	record  error         // of writing the audit row

	mu    sync.Mutex
	did   []string
	rows  []sandbox.Call
	keys  []string // of runs
	life  time.Duration
	stops error
}

func (m *machine) do(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did = append(m.did, what)
}

func (m *machine) Entrant(_ context.Context, t tenant.ID, key, _ string) (tenant.Principal, error) {
	p := tenant.Principal{Tenant: tenant.Tenant{ID: t}, Key: tenant.Key{ID: key, Scopes: m.scopes}, Environment: tenant.Environment{ID: "env"}}
	p.Plan.MaxOutput = 1 << 30
	return p, nil
}

func (m *machine) Policy(*tenant.Principal) execution.Policy {
	return execution.Policy{MaxTimeout: 5 * time.Minute}
}

func (m *machine) Get(_ context.Context, _ *tenant.Principal, session, name string) (*sandbox.Sandbox, error) {
	if m.sb == nil || session != container.Session || name != m.sb.Name && name != string(m.sb.ID) {
		return nil, fault.New(fault.NotFound, "there is no sandbox %q", name)
	}
	return m.sb, nil
}

func (m *machine) Ensure(_ context.Context, p *tenant.Principal, session, name string, spec *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	if m.sb == nil {
		m.do("make")
		m.sb = &sandbox.Sandbox{ID: runtime.NewID(), Tenant: p.Tenant.ID, Session: session, Name: name, Env: spec.Env, State: sandbox.Running, CreatedAt: time.Now()}
	}
	return m.sb, true, nil
}

func (m *machine) Update(_ context.Context, _ *tenant.Principal, _, _ string, c sandbox.Change) (*sandbox.Sandbox, error) {
	m.life = *c.Timeout
	return m.sb, nil
}

func (m *machine) Use(context.Context, *tenant.Principal, string, string) (sandbox.Handle, error) {
	return handle{m: m}, nil
}

func (m *machine) Record(_ context.Context, _ *tenant.Principal, c sandbox.Call) error {
	m.rows = append(m.rows, c)
	return m.record
}

type handle struct {
	sandbox.Handle
	m *machine
}

func (h handle) Sandbox() *sandbox.Sandbox                      { return h.m.sb }
func (h handle) Contexts() (codecontext.Contexts, error)        { return all{machine: h.m}, nil }
func (h handle) Stopped(context.Context) error                  { return h.m.stops }
func (h handle) Killed(_ context.Context, _ process.Exit) error { return h.m.stops }
func (h handle) NetworkHint(_ time.Time, tails [][]byte) string {
	had := execution.Network{}
	return had.Hint(tails...)
}
func (h handle) Close() { h.m.do("close") }

type all struct {
	codecontext.Contexts
	*machine
}

func (a all) Run(ctx context.Context, _ codecontext.ID, req codecontext.Request, sink codecontext.Sink) (*codecontext.Result, error) {
	a.do("run")
	a.keys = append(a.keys, req.Key)
	return a.machine.run(ctx, sink)
}

func (a all) Collect(ctx context.Context, _ codecontext.ID, req codecontext.Request, sink codecontext.Sink) (*codecontext.Result, error) {
	a.do("collect")
	a.keys = append(a.keys, req.Key)
	return a.machine.collect(ctx, sink)
}

func (a all) Get(context.Context, codecontext.ID) (*codecontext.Context, error) {
	return &codecontext.Context{ID: pythonContext, Exit: a.exit}, nil
}

func (a all) Restart(context.Context, codecontext.ID) (*codecontext.Context, error) {
	a.do("restart")
	a.exit = nil
	return &codecontext.Context{ID: pythonContext}, nil
}

// says is a run of code that writes a text and ends well.
func says(text string) func(context.Context, codecontext.Sink) (*codecontext.Result, error) {
	return func(_ context.Context, sink codecontext.Sink) (*codecontext.Result, error) {
		if err := sink(codecontext.Event{}); err != nil {
			return nil, err
		}
		return &codecontext.Result{Status: codecontext.OK}, sink(codecontext.Event{Text: []byte(text)})
	}
}

func newMachine() *machine {
	return &machine{scopes: []tenant.Scope{tenant.ScopeExecute, tenant.ScopeSandboxes}, run: says("out\n")}
}

func (m *machine) handler() *Interpreter {
	return &Interpreter{Sandboxes: m, Callers: m, Policies: m}
}

// callOf is a call, begun by another process or not.
func callOf(t *testing.T, code string, begun bool, o Options) *loop.Call {
	t.Helper()
	tool, err := Tool(o)
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal(Input{Code: &code})
	if err != nil {
		t.Fatal(err)
	}
	return &loop.Call{
		Run: &run.Run{ID: "run_0123456789abcdef0123456789abcdef", Tenant: "t", Key: "k", Sandbox: "sbx_1"}, Number: 3,
		Call: model.Call{ID: "call_1", Name: Name, Arguments: string(arguments)}, Begun: begun, Tool: &tool,
	}
}

// call makes a call.
func (m *machine) call(t *testing.T, ctx context.Context, code string, begun bool, o Options) (*loop.Outcome, error) {
	t.Helper()
	return m.make(ctx, callOf(t, code, begun, o), nil)
}

// claimed makes a call that claims where it says so.
func (m *machine) claimed(t *testing.T, ctx context.Context, code string, claim func() error) (*loop.Outcome, error) {
	t.Helper()
	return m.make(ctx, callOf(t, code, false, Options{}), claim)
}

func (m *machine) make(ctx context.Context, c *loop.Call, claim func() error) (_ *loop.Outcome, err error) {
	h := m.handler()
	if c.Item, err = h.Show(c); err != nil {
		return nil, err
	}
	if claim != nil && h.Claims(c) {
		c.Claim = func(context.Context) error { return claim() }
	}
	return h.Do(ctx, c)
}

// outputOf is what an outcome shows.
func outputOf(t *testing.T, o *loop.Outcome) (out Output) {
	t.Helper()
	if err := json.Unmarshal(o.Item.Use.Output, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
