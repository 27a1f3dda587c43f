package sandboxtool

import (
	"context"
	"encoding/json"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Named is a file tool for sandboxes that have names, which takes one of them beside what the
// tool of this package takes.
type Named struct{ of *fileTool }

// sandboxField is the field of the name in the input of a Named, and what it is described by.
const (
	sandboxField  = "sandbox"
	sandboxSchema = `{"type":"string","default":"default"}`
)

// NamedTools are the tools that named sandboxes have no others for.
func NamedTools() (all []Named) {
	for _, t := range tools {
		if f, ok := t.(*fileTool); ok {
			switch f.use {
			case EditFile, Grep, ApplyPatch, ShareFile:
				all = append(all, Named{f})
			}
		}
	}
	return all
}

// Name is what the tool is called.
func (n Named) Name() string { return n.of.name }

// Tool is the tool as a model is given it.
func (n Named) Tool() (model.Tool, error) {
	out := n.of.model()
	var schema, fields map[string]jsontext.Value
	if err := json.Unmarshal(out.Parameters, &schema); err != nil {
		return out, err
	}
	if err := json.Unmarshal(schema["properties"], &fields); err != nil {
		return out, err
	}
	fields[sandboxField] = jsontext.Value(sandboxSchema)
	properties, err := json.Marshal(fields)
	if err != nil {
		return out, err
	}
	schema["properties"] = properties
	out.Parameters, err = json.Marshal(schema)
	return out, err
}

// Reads reports whether the tool changes nothing in the sandbox.
func (n Named) Reads() bool { return n.of.use == Grep || n.of.use == ShareFile }

// Shares reports whether the tool gives a file to the user.
func (n Named) Shares() bool { return n.of.use == ShareFile }

// Parse reads the arguments of a call: which sandbox it is for, "" if it names none, and what is
// to be done there.
func (n Named) Parse(arguments string) (sandbox string, call *filetool.Call, err error) {
	rest := arguments
	var fields map[string]jsontext.Value
	// What is no object, or not JSON, is refused below in the tool's own words.
	if json.Unmarshal([]byte(arguments), &fields) == nil && fields[sandboxField] != nil {
		if string(fields[sandboxField]) != "null" && json.Unmarshal(fields[sandboxField], &sandbox) != nil {
			return "", nil, fault.New(fault.Invalid, "%s must be a string", sandboxField)
		}
		delete(fields, sandboxField)
		text, err := json.Marshal(fields)
		if err != nil {
			return "", nil, err
		}
		rest = string(text)
	}
	if call, err = n.of.parse(rest); err != nil {
		return "", nil, err
	}
	_, err = encode(call)
	return sandbox, call, err
}

// Outcome is what the model is told of an answer. e has the file of a tool that shares; nil for
// any other.
func (n Named) Outcome(c *loop.Call, call *filetool.Call, a *filetool.Answer, e *execution.Execution) *loop.Outcome {
	if a.Failed {
		_, why := a.Split()
		return &loop.Outcome{Result: result(why, true)}
	}
	var u FileUse
	if e != nil {
		if why := shared(c, call, e, &u); why != "" {
			return &loop.Outcome{Result: result("It failed: "+why, true)}
		}
	}
	out := &loop.Outcome{Result: result(n.of.show1(call, a, &u), false)}
	if e != nil {
		data, _ := json.Marshal(&u) // of plain values: never fails
		out.Notes = map[run.ToldKind]run.Note{run.ToldFile: {Data: data}}
	}
	return out
}

// Keeper keeps files as those of executions; a *gateway.Gateway does.
type Keeper interface {
	Policy(p *tenant.Principal) execution.Policy
	Keep(ctx context.Context, p *tenant.Principal, req execution.Request, c gateway.Call, r io.Reader, secrets []string) (*execution.Execution, error)
}

// Keep keeps the file that a call shares. A call that is made again keeps it once.
func (n Named) Keep(ctx context.Context, k Keeper, p *tenant.Principal, c *loop.Call, call *filetool.Call, traceID string, r io.Reader, secrets []string) (*execution.Execution, error) {
	req, err := n.of.requestOf(call, k.Policy(p))
	if err != nil {
		return nil, err
	}
	req.TraceID = traceID
	e, err := k.Keep(ctx, p, req, gateway.Call{
		Source: execution.SourceResponse, Delivery: execution.Inline, Turn: c.Run.Session, Run: string(c.Run.ID), IdempotencyKey: keyOf(c), By: c.Run.Origin(c.Request, c.Call.Name),
	}, r, secrets)
	if err != nil {
		return nil, err
	}
	if e.Status != execution.Success {
		return nil, fault.New(fault.Conflict, "the file could not be stored: %s", e.Error)
	}
	return e, nil
}
