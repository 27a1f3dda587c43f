package loop

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

const (
	summaryTries = 3
	summaryWait  = time.Second // doubled with each try
)

// compact has the model summarize the beginning of the conversation. Without a summary the run
// goes on, and leaves out what does not fit.
func (d *drive) compact(c *run.Compacting) error {
	if err := d.flush(d.ctx); err != nil {
		return err
	}
	over, err := d.overBudget()
	if err != nil {
		return err
	}
	if over != nil {
		return d.end(over)
	}
	spec := d.specs(c.Model)
	out := &run.Compacted{Items: c.Items, Upto: c.Upto, Model: c.Model}
	reply, err := d.summary(d.ctx, c.Model, d.state.Summarize(c, &spec))
	refused, answered := errors.AsType[*model.Error](err)
	switch {
	case d.ctx.Err() != nil:
		return d.interrupted()
	case answered:
		out.Failed = "the conversation could not be summarized: " + refused.Msg
	case err != nil:
		return err
	default:
		out.Summary, out.Model, out.Usage, out.Cost = strings.TrimSpace(reply.Text), reply.Model, reply.Usage, reply.Cost
		if out.Summary == "" {
			out.Failed = "the conversation could not be summarized: the model said nothing"
		}
	}
	return d.add(run.Entry{Compacted: out})
}

func (d *drive) summary(ctx context.Context, name string, q model.Request) (reply *Reply, err error) {
	for try := range summaryTries {
		reply, err = d.reply(ctx, name, q)
		if refused, ok := errors.AsType[*model.Error](err); !ok || !refused.Retryable() || try == summaryTries-1 {
			return reply, err
		}
		timer := time.NewTimer(summaryWait << try)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
	return reply, err
}
