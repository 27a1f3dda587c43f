package sandboxcall

import (
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Folders returns the skills of a run that have a folder.
func Folders(q *run.Request) (out []execution.SkillRef) {
	for _, s := range q.Skills {
		if s.Version != "" {
			out = append(out, execution.SkillRef{Name: s.Name, Version: s.Version})
		}
	}
	return out
}
