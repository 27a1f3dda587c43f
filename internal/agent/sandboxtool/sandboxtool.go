// Package sandboxtool runs the code that models write, in one sandbox for each
// conversation: files and packages stay for the calls to come.
//
// Each call is an execution under an idempotency key made of its run and number, so that
// a process which takes a run over gets the outcome of a call that another began.
package sandboxtool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Handler is the run.Tool.Handler of the tools here.
const Handler = "sandbox"

// RunCode is what the tool that runs code is called by.
const RunCode = "run_code"

// MaxStream bounds the bytes of each stream that a call shows.
const MaxStream = 1 << 20

// maxToModel bounds the bytes of each stream that the model is given: a larger output
// would fill its context.
const maxToModel = 32 << 10

// Runner runs code; a *gateway.Gateway does.
type Runner interface {
	Policy(p *tenant.Principal) execution.Policy
	Execute(ctx context.Context, p *tenant.Principal, req execution.Request, c gateway.Call) (*execution.Execution, error)
	Shown(ctx context.Context, e *execution.Execution, s execution.Stream) (io.ReadCloser, error)
	Cancel(ctx context.Context, t tenant.ID, traceID string) (*execution.Execution, error)
}

// Callers find out who started a run; a *tenant.Authority does.
type Callers interface {
	Holder(ctx context.Context, t tenant.ID, key string) (tenant.Principal, error)
}

// Tools are the tools of the sandbox, as a model is given them.
func Tools() []run.Tool {
	return []run.Tool{{
		Tool: model.Tool{
			Name: RunCode,
			Description: "Runs " + language.Titles("or") + " code in an isolated Linux sandbox and returns what it wrote. " +
				"Files and installed packages stay for later calls; variables and processes do not. Print what you want to see.",
			Parameters: []byte(schema),
		},
		Handler: Handler, Serial: true,
	}}
}

var schema = `{"type":"object","additionalProperties":false,"required":["language","code"],"properties":{` +
	`"language":{"type":"string","enum":["` + strings.Join(languages(), `","`) + `"]},` +
	`"code":{"type":"string","description":"The program, at most 1 MB."},` +
	`"timeout":{"type":"integer","minimum":1,"description":"Most seconds that it may run; 60 if left out."}}}`

func languages() (names []string) {
	for _, l := range execution.Languages {
		names = append(names, string(l))
	}
	return names
}

// input is what a model calls RunCode with.
type input struct {
	Language *execution.Language `json:"language" required:"true"`
	Code     *string             `json:"code" required:"true" nul:"true"`
	Timeout  *float64            `json:"timeout,omitzero"`
}

func parse(arguments string) (*input, error) {
	var in input
	if err := wire.Arguments.Decode([]byte(arguments), &in); err != nil {
		return nil, err
	}
	if in.Timeout != nil && (*in.Timeout != float64(int64(*in.Timeout)) || *in.Timeout < 1 || *in.Timeout > 1e6) {
		return nil, fault.New(fault.Invalid, "timeout must be a whole number of seconds, at least 1")
	}
	return &in, nil
}

// Sandbox is the loop.Handler of the sandbox's tools.
type Sandbox struct {
	Runner  Runner
	Callers Callers
}

var _ loop.Handler = (*Sandbox)(nil)

// Show implements loop.Handler.
func (s *Sandbox) Show(c *loop.Call) (*run.Item, error) {
	in, err := parse(c.Call.Arguments)
	if err != nil {
		return nil, err
	}
	return &run.Item{Status: run.ItemInProgress, Code: &run.CodeRun{
		CallID: c.Call.ID, Sandbox: c.Run.Sandbox, Language: string(*in.Language), Code: *in.Code,
	}}, nil
}

// Do implements loop.Handler.
func (s *Sandbox) Do(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	in, err := parse(c.Call.Arguments)
	if err != nil {
		return nil, err // Show has read them
	}
	p, err := s.Callers.Holder(ctx, c.Run.Tenant, c.Run.Key)
	if err != nil {
		return s.refused(ctx, c, err)
	}
	req := execution.Request{TraceID: execution.NewTraceID(), Code: *in.Code, Language: *in.Language, Timeout: s.Runner.Policy(&p).DefaultTimeout()}
	if in.Timeout != nil {
		req.Timeout = time.Duration(*in.Timeout) * time.Second
	}
	e, err := s.execute(ctx, &p, req, gateway.Call{
		Source: execution.SourceResponse, Delivery: execution.Inline, Turn: c.Run.Sandbox,
		IdempotencyKey: fmt.Sprintf("%s/%d", c.Run.ID, c.Number),
	})
	if err != nil {
		return s.refused(ctx, c, err)
	}
	return s.outcome(ctx, c, e)
}

