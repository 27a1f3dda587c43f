package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Skill names a skill of an agent. Omitted fields are nil or empty.
type Skill struct {
	Type    *string // "built_in" or "custom"
	Name    *string
	Config  jsontext.Value // of a built-in skill
	SkillID *string        // of a tenant's skill
	Version jsontext.Value // of a tenant's skill: a string, a number or null
}

// ResolveSkills resolves the skills of an agent, which had the skills before. Faults name an entry by
// its place in skills.
func (s *Service) ResolveSkills(ctx context.Context, t tenant.ID, in []Skill, before []agent.Skill) (out []agent.Skill, err error) {
	if len(in) > agent.MaxSkills {
		return nil, invalid("skills must have at most %d entries", agent.MaxSkills)
	}
	var size int64
	for i := range in {
		path := fmt.Sprintf("skills[%d]", i)
		one, bytes, err := s.resolveSkill(ctx, t, path, &in[i], before)
		if err != nil {
			return nil, err
		}
		if size += bytes; size > agent.MaxSkillBytes {
			return nil, invalid("%s: the files of all skills must be at most %d bytes together", path, agent.MaxSkillBytes)
		}
		out = append(out, one)
	}
	return out, nil
}

func (s *Service) resolveSkill(ctx context.Context, t tenant.ID, path string, in *Skill, before []agent.Skill) (out agent.Skill, bytes int64, err error) {
	switch {
	case in.Type != nil && *in.Type == "anthropic":
		return out, 0, invalid("%s.type: there are no skills of Anthropic's here: upload it, and name it as custom", path)
	case in.Name == nil && in.SkillID == nil:
		return out, 0, invalid("%s must have a name or a skill_id", path)
	case in.Name != nil && in.SkillID != nil && skill.BuiltIn(*in.Name):
		return out, 0, invalid("%s: skill_id applies only to your own skills, and %s is built in", path, *in.Name)
	}
	custom := in.SkillID != nil || !skill.BuiltIn(*in.Name)
	if in.Type != nil && (*in.Type == "custom") != custom {
		return out, 0, invalid("%s.type must be %s for this skill, or be omitted", path, map[bool]string{true: "custom", false: "built_in"}[custom])
	}
	if custom {
		if len(in.Config) > 0 {
			return out, 0, invalid("%s.config applies only to built-in skills", path)
		}
		return s.resolveOwn(ctx, t, path, in, before)
	}
	if len(in.Version) > 0 {
		return out, 0, invalid("%s.version applies only to your own skills", path)
	}
	return agent.Skill{Name: *in.Name, Config: agent.Canonical(json.RawMessage(in.Config))}, 0, nil
}

// resolveOwn resolves a version of a tenant's skill, and returns the size of its files. An agent may keep
// an archived skill.
func (s *Service) resolveOwn(ctx context.Context, t tenant.ID, path string, in *Skill, before []agent.Skill) (out agent.Skill, bytes int64, err error) {
	name, field := in.SkillID, path+".skill_id"
	if name == nil {
		name, field = in.Name, path+".name"
	}
	none := invalid("%s: there is no skill %.80q: list yours with GET /v1/skills; docs/reference/skills.md lists the server's own", field, *name)
	if !skill.ID(*name).Valid() && skill.CheckName("", *name) != nil {
		return out, 0, none
	}
	k, err := s.Skills.Get(ctx, t, *name)
	if fault.KindOf(err) == fault.NotFound || err == nil && in.Name != nil && *in.Name != k.Name && *in.Name != string(k.ID) {
		return out, 0, none
	}
	if err != nil {
		return out, 0, err
	}
	version, ok := versionText(in.Version)
	if !ok {
		return out, 0, invalid("%s.version must be the id or number of a version, or latest", path)
	}
	v, err := skill.Resolve(ctx, s.Skills, k, version)
	if fault.KindOf(err) == fault.NotFound {
		return out, 0, invalid("%s.version: the skill %s has no version %.80q", path, k.Name, version)
	}
	if err != nil {
		return out, 0, err
	}
	if k.Archived() && !slices.ContainsFunc(before, func(old agent.Skill) bool { return old.ID == k.ID }) {
		return out, 0, invalid("%s: the skill %s is archived", path, k.Name)
	}
	for _, f := range v.Files {
		bytes += f.Size
	}
	return agent.Skill{Name: k.Name, ID: k.ID, Version: v.ID}, bytes, nil
}

// versionText returns a version as text. Callers write numbers as strings, too.
func versionText(v jsontext.Value) (text string, ok bool) {
	switch v.Kind() {
	case '"':
		err := json.Unmarshal(v, &text)
		return text, err == nil
	case '0':
		return string(v), true
	case 0, 'n':
		return "", true
	}
	return "", false
}
