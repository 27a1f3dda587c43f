// Package sandboxtool gives models a sandbox: it runs their code and file tools in one
// sandbox per conversation. Files and packages stay for later calls.
//
// Each call is an execution with an idempotency key made of its run and number, so a process
// that takes over a run gets the outcome of a call that another process started. File tools
// run a program that every sandbox contains.
package sandboxtool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Handler is the run.Tool.Handler of the tools here.
const Handler = "sandbox"

// Window is how long a sandbox is guaranteed to stay after a call starts to use it. Atoll bills
// the sandbox by the window; a later call starts another one.
const Window = 20 * time.Minute

// Runner runs code; *gateway.Gateway implements it.
type Runner interface {
	Policy(p *tenant.Principal) execution.Policy
	Execute(ctx context.Context, p *tenant.Principal, req execution.Request, c gateway.Call) (*execution.Execution, error)
	Shown(ctx context.Context, e *execution.Execution, s execution.Stream) (io.ReadCloser, error)
	Whole(ctx context.Context, e *execution.Execution, s execution.Stream) (io.ReadSeekCloser, error)
	File(ctx context.Context, e *execution.Execution, name string) (io.ReadSeekCloser, error)
	EndKeyed(ctx context.Context, t tenant.ID, key string) (*execution.Execution, error)
}

// tool converts a call to an execution request, and the execution to an outcome.
type tool interface {
	model() model.Tool
	// show returns what readers see while the call runs.
	show(c *loop.Call) (*run.Item, error)
	// request returns the program and its input, with a timeout that the policy allows. The
	// model sees every error that is not internal.
	request(c *loop.Call, p execution.Policy) (execution.Request, error)
	outcome(ctx context.Context, s *Sandbox, c *loop.Call, e *execution.Execution) (*loop.Outcome, error)
	// refused is the outcome of a call that was not made.
	refused(c *loop.Call, why string) *loop.Outcome
}

// Tools returns the definitions of the sandbox's tools for a model.
func Tools() []run.Tool {
	all := make([]run.Tool, len(tools))
	for i, t := range tools {
		_, code := t.(codeTool)
		all[i] = run.Tool{Tool: t.model(), Handler: Handler, Serial: true, Uncounted: !code, Window: true}
	}
	return all
}

var tools = append([]tool{codeTool{}}, fileTools()...)

var byName = func() map[string]tool {
	m := map[string]tool{}
	for _, t := range tools {
		m[t.model().Name] = t
	}
	m[checkName] = checkTool{}
	return m
}()

func init() {
	for _, t := range tools {
		class := agent.Files
		if _, ok := t.(codeTool); ok {
			class = agent.Code
		}
		agent.RegisterTool(t.model().Name, class)
	}
}

// Sandbox implements loop.Handler for the sandbox's tools.
type Sandbox struct {
	Runner  Runner
	Callers sandboxcall.Callers
	Ledger  sandboxcall.Ledger // nil if code cannot call web services
	// Services lists the web services that code can call. If it is empty, code gets no address for them.
	Services []string
	Vaults   Vaults // nil if runs have no vaults
	Extras   Extras // nil if no reason for missing extras is known
	// Programs are the tools of built-in skills that run in the sandbox.
	Programs []*ProgramTool
}

