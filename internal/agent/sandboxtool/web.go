package sandboxtool

import (
	"context"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
)

// RunsCode reports whether a tool is the one that runs code.
func RunsCode(t *run.Tool) bool { return t.Handler == Handler && t.Name == RunCode }

// modules are the functions of the image's module atoll_web, by the services that they call.
var modules = []struct{ service, function string }{
	{web.SearchName, "search(query)"}, {web.PeopleName, "people(query)"}, {web.FetchName, "fetch(url)"},
}

// Tell tells the model which services of the web its code can call, in the descriptions of the
// tools that run some.
func Tell(tools []run.Tool, services []string, runs func(*run.Tool) bool) {
	var can []string
	for _, m := range modules {
		if slices.Contains(services, m.service) {
			can = append(can, m.function)
		}
	}
	if len(can) == 0 {
		return
	}
	for i := range tools {
		if runs(&tools[i]) {
			tools[i].Description += " Python code can use the web without a network: import atoll_web, which has " + strings.Join(can, ", ") +
				"; help(atoll_web) says what they return. In a shell, atoll-web does the same."
		}
	}
}

// calls counts what an execution has been charged for beside itself.
func (s *Sandbox) calls(ctx context.Context, e *execution.Execution) (map[string]int, error) {
	if s.Ledger == nil {
		return nil, nil
	}
	return sandboxcall.Charged(ctx, s.Ledger, e.Tenant, e.TraceID, e.CreatedAt, e.CompletedAt)
}
