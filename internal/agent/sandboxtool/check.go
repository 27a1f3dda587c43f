package sandboxtool

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// checkName is the tool of the checks of outcomes, which no model is given.
const checkName = "outcome_check"

// The tool that runs commands in the named sandboxes of a session, which package pooltool has.
const (
	namedHandler = "sandboxes"
	namedShell   = "shell"
)

// Check is a command that checks an outcome in the sandbox, or in the named sandbox default.
type Check struct {
	Command   *string `json:"command" required:"true" nul:"true"`
	TimeoutMS *int64  `json:"timeout_ms,omitzero"`
}

// NewCheck returns the call that runs a check with one of a run's tools. The check obeys the agent's
// policy: it uses no denied tool, and no tool that needs a confirmation, because an evaluation
// cannot wait for a user.
func NewCheck(tools []run.Tool, c *Check) (*run.OutcomeCheck, error) {
	text, err := json.Marshal(c)
	waits := ""
	for _, of := range []struct{ handler, tool, name string }{{Handler, RunCode, checkName}, {namedHandler, namedShell, namedShell}} {
		at := slices.IndexFunc(tools, func(t run.Tool) bool { return t.Handler == of.handler && t.Name == of.tool })
		switch {
		case at < 0:
		case tools[at].Approve:
			waits = of.tool
		default:
			t := tools[at]
			t.Tool = model.Tool{Name: of.name}
			return &run.OutcomeCheck{Tool: t, Arguments: string(text)}, err
		}
	}
	if waits != "" {
		return nil, fault.New(fault.Invalid, "check runs a command, but the agent's tool_policy requires confirmation of each call of %s: use a rubric, or remove %s from require_confirmation", waits, waits)
	}
	return nil, fault.New(fault.Invalid, "check needs a tool that runs commands (%s or %s), and the agent has neither: add a tool of type sandbox or sandboxes that its tool_policy does not deny", RunCode, namedShell)
}

// CheckOf is the check of an outcome; nil for none.
func CheckOf(o *run.Outcome) *Check {
	if o.Check == nil {
		return nil
	}
	in, err := parseCheck(o.Check.Arguments)
	if err != nil { // a later version has written it in another way
		return nil
	}
	return in
}

func parseCheck(arguments string) (*Check, error) {
	in := new(Check)
	return in, wire.Arguments.Decode([]byte(arguments), in)
}

// checkTool runs a check as code of the shell.
type checkTool struct{ codeTool }

func (checkTool) show(c *loop.Call) (*run.Item, error) {
	in, err := parseCheck(c.Call.Arguments)
	if err != nil {
		return nil, err
	}
	return &run.Item{Status: run.ItemInProgress, Code: &run.CodeRun{
		CallID: c.Call.ID, Sandbox: c.Run.Sandbox, Language: string(execution.Bash), Code: *in.Command,
	}}, nil
}

func (checkTool) request(c *loop.Call, p execution.Policy) (execution.Request, error) {
	in, err := parseCheck(c.Call.Arguments)
	if err != nil {
		return execution.Request{}, err
	}
	req := execution.Request{Code: *in.Command, Language: execution.Bash, Timeout: p.DefaultTimeout()}
	if in.TimeoutMS != nil {
		req.Timeout = time.Duration(*in.TimeoutMS) * time.Millisecond
	}
	return req, nil
}

func (t checkTool) outcome(ctx context.Context, s *Sandbox, c *loop.Call, e *execution.Execution) (*loop.Outcome, error) {
	out, err := t.codeTool.outcome(ctx, s, c, e)
	if err == nil {
		out.Result.Parts[0].Text = middle(out.Result.Parts[0].Text)
	}
	return out, err
}

// Bounds of what a check tells, in bytes. What failed is mostly said at the end.
const (
	checkHead = 4 << 10
	checkTail = 12 << 10
)

// middle leaves out the middle of a long text.
func middle(text string) string {
	if len(text) <= checkHead+checkTail {
		return text
	}
	tail := text[len(text)-checkTail:]
	for len(tail) > 0 && tail[0]&0xC0 == 0x80 { // in the middle of a character
		tail = tail[1:]
	}
	return text[:wire.WholeRunes([]byte(text[:checkHead]))] + "\n[…]\n" + tail
}
