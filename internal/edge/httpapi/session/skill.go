package session

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/run"
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
