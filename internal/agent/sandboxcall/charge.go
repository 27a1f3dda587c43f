package sandboxcall

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/web"
)

// Ledger counts the calls to web services that code made; usage.Store implements it.
type Ledger interface {
	Calls(ctx context.Context, tenant, traceID string, since, before time.Time) (map[string]int, error)
	// Made reports whether a sandbox was made for an execution.
	Made(ctx context.Context, tenant, traceID string, since, before time.Time) (bool, error)
}

// Skew limits the difference between the clocks that record a call and an execution.
const Skew = time.Minute

// Charged returns the number of calls to each web service that were charged under a trace id between
// two times.
func Charged(ctx context.Context, l Ledger, tenant, traceID string, from, to time.Time) (map[string]int, error) {
	calls, err := l.Calls(ctx, tenant, traceID, from.Add(-Skew), to.Add(Skew))
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
