// Package tools implements the tools that agents use, independently of the
// transport, such as HTTP or MCP.
//
// execute_code answers its agent with a Result even if it rejects a call, so that
// the agent can react to the class of the error. Only an invalid call, or a failure
// of the server, returns an error.
package tools

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Class is the kind of error that a call ended with.
type Class string

const (
	Provisioning Class = "SandboxProvisioning" // a policy, or no sandbox available: no code ran
	CapExceeded  Class = "SandboxCapExceeded"  // a cap was reached: no code ran
	TimedOut     Class = "SandboxTimeout"
	OutOfMemory  Class = "SandboxOutOfMemory"
	Cancelled    Class = "SandboxCancelled"
	Failed       Class = "SandboxFailed" // the sandbox ended, or could not run the program
)

// MaxName limits the names of agents and turns, in characters.
const MaxName = 128

// Input is a call of execute_code.
type Input struct {
	TraceID  string
	Code     string
	Language execution.Language
	Timeout  *time.Duration // nil means the default
	Metadata map[string]string
	Agent    string               // the calling agent, for its hourly cap
	Turn     string               // calls of the same agent and turn share a sandbox
	Template string               // of the agent; it must have opted in
	Skills   []execution.SkillRef // skills whose folders the sandbox gets
	Web      *execution.WebAccess // as in Caller, but without the token
	By       execution.Origin     // of a model's call
}

// Result is the answer to an agent.
type Result struct {
	TraceID                          string
	OK                               bool
	Stdout, Stderr                   []byte // cut at the tool's length, at a whole character
	StdoutTruncated, StderrTruncated bool
	ExitStatus                       audit.ExitStatus
	ExitCode                         int
	Duration                         time.Duration
	Error                            Class  // empty when the program ended by itself
	Message                          string // why it is not OK
	Dimension                        string // of CapExceeded: which cap
	ResetsAt                         time.Time
}

// Runner runs code; *gateway.Gateway implements it.
type Runner interface {
	Policy(p *tenant.Principal) execution.Policy
	Execute(ctx context.Context, p *tenant.Principal, req execution.Request, c gateway.Call) (*execution.Execution, error)
	Shown(ctx context.Context, e *execution.Execution, s execution.Stream) (io.ReadCloser, error)
	EndTurn(ctx context.Context, p *tenant.Principal, agent, turn string) error
	Refused(ctx context.Context, row audit.Row) // records the audit rows of calls that this package rejects
}

// Templates finds agent templates.
type Templates interface {
	Template(ctx context.Context, tenantID tenant.ID, name string) (tenant.Template, error)
}

// Breakers rejects calls beyond a cap.
type Breakers interface {
	Pass(ctx context.Context, tenantID, agent string, own breaker.Overrides) error
}

// Config configures an ExecuteCode. All fields are required.
type Config struct {
	Runner    Runner
	Templates Templates
	Breakers  Breakers
}

// ExecuteCode is the tool with which an agent runs code.
type ExecuteCode struct{ cfg Config }

// NewExecuteCode returns the tool.
func NewExecuteCode(cfg Config) *ExecuteCode { return &ExecuteCode{cfg} }

// Call runs code for p, and returns when it has ended. It leaves one audit row, unless
// the call itself is invalid: then it returns an error, and the caps do not count it.
func (t *ExecuteCode) Call(ctx context.Context, p *tenant.Principal, in Input) (*Result, error) {
	started := time.Now()
	req, err := t.request(p, in)
	var network tenant.Network
	if err == nil {
		if network, err = t.policy(ctx, p, in); err == nil {
			err = t.cfg.Breakers.Pass(ctx, p.Tenant.ID, in.Agent, breaker.Overrides{TenantDaily: p.Tenant.DailyCap, AgentHourly: p.Tenant.HourlyCap})
		}
	}
	if err != nil {
		out := refused(in, err, time.Since(started))
		if out == nil {
			return nil, err
		}
		t.trail(ctx, p, in, out)
		return out, nil
	}

	c := gateway.Call{
		Source: execution.SourceExecuteCode, Delivery: execution.Inline, Agent: in.Agent, Turn: in.Turn, Network: network, Skills: in.Skills, By: in.By,
	}
	if in.Web != nil {
		c.Web, c.WebLeft, c.Held = true, in.Web.Left, in.Web.Held
	}
	e, err := t.cfg.Runner.Execute(ctx, p, req, c)
	switch {
	case err == nil, e != nil && e.Status == execution.Cancelled:
		return t.result(ctx, e)
	case e != nil: // recorded as one that no executor could begin
		return &Result{TraceID: e.TraceID, ExitCode: -1, Duration: e.Duration(), ExitStatus: audit.Provisioning, Error: Provisioning, Message: e.Error}, nil
	}
	if errors.Is(err, gateway.ErrUnrecorded) {
		return nil, err // the code has run
	}
	// The gateway has left the row.
	if out := refused(in, err, time.Since(started)); out != nil {
		return out, nil
	}
	return nil, err
}

// EndTurn ends a turn and deletes the sandbox that its calls shared; a later call
// gets a new one. An unknown turn is not an error.
func (t *ExecuteCode) EndTurn(ctx context.Context, p *tenant.Principal, agent, turn string) error {
	if err := checkNames(agent, turn); err != nil {
		return err
	}
	return t.cfg.Runner.EndTurn(ctx, p, agent, turn)
}

