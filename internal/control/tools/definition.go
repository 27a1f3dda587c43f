package tools

import (
	"context"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Definition describes a tool to its callers.
type Definition struct {
	Name        string
	Title       string
	Description string
	Annotations Annotations
	Input       jsontext.Value // JSON Schema of an object
	Strict      jsontext.Value // Input for OpenAI's strict mode: every field is required, null omits one
	Output      jsontext.Value // JSON Schema of an object
	In, Out     reflect.Type   // the structs behind Input and Output
	Class       agent.Class    // effects in agents' policies; "" for a tool without such effects
	Activity    activity.Kind  // kind of its calls in lists of activity
	Example     any            // a value of the type In
}

// Annotations help a client decide whether a model may use a tool. They have the
// meaning that MCP defines.
type Annotations struct {
	ReadOnly    bool // changes nothing
	Destructive bool // may undo or overwrite earlier work; ignored with ReadOnly
	Idempotent  bool // a repeated call has no further effect; ignored with ReadOnly
	OpenWorld   bool // may reach beyond the sandbox
}

// Caller identifies the caller of a tool.
type Caller struct {
	Principal *tenant.Principal
	Session   string           // owns the sandboxes; the turn for execute_code
	TraceID   string           // of this call
	By        execution.Origin // of a model's call, for the audit trail
	// Agent and Template select the caps and the policy of execute_code. The edge sets
	// them, never a model. If empty, they are the key's name and the template "default".
	Agent, Template string
	// Command is the process of shell and of File that another caller can continue; the zero
	// value is for a process that only this caller uses.
	Command Command
	// Web lets programs of shell and execute_code call the web services; nil disables the calls.
	// Only shell uses its token.
	Web *execution.WebAccess
	// Skills lists the skills whose folders the caller's sandboxes get.
	Skills []execution.SkillRef
}

// check rejects names that the audit trail cannot record, before the tool does anything.
func (c *Caller) check() error {
	if err := sandbox.CheckSession(c.Session); err != nil || c.Agent == "" {
		return err
	}
	return CheckAgent(c.Agent)
}

// tool is a definition with its implementation.
type tool struct {
	Definition
	call func(ctx context.Context, c *call, input []byte) (any, error)
}

// define builds a tool. It derives the schemas from I and O. The input of do has
// every field that is required or has a default.
func define[I, O any](d Definition, do func(ctx context.Context, c *call, in *I) (*O, error)) tool {
	d.In, d.Out = reflect.TypeFor[I](), reflect.TypeFor[O]()
	d.Input, d.Strict = wire.ForModel(d.In, wire.Models), wire.ForModel(d.In, wire.StrictModels)
	d.Output = wire.ForModel(d.Out, wire.Clients)
	return tool{d, func(ctx context.Context, c *call, input []byte) (any, error) {
		var in I
		if err := wire.Arguments.Decode(input, &in); err != nil {
			return nil, err
		}
		out, err := do(ctx, c, &in)
		if err := c.record(ctx, err); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		return out, nil
	}}
}

func init() {
	for i := range all {
		agent.RegisterTool(all[i].Name, all[i].Class)
		activity.Register(all[i].Activity, all[i].Name)
	}
}

// Definitions lists all tools, in the order of the contract.
func Definitions() []Definition {
	out := make([]Definition, len(all))
	for i := range all {
		out[i] = all[i].Definition
		out[i].Input, out[i].Strict, out[i].Output = slices.Clone(out[i].Input), slices.Clone(out[i].Strict), slices.Clone(out[i].Output)
	}
	return out
}
