package loop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Check is a run that its model wants to end.
type Check struct {
	Run   *run.Run
	State *run.State // read-only
	Now   time.Time
	// Ask asks a model outside the conversation. An empty name selects the run's model. If the model
	// does not answer, the error is a *model.Error.
	Ask func(ctx context.Context, name string, q model.Request) (*Reply, error)
}

// Reply is a model's answer to Check.Ask.
type Reply struct {
	Text  string
	Model string
	Usage model.Usage
	Cost  model.Cost
}

// check runs the skills' checks, or evaluates the run's outcome, before the run ends. It records
// the model's answer first, because the check may cost money.
func (d *drive) check(next run.Next) error {
	if err := d.flush(d.ctx); err != nil {
		return err
	}
	over, err := d.overBudget()
	if err != nil {
		return err
	}
	grades := d.state.Progress.Open
	if over != nil && (grades || next.Evaluate != nil) {
		return d.end(over)
	}
	if over != nil {
		return d.end(next.End) // with what it has
	}
	ask := d.loop.cfg.Check
	if grades {
		ask = d.loop.cfg.Grade
	}
	if ask == nil {
		return fmt.Errorf("run %s: this loop has no check function", d.run.ID)
	}
	c, err := ask(d.ctx, &Check{Run: &d.run, State: d.state, Now: time.Now(), Ask: d.reply})
	switch {
	case d.ctx.Err() != nil:
		return d.interrupted()
	case err != nil:
		return err
	case c == nil && next.Evaluate != nil:
		return d.add(run.Entry{Evaluating: next.Evaluate})
	case c == nil:
		return d.end(next.End)
	}
	return d.add(run.Entry{Checked: c})
}

func (d *drive) reply(ctx context.Context, name string, q model.Request) (*Reply, error) {
	name = cmp.Or(name, d.state.Model, d.state.Request.Models[0]) // a turn may begin with calls
	m, rec, err := d.loop.cfg.Models.Use(ctx, d.run.Tenant, name)
	if err != nil && fault.KindOf(err) != fault.Internal {
		return nil, model.Errorf(model.Unauthorized, "%s", err)
	}
	if err != nil {
		return nil, err
	}
	release, err := d.holdAnswer(ctx, d.run.Key, cost(&q, rec), 0)
	if err != nil {
		return nil, budgetError(err)
	}
	defer release()
	var fold model.Fold
	billed := false
	for delta, err := range m.Generate(ctx, q) {
		if err != nil {
			if billed {
				d.lose(name, rec, fold.Answer(), &q)
			}
			return nil, err
		}
		billed = billed || delta.Kind != model.Started
		fold.Add(delta)
	}
	answer := fold.Answer()
	answer.Usage = run.Spend(&answer, run.RequestTokens(&q))
	out := &Reply{Model: name, Usage: answer.Usage, Cost: rec.Prices.Cost(answer.Usage)}
	for _, it := range answer.Items {
		if it.Message != nil {
			for _, p := range it.Message.Parts {
				out.Text += p.Text
			}
		}
	}
	d.used(out.Model, &answer.Usage)
	return out, nil
}

// lose records the cost of a Check.Ask answer that broke off.
func (d *drive) lose(name string, rec *model.Record, got model.Answer, q *model.Request) {
	got.Stop = ""
	u := run.Spend(&got, run.RequestTokens(q))
	d.used(name, &u)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = append(d.lost, run.Lost{Model: name, Usage: u, Cost: rec.Prices.Cost(u)})
}

func (d *drive) takeLost() []run.Lost {
	d.mu.Lock()
	defer d.mu.Unlock()
	lost := d.lost
	d.lost = nil
	return lost
}
