package skilltool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
)

// Use is a skill of an agent in a turn.
type Use struct {
	run.Skill
	Description string // of one of the tenant's
}

// Set is the skills of a turn.
type Set struct {
	uses     []Use
	sections string     // about those of the server's own
	folders  string     // of the tenant's
	tools    []run.Tool // of the sandbox
}

// NewSet returns the skills of a turn. state is the session's state document, or nil. code is
// the name of the tool that runs code.
func NewSet(uses []Use, state *Document, code string) (*Set, error) {
	out := &Set{uses: uses}
	for _, u := range uses {
		if u.Version != "" {
			out.folders += fmt.Sprintf("- %s: %s\n", u.Name, u.Description)
			continue
		}
		b := builtInNamed(u.Name)
		if b == nil {
			return nil, fmt.Errorf("skill %q not found", u.Name)
		}
		text, err := b.instructions(u.Config, &turn{state, code})
		if err != nil {
			return nil, fmt.Errorf("skill %s: %w", u.Name, err)
		}
		given, err := b.offered(u.Config)
		if err != nil {
			return nil, fmt.Errorf("skill %s: %w", u.Name, err)
		}
		out.tools = append(out.tools, given...)
		out.sections += fmt.Sprintf("\n## %s\n%s\n", u.Name, text)
	}
	return out, nil
}

// Apply adds the skills to a run's request: their tools, and their instructions after the
// agent's own.
func (s *Set) Apply(q *run.Request) {
	if len(s.uses) == 0 {
		return
	}
	text := "# Skills\n" + s.sections
	if s.folders != "" {
		text += fmt.Sprintf("\n## Folders\nThese skills have instructions of their own. Before you do what one is for, read it with %s.", skill.ReadTool)
		has := func(handler string) bool {
			return slices.ContainsFunc(q.Tools, func(t run.Tool) bool { return t.Handler == handler })
		}
		switch {
		case has(pooltool.Handler):
			text += fmt.Sprintf(" Their folders are in each of your sandboxes, read-only: %s/NAME.", skill.Dir)
		case has(sandboxtool.Handler):
			text += fmt.Sprintf(" Their folders are in the sandbox, read-only: %s/NAME.", skill.Dir)
		}
		text += "\n" + s.folders
	}
	q.Instructions = strings.TrimLeft(q.Instructions+"\n\n"+text, "\n")
	for _, u := range s.uses {
		q.Skills = append(q.Skills, u.Skill)
	}
	for _, t := range s.tools {
		q.Tools = slices.DeleteFunc(q.Tools, func(other run.Tool) bool { return other.Name == t.Name }) // of a server of others
		q.Tools = append(q.Tools, t)
	}
	for _, t := range tools {
		of := slices.ContainsFunc(s.uses, func(u Use) bool {
			return t.of == "" && u.Version != "" || t.of != "" && u.Name == t.of && u.Version == ""
		})
		if !of {
			continue
		}
		q.Tools = slices.DeleteFunc(q.Tools, func(other run.Tool) bool { return other.Name == t.Name }) // of a server of others
		q.Tools = append(q.Tools, run.Tool{Tool: t.Tool, Handler: Handler, Idempotent: true, Serial: true, Uncounted: true})
	}
}
