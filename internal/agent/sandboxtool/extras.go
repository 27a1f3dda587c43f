package sandboxtool

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/skill"
)

// Extras knows why a sandbox lacks extras of the default image.
type Extras interface {
	// Lacking explains to an agent in an environment how far the image with these extras is; "" if
	// that is unknown.
	Lacking(ctx context.Context, tenant, environment string, extras []string) (string, error)
}

// extrasOf returns the extras of the default image that a call's sandbox should have if the call is
// its first: those of the run's skills. need says that the call can do nothing without them.
func extrasOf(c *loop.Call) (extras []string, need bool) {
	for i := range c.Request.Skills {
		if s := &c.Request.Skills[i]; s.Version == "" {
			extras = append(extras, skill.Extras(s.Name)...)
		}
	}
	slices.Sort(extras)
	return slices.Compact(extras), len(extras) > 0 && needsExtras(c.Call.Name, c.Call.Arguments)
}

// needsExtras reports whether a tool call needs the extras of its skill: it opens a page, or makes a
// PDF file.
func needsExtras(tool, arguments string) bool {
	switch tool {
	case skill.OpenPageTool:
		return true
	case skill.ConvertDocumentTool:
		call, err := byName[tool].(*programTool).parse(arguments)
		if err != nil {
			return false // it is refused
		}
		from, _ := call["file_path"].(string)
		to, _ := call["to_path"].(string)
		pdf := func(name string) bool { return strings.EqualFold(path.Ext(name), ".pdf") }
		return pdf(to) && !pdf(from)
	}
	return false
}
