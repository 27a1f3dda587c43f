// Package skilltool implements skills in runs: their tools, their instructions for the model,
// and their checks before a run ends. Its only state is the run's log and the session's events,
// so any process can continue a run.
package skilltool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Handler is the run.Tool.Handler of the tools here.
const Handler = "skill"

// Folders reads the files of tenants' skills; skill.Store implements it.
type Folders interface {
	Content(ctx context.Context, t tenant.ID, id skill.VersionID) (*skill.Bundle, error)
}

// Events reads the events of sessions; session.Store implements it.
type Events interface {
	Latest(ctx context.Context, t tenant.ID, id session.ID, kind run.EventKind) (*session.Event, error)
}

// Skills implements loop.Handler for the skills' tools, and checks runs before they end.
type Skills struct {
	Folders Folders
	Events  Events
}

var _ loop.Handler = (*Skills)(nil)

// tool is one of the tools.
type tool struct {
	model.Tool
	of string // the skill that provides it; "" for tenants' skills
	// do makes a call with the arguments that read decoded.
	do func(ctx context.Context, s *Skills, c *loop.Call, in any) (*loop.Outcome, error)
	// read decodes the arguments of a call. The model sees its error.
	read func(arguments string) (any, error)
}

// newTool makes a tool whose input is a T.
func newTool[T any](of, name, about string, check func(*T) error, do func(ctx context.Context, s *Skills, c *loop.Call, in *T) (*loop.Outcome, error)) tool {
	return tool{
		Tool: model.Tool{Name: name, Description: about, Parameters: wire.ForModel(reflect.TypeFor[T](), wire.Models)}, of: of,
		read: func(arguments string) (any, error) {
			in := new(T)
			err := wire.Arguments.Decode([]byte(arguments), in)
			if err == nil {
				err = check(in)
			}
			return in, err
		},
		do: func(ctx context.Context, s *Skills, c *loop.Call, in any) (*loop.Outcome, error) {
			return do(ctx, s, c, in.(*T))
		},
	}
}

// tools are the tools of all skills that do not run in the sandbox.
var tools = func() (all []tool) {
	for i := range builtIns {
		all = append(all, builtIns[i].tools...)
	}
	return append(all, readTool)
}()

func toolNamed(name string) *tool {
	for i := range tools {
		if tools[i].Name == name {
			return &tools[i]
		}
	}
	return nil
}

// Show implements loop.Handler.
func (s *Skills) Show(c *loop.Call) (*run.Item, error) {
	t := toolNamed(c.Call.Name)
	if t == nil {
		return nil, fmt.Errorf("no skill has a tool %q", c.Call.Name)
	}
	_, err := t.read(c.Call.Arguments)
	return nil, err
}

// Do implements loop.Handler.
func (s *Skills) Do(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	t := toolNamed(c.Call.Name)
	in, err := t.read(c.Call.Arguments)
	if err != nil {
		return nil, err // Show has read them
	}
	return t.do(ctx, s, c, in)
}

// said returns an outcome with a text.
func said(text string, failed bool) *loop.Outcome {
	return &loop.Outcome{Result: model.Result{Failed: failed, Parts: []model.Part{{Kind: model.PartText, Text: text}}}}
}

// noted adds a note for readers to an outcome.
func noted(out *loop.Outcome, kind run.EventKind, of string, data any) (*loop.Outcome, error) {
	n, err := note(of, data)
	out.Notes = map[run.EventKind]run.Note{kind: n}
	return out, err
}

func note(of string, data any) (run.Note, error) {
	text, err := json.Marshal(data)
	return run.Note{Skill: of, Data: text}, err
}
