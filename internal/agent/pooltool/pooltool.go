// Package pooltool gives a session's agent the session's named sandboxes. It offers the tools
// of package tools, which clients can call over HTTP for the same sandboxes, and the tools of
// package sandboxtool that package tools lacks.
//
// The first call that names a sandbox creates it; it sleeps and wakes like any named sandbox.
// A command is a process whose id is made of its run and number. A server process that takes
// over a run collects commands that another one started, and starts none twice.
package pooltool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Handler is the run.Tool.Handler of the tools here.
const Handler = "sandboxes"

// Names of tools that other code refers to.
const (
	shell     = "shell"
	writeFile = "write_file"
	ExecCode  = tools.ExecuteCodeName
)

// Set calls the tools; *tools.Set implements it.
type Set interface {
	Definitions() []tools.Definition
	Call(ctx context.Context, name string, c *tools.Caller, input []byte) (any, error)
	File(ctx context.Context, c *tools.Caller, tool, sandbox string, fc *filetool.Call) (*filetool.Answer, error)
	Share(ctx context.Context, c *tools.Caller, tool, sandbox string, fc *filetool.Call, keep tools.Keep) (*filetool.Answer, error)
	EndCommand(ctx context.Context, c *tools.Caller, sandbox string) error
}

// Options are the run.Tool.Options of the tools here.
type Options struct {
	// Agent is the caller of execute_code for hourly caps and the audit trail.
	Agent string
}

// Pool implements loop.Handler for the tools.
type Pool struct {
	Set     Set
	Callers sandboxcall.Callers
	Keeper  sandboxtool.Keeper // stores shared files
	// Ledger has the calls that programs made to Services. If it is nil, programs cannot call web services.
	Ledger   sandboxcall.Ledger
	Services []string
}

var (
	_ loop.Handler = (*Pool)(nil)
	_ loop.Claimer = (*Pool)(nil)
	_ loop.Ender   = (*Pool)(nil)
)

// Tools returns the tool definitions for an agent's model.
func (h *Pool) Tools(agent string) ([]run.Tool, error) {
	options, err := json.Marshal(Options{agent})
	if err != nil {
		return nil, err
	}
	var all []run.Tool
	for _, d := range h.Set.Definitions() {
		t := run.Tool{
			Tool:    model.Tool{Name: d.Name, Description: d.Description, Parameters: []byte(d.Input)},
			Handler: Handler, Serial: true, Options: options, Idempotent: d.Annotations.ReadOnly || d.Annotations.Idempotent,
			// Commands and code cost what those of the other sandbox do.
			Counted: sandboxtool.Handler, Uncounted: d.Name != shell && d.Name != ExecCode,
		}
		all = append(all, t)
	}
	for _, n := range sandboxtool.NamedTools() {
		t, err := n.Tool()
		if err != nil {
			return nil, err
		}
		all = append(all, run.Tool{Tool: t, Handler: Handler, Serial: true, Options: options, Idempotent: n.Reads(), Counted: sandboxtool.Handler, Uncounted: true})
	}
	return all, nil
}

// Show implements loop.Handler. It leaves validation to the tool.
func (h *Pool) Show(*loop.Call) (*run.Item, error) { return nil, nil }

// Claims implements loop.Claimer: a command that did not claim was not begun.
func (h *Pool) Claims(c *loop.Call) bool { return followed(c) }

// followed reports whether a call is a process that another process of the server can go on with.
func followed(c *loop.Call) bool {
	n, ok := named[c.Call.Name]
	return c.Call.Name == shell || ok && !n.Reads()
}

// Do implements loop.Handler.
func (h *Pool) Do(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	if c.Begun && !followed(c) && !c.Tool.Idempotent {
		return nil, loop.ErrUnknown
	}
	work, stop := sandboxcall.Detach(ctx, loop.ErrLeft, context.Canceled) // canceled: as for a client that disconnects
	defer stop()
	by, err := h.caller(work, c)
	if err != nil {
		return h.refused(ctx, c, err)
	}
	if err := h.place(work, c, by); err != nil {
		return h.refused(ctx, c, err)
	}
	out, err := h.make(work, c, by)
	uses, failed := h.uses(context.WithoutCancel(ctx), c, by)
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), loop.ErrLeft) { // it was ended with its run
		return &loop.Outcome{Uses: uses}, errors.Join(context.Cause(ctx), failed)
	}
	if err != nil {
		out, err = h.refused(ctx, c, err)
	}
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out.Uses = uses
	return out, nil
}

