package loop

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// ask asks the model of the last Asked entry, and adds what came of it.
func (d *drive) ask() error {
	if err := d.flush(d.ctx); err != nil {
		return err
	}
	m, rec, err := d.loop.cfg.Models.Use(d.ctx, d.run.Tenant, d.state.Model)
	if err != nil {
		if d.ctx.Err() != nil {
			return context.Cause(d.ctx)
		}
		if fault.KindOf(err) == fault.Internal {
			return err
		}
		return d.add(run.Entry{Failed: d.state.Retry(time.Now(), model.Errorf(model.Unauthorized, "%s", err), nil)})
	}
	a := &answering{drive: d, prices: rec.Prices, items: map[int]int{}}
	q := d.state.ModelRequest()
	d.state.Request.Place(&q, rec.Can(model.Files))
	if !rec.Can(model.Vision) {
		d.state.Request.HidePictures(&q)
	}
	if q.CacheKey == "" && (len(q.Tools) > 0 || d.state.Request.Before > 0) {
		q.CacheKey = d.run.Sandbox // names the conversation, whose beginning is asked again and again
	}
	if over, err := d.reserveAnswer(&q, rec); err != nil {
		return err
	} else if over != nil {
		return d.end(over)
	}
	defer d.held.ended(answerHold)
	a.asked, d.answering = run.RequestTokens(&q), a
	for delta, err := range m.Generate(d.ctx, q) {
		if err == nil {
			err = a.take(delta)
		}
		if err != nil {
			return a.failed(err)
		}
	}
	answer := a.answer()
	answer.Usage = run.Spend(&answer, a.asked)
	d.used(d.state.Model, &answer.Usage)
	return d.add(run.Entry{Answered: &run.Answered{Answer: answer, Cost: rec.Prices.Cost(answer.Usage)}})
}

// used counts the tokens of an answer.
func (d *drive) used(name string, u *model.Usage) {
	if count := d.loop.cfg.Used; count != nil {
		count(&d.run, name, u.Input+u.Output)
	}
}

// answering is an answer while it comes.
type answering struct {
	*drive
	prices model.Prices
	asked  int64 // tokens of the request, estimated
	begun  bool  // the provider has begun to answer
	billed bool  // it has counted tokens, or a part of the answer came
	fold   model.Fold
	blocks []int       // of the answer, as they began
	items  map[int]int // blocks that readers see, to their index in the output
	// While a call that readers see is not at its end, what comes of other blocks is held:
	// clients read one call after the other, where providers may let them take turns.
	calling bool
	open    int // the block of that call
	held    []model.Delta
}

// answer has its items as they began, which is the order in which readers see them.
func (a *answering) answer() model.Answer {
	answer := a.fold.Answer() // by rising index of the block
	rising := slices.Sorted(slices.Values(a.blocks))
	items := make([]model.Item, len(a.blocks))
	for i, block := range a.blocks {
		at, _ := slices.BinarySearch(rising, block)
		items[i] = answer.Items[at]
	}
	answer.Items = items
	return answer
}

// failed adds why there is no answer.
func (a *answering) failed(err error) error {
	shown := a.published.Shown(a.state)
	now := time.Now()
	var e *model.Error
	switch {
	case errors.Is(context.Cause(a.ctx), errTooLong):
		// Next ends the run.
		return a.fail(a.tooLong())
	case a.ctx.Err() != nil:
		return context.Cause(a.ctx)
	case errors.As(err, &e):
		return a.fail(a.state.Retry(now, e, shown))
	}
	return err
}

