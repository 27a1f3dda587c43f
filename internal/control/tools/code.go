package tools

import (
	"cmp"
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// ExecuteCodeName is the name of the tool execute_code.
const ExecuteCodeName = "execute_code"

// executeCode runs code in the sandbox of a turn, which is the session: not in
// one of those that have names.
func executeCode(ctx context.Context, c *call, in *CodeInput) (*CodeOutput, error) {
	c.recorded = true // the gateway leaves a row
	input := Input{
		TraceID: c.by.TraceID, Code: *in.Code, Language: *in.Language,
		Agent: cmp.Or(c.by.Agent, c.by.Principal.Key.Name), Turn: c.by.Session, Template: cmp.Or(c.by.Template, tenant.DefaultName), Skills: c.by.Skills, Web: c.by.Web, By: c.by.By,
	}
	if in.Timeout != nil {
		seconds, err := integer("timeout", in.Timeout, 1, maxWhole/int64(time.Second))
		if err != nil {
			return nil, err
		}
		timeout := time.Duration(seconds) * time.Second
		input.Timeout = &timeout
	}
	r, err := c.set.cfg.ExecuteCode.Call(ctx, c.by.Principal, input)
	if err != nil {
		return nil, err
	}
	return r.Output(), nil
}

// Output is a result as it is written.
func (r *Result) Output() *CodeOutput {
	out := &CodeOutput{
		OK: r.OK, Stdout: text(r.Stdout), Stderr: text(r.Stderr), ExitStatus: string(r.ExitStatus), ExitCode: r.ExitCode,
		DurationMS: r.Duration.Milliseconds(), Error: orNull(string(r.Error)), Dimension: orNull(r.Dimension),
		StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated, TraceID: r.TraceID,
	}
	if !r.OK {
		out.ErrorMessage = &r.Message
	}
	if at := r.ResetsAt.UTC(); !r.ResetsAt.IsZero() {
		out.ResetsAt = &at
	}
	return out
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
