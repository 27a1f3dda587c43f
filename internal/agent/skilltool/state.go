package skilltool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// State is the name of the skill.
const State = "long-running-state"

// Names of its tools.
const (
	readStateName = "read_state"
	saveStateName = "save_state"
)

var longState = builtIn{
	Definition:   skill.Definition{Name: State, Check: checkConfig[stateConfig]},
	instructions: instruct(stateInstructions),
	tools:        []tool{readStateTool, saveStateTool},
	check:        checkState,
}

// stateConfig is the configuration of the skill. Omitted fields use their defaults.
type stateConfig struct {
	CheckpointIntervalMS *wire.Whole `json:"checkpoint_interval_ms,omitzero" minimum:"1000" maximum:"86400000" default:"60000"`
	MaxStateSizeKB       *wire.Whole `json:"max_state_size_kb,omitzero" minimum:"1" maximum:"1024" default:"64"`
}

func (c *stateConfig) check(path string) error {
	if err := whole(path+".checkpoint_interval_ms", c.CheckpointIntervalMS, 1000, 86_400_000); err != nil {
		return err
	}
	return whole(path+".max_state_size_kb", c.MaxStateSizeKB, 1, 1024)
}

// maxPrompt limits the bytes of a state document in the prompt.
const maxPrompt = 16 << 10

func stateInstructions(cfg *stateConfig, t *turn) string {
	text := fmt.Sprintf("You keep a state document, of at most %.0f KiB, for work that continues over several turns. Save it with %s about every %.0f seconds of work and before you end your turn: what is done, what is left, what you found. "+
		"It is there when the conversation before is not. %s reads it.", *cfg.MaxStateSizeKB, saveStateName, *cfg.CheckpointIntervalMS/1000, readStateName)
	switch {
	case t.state == nil:
	case len(t.state.Document) > maxPrompt:
		text += fmt.Sprintf(" It has %d bytes now: read it first.", t.state.Bytes)
	default:
		text += fmt.Sprintf(" This is what was saved last:\n<state>\n%s\n</state>", t.state.Document)
	}
	return text
}

// Document is the Data of an event of the kind run.EventDocument: the state of a long task. The
// last one is the state.
type Document struct {
	Document string `json:"document"`
	Bytes    int    `json:"bytes"`
}

// StateOf is the state document of a session, saved by any of its agents; nil for
// none.
func StateOf(ctx context.Context, events Events, t tenant.ID, id session.ID) (*Document, error) {
	last, err := events.Latest(ctx, t, id, run.EventDocument)
	if err != nil || last == nil || last.Note == nil {
		return nil, err
	}
	d := new(Document)
	return d, json.Unmarshal(last.Note.Data, d)
}

type readStateInput struct{}

var readStateTool = newTool(State, readStateName, "Reads the state document, as it was saved last in this session.",
	func(*readStateInput) error { return nil }, func(ctx context.Context, s *Skills, c *loop.Call, _ *readStateInput) (*loop.Outcome, error) {
		d, err := StateOf(ctx, s.Events, c.Run.Tenant, session.ID(c.Run.Session))
		switch {
		case err != nil:
			return nil, err
		case d == nil:
			return said("There is no state document yet.", false), nil
		}
		return said(d.Document, false), nil
	})

type saveStateInput struct {
	Document *string `json:"document" required:"true" doc:"All of the document: it replaces the one before."`
}

var saveStateTool = newTool(State, saveStateName, "Saves the state document, which later turns can read even when the earlier conversation is gone: finished work, remaining work and findings.",
	func(*saveStateInput) error { return nil }, func(_ context.Context, _ *Skills, c *loop.Call, in *saveStateInput) (*loop.Outcome, error) {
		of := c.Request.Skill(State)
		if of == nil {
			return said("This agent has no skill for state.", true), nil
		}
		cfg, err := configOf[stateConfig](of.Config)
		if err != nil {
			return nil, err
		}
		size, most := len(*in.Document), int(*cfg.MaxStateSizeKB)<<10
		if size > most {
			return said(fmt.Sprintf("It was not saved: it has %d bytes, and the state may have %d. Make it shorter; keep large data in files.", size, most), true), nil
		}
		return noted(said(fmt.Sprintf("Saved, %d bytes.", size), false), run.EventDocument, State, Document{*in.Document, size})
	})

// checkState reminds once of the document, in a run that took longer than the interval and has
// done something since it was saved last.
func checkState(_ context.Context, c *loop.Check) (*run.Checked, error) {
	cfg, err := configOf[stateConfig](c.State.Request.Skill(State).Config)
	if err != nil {
		return nil, err
	}
	interval := time.Duration(*cfg.CheckpointIntervalMS) * time.Millisecond
	unsaved := false
	for _, m := range made(c.State) {
		switch {
		case m.Name == saveStateName && !m.failed:
			unsaved = false
		case m.Name != readStateName && m.Name != saveStateName:
			unsaved = true
		}
	}
	if !unsaved || c.Now.Sub(c.State.Began) < interval || reminders(c.State, State) > 0 {
		return nil, nil
	}
	return remind(State, fmt.Sprintf("You have worked for longer than the interval of checkpoints, %s, and not saved the state since: call %s with all that later turns need, and then end your turn.", interval, saveStateName))
}
