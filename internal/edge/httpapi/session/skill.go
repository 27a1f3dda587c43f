package session

import (
	"context"
	stdjson "encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// skills are those of an agent in the next turn of a session.
func (h *Handlers) skills(ctx context.Context, s *session.Session, d *agent.Definition) (*skilltool.Set, error) {
	var uses []skilltool.Use
	var state *skilltool.Document
	for i, k := range d.Skills {
		use := skilltool.Use{Skill: run.Skill{Name: k.Name, Version: string(k.Version), Config: k.Config}}
		if k.Custom() {
			v, err := h.Skills.Version(ctx, s.Tenant, k.Version)
			if fault.KindOf(err) == fault.NotFound {
				return nil, fault.New(fault.Conflict, "agent: skills[%d]: the version of the skill %s that the agent has was deleted: give the agent another one, and begin another session", i, k.Name)
			}
			if err != nil {
				return nil, err
			}
			use.Description = v.Head.Description
		}
		if k.Name == skill.State && s.Run == "" && s.Queued == 0 { // else the turns before this one may change it
			var err error
			if state, err = skilltool.StateOf(ctx, h.Store, s.Tenant, s.ID); err != nil {
				return nil, err
			}
		}
		uses = append(uses, use)
	}
	code := sandboxtool.RunCode
	if d.Pooled() {
		code = pooltool.ExecCode
	}
	return skilltool.NewSet(uses, state, code)
}

// context shows what a turn that begins now would tell its model.
func (h *Handlers) context(c *httpapi.Call) (out SessionContext, err error) {
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	t, err := h.plan(c, s)
	if err != nil {
		return out, err
	}
	t.Shown = true
	_, q, err := h.Turns.Compose(c.Context(), c.Caller, t)
	if err != nil {
		return out, err
	}
	out = SessionContext{Type: "session_context", Model: q.Models[0], Instructions: q.Instructions, Skills: httpapi.Each(q.Skills, usedOf), Tools: httpapi.Each(q.Tools, contextTool)}
	return out, nil
}

func usedOf(s run.Skill) UsedSkill {
	if s.Version == "" {
		return UsedSkill{Name: s.Name}
	}
	return UsedSkill{s.Name, &s.Version, new(skill.Dir + "/" + s.Name)}
}

func contextTool(t run.Tool) ContextTool {
	out := ContextTool{Name: t.Name, Description: t.Description, InputSchema: jsontext.Value(t.Parameters), NeedsApproval: t.Approve, AnsweredByClient: t.Handler == ""}
	if len(out.InputSchema) == 0 {
		out.InputSchema = jsontext.Value("{}")
	}
	return out
}

// note is what a skill tells readers.
func (out *SessionEvent) note(e *session.Event) {
	out.Skill = &e.Note.Skill
	switch e.Kind {
	case run.ToldPlan:
		var p skilltool.Plan
		read(e, &p)
		out.Plan = &SessionPlan{Steps: httpapi.Each(p.Steps, func(s skilltool.Step) PlanStep { return PlanStep{s.Step, s.Status} }), WhyOpen: httpapi.OrNull(p.WhyOpen)}
	case run.ToldReview:
		var r skilltool.Review
		read(e, &r)
		out.Review = &Review{r.Iteration, r.Score, r.Threshold, r.Passed, r.Feedback, httpapi.OrNull(r.Error)}
	case run.ToldDocument:
		var d skilltool.Document
		read(e, &d)
		out.Content = &d.Document
	case run.ToldReminder:
		var m skilltool.Reminder
		read(e, &m)
		out.Content = &m.Content
	}
}

// read reads what a skill has noted. What a later version has written in another way is shown
// empty.
func read(e *session.Event, into any) { _ = stdjson.Unmarshal(e.Note.Data, into) }