// tool returns the tool with a name, or nil.
func (s *Sandbox) tool(name string) tool {
	if t := byName[name]; t != nil {
		return t
	}
	for _, t := range s.Programs {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Vaults returns the secrets of hosts; vault.Store implements it.
type Vaults interface {
	Hosts(ctx context.Context, t tenant.ID, vaults []vault.ID) ([]vault.Held, error)
}

// lend gives the caller's programs the current host secrets of the run's vaults.
func (s *Sandbox) lend(ctx context.Context, c *loop.Call, p *tenant.Principal) error {
	if s.Vaults == nil || len(c.Request.Vaults) == 0 {
		return nil
	}
	held, err := s.Vaults.Hosts(ctx, c.Run.Tenant, c.Request.Vaults)
	if err != nil {
		return err
	}
	loans := make([]tenant.Loan, len(held))
	for i, h := range held {
		loans[i] = tenant.Loan{Name: h.Auth.Variable, Value: h.Secret.Value, Binding: h.Auth.Binding}
	}
	return p.Lend(loans)
}

var (
	_ loop.Handler = (*Sandbox)(nil)
	_ loop.Ender   = (*Sandbox)(nil)
)

// End implements loop.Ender.
func (s *Sandbox) End(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	e, err := s.Runner.EndKeyed(ctx, c.Run.Tenant, sandboxcall.Key(c))
	if err != nil || e == nil {
		return nil, err
	}
	uses, err := s.calls(ctx, e)
	return &loop.Outcome{Windows: e.Windows, Uses: uses}, err
}

// Show implements loop.Handler.
func (s *Sandbox) Show(c *loop.Call) (*run.Item, error) {
	t := s.tool(c.Call.Name)
	if t == nil {
		return nil, fmt.Errorf("the sandbox has no tool %q", c.Call.Name)
	}
	return t.show(c)
}

// Do implements loop.Handler.
func (s *Sandbox) Do(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	t := s.tool(c.Call.Name)
	p, err := s.Callers.Entrant(ctx, c.Run.Tenant, c.Run.Key, c.Run.Environment)
	if err == nil {
		err = s.lend(ctx, c, &p)
	}
	if err != nil {
		return s.refused(ctx, t, c, err)
	}
	req, err := t.request(c, s.Runner.Policy(&p))
	if err != nil {
		return s.refused(ctx, t, c, err)
	}
	req.TraceID = execution.NewTraceID()
	place(c, &req)
	extras, need := extrasOf(t, c)
	e, err := s.execute(ctx, &p, req, gateway.Call{
		Source: execution.SourceResponse, Delivery: execution.Inline, Turn: c.Run.Sandbox, Window: Window, Run: string(c.Run.ID),
		Web:            s.Ledger != nil && len(s.Services) > 0 && p.May(tenant.ScopeTools) && c.Call.Name == RunCode && !c.Request.NoWeb,
		WebLeft:        c.Left,
		Held:           c.Run.Session != "",
		By:             c.Run.Origin(c.Request, c.Call.Name),
		Shown:          shown(c),
		Skills:         sandboxcall.Folders(c.Request),
		Extras:         extras,
		NeedExtras:     need,
		Files:          c.Request.Copies,
		IdempotencyKey: sandboxcall.Key(c),
	})
	if ctx.Err() != nil && e != nil { // it was ended with its run
		uses, failed := s.calls(context.WithoutCancel(ctx), e)
		return &loop.Outcome{Windows: e.Windows, Uses: uses}, errors.Join(context.Cause(ctx), failed)
	}
	if err != nil {
		return s.refused(ctx, t, c, err)
	}
	out, err := t.outcome(ctx, s, c, e)
	if err != nil {
		return nil, err
	}
	out.Windows = e.Windows
	return out, s.noteNewSandbox(ctx, c, e, out)
}

// shown returns the activity's text for a tool call, because the code that it runs is Atoll's own;
// "" for run_code, which runs the model's code.
func shown(c *loop.Call) string {
	if c.Call.Name == RunCode {
		return ""
	}
	return c.Call.Name + " " + c.Call.Arguments
}

// goneBefore tells the model, and readers of a session's events, that the sandbox of earlier
// calls no longer exists.
const goneBefore = "The sandbox of the earlier calls has ended, and what was in it is gone: this call was made in a new one."

// noteNewSandbox tells the model that the call ran in a new sandbox, without the files of the
// session's earlier calls.
func (s *Sandbox) noteNewSandbox(ctx context.Context, c *loop.Call, e *execution.Execution, out *loop.Outcome) error {
	if !c.Used || c.Run.Session == "" || s.Ledger == nil || e.NotStarted {
		return nil
	}
	made, err := s.Ledger.Made(ctx, e.Tenant, e.TraceID, e.CreatedAt.Add(-sandboxcall.Skew), e.CompletedAt.Add(sandboxcall.Skew))
	if err == nil && made {
		out.Result.Parts[0].Text = goneBefore + "\n" + out.Result.Parts[0].Text
	}
	return err
}

// execute runs code to its end. When ctx ends, execute also stops the program, and returns the
// execution with the cause. If no executor has room, execute waits and retries.
func (s *Sandbox) execute(ctx context.Context, p *tenant.Principal, req execution.Request, c gateway.Call) (*execution.Execution, error) {
	e, err := s.Runner.Execute(ctx, p, req, c)
	for wait := firstWait; ctx.Err() == nil; wait = min(2*wait, lastWait) {
		if fault.KindOf(err) != fault.Unavailable || !pause(ctx, wait) {
			return e, err
		}
		req.TraceID = execution.NewTraceID()
		e, err = s.Runner.Execute(ctx, p, req, c)
	}
	if errors.Is(context.Cause(ctx), loop.ErrLeft) {
		return nil, context.Cause(ctx)
	}
	ended, err := s.Runner.EndKeyed(context.WithoutCancel(ctx), p.Tenant.ID, c.IdempotencyKey)
	if err != nil {
		return nil, errors.Join(context.Cause(ctx), err)
	}
	return ended, context.Cause(ctx)
}

// passing lists the limits that the model can meet, by asking for less or retrying later.
var passing = map[string]bool{"timeout": true, "concurrency": true}

// Waits for room for an execution, each about twice the previous one.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 2 * time.Second
)

// pause waits for d. It reports false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refused returns the outcome of a call that the caller's permissions or limits rejected, or a
// failure of the server as an error. An exhausted quota ends the run.
func (s *Sandbox) refused(ctx context.Context, t tool, c *loop.Call, err error) (*loop.Outcome, error) {
	r := sandboxcall.Rejected(ctx, err)
	if r == nil || fault.KindOf(err) == fault.Unavailable {
		return nil, err
	}
	return r.Mark(t.refused(c, r.Why), r.Exhausted && !passing[r.Limit]), nil
}

// text reads at most n bytes of an output as text, and closes in.
func text(in io.ReadCloser, n int) (s string, more bool, err error) {
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, int64(n)+1))
	if err != nil {
		return "", false, err
	}
	if more = len(b) > n; more {
		b = b[:wire.WholeRunes(b[:n])]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), more, nil
}
