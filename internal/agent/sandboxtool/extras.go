package sandboxtool

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/requirement"
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
		if s := &q.Skills[i]; s.Version == "" {
			extras = append(extras, skill.Extras(s.Name)...)
		}
	}
	slices.Sort(extras)
	return slices.Compact(extras)
}

// extrasOf returns the extras that a call's sandbox should have if the call is its first. need are
// those without which the call can do nothing, or not do it well.
func extrasOf(c *loop.Call) (extras, need []string) {
	if extras = ExtrasOf(c.Request); len(extras) > 0 {
		need = needed(c.Call.Name, c.Call.Arguments)
	}
	return extras, need
}

// needed are the extras that a tool call needs: it opens a page, or makes a PDF file.
func needed(tool, arguments string) []string {
	switch tool {
	case skill.OpenPageTool:
		return []string{requirement.Browser}
	case skill.ConvertDocumentTool:
		call, err := byName[tool].(*programTool).parse(arguments)
		if err != nil {
			return nil // it is refused
		}
		from, _ := call["file_path"].(string)
		to, _ := call["to_path"].(string)
		switch {
		case !strings.EqualFold(path.Ext(to), ".pdf"), strings.EqualFold(path.Ext(from), ".pdf"):
		case slices.Contains(skill.Formats, strings.ToLower(strings.TrimPrefix(path.Ext(from), "."))):
			return []string{requirement.Office} // its layout
		default:
			return []string{requirement.Browser}
		}
	}
	return nil
}
