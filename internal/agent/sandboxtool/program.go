package sandboxtool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// program is a program of ours in Python that does the calls of a skill's tools in the
// sandbox. It reads a call as JSON and writes a filetool.Answer.
type program struct {
	of   string // the skill
	code string
	// input adds to a call what the program has to know, and says how long it may take.
	input func(c *loop.Call, config json.RawMessage, p execution.Policy, call map[string]any) (time.Duration, error)
	// answer makes an outcome of what was done, and of the program's text; nil for the text as it is.
	answer func(ctx context.Context, s *Sandbox, e *execution.Execution, text string) (*loop.Outcome, error)
	// outputs are the files that the program leaves for answer, by tool.
	outputs map[string][]string
}

// programTool is a tool of a skill that is done by a program.
type programTool struct {
	*program
	name, description string
	schema            []byte
	parse             func(arguments string) (map[string]any, error)
}

func newProgramTool[T any](by *program, name, do, description string, check func(*T) error) *programTool {
	return &programTool{program: by, name: name, description: description, schema: wire.ForModel(reflect.TypeFor[T](), wire.Models), parse: func(arguments string) (map[string]any, error) {
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

// SkillTools are the tools of the sandbox that a skill gives its agent, as a model is given
// them.
func SkillTools(s *run.Skill) (all []run.Tool, err error) {
	if s.Version != "" {
		return nil, nil
	}
	var from []*programTool
	switch s.Name {
	case skill.Files:
		from = documentTools
	case skill.Browsing:
		if from, err = pagesOf(s.Config); err != nil {
			return nil, err
		}
	}
	for _, t := range from {
		all = append(all, run.Tool{Tool: t.model(), Handler: Handler, Serial: true, Uncounted: true, Window: true})
	}
	return all, nil
}

func (t *programTool) model() model.Tool {
	return model.Tool{Name: t.name, Description: t.description, Parameters: t.schema}
}

// show implements tool. Readers see the call itself.
func (t *programTool) show(c *loop.Call) (*run.Item, error) {
	_, err := t.parse(c.Call.Arguments)
	return nil, err
}

func (t *programTool) request(c *loop.Call, p execution.Policy) (execution.Request, error) {
	call, err := t.parse(c.Call.Arguments)
	if err != nil {
		return execution.Request{}, err
	}
	of := c.Request.Skill(t.of)
	if of == nil {
		return execution.Request{}, fmt.Errorf("%s was called without its skill", t.name)
	}
	within, err := t.input(c, of.Config, p, call)
	if err != nil {
		return execution.Request{}, err
	}
	stdin, err := json.Marshal(call)
	return execution.Request{
		Code: t.code, Language: language.Python, Timeout: within, Metadata: map[string]string{"tool": t.name},
		Input: execution.Input{Stdin: stdin, Outputs: t.outputs[t.name], Helper: true},
	}, err
}

func (t *programTool) refused(_ *loop.Call, why string) *loop.Outcome {
	return &loop.Outcome{Result: result("It was not done: "+why, true)}
}

func (t *programTool) outcome(ctx context.Context, s *Sandbox, _ *loop.Call, e *execution.Execution) (*loop.Outcome, error) {
	if e.Status == execution.Timeout {
		return &loop.Outcome{Result: result(fmt.Sprintf("It was ended: it took longer than %s.", e.Timeout), true)}, nil
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
		return &loop.Outcome{Result: result("It was not done: "+why, true)}, nil
	case a == nil || e.Status != execution.Success:
		why := e.Error
		if why == "" {
			why = "the sandbox could not complete the call"
		}
		return &loop.Outcome{Result: result("It failed: "+why, true)}, nil
	}
	_, said := a.Split()
	if t.answer != nil {
		return t.answer(ctx, s, e, said)
	}
	return &loop.Outcome{Result: result(said, false)}, nil
}
