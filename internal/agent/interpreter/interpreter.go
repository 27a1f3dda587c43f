// Package interpreter runs the Python code that models write. Each container is a named
// sandbox with one interpreter, so variables persist between calls.
//
// Each call runs in a code context under a key made of its run and number. A process that
// takes over a run collects the outcome of a call that another process started, so no code
// runs twice.
package interpreter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
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

// Name is the tool's name in model requests and records, and its run.Tool.Handler.
const Name = "code_interpreter"

// pythonContext is the context that code runs in.
const pythonContext = codecontext.ID(language.Python)

// Sandboxes reaches named sandboxes on any machine; *directory.Directory implements it.
type Sandboxes interface {
	sandbox.Directory
	// Record writes the audit row of a call and charges for it.
	Record(ctx context.Context, p *tenant.Principal, c sandbox.Call) error
}

// Policies returns the limits on what a caller may run.
type Policies interface {
	Policy(p *tenant.Principal) execution.Policy
}

// Options selects the container that a tool uses.
type Options struct {
	// Container is the container to use. If it is empty, Atoll creates one for the
	// conversation when code first runs.
	Container container.ID `json:"container,omitzero"`
	// Memory and Network configure a new container; see sandbox.Spec.
	Memory  int64                  `json:"memory,omitzero"`
	Network *runtime.NetworkPolicy `json:"network,omitzero"`
}

// Tool returns the tool definition for a model.
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

// Input is the JSON input of the tool.
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
	Container container.ID `json:"container,omitzero"` // "" until the conversation has one
	Logs      string       `json:"logs,omitzero"`
	LogsCut   bool         `json:"logs_cut,omitzero"` // Logs is truncated
	Images    []Image      `json:"images,omitempty"`
}

// Image is a figure that the code displayed.
type Image struct {
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// Interpreter implements loop.Handler for the tool.
type Interpreter struct {
	Sandboxes Sandboxes
	Callers   sandboxcall.Callers
	Policies  Policies
}

var (
	_ loop.Handler = (*Interpreter)(nil)
	_ loop.Claimer = (*Interpreter)(nil)
	_ loop.Ender   = (*Interpreter)(nil)
)

// lookTime limits how long Show looks for the container of a call.
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

// known returns the container of a conversation; "" if it has none or the lookup fails.
// Readers then see the call without a container.
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

// item returns the item that readers of the run see for a call.
func item(c *loop.Call, s run.ItemStatus, out *Output, why string) (*run.Item, error) {
	text, err := json.Marshal(out)
	return &run.Item{Status: s, Use: &run.ToolUse{
		CallID: c.Call.ID, Tool: Name, Input: json.RawMessage(c.Call.Arguments), Output: text, Error: why,
	}}, err
}

// CodeOf returns the code of a call, or as much of it as the model has written.
func CodeOf(u *run.ToolUse) (string, error) {
	if u.Input == nil {
		return NewCode().Write(u.Writes), nil
	}
	in, err := Parse(string(u.Input))
	if err != nil {
		return "", err
	}
	return *in.Code, nil
}

// NewCode returns a reader of the code in the arguments of a call.
func NewCode() *wire.Partial { return wire.NewPartial("code") }
