package tools

import (
	"context"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Definition is what is told of a tool to those who may call it.
type Definition struct {
	Name        string
	Title       string
	Description string
	Annotations Annotations
	Input       jsontext.Value // JSON Schema of an object
	Strict      jsontext.Value // of the same input, as OpenAI's strict mode wants it: every field is required, null leaves one out
	Output      jsontext.Value // likewise
	In, Out     reflect.Type   // the structs that both schemas were made from
}

// Annotations are what a client may make of a tool before it lets a model use
// it. They have MCP's meaning.
type Annotations struct {
	ReadOnly    bool // changes nothing
	Destructive bool // may undo what was done before; meaningless with ReadOnly
	Idempotent  bool // a repetition changes nothing more; meaningless with ReadOnly
	OpenWorld   bool // may reach beyond the sandbox
}

// Caller is on whose behalf a tool is called.
type Caller struct {
	Principal *tenant.Principal
	Session   string           // names the pool of sandboxes; for execute_code the turn
	TraceID   string           // of this call
	By        execution.Origin // of a model's call, for the audit trail
	// Agent and Template are for execute_code, whose caps and policy they choose:
	// so the edge says them and never a model. Empty for the key's name, and the
	// template named "default".
	Agent, Template string
	// Command is about the process of shell and of File; the zero value for one that only its
	// caller knows.
	Command Command
	// Web lets programs of shell and execute_code call the services of the web; nil if they do
	// not. Its token is shell's.
	Web *execution.WebAccess
	// Skills are those whose folders its sandboxes have.
	Skills []execution.SkillRef
}

// check refuses, before anything is done, what the audit trail could not hold.
func (c *Caller) check() error {
	if err := sandbox.CheckSession(c.Session); err != nil || c.Agent == "" {
		return err
	}
	return CheckAgent(c.Agent)
}

// tool is a definition and what it does.
type tool struct {
	Definition
	call func(ctx context.Context, c *call, input []byte) (any, error)
}

// define joins a tool's parts. The schemas are those of I and O; what do is given
// has every field that is required or has a default.
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

// Definitions lists every tool there is, in the contract's order.
func Definitions() []Definition {
	out := make([]Definition, len(all))
	for i := range all {
		out[i] = all[i].Definition
		out[i].Input, out[i].Strict, out[i].Output = slices.Clone(out[i].Input), slices.Clone(out[i].Strict), slices.Clone(out[i].Output)
	}
	return out
}
