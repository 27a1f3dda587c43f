package agent

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// skillEntry is a skill as a caller names it, other than by its name alone.
type skillEntry struct {
	Type    *string        `json:"type,omitzero" enum:"built_in,custom,anthropic"`
	Name    *string        `json:"name,omitzero"`
	Config  jsontext.Value `json:"config,omitzero"`
	SkillID *string        `json:"skill_id,omitzero"`
	Version jsontext.Value `json:"version,omitzero"`
}

// skillsIn reads the skills of a body, each a name or an object.
func skillsIn(in []jsontext.Value) (out []agents.Skill, err error) {
	if len(in) > agent.MaxSkills {
		return nil, httpapi.Invalid("skills must have at most %d entries", agent.MaxSkills)
	}
	for i, text := range in {
		path := fmt.Sprintf("skills[%d]", i)
		var e skillEntry
		switch text.Kind() {
		case '"':
			if err := json.Unmarshal(text, &e.Name); err != nil {
				return nil, httpapi.Invalid("%s must be the name of a skill", path)
			}
		case '{':
			if err := wire.Body.Decode(text, &e); err != nil {
				return nil, fault.Wrap(fault.Invalid, err, path+": "+err.Error())
			}
		default:
			return nil, httpapi.Invalid("%s must be the name of a skill, or an object", path)
		}
		out = append(out, agents.Skill(e))
	}
	return out, nil
}

func skillOf(s agent.Skill) AgentSkill {
	if s.Custom() {
		return AgentSkill{Type: "custom", Name: s.Name, SkillID: new(string(s.ID)), Version: new(string(s.Version))}
	}
	return AgentSkill{Type: "built_in", Name: s.Name, Config: jsontext.Value(s.Config)}
}
