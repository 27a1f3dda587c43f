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
)

// Document is the Data of an event of the kind run.ToldDocument: the state of a long task. The
// last one is the state.
type Document struct {
	Document string `json:"document"`
	Bytes    int    `json:"bytes"`
}

// StateOf is the state document of a session, saved by any of its agents; nil for
// none.
func StateOf(ctx context.Context, events Events, t tenant.ID, id session.ID) (*Document, error) {
	last, err := events.Latest(ctx, t, id, run.ToldDocument)
	if err != nil || last == nil || last.Note == nil {
		return nil, err
	}
	d := new(Document)
	return d, json.Unmarshal(last.Note.Data, d)
}

type readStateInput struct{}

var readStateTool = newTool(skill.State, skill.ReadStateTool, "Reads the state document, as it was saved last in this session.",
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

var saveStateTool = newTool(skill.State, skill.SaveStateTool, "Saves the state document, which later turns can read even when the earlier conversation is gone: finished work, remaining work and findings.",
	func(*saveStateInput) error { return nil }, func(_ context.Context, _ *Skills, c *loop.Call, in *saveStateInput) (*loop.Outcome, error) {
		of := c.Request.Skill(skill.State)
		if of == nil {
			return said("This agent has no skill for state.", true), nil
		}
		cfg, err := skill.Config[skill.StateConfig](of.Config)
		if err != nil {
			return nil, err
		}
		size, most := len(*in.Document), int(*cfg.MaxStateSizeKB)<<10
		if size > most {
			return said(fmt.Sprintf("It was not saved: it has %d bytes, and the state may have %d. Make it shorter; keep large data in files.", size, most), true), nil
		}
		return noted(said(fmt.Sprintf("Saved, %d bytes.", size), false), run.ToldDocument, skill.State, Document{*in.Document, size})
	})

// checkState reminds once of the document, in a run that took longer than the interval and has
// done something since it was saved last.
func checkState(c *loop.Check) (*run.Checked, error) {
	cfg, err := skill.Config[skill.StateConfig](c.State.Request.Skill(skill.State).Config)
	if err != nil {
		return nil, err
	}
	interval := time.Duration(*cfg.CheckpointIntervalMS) * time.Millisecond
	unsaved := false
	for _, m := range made(c.State) {
		switch {
		case m.Name == skill.SaveStateTool && !m.failed:
			unsaved = false
		case m.Name != skill.ReadStateTool && m.Name != skill.SaveStateTool:
			unsaved = true
		}
	}
	if !unsaved || c.Now.Sub(c.State.Began) < interval || reminders(c.State, skill.State) > 0 {
		return nil, nil
	}
	return remind(skill.State, fmt.Sprintf("You have worked for longer than the interval of checkpoints, %s, and not saved the state since: call %s with all that later turns need, and then end your turn.", interval, skill.SaveStateTool))
}
