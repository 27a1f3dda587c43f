package agent

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
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

// ReadSkills reads the skills that a caller gives an agent, which has had before ones: those
// of the tenant's are resolved to versions.
func (h *Handlers) ReadSkills(c *httpapi.Call, entries []jsontext.Value, before []agent.Skill) (out []agent.Skill, err error) {
	if len(entries) > agent.MaxSkills {
		return nil, httpapi.Invalid("skills must have at most %d entries", agent.MaxSkills)
	}
	var size int64
	for i, text := range entries {
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
		s, bytes, err := h.readSkill(c, path, &e, before)
		if err != nil {
			return nil, err
		}
		if size += bytes; size > agent.MaxSkillBytes {
			return nil, httpapi.Invalid("%s: the files of all skills must be at most %d bytes together", path, agent.MaxSkillBytes)
		}
		out = append(out, s)
	}
	return out, nil
}

func (h *Handlers) readSkill(c *httpapi.Call, path string, e *skillEntry, before []agent.Skill) (s agent.Skill, bytes int64, err error) {
	switch {
	case e.Type != nil && *e.Type == "anthropic":
		return s, 0, httpapi.Invalid("%s.type: there are no skills of Anthropic's here: upload it, and name it as custom", path)
	case e.Name == nil && e.SkillID == nil:
		return s, 0, httpapi.Invalid("%s must have a name or a skill_id", path)
	case e.Name != nil && e.SkillID != nil && skill.BuiltIn(*e.Name):
		return s, 0, httpapi.Invalid("%s: skill_id applies only to your own skills, and %s is built in", path, *e.Name)
	}
	custom := e.SkillID != nil || !skill.BuiltIn(*e.Name)
	if e.Type != nil && (*e.Type == "custom") != custom {
		return s, 0, httpapi.Invalid("%s.type must be %s for this skill, or be omitted", path, map[bool]string{true: "custom", false: "built_in"}[custom])
	}
	if !custom {
		if len(e.Version) > 0 {
			return s, 0, httpapi.Invalid("%s.version applies only to your own skills", path)
		}
		return agent.Skill{Name: *e.Name, Config: stored(e.Config)}, 0, nil
	}
	if len(e.Config) > 0 {
		return s, 0, httpapi.Invalid("%s.config applies only to built-in skills", path)
	}
	return h.ownSkill(c, path, e, before)
}

// ownSkill is a version of a tenant's skill. One that the agent has keeps being usable after it
// was archived.
func (h *Handlers) ownSkill(c *httpapi.Call, path string, e *skillEntry, before []agent.Skill) (s agent.Skill, bytes int64, err error) {
	name, field := e.SkillID, path+".skill_id"
	if name == nil {
		name, field = e.Name, path+".name"
	}
	none := httpapi.Invalid("%s: there is no skill %.80q: list yours with GET /v1/skills; docs/reference/skills.md lists the server's own", field, *name)
	if !skill.ID(*name).Valid() && skill.CheckName("", *name) != nil {
		return s, 0, none
	}
	k, err := h.Skills.Get(c.Context(), c.Caller.Tenant.ID, *name)
	if fault.KindOf(err) == fault.NotFound || err == nil && e.Name != nil && *e.Name != k.Name && *e.Name != string(k.ID) {
		return s, 0, none
	}
	if err != nil {
		return s, 0, err
	}
	version, err := versionText(e.Version)
	if err != nil {
		return s, 0, httpapi.Invalid("%s.version must be the id or number of a version, or latest", path)
	}
	v, err := skill.Resolve(c.Context(), h.Skills, k, version)
	if fault.KindOf(err) == fault.NotFound {
		return s, 0, httpapi.Invalid("%s.version: the skill %s has no version %.80q", path, k.Name, version)
	}
	if err != nil {
		return s, 0, err
	}
	s = agent.Skill{Name: k.Name, ID: k.ID, Version: v.ID}
	if k.Archived() && !slices.ContainsFunc(before, func(old agent.Skill) bool { return old.ID == k.ID }) {
		return s, 0, httpapi.Invalid("%s: the skill %s is archived", path, k.Name)
	}
	for _, f := range v.Files {
		bytes += f.Size
	}
	return s, bytes, nil
}

// versionText is a version as text: callers write numbers as such, too.
func versionText(v jsontext.Value) (text string, err error) {
	switch v.Kind() {
	case '"':
		return text, json.Unmarshal(v, &text)
	case '0':
		return string(v), nil
	case 0, 'n':
		return "", nil
	}
	return "", fmt.Errorf("%s is no version", v)
}

func skillOf(s agent.Skill) AgentSkill {
	if s.Custom() {
		return AgentSkill{Type: "custom", Name: s.Name, SkillID: new(string(s.ID)), Version: new(string(s.Version))}
	}
	return AgentSkill{Type: "built_in", Name: s.Name, Config: jsontext.Value(s.Config)}
}
