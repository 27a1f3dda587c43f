package sandboxtool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Program is a Python program of the server that makes the calls of a skill's tools in the
// sandbox. It reads a call as JSON and writes a filetool.Answer.
type Program struct {
	Skill string // name of the skill
	Code  string
	// Input adds the skill's settings to a call and returns the program's timeout.
	Input func(c *loop.Call, config json.RawMessage, p execution.Policy, call map[string]any) (time.Duration, error)
	// Answer makes an outcome of the execution and the program's text; nil for the text alone.
	Answer func(ctx context.Context, s *Sandbox, e *execution.Execution, text string) (*loop.Outcome, error)
	// Outputs lists the files that the program leaves for Answer, by tool.
	Outputs map[string][]string
	// Extras returns the extras of the default image without which a call of a tool fails; nil for none.
	Extras func(tool string, call map[string]any) []string
}

// ProgramTool is a tool of a skill whose calls a Program makes.
type ProgramTool struct {
	*Program
	Name        string
	description string
	schema      []byte
	parse       func(arguments string) (map[string]any, error)
}

// NewProgramTool returns a tool whose input is a T. do names the call to the program, and check
// validates an input.
func NewProgramTool[T any](by *Program, name, do, description string, check func(*T) error) *ProgramTool {
	return &ProgramTool{Program: by, Name: name, description: description, schema: wire.ForModel(reflect.TypeFor[T](), wire.Models), parse: func(arguments string) (map[string]any, error) {
		in := new(T)
		err := wire.Arguments.Decode([]byte(arguments), in)
		if err == nil {
			err = check(in)
		}
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		call := map[string]any{}
		err = json.Unmarshal(text, &call)
		call["do"] = do
		return call, err
	}}
}

// Tool returns the definition of the tool for a model.
func (t *ProgramTool) Tool() run.Tool {
	return run.Tool{Tool: t.model(), Handler: Handler, Serial: true, Uncounted: true, Window: true}
}

func (t *ProgramTool) model() model.Tool {
	return model.Tool{Name: t.Name, Description: t.description, Parameters: t.schema}
}

// show implements tool. Readers see the call itself.
func (t *ProgramTool) show(c *loop.Call) (*run.Item, error) {
	_, err := t.parse(c.Call.Arguments)
	return nil, err
}

func (t *ProgramTool) request(c *loop.Call, p execution.Policy) (execution.Request, error) {
	call, err := t.parse(c.Call.Arguments)
	if err != nil {
		return execution.Request{}, err
	}
	of := c.Request.Skill(t.Skill)
	if of == nil {
		return execution.Request{}, fmt.Errorf("%s was called without its skill", t.Name)
	}
	within, err := t.Input(c, of.Config, p, call)
	if err != nil {
		return execution.Request{}, err
	}
	stdin, err := json.Marshal(call)
	return execution.Request{
		Code: t.Code, Language: language.Python, Timeout: within, Metadata: map[string]string{"tool": t.Name},
		Input: execution.Input{Stdin: stdin, Outputs: t.Outputs[t.Name], Helper: true},
	}, err
}

func (t *ProgramTool) refused(_ *loop.Call, why string) *loop.Outcome {
	return &loop.Outcome{Result: sandboxcall.Result("It was not done: "+why, true)}
}

func (t *ProgramTool) outcome(ctx context.Context, s *Sandbox, _ *loop.Call, e *execution.Execution) (*loop.Outcome, error) {
	if e.Status == execution.Timeout {
		return &loop.Outcome{Result: sandboxcall.Result(fmt.Sprintf("It was ended: it took longer than %s.", e.Timeout), true)}, nil
	}
	a, err := s.answer(ctx, e)
	if err != nil {
		return nil, err
	}
	switch {
	case a != nil && a.Failed:
		_, why := a.Split()
		if len(a.Lacks) > 0 && s.Extras != nil {
			known, err := s.Extras.Lacking(ctx, e.Tenant, e.Environment, a.Lacks)
			if err != nil {
				return nil, err
			}
			if known != "" {
				why = "this sandbox lacks programs that the tool needs: " + known + "."
			}
		}
		if e.Hint != "" {
			why += "\nHint: " + e.Hint
		}
		return &loop.Outcome{Result: sandboxcall.Result("It was not done: "+why, true)}, nil
	case a == nil || e.Status != execution.Success:
		why := e.Error
		if why == "" {
			why = "the sandbox could not complete the call"
		}
		return &loop.Outcome{Result: sandboxcall.Result("It failed: "+why, true)}, nil
	}
	_, said := a.Split()
	if t.Answer != nil {
		return t.Answer(ctx, s, e, said)
	}
	return &loop.Outcome{Result: sandboxcall.Result(said, false)}, nil
}
