package agent

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/skill"
)

// Limits of an agent's skills.
const (
	MaxSkills     = 20
	MaxSkillBytes = 16 << 20 // all files together: Atoll copies them into a sandbox at once
)

// Skill is a built-in skill, or a version of one of the tenant's skills.
type Skill struct {
	Name    string
	Config  json.RawMessage `json:",omitempty"` // for a built-in skill
	ID      skill.ID        `json:",omitzero"`  // "" for a built-in skill
	Version skill.VersionID `json:",omitzero"`
}

// Custom reports whether the tenant uploaded s; other skills are built in.
func (s *Skill) Custom() bool { return s.ID != "" }

// tools returns the names of the tools that s adds to its agent.
func (s *Skill) tools() []string {
	if s.Custom() {
		return []string{skill.ReadTool}
	}
	if b := skill.Find(s.Name); b != nil {
		return b.Tools
	}
	return nil
}

func (d *Definition) checkSkills() error {
	if len(d.Skills) > MaxSkills {
		return invalid("skills must have at most %d entries", MaxSkills)
	}
	seen := map[string]bool{}
	for i := range d.Skills {
		s, path := &d.Skills[i], fmt.Sprintf("skills[%d]", i)
		if seen[s.Name] {
			return invalid("%s: duplicate %s", path, s.Name)
		}
		seen[s.Name] = true
		if !s.Custom() {
			if err := skill.CheckConfig(path, s.Name, s.Config); err != nil {
				return err
			}
			if skill.Find(s.Name).Needs == skill.Unnamed && d.Pooled() {
				return invalid("%s: %s needs the tool sandbox, whose tools have the same names as those of sandboxes; remove one of the two", path, s.Name)
			}
		}
		for j := range d.Tools {
			if t := &d.Tools[j]; t.Type == Custom && slices.Contains(s.tools(), t.Name) {
				return invalid("tools[%d].name: the skill %[3]s already has a tool named %[2]s; choose another name", j, t.Name, s.Name)
			}
		}
	}
	return nil
}

// callTools reports whether the agent has skills that come with tools.
func (d *Definition) callTools() bool {
	return slices.ContainsFunc(d.Skills, func(s Skill) bool { return len(s.tools()) > 0 })
}

// own returns d's built-in skills. The others belong to the tenant.
func (d *Definition) own() (out []Skill) {
	for _, s := range d.Skills {
		if !s.Custom() {
			out = append(out, s)
		}
	}
	return out
}
