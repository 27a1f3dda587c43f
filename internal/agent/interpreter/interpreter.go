// Package interpreter runs the Python code that models write in a container: a named
// sandbox with one interpreter, so that variables stay between calls, and figures are
// shown.
//
// Each call is a run of a code context under a key made of its run and number. A process
// that takes a run over collects the outcome of a call that another began, and runs no
// code twice.
package interpreter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Name is what the tool is called by, by models and in records, and its run.Tool.Handler.
const Name = "code_interpreter"

// pythonContext is the context that code runs in.
const pythonContext = codecontext.ID(language.Python)

// Sandboxes are the named sandboxes, whichever machine has them; a *directory.Directory is.
type Sandboxes interface {
	sandbox.Node
	// Record leaves the audit row of a call, and charges for it.
	Record(ctx context.Context, p *tenant.Principal, c sandbox.Call) error
}

// Callers find out who started a run; a *tenant.Authority does.
type Callers interface {
	Entrant(ctx context.Context, t tenant.ID, key, environment string) (tenant.Principal, error)
}

// Policies bound what a caller may run.
type Policies interface {
	Policy(p *tenant.Principal) execution.Policy
}

// Options say which container a tool uses.
type Options struct {
	// Container is the one to use; "" for one of the conversation's own, which is made when
	// code first runs.
	Container container.ID `json:"container,omitzero"`
	// Memory and Network are those of a new one, as in sandbox.Spec.
	Memory  int64                  `json:"memory,omitzero"`
	Network *runtime.NetworkPolicy `json:"network,omitzero"`
}

// Tool is the tool as a model is given it.
func Tool(o Options) (run.Tool, error) {
	options, err := json.Marshal(o)
	return run.Tool{
		Tool: model.Tool{
			Name: Name,
			Description: "Runs Python code in an interpreter that stays: variables, imports and files are there for later calls. " +
				"Returns what the code prints, the value of its last expression and its errors; figures of matplotlib are shown to the user. " +
				"The working folder is " + container.Dir + ", where the user's files are; files written there can be downloaded by the user.",
			Parameters: []byte(schema),
		},
		Handler: Name, Serial: true, Shown: true, Options: options,
	}, err
}

const schema = `{"type":"object","additionalProperties":false,"required":["code"],"properties":{` +
	`"code":{"type":"string","description":"Python code."},` +
	`"timeout":{"type":"integer","minimum":1,"description":"Most seconds that it may run; 60 if omitted."}}}`

// Input is what a model calls the tool with.
type Input struct {
	Code    *string  `json:"code" required:"true" nul:"true"`
	Timeout *float64 `json:"timeout,omitzero"`
}

// Parse reads the arguments of a call.
func Parse(arguments string) (*Input, error) {
	var in Input
	if err := wire.Arguments.Decode([]byte(arguments), &in); err != nil {
		return nil, err
	}
	if in.Timeout != nil && (*in.Timeout != float64(int64(*in.Timeout)) || *in.Timeout < 1 || *in.Timeout > 1e6) {
		return nil, fault.New(fault.Invalid, "timeout must be a whole number of seconds, at least 1")
	}
	return &in, nil
}

// Output is the run.ToolUse.Output of a call.
type Output struct {
	Container container.ID `json:"container,omitzero"` // "" while there is none
	Logs      string       `json:"logs,omitzero"`
	LogsCut   bool         `json:"logs_cut,omitzero"` // there was more
	Images    []Image      `json:"images,omitempty"`
}

// Image is a figure that code has shown.
type Image struct {
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// Interpreter is the loop.Handler of the tool.
type Interpreter struct {
	Sandboxes Sandboxes
	Callers   Callers
	Policies  Policies
}

var (
	_ loop.Handler = (*Interpreter)(nil)
	_ loop.Claimer = (*Interpreter)(nil)
	_ loop.Ender   = (*Interpreter)(nil)
)

// lookTime bounds finding out which container a call will use, which readers are told as
// it begins.
const lookTime = time.Second

// Show implements loop.Handler.
func (h *Interpreter) Show(c *loop.Call) (*run.Item, error) {
	if _, err := Parse(c.Call.Arguments); err != nil {
		return nil, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return nil, err
	}
	out := Output{Container: o.Container}
	if out.Container == "" {
		ctx, cancel := context.WithTimeout(context.Background(), lookTime)
		defer cancel()
		out.Container = h.known(ctx, c)
	}
	return item(c, run.ItemInProgress, &out, "")
}

// known is the container of a conversation, if there is one; readers do without where that
// is not found out.
func (h *Interpreter) known(ctx context.Context, c *loop.Call) container.ID {
	p, err := h.Callers.Entrant(ctx, c.Run.Tenant, c.Run.Key, c.Run.Environment)
	if err != nil {
		return ""
	}
	sb, err := h.Sandboxes.Get(ctx, &p, container.Session, c.Run.Sandbox)
	if err != nil || !container.Alive(sb) {
		return ""
	}
	return container.IDOf(sb.ID)
}

func optionsOf(c *loop.Call) (o Options, err error) {
	if err := json.Unmarshal(c.Tool.Options, &o); err != nil {
		return o, fmt.Errorf("options of %s: %w", Name, err)
	}
	return o, nil
}

// item is what readers see of a call.
func item(c *loop.Call, s run.ItemStatus, out *Output, why string) (*run.Item, error) {
	text, err := json.Marshal(out)
	return &run.Item{Status: s, Use: &run.ToolUse{
		CallID: c.Call.ID, Tool: Name, Input: json.RawMessage(c.Call.Arguments), Output: text, Error: why,
	}}, err
}