// make makes a call.
func (h *Pool) make(ctx context.Context, c *loop.Call, by *tools.Caller) (*loop.Outcome, error) {
	if n, ok := named[c.Call.Name]; ok {
		return h.file(ctx, c, by, n)
	}
	out, err := h.Set.Call(ctx, c.Call.Name, by, []byte(c.Call.Arguments))
	if err != nil {
		return nil, err
	}
	text, err := told(out)
	if err != nil {
		return nil, err
	}
	f, can := out.(interface{ Failed() bool })
	return &loop.Outcome{Result: sandboxcall.Result(text, can && f.Failed())}, nil
}

// End implements loop.Ender: it ends a command that another process has begun.
func (h *Pool) End(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	if !followed(c) {
		return nil, nil
	}
	by, err := h.caller(ctx, c)
	if err == nil {
		err = h.Set.EndCommand(ctx, by, sandboxOf(c))
	}
	if err != nil && fault.KindOf(err) != fault.Internal { // it is not there, cannot be reached, or is not the caller's any more
		err = nil
	}
	if by == nil || by.Web == nil || err != nil {
		return nil, err
	}
	uses, err := h.uses(ctx, c, by)
	return &loop.Outcome{Uses: uses}, err
}

// caller returns the tools.Caller of a call.
func (h *Pool) caller(ctx context.Context, c *loop.Call) (*tools.Caller, error) {
	p, err := sandboxcall.Caller(ctx, h.Callers, c.Run.Tenant, c.Run.Key, c.Run.Environment, tenant.ScopeTools)
	if err != nil {
		return nil, err
	}
	var o Options
	if err := json.Unmarshal(c.Tool.Options, &o); err != nil {
		return nil, fmt.Errorf("options of %s: %w", c.Call.Name, err)
	}
	by := &tools.Caller{Principal: p, Session: c.Run.Session, TraceID: execution.NewTraceID(), Agent: o.Agent, By: c.Run.Origin(c.Request, c.Call.Name), Skills: sandboxcall.Folders(c.Request)}
	h.giveWeb(c, by)
	if followed(c) {
		by.Command = tools.Command{Process: process.ID(tools.CommandPrefix + sandboxcall.Name(c)), Begun: c.Begun, Claim: c.Claim}
	}
	return by, nil
}

// place writes the run's input files to the home of the default sandbox.
func (h *Pool) place(ctx context.Context, c *loop.Call, by *tools.Caller) error {
	if c.Begun {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		input, err := json.Marshal(map[string]string{"path": name, "content": base64.StdEncoding.EncodeToString(c.Files[name]), "encoding": "base64"})
		if err != nil {
			return err
		}
		of := *by
		of.TraceID, of.Command = execution.NewTraceID(), tools.Command{}
		if _, err := h.Set.Call(ctx, writeFile, &of, input); err != nil {
			return fmt.Errorf("place the file %q: %w", name, err)
		}
	}
	return nil
}

// spent is the limit that ends the run, because the model cannot meet it by asking for less or
// later, or by ending another sandbox.
const spent = "monthly_credits"

// refused returns the outcome of a call that failed or was not made, for the model, or a failure
// of the server as an error.
func (h *Pool) refused(ctx context.Context, c *loop.Call, err error) (*loop.Outcome, error) {
	r := sandboxcall.Rejected(ctx, err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, tools.ErrNoTrace), c.Begun && fault.KindOf(err) == fault.Unavailable: // its machine is away
		return nil, loop.ErrUnknown
	case r == nil:
		return nil, err
	}
	return r.Mark(&loop.Outcome{Result: sandboxcall.Result(r.Why, true)}, r.Limit == spent), nil
}
