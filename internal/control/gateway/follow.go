package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// logAgain is how long a running execution without a log is waited for: some
// executor is about to take it over.
const logAgain = 500 * time.Millisecond

// Follow passes e's events after a seq to yield, in order, and goes on with
// those to come until e has ended. It returns the record with its output. When
// no code was run the error says why, as Execute's does, and the record comes
// with it. An error of yield ends following, not the run.
func (g *Gateway) Follow(ctx context.Context, e *execution.Execution, after int64, yield func([]execution.Event) error) (*execution.Execution, error) {
	ctx, span := trace.Start(ctx, "execution.follow", trace.String(trace.TraceID, e.TraceID), trace.Int("atoll.after", after))
	defer span.End()
	for {
		if e.Status != execution.Running && (e.NotStarted || after >= e.LastSeq) {
			return g.output(ctx, e.Tenant, e.TraceID)
		}
		r, err := g.cfg.Log.Follow(ctx, e.TraceID, after, func(events []execution.Event) error {
			if len(events) > 0 {
				after = events[len(events)-1].Seq
			}
			return yield(events)
		})
		if err == nil {
			return g.record(ctx, e.Tenant, *r)
		}
		if !errors.Is(err, execution.ErrNoLog) {
			return nil, err
		}
		if e, err = g.cfg.Store.Get(ctx, e.Tenant, e.TraceID); err != nil {
			return nil, err
		}
		if e.Status != execution.Running { // what is left is the record
			return g.output(ctx, e.Tenant, e.TraceID)
		}
		select {
		case <-time.After(logAgain):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
