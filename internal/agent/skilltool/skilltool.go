// Package skilltool is what skills do in runs: the tools that they come with, what the model is
// told of them, and what they have to say before a run ends. All of it is decided by the log of
// the run and the events of its session, so that any process goes on with it.
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

// Folders has the files of tenants' skills; a skill.Store does.
type Folders interface {
	Content(ctx context.Context, t tenant.ID, id skill.VersionID) (*skill.Bundle, error)
}

// Events has the events of sessions; a session.Store does.
type Events interface {
	Latest(ctx context.Context, t tenant.ID, id session.ID, kind run.ToldKind) (*session.Event, error)
}

// Skills is the loop.Handler of the skills' tools, and checks runs for them.
type Skills struct {
	Folders Folders
	Events  Events
}

var _ loop.Handler = (*Skills)(nil)

// tool is one of the tools.
type tool struct {
	model.Tool
	of string // the skill that it comes with; "" for those of tenants
	// do makes a call whose arguments were read.
	do func(ctx context.Context, s *Skills, c *loop.Call, in any) (*loop.Outcome, error)
	// read reads arguments. An error is for the model.
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

var tools = []tool{planTool, readStateTool, saveStateTool, readTool}

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

// said is an outcome that is a text.
func said(text string, failed bool) *loop.Outcome {
	return &loop.Outcome{Result: model.Result{Failed: failed, Parts: []model.Part{{Kind: model.PartText, Text: text}}}}
}

// noted adds what readers are told to an outcome.
func noted(out *loop.Outcome, kind run.ToldKind, of string, data any) (*loop.Outcome, error) {
	n, err := note(of, data)
	out.Notes = map[run.ToldKind]run.Note{kind: n}
	return out, err
}

func note(of string, data any) (run.Note, error) {
	text, err := json.Marshal(data)
	return run.Note{Skill: of, Data: text}, err
}
