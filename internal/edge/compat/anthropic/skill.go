package anthropic

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// ofSkill begins the types of events of the server's own skills, for which this form has no
// word: their content is JSON.
const ofSkill = "atoll."

// versionHeader is what the packages send with each request.
const versionHeader = "Anthropic-Version"

// ofSkills reports whether the packages ask for skills, which they do without a header of
// this API.
func ofSkills(r *http.Request) bool {
	return r.Header.Get(versionHeader) != "" && (r.URL.Path == "/v1/skills" || strings.HasPrefix(r.URL.Path, "/v1/skills/"))
}

// SkillFields names a skill of an agent.
type SkillFields struct {
	Type    *string        `json:"type,omitzero" enum:"built_in,custom,anthropic"`
	Name    *string        `json:"name,omitzero"`
	Config  jsontext.Value `json:"config,omitzero"`
	SkillID *string        `json:"skill_id,omitzero"`
	Version jsontext.Value `json:"version,omitzero"`
}

// Skill is a skill of an agent: a version of one of the tenant's.
type Skill struct {
	Type    string `json:"type"`
	SkillID string `json:"skill_id"`
	Version string `json:"version"`
}

func skillsOf(d *agent.Definition) []Skill {
	out := []Skill{}
	for _, s := range d.Skills {
		if s.Custom() {
			out = append(out, Skill{"custom", string(s.ID), string(s.Version)})
		}
	}
	return out
}

// setSkills changes the tenant's skills of an agent. Those of the server's own, for which this
// form has no word, stay.
func (d *Handlers) setSkills(c *httpapi.Call, in *AgentFields, of *agent.Definition) error {
	if len(in.Skills) == 0 {
		return nil
	}
	var entries []jsontext.Value
	if err := json.Unmarshal(in.Skills, &entries); err != nil || slices.ContainsFunc(entries, func(e jsontext.Value) bool { return e.Kind() != '{' }) {
		return httpapi.Invalid("skills must be an array of objects, or null")
	}
	if len(entries) > agent.MaxSkills {
		return httpapi.Invalid("skills must have at most %d entries", agent.MaxSkills)
	}
	list := make([]agents.Skill, len(entries))
	for i, text := range entries {
		var e SkillFields
		if err := wire.Body.Decode(text, &e); err != nil {
			return fault.Wrap(fault.Invalid, err, fmt.Sprintf("skills[%d]: %s", i, err))
		}
		list[i] = agents.Skill(e)
	}
	given, err := d.Agents.ResolveSkills(c.Context(), c.Caller.Tenant.ID, list, of.Skills)
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(of.Skills), func(s agent.Skill) bool {
		return s.Custom() || slices.ContainsFunc(given, func(g agent.Skill) bool { return g.Name == s.Name })
	})
	if of.Skills = append(kept, given...); len(of.Skills) == 0 {
		of.Skills = nil
	}
	return nil
}