// request validates the call.
func (t *ExecuteCode) request(p *tenant.Principal, in Input) (execution.Request, error) {
	if err := checkNames(in.Agent, in.Turn); err != nil {
		return execution.Request{}, err
	}
	if err := CheckTemplate(in.Template); err != nil {
		return execution.Request{}, err
	}
	if p.Environment.ID == "" {
		return execution.Request{}, fault.New(fault.Forbidden, "this key has no environment, so it cannot run code")
	}
	policy := t.cfg.Runner.Policy(p)
	req := execution.Request{TraceID: in.TraceID, Code: in.Code, Language: in.Language, Timeout: policy.DefaultTimeout(), Metadata: in.Metadata}
	if in.Timeout != nil {
		req.Timeout = *in.Timeout
	}
	// Checked ahead of the breakers, which must not count an invalid call.
	return req, policy.Check(req)
}

func checkNames(agent, turn string) error {
	return errors.Join(checkName("agent", agent), checkName("turn", turn))
}

func checkName(field, value string) error {
	if n := utf8.RuneCountInString(value); n < 1 || n > MaxName || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return fault.New(fault.Invalid, "%s is required: 1 to %d characters without control characters", field, MaxName)
	}
	return nil
}

// CheckAgent rejects invalid names of agents.
func CheckAgent(name string) error { return checkName("agent", name) }

// CheckTemplate rejects invalid names of templates.
func CheckTemplate(name string) error {
	if !tenant.Name.MatchString(name) {
		return fault.New(fault.Invalid, "template is required: the name of the agent's template")
	}
	return nil
}

// policy returns the network of the call's template. It fails closed: it rejects
// every call that it cannot confirm as allowed.
func (t *ExecuteCode) policy(ctx context.Context, p *tenant.Principal, in Input) (tenant.Network, error) {
	switch {
	case p.Tenant.Tier == tenant.Regulated:
		return "", fault.New(fault.Unavailable, "the sandbox is not available to tenants of the regulated tier")
	case !p.Tenant.SandboxEnabled:
		return "", fault.New(fault.Unavailable, "the sandbox is not enabled for this tenant")
	}
	tpl, err := t.cfg.Templates.Template(ctx, p.Tenant.ID, in.Template)
	switch {
	case err != nil && fault.KindOf(err) == fault.NotFound:
		return "", fault.New(fault.Unavailable, "template %q not found", in.Template)
	case err != nil:
		return "", fault.Wrap(fault.Unavailable, err, "the policy cannot be read right now; nothing was run. Retry in a few seconds")
	case tpl.Sandbox == "":
		return "", fault.New(fault.Unavailable, "the template %q has not opted in to the sandbox", in.Template)
	case tpl.Sandbox == tenant.InternalOnly, tpl.Sandbox == tenant.DefaultPublic && p.Tenant.NetworkEnabled:
		return tpl.Sandbox, nil
	case tpl.Sandbox == tenant.DefaultPublic:
		return "", fault.New(fault.Unavailable, "the template %q requires the network %s, but this tenant's policy allows no network; use internal-only", in.Template, tpl.Sandbox)
	}
	return "", fault.New(fault.Unavailable, "the template %q requires the network %q, which this version does not support", in.Template, tpl.Sandbox)
}

// refused returns the Result of a call that ran no code; nil if err is an invalid
// call or a failure of the server.
func refused(in Input, err error, took time.Duration) *Result {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return nil
	}
	out := &Result{TraceID: in.TraceID, ExitCode: -1, Duration: took, Message: f.Msg}
	switch f.Kind {
	case fault.Exhausted:
		out.Error, out.ExitStatus, out.Dimension, out.ResetsAt = CapExceeded, audit.CapExceeded, f.Dimension, f.ResetsAt
		if !f.ResetsAt.IsZero() {
			out.Message += fmt.Sprintf(" (dimension %s, resets_at %s)", f.Dimension, f.ResetsAt.UTC().Format(time.RFC3339))
		}
	case fault.Unavailable:
		out.Error, out.ExitStatus = Provisioning, audit.Provisioning
	default:
		return nil
	}
	return out
}

// trail writes the audit row of a call that this package rejected.
func (t *ExecuteCode) trail(ctx context.Context, p *tenant.Principal, in Input, out *Result) {
	row := audit.Row{
		TraceID: in.TraceID, Tenant: p.Tenant.ID, Key: p.Key.ID, Environment: p.Environment.ID,
		Source: string(execution.SourceExecuteCode), Agent: in.Agent, SessionID: in.Turn, Language: string(in.Language),
		CodeSHA256: sha256.Sum256([]byte(in.Code)), ExitStatus: out.ExitStatus, ExitCode: out.ExitCode, FailureReason: out.Message,
		DurationMS: out.Duration.Milliseconds(), Metadata: in.Metadata, Retention: time.Duration(p.Tenant.AuditDays) * 24 * time.Hour,
	}
	gateway.Attribute(&row, in.By)
	t.cfg.Runner.Refused(ctx, row)
}
