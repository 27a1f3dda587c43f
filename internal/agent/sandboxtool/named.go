package sandboxtool

import (
	"context"
	"encoding/json"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Named is a file tool for named sandboxes. Its input has the fields of this package's tool,
// and the name of the sandbox.
type Named struct{ of *fileTool }

// sandboxField is the input field with the sandbox's name, and sandboxSchema is its schema.
const (
	sandboxField  = "sandbox"
	sandboxSchema = `{"type":"string","default":"default"}`
)

// NamedTools returns the file tools that package tools does not provide for named sandboxes.
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

// Name returns the name of the tool.
func (n Named) Name() string { return n.of.name }

// Tool returns the tool definition for a model.
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

// Parse decodes the arguments of a call: the name of the sandbox, which may be empty, and the
// call to make there.
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

// Outcome converts an answer for the model. e is the execution that holds the shared file; nil
// for tools that share none.
func (n Named) Outcome(c *loop.Call, call *filetool.Call, a *filetool.Answer, e *execution.Execution) *loop.Outcome {
	if a.Failed {
		_, why := a.Split()
		return &loop.Outcome{Result: sandboxcall.Result(why, true)}
	}
	var u FileUse
	if e != nil {
		if why := shared(c, call, e, &u); why != "" {
			return &loop.Outcome{Result: sandboxcall.Result("It failed: "+why, true)}
		}
	}
	out := &loop.Outcome{Result: sandboxcall.Result(n.of.show1(call, a, &u), false)}
	if e != nil {
		data, _ := json.Marshal(&u) // of plain values: never fails
		out.Notes = map[run.EventKind]run.Note{run.EventFile: {Data: data}}
	}
	return out
}

// Keeper stores files as outputs of executions; *gateway.Gateway implements it.
type Keeper interface {
	Policy(p *tenant.Principal) execution.Policy
	Keep(ctx context.Context, p *tenant.Principal, req execution.Request, c gateway.Call, r io.Reader, secrets []string) (*execution.Execution, error)
}

// Keep stores the file that a call shares. Repeating the call does not store it again.
func (n Named) Keep(ctx context.Context, k Keeper, p *tenant.Principal, c *loop.Call, call *filetool.Call, traceID string, r io.Reader, secrets []string) (*execution.Execution, error) {
	req, err := n.of.requestOf(call, k.Policy(p))
	if err != nil {
		return nil, err
	}
	req.TraceID = traceID
	e, err := k.Keep(ctx, p, req, gateway.Call{
		Source: execution.SourceResponse, Delivery: execution.Inline, Turn: c.Run.Session, Run: string(c.Run.ID), IdempotencyKey: sandboxcall.Key(c), By: c.Run.Origin(c.Request, c.Call.Name),
	}, r, secrets)
	if err != nil {
		return nil, err
	}
	if e.Status != execution.Success {
		return nil, fault.New(fault.Conflict, "the file could not be stored: %s", e.Error)
	}
	return e, nil
}
