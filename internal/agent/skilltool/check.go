package skilltool

import (
	"context"

	"github.com/atoll-run/atoll/internal/agent/grader"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Check says what the skills of a run have to say before it ends. It is for loop.Config.
func (s *Skills) Check(ctx context.Context, c *loop.Check) (*run.Checked, error) {
	for i := range builtIns {
		b := &builtIns[i]
		if b.check == nil || c.State.Request.Skill(b.Name) == nil {
			continue
		}
		if said, err := b.check(ctx, c); said != nil || err != nil {
			return said, err
		}
	}
	return nil, nil
}

// Reminder is the Data of an event of the kind run.EventReminder.
type Reminder struct {
	Content string `json:"content"`
}

// remind has a run go on with a text.
func remind(of, text string) (*run.Checked, error) {
	n, err := note(of, Reminder{text})
	return &run.Checked{Kind: run.EventReminder, Note: n, Say: grader.Say(text)}, err
}

// reminders is how often a skill has had a run go on.
func reminders(s *run.State, of string) (n int) {
	for i := range s.Checks {
		if c := &s.Checks[i]; c.Note.Skill == of && c.Kind == run.EventReminder {
			n++
		}
	}
	return n
}

// made are the calls of the run that have a result, in their order.
func made(s *run.State) (out []madeCall) {
	results := map[string]*model.Result{}
	items := s.Conversation[min(len(s.Conversation), s.Request.Before):]
	for i := range items {
		if r := items[i].Result; r != nil {
			results[r.CallID] = r
		}
	}
	for i := range items {
		if c := items[i].Call; c != nil && results[c.ID] != nil {
			out = append(out, madeCall{c, results[c.ID].Failed})
		}
	}
	return out
}

type madeCall struct {
	*model.Call
	failed bool
}
