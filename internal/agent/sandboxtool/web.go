package sandboxtool

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Ledger is where calls are counted that code made while it ran.
type Ledger interface {
	Calls(ctx context.Context, tenant, traceID string, since, before time.Time) (map[string]int, error)
	// Made reports whether a sandbox was made for an execution.
	Made(ctx context.Context, tenant, traceID string, since, before time.Time) (bool, error)
}

// modules are the functions of the image's module atoll_web, by the services that they call.
var modules = []struct{ service, function string }{
	{web.SearchName, "search(query)"}, {web.PeopleName, "people(query)"}, {web.FetchName, "fetch(url)"},
}

// Tell tells the model which services of the web its code can call.
func Tell(tools []run.Tool, services []string) {
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
		if tools[i].Handler == Handler && tools[i].Name == RunCode {
			tools[i].Description += " Python code can use the web without a network: import atoll_web, which has " + strings.Join(can, ", ") +
				"; help(atoll_web) says what they return. In a shell, atoll-web does the same."
		}
	}
}

// skew is how far apart the clocks may be of those that record a call and an execution.
const skew = time.Minute

// calls counts what an execution has been charged for beside itself.
func (s *Sandbox) calls(ctx context.Context, e *execution.Execution) (map[string]int, error) {
	if s.Ledger == nil {
		return nil, nil
	}
	calls, err := s.Ledger.Calls(ctx, e.Tenant, e.TraceID, e.CreatedAt.Add(-skew), e.CompletedAt.Add(skew))
	if err != nil {
		return nil, err
	}
	for name := range calls {
		if name != web.SearchName && name != web.PeopleName && name != web.FetchName {
			delete(calls, name)
		}
	}
	return calls, nil
}
