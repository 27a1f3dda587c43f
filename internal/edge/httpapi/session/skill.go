package session

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// context shows what a turn that begins now would tell its model.
func (h *Handlers) context(c *httpapi.Call) (out SessionContext, err error) {
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	q, err := h.Service.Preview(c.Context(), c.Caller, s)
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