// execute runs code to its end. When ctx ends the program is ended too.
func (s *Sandbox) execute(ctx context.Context, p *tenant.Principal, req execution.Request, c gateway.Call) (*execution.Execution, error) {
	e, err := s.Runner.Execute(ctx, p, req, c)
	if ctx.Err() == nil {
		return e, err
	}
	if errors.Is(context.Cause(ctx), loop.ErrLeft) {
		return nil, context.Cause(ctx)
	}
	work := context.WithoutCancel(ctx)
	if _, err := s.Runner.Cancel(work, p.Tenant.ID, req.TraceID); err != nil && fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.Conflict {
		return nil, errors.Join(context.Cause(ctx), err)
	}
	return nil, context.Cause(ctx)
}

// refused is the outcome of a call that was not made because of what the caller may do,
// or the error of the server that could not make it.
func (s *Sandbox) refused(ctx context.Context, c *loop.Call, err error) (*loop.Outcome, error) {
	if ctx.Err() != nil || fault.KindOf(err) == fault.Internal || fault.KindOf(err) == fault.Unavailable {
		return nil, err
	}
	code := *c.Item.Code
	code.Results = []run.CodeResult{{Stderr: err.Error(), ExitCode: -1, Status: run.ItemFailed}}
	return &loop.Outcome{
		Result: model.Result{Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: "The code was not run: " + err.Error()}}},
		Item:   &run.Item{Status: run.ItemFailed, Code: &code},
	}, nil
}

// statuses of executions, as items have them. A program that fails has run.
var statuses = map[execution.Status]run.ItemStatus{
	execution.Success: run.ItemCompleted, execution.Failed: run.ItemCompleted, execution.Timeout: run.ItemTimedOut,
}

func (s *Sandbox) outcome(ctx context.Context, c *loop.Call, e *execution.Execution) (*loop.Outcome, error) {
	r := run.CodeResult{ExitCode: e.ExitCode, DurationMS: e.Duration().Milliseconds(), Status: run.ItemFailed}
	if status, ok := statuses[e.Status]; ok {
		r.Status = status
	}
	var err error
	if r.Stdout, r.StdoutTruncated, err = s.read(ctx, e, execution.Stdout); err != nil {
		return nil, err
	}
	if r.Stderr, r.StderrTruncated, err = s.read(ctx, e, execution.Stderr); err != nil {
		return nil, err
	}
	code := *c.Item.Code
	code.Execution, code.Results = e.TraceID, []run.CodeResult{r}
	return &loop.Outcome{
		Result: model.Result{Failed: e.Status != execution.Success, Parts: []model.Part{{Kind: model.PartText, Text: told(e, &r)}}},
		Item:   &run.Item{Status: r.Status, Code: &code},
	}, nil
}

// read returns the beginning of a stream as text.
func (s *Sandbox) read(ctx context.Context, e *execution.Execution, stream execution.Stream) (text string, truncated bool, err error) {
	in, err := s.Runner.Shown(ctx, e, stream)
	if err != nil {
		return "", false, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, MaxStream+1))
	if err != nil {
		return "", false, fmt.Errorf("read the output of %s: %w", e.TraceID, err)
	}
	if truncated = len(b) > MaxStream; truncated {
		b = b[:wire.WholeRunes(b[:MaxStream])]
	}
	cut := e.StdoutTruncated
	if stream == execution.Stderr {
		cut = e.StderrTruncated
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), truncated || cut, nil
}

// told is what the model reads of an execution.
func told(e *execution.Execution, r *run.CodeResult) string {
	var b strings.Builder
	switch {
	case e.Status == execution.Timeout:
		fmt.Fprintf(&b, "The program was ended after %s.\n", e.Timeout)
	case e.Error != "":
		fmt.Fprintf(&b, "Exit code %d: %s\n", e.ExitCode, e.Error)
	default:
		fmt.Fprintf(&b, "Exit code %d\n", e.ExitCode)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "Hint: %s\n", e.Hint)
	}
	section(&b, "stdout", r.Stdout, r.StdoutTruncated)
	section(&b, "stderr", r.Stderr, r.StderrTruncated)
	return b.String()
}

func section(b *strings.Builder, name, text string, truncated bool) {
	if text == "" {
		return
	}
	if len(text) > maxToModel {
		half := maxToModel / 2
		text = strings.ToValidUTF8(text[:half], "") + fmt.Sprintf("\n[%d bytes left out]\n", len(text)-2*half) + strings.ToValidUTF8(text[len(text)-half:], "")
	}
	fmt.Fprintf(b, "%s:\n%s\n", name, text)
	if truncated {
		fmt.Fprintf(b, "[the rest of %s is cut; write large results to a file]\n", name)
	}
}
