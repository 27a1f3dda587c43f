package loop

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Check is a run that would end as its model wants it to.
type Check struct {
	Run   *run.Run
	State *run.State // not to be changed
	Now   time.Time
	// Ask asks the run's model something that is no part of the conversation. The error is a
	// *model.Error for a model that does not answer.
	Ask func(ctx context.Context, q model.Request) (*Reply, error)
}

// Reply is what a model said to Check.Ask.
type Reply struct {
	Text  string
	Model string
	Usage model.Usage
	Cost  model.Cost
}

// check asks skills before the run ends. What the model said before is on record first, as
// asking may cost something.
func (d *drive) check(end *run.End) error {
	if err := d.flush(d.ctx); err != nil {
		return err
	}
	over, err := d.overBudget()
	if err != nil {
		return err
	}
	if over != nil {
		return d.end(end) // with what it has
	}
	c, err := d.loop.cfg.Check(d.ctx, &Check{Run: &d.run, State: d.state, Now: time.Now(), Ask: d.reply})
	switch {
	case d.ctx.Err() != nil:
		return d.interrupted()
	case err != nil:
		return err
	case c == nil:
		return d.end(end)
	}
	return d.add(run.Entry{Checked: c})
}

func (d *drive) reply(ctx context.Context, q model.Request) (*Reply, error) {
	m, rec, err := d.loop.cfg.Models.Use(ctx, d.run.Tenant, d.state.Model)
	if err != nil {
		return nil, err
	}
	var fold model.Fold
	for delta, err := range m.Generate(ctx, q) {
		if err != nil {
			return nil, err
		}
		fold.Add(delta)
	}
	answer := fold.Answer()
	out := &Reply{Model: d.state.Model, Usage: answer.Usage, Cost: rec.Prices.Cost(answer.Usage)}
	for _, it := range answer.Items {
		if it.Message != nil {
			for _, p := range it.Message.Parts {
				out.Text += p.Text
			}
		}
	}
	if used := d.loop.cfg.Used; used != nil {
		used(&d.run, out.Model, answer.Usage.Input+answer.Usage.Output)
	}
	return out, nil
}
