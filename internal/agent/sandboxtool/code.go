package sandboxtool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// RunCode is what the tool that runs code is called by.
const RunCode = "run_code"

// codeTool runs code.
type codeTool struct{}

func (codeTool) model() model.Tool {
	return model.Tool{
		Name: RunCode,
		Description: "Runs " + language.Titles("or") + " code in an isolated Linux sandbox and returns what it wrote. " +
			"Files, installed packages and programs in the background stay for later calls; variables do not. Print what you want to see.",
		Parameters: []byte(codeSchema),
	}
}

var codeSchema = `{"type":"object","additionalProperties":false,"required":["language","code"],"properties":{` +
	`"language":{"type":"string","enum":["` + strings.Join(languages(), `","`) + `"]},` +
	`"code":{"type":"string","description":"The program, at most 1 MB."},` +
	`"timeout":{"type":"integer","minimum":1,"description":"Most seconds that it may run; 60 if omitted."}}}`

func languages() (names []string) {
	for _, l := range execution.Languages {
		names = append(names, string(l))
	}
	return names
}

// codeInput is what a model calls RunCode with.
type codeInput struct {
	Language *execution.Language `json:"language" required:"true"`
	Code     *string             `json:"code" required:"true" nul:"true"`
	Timeout  *float64            `json:"timeout,omitzero"`
}

func parseCode(arguments string) (*codeInput, error) {
	var in codeInput
	if err := wire.Arguments.Decode([]byte(arguments), &in); err != nil {
		return nil, err
	}
	if in.Timeout != nil && (*in.Timeout != float64(int64(*in.Timeout)) || *in.Timeout < 1 || *in.Timeout > 1e6) {
		return nil, fault.New(fault.Invalid, "timeout must be a whole number of seconds, at least 1")
	}
	return &in, nil
}

func (codeTool) show(c *loop.Call) (*run.Item, error) {
	in, err := parseCode(c.Call.Arguments)
	if err != nil {
		return nil, err
	}
	return &run.Item{Status: run.ItemInProgress, Code: &run.CodeRun{
		CallID: c.Call.ID, Sandbox: c.Run.Sandbox, Language: string(*in.Language), Code: *in.Code,
	}}, nil
}

func (codeTool) request(c *loop.Call, p execution.Policy) (execution.Request, error) {
	in, err := parseCode(c.Call.Arguments)
	if err != nil {
		return execution.Request{}, err
	}
	req := execution.Request{Code: *in.Code, Language: *in.Language, Timeout: p.DefaultTimeout()}
	if in.Timeout != nil {
		req.Timeout = time.Duration(*in.Timeout) * time.Second
	}
	return req, nil
}

func (codeTool) refused(c *loop.Call, why string) *loop.Outcome {
	code := *c.Item.Code
	code.Results = []run.CodeResult{{Stderr: why, ExitCode: -1, Status: run.ItemFailed}}
	return &loop.Outcome{
		Result: sandboxcall.Result("The code was not run: "+why, true),
		Item:   &run.Item{Status: run.ItemFailed, Code: &code},
	}
}

// statuses of executions, as items have them. A program that fails has run.
var statuses = map[execution.Status]run.ItemStatus{
	execution.Success: run.ItemCompleted, execution.Failed: run.ItemCompleted, execution.Timeout: run.ItemTimedOut,
}

// lost reports whether it is not known how a program ended.
func lost(e *execution.Execution) bool { return e.Status == execution.Failed && e.ExitCode < 0 }

func (codeTool) outcome(ctx context.Context, s *Sandbox, c *loop.Call, e *execution.Execution) (*loop.Outcome, error) {
	r := run.CodeResult{ExitCode: e.ExitCode, DurationMS: e.Duration().Milliseconds(), Status: run.ItemFailed}
	if status, ok := statuses[e.Status]; ok && !lost(e) {
		r.Status = status
	}
	var err error
	if r.Stdout, r.StdoutTruncated, err = s.read(ctx, e, execution.Stdout); err != nil {
		return nil, err
	}
	if r.Stderr, r.StderrTruncated, err = s.read(ctx, e, execution.Stderr); err != nil {
		return nil, err
	}
	if r.Status == run.ItemFailed && r.Stderr == "" {
		r.Stderr = e.Error
	}
	code := *c.Item.Code
	code.Execution, code.Results = e.TraceID, []run.CodeResult{r}
	uses, err := s.calls(ctx, e)
	if err != nil {
		return nil, err
	}
	return &loop.Outcome{
		Uses:   uses,
		Result: sandboxcall.Result(told(e, &r), e.Status != execution.Success),
		Item:   &run.Item{Status: r.Status, Code: &code},
	}, nil
}

// read returns the beginning of a stream as text.
func (s *Sandbox) read(ctx context.Context, e *execution.Execution, stream execution.Stream) (shown string, truncated bool, err error) {
	in, err := s.Runner.Shown(ctx, e, stream)
	if err != nil {
		return "", false, err
	}
	gone := gateway.Gone(e, stream, in)
	shown, truncated, err = text(in, sandboxcall.MaxStream)
	if err != nil {
		return "", false, fmt.Errorf("read the output of %s: %w", e.TraceID, err)
	}
	cut := e.StdoutTruncated
	if stream == execution.Stderr {
		cut = e.StderrTruncated
	}
	return shown, truncated || cut || gone, nil
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
	sandboxcall.Section(&b, "stdout", r.Stdout, r.StdoutTruncated)
	sandboxcall.Section(&b, "stderr", r.Stderr, r.StderrTruncated)
	return b.String()
}