// fail adds that the model of the last Asked entry did not answer to the end, with what the part
// of the answer cost that came.
func (d *drive) fail(f *run.ModelFailed) error {
	var got model.Answer
	var prices model.Prices
	var asked int64
	switch a := d.answering; {
	case a != nil && (a.billed || a.begun && d.ctx.Err() != nil): // else the provider failed before it did anything
		got, prices, asked = a.fold.Answer(), a.prices, a.asked
	case a == nil && len(f.Shown) > 0: // to a process that is gone
		got.Items, asked = f.Shown, d.state.AskedTokens()
		ctx, cancel := d.recording()
		defer cancel()
		if _, rec, err := d.loop.cfg.Models.Use(ctx, d.run.Tenant, d.state.Model); err == nil {
			prices = rec.Prices
		}
	default:
		return d.add(run.Entry{Failed: f})
	}
	got.Stop = "" // it was not whole
	f.Usage = run.Spend(&got, asked)
	f.Cost = prices.Cost(f.Usage)
	d.used(d.state.Model, &f.Usage)
	return d.add(run.Entry{Failed: f})
}

// take adds a delta, and tells readers of it.
func (a *answering) take(d model.Delta) error {
	a.fold.Add(d)
	a.begun, a.billed = true, a.billed || d.Kind != model.Started
	switch d.Kind {
	case model.Started, model.Used, model.Stopped:
		return nil
	}
	if !slices.Contains(a.blocks, d.Index) {
		a.blocks = append(a.blocks, d.Index)
	}
	if !a.state.Request.Publish {
		return nil
	}
	if a.calling && d.Index != a.open {
		a.held = append(a.held, d) // a Guard bounds them
		return nil
	}
	if err := a.show(d); err != nil || d.Kind != model.CallEnded || !a.calling {
		return err
	}
	a.calling = false
	return a.release()
}

// release tells readers what was held, up to the next call that is not at its end.
func (a *answering) release() error {
	held := a.held
	a.held = nil
	for i, d := range held {
		if a.calling && d.Index != a.open {
			a.held = append(a.held, d)
			continue
		}
		if err := a.show(d); err != nil {
			return err
		}
		if d.Kind == model.CallEnded && a.calling {
			a.calling = false
			a.held = append(a.held, held[i+1:]...)
			return a.release()
		}
	}
	return nil
}

// show tells readers of a delta.
func (a *answering) show(d model.Delta) error {
	switch d.Kind {
	case model.Said, model.Refused, model.Cited:
		return a.tell(d, &run.Item{Message: &model.Message{Role: model.Assistant}})
	case model.Summarized, model.SummaryEnded, model.Thinking:
		return a.tell(d, &run.Item{Reasoning: &model.Thought{}})
	case model.ThoughtEnded: // it may be all that there is of a thought
		_, err := a.index(d.Index, &run.Item{Reasoning: &model.Thought{}})
		return err
	case model.CallBegun:
		it := a.state.Written(d.Call)
		if it == nil {
			return nil // its handler says what is shown
		}
		a.calling, a.open = true, d.Index
		_, err := a.index(d.Index, it)
		return err
	case model.CallArguments:
		if _, shown := a.items[d.Index]; shown {
			return a.tell(d, nil)
		}
	}
	return nil
}

// index returns the place in the output of a block of the answer, which begins with an
// item.
func (a *answering) index(block int, first *run.Item) (int, error) {
	if i, ok := a.items[block]; ok {
		return i, nil
	}
	i := len(a.state.Output) + len(a.items)
	a.items[block] = i
	first.Status = run.ItemInProgress
	a.state.Name(i, first)
	return i, a.publish(a.ctx, []run.Event{{Began: &run.ItemEvent{Index: i, Item: *first}}})
}

func (a *answering) tell(d model.Delta, first *run.Item) error {
	i, err := a.index(d.Index, first)
	if err != nil {
		return err
	}
	var events []run.Event
	for text := d.Text; ; {
		n := len(text)
		if n > run.MaxDelta {
			for n = run.MaxDelta; !utf8.RuneStart(text[n]) && n > run.MaxDelta-utf8.UTFMax; n-- {
			}
		}
		events = append(events, run.Event{Delta: &run.Delta{Index: i, Kind: d.Kind, Text: text[:n], Citation: d.Citation}})
		if text = text[n:]; text == "" {
			return a.publish(a.ctx, events)
		}
	}
}
