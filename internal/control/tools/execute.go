package tools

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// SandboxExecuteName is the name of the tool sandbox_execute. The tool does the work of
// POST /v1/sandbox/execute, with the same scope, for clients that can only call tools.
const SandboxExecuteName = "sandbox_execute"

var sandboxExecute = define(Definition{
	Name: SandboxExecuteName, Title: "Run code in a fresh sandbox",
	Description: "Run " + language.Titles("or") + " code in a fresh sandbox that is gone afterwards, with nothing of the other sandboxes or of earlier calls.",
	Annotations: Annotations{OpenWorld: true},
}, execute)

// ExecuteInput is the input of sandbox_execute.
type ExecuteInput struct {
	Code     *string        `json:"code" required:"true" nul:"true" doc:"1 byte to 1 MB."`
	Language *language.Name `json:"language,omitzero" default:""`
	Timeout  *wire.Whole    `json:"timeout,omitzero" doc:"Most seconds that the code may run; 60 if omitted."`
}

// ExecuteOutput is what sandbox_execute returns.
type ExecuteOutput struct {
	Success         bool    `json:"success" required:"true" doc:"True if exit_code is 0."`
	Stdout          string  `json:"stdout" required:"true" doc:"The first 262,144 bytes. Invalid UTF-8 becomes U+FFFD."`
	Stderr          string  `json:"stderr" required:"true" doc:"The first 262,144 bytes. Invalid UTF-8 becomes U+FFFD."`
	ExitCode        int     `json:"exit_code" required:"true" doc:"128+n when signal n ended the program; -1 when none was seen."`
	Error           *string `json:"error" required:"true" nullable:"true" doc:"Why Atoll stopped the run, such as a limit; null if Atoll did not stop it."`
	StdoutTruncated bool    `json:"stdout_truncated" required:"true"`
	StderrTruncated bool    `json:"stderr_truncated" required:"true"`
	TraceID         string  `json:"trace_id" required:"true" doc:"Names the execution and its audit row."`
}

// Apart returns the definition of sandbox_execute, which does not belong to sessions.
func (s *Set) Apart() Definition { return sandboxExecute.Definition }

// CallApart calls sandbox_execute. For the tools of sessions, use Call.
func (s *Set) CallApart(ctx context.Context, c *Caller, input []byte) (any, error) {
	return sandboxExecute.call(ctx, &call{set: s, by: c, row: sandbox.Call{TraceID: c.TraceID, Source: SandboxExecuteName, Began: time.Now()}}, input)
}

func execute(ctx context.Context, c *call, in *ExecuteInput) (*ExecuteOutput, error) {
	c.recorded = true // the gateway writes the row
	p := c.by.Principal
	if p.Environment.ID == "" {
		return nil, fault.New(fault.Forbidden, "this key has no environment, so it cannot run code")
	}
	runner := c.set.cfg.ExecuteCode.cfg.Runner
	policy := runner.Policy(p)
	req := execution.Request{TraceID: c.by.TraceID, Code: *in.Code, Language: *in.Language, Timeout: policy.DefaultTimeout()}
	if in.Timeout != nil {
		seconds, err := integer("timeout", in.Timeout, 1, maxWhole/int64(time.Second))
		if err != nil {
			return nil, err
		}
		req.Timeout = time.Duration(seconds) * time.Second
	}
	if err := policy.Check(req); err != nil {
		return nil, err
	}
	e, err := runner.Execute(ctx, p, req, gateway.Call{Source: execution.SourceAPI, Delivery: execution.Inline, By: c.by.By})
	if err != nil {
		return nil, err
	}
	out := &ExecuteOutput{Success: e.Status == execution.Success, ExitCode: e.ExitCode, TraceID: e.TraceID, Error: orNull(e.Error)}
	for _, s := range []struct {
		from execution.Stream
		to   *string
		more *bool
		cut  bool
	}{{execution.Stdout, &out.Stdout, &out.StdoutTruncated, e.StdoutTruncated}, {execution.Stderr, &out.Stderr, &out.StderrTruncated, e.StderrTruncated}} {
		shown, more, err := c.set.cfg.ExecuteCode.read(ctx, e, s.from, MaxShown)
		if err != nil {
			return nil, err
		}
		*s.to, *s.more = text(shown), more || s.cut
	}
	return out, nil
}

// Failed reports that the call ran but did not succeed. Agents see this beside the
// output.
func (o *ShellOutput) Failed() bool { return o.ExitCode != 0 }

// Failed reports that the code ran but did not succeed.
func (o *CodeOutput) Failed() bool { return !o.OK }

// Failed reports that the code ran but did not succeed.
func (o *ExecuteOutput) Failed() bool { return !o.Success }
