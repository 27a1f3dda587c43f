package sandboxtool

import (
	"context"
	"slices"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
)

// Extras knows why a sandbox lacks extras of the default image.
type Extras interface {
	// Lacking explains to an agent in an environment how far the image with these extras is; "" if
	// that is unknown.
	Lacking(ctx context.Context, tenant, environment string, extras []string) (string, error)
}

// ExtrasOf returns the extras of the default image that the skills of a run need.
func ExtrasOf(q *run.Request) (extras []string) {
	for i := range q.Skills {
		if b := skill.Find(q.Skills[i].Name); b != nil && q.Skills[i].Version == "" {
			extras = append(extras, b.Extras...)
		}
	}
	slices.Sort(extras)
	return slices.Compact(extras)
}

// extrasOf returns the extras that a call's sandbox should have if the call is its first. need are
// those without which the call fails or loses quality.
func extrasOf(t tool, c *loop.Call) (extras, need []string) {
	extras = ExtrasOf(c.Request)
	if by, ok := t.(*ProgramTool); ok && by.Extras != nil && len(extras) > 0 {
		if call, err := by.parse(c.Call.Arguments); err == nil { // an invalid call is rejected later
			need = by.Extras(by.Name, call)
		}
	}
	return extras, need
}
