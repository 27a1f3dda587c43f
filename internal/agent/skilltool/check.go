package skilltool

import (
	"context"

	"github.com/atoll-run/atoll/internal/agent/grader"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
)

// Check says what the skills of a run have to say before it ends. It is for loop.Config.
func (s *Skills) Check(ctx context.Context, c *loop.Check) (*run.Checked, error) {
	for _, one := range []struct {
		skill string
		check func(*loop.Check) (*run.Checked, error)
	}{
		{skill.Planning, checkPlan}, {skill.Code, checkCode}, {skill.State, checkState},
		{skill.Reflection, func(c *loop.Check) (*run.Checked, error) { return review(ctx, c) }},
	} {
		if c.State.Request.Skill(one.skill) == nil {
			continue
		}
		if said, err := one.check(c); said != nil || err != nil {
			return said, err
		}
	}
	return nil, nil
}

// Reminder is the Data of an event of the kind run.ToldReminder.
type Reminder struct {
	Content string `json:"content"`
}

// remind has a run go on with a text.
func remind(of, text string) (*run.Checked, error) {
	n, err := note(of, Reminder{text})
	return &run.Checked{Kind: run.ToldReminder, Note: n, Say: grader.Say(text)}, err
}

// reminders is how often a skill has had a run go on.
func reminders(s *run.State, of string) (n int) {
	for i := range s.Checks {
		if c := &s.Checks[i]; c.Note.Skill == of && c.Kind == run.ToldReminder {
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

// checkCode has a run go on whose last program failed, as long as the skill's bound says.
func checkCode(c *loop.Check) (*run.Checked, error) {
	cfg, err := skill.Config[skill.CodeConfig](c.State.Request.Skill(skill.Code).Config)
	if err != nil {
		return nil, err
	}
	failures, last := 0, false
	for _, m := range made(c.State) {
		if m.Name == sandboxtool.RunCode || m.Name == pooltool.ExecCode {
			if last = m.failed; last {
				failures++
			}
		}
	}
	n := reminders(c.State, skill.Code)
	if !last || failures <= n || n >= int(*cfg.MaxAttempts) {
		return nil, nil
	}
	return remind(skill.Code, "The last program that you ran failed. Read its output, fix it, and run it again. If you cannot fix it, tell the user what fails and why.")
}
