package loop

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// outcome is a call that has ended.
type outcome struct {
	called *run.Called
	err    error
}

// calls makes tool calls side by side, those of a serial handler one after the other in
// the model's order, and adds each outcome as it comes.
func (d *drive) calls(pending []run.Pending) error {
	pending, over, err := d.reserve(pending)
	if err != nil {
		return err
	}
	if over != nil {
		return d.end(over)
	}
	purse := d.purse(pending)
	full, err := d.full(pending)
	if err != nil {
		return err
	}
	sets := groups(pending)
	claimed := make(chan claiming)
	makes := make([]*Call, len(pending))
	refused := make([]error, len(pending))
	for i, p := range pending {
		makes[i] = &Call{Run: &d.run, Number: p.Number, Call: *p.Call, Begun: p.Begun, Request: d.state.Request, Tool: p.Tool, Resumes: p.Resumes}
		d.describe(makes[i], sets, pending)
		if d.state.Request.PlaceFiles && p.Tool != nil && d.state.Fresh(p.Tool.Handler, p.Number) {
			makes[i].Files = d.state.Request.Files()
		}
		makes[i].Used = p.Tool != nil && d.state.Used(p.Tool.Handler)
		makes[i].Item, refused[i] = d.show(&p, makes[i])
		if refused[i] == nil && !p.Begun {
			refused[i] = full
		}
		claims := refused[i] == nil && d.claims(makes[i])
		if !p.Begun {
			if err := d.add(run.Entry{Calling: &run.Calling{Call: p.Call.ID, Item: makes[i].Item, Claims: claims, Opens: d.opens(makes[i], claims)}}); err != nil {
				return err
			}
		}
		if p.Unclaimed || !p.Begun && claims {
			makes[i].Begun = false
			makes[i].Claim = func(ctx context.Context) error { return claim(ctx, claimed, &p) }
		}
		d.made(p.Number)
	}
	if err := d.flush(d.ctx); err != nil {
		for _, p := range pending {
			if p.Begun {
				delete(d.mine, p.Number) // it is not asked for
			} else {
				d.notMade(p.Number)
			}
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(d.ctx)
	outcomes := make(chan outcome, len(pending))
	var wg sync.WaitGroup
	for _, group := range sets {
		wg.Go(func() {
			for at, i := range group {
				makes[i].Left, makes[i].Tokens = purse.left()
				called, err := d.call(ctx, &pending[i], makes[i], refused[i])
				purse.pay(called, pending[i].Cost)
				outcomes <- outcome{called, err}
				if err == nil {
					continue
				}
				for _, next := range group[at+1:] {
					if !pending[next].Begun {
						d.notMade(pending[next].Number)
					}
				}
				return
			}
		})
	}
	err = d.gather(len(pending), outcomes, claimed)
	leaves := err != nil && d.ctx.Err() == nil
	cancel(errLost) // of calls that are under way after an error: they are asked for again
	wg.Wait()
	if leaves {
		for _, p := range pending {
			delete(d.mine, p.Number) // they may go on
		}
	}
	if d.ctx.Err() != nil {
		err = errors.Join(err, d.rest(outcomes))
	}
	return err
}

// gather adds the outcomes of calls as they come.
func (d *drive) gather(calls int, outcomes <-chan outcome, claimed <-chan claiming) error {
	for left := calls; left > 0; left-- {
		o, err := d.outcome(outcomes, claimed)
		if err != nil {
			return err
		}
		if o.err != nil {
			if d.ctx.Err() != nil {
				return d.interrupted()
			}
			return o.err
		}
		if err := d.ended(o.called); err != nil {
			return err
		}
		// The last one is recorded with what comes next.
		if left > 1 {
			if err := d.flush(d.ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// rest adds the outcomes of calls that ended well beside one that was cut short with the run.
func (d *drive) rest(outcomes <-chan outcome) error {
	for {
		select {
		case o := <-outcomes:
			if o.err != nil {
				continue
			}
			if err := d.ended(o.called); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (d *drive) ended(c *run.Called) error {
	if err := d.add(run.Entry{Called: c}); err != nil {
		return err
	}
	d.held.ended(c.Call)
	return nil
}

// fullError is why there is no room for a call. The run ends with it.
type fullError struct{ why *fault.Error }

func (e *fullError) Error() string { return e.why.Msg }

func (e *fullError) end() *run.End {
	reason := run.ServerError
	if e.why.Kind == fault.Exhausted {
		reason = run.QuotaExceeded
	}
	return &run.End{Status: run.Failed, Reason: reason, Message: e.why.Msg}
}

// full is why calls that have not begun may not begin: a *fullError, or nil. A run begins
// while there is room, and what its calls write may fill it.
func (d *drive) full(pending []run.Pending) (full, err error) {
	if d.loop.cfg.Room == nil || !slices.ContainsFunc(pending, func(p run.Pending) bool { return !p.Begun }) {
		return nil, nil
	}
	err = d.loop.cfg.Room(d.ctx, &d.run)
	if f, ok := errors.AsType[*fault.Error](err); ok && (f.Kind == fault.Exhausted || f.Kind == fault.Unavailable) {
		return &fullError{f}, nil
	}
	if err != nil && d.ctx.Err() != nil {
		return nil, d.interrupted()
	}
	return nil, err
}

// claiming is a call that waits for its claim to be on record.
type claiming struct {
	call     *run.Pending
	recorded chan<- error
}

// claim has the drive record a claim, and waits for that.
func claim(ctx context.Context, to chan<- claiming, call *run.Pending) error {
	recorded := make(chan error, 1)
	select {
	case to <- claiming{call, recorded}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-recorded:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// outcome is the next call that has ended. Claims that come before it are recorded.
func (d *drive) outcome(outcomes <-chan outcome, claimed <-chan claiming) (outcome, error) {
	for {
		select {
		case o := <-outcomes:
			return o, nil
		case c := <-claimed:
			err := d.add(run.Entry{Claimed: &run.Claimed{Call: c.call.Call.ID}})
			if err == nil {
				err = d.flush(d.ctx)
			}
			if err == nil && d.state.Opened(c.call.Call.ID) { // readers look for what was recorded with it
				err = d.publish(d.ctx, []run.Event{{}})
			}
			if err != nil {
				d.notMade(c.call.Number)
			}
			c.recorded <- err
			if err != nil && d.ctx.Err() == nil { // else the call's end says what becomes of it
				return outcome{}, err
			}
		}
	}
}

// claims reports whether a call claims.
func (d *drive) claims(c *Call) bool {
	if c.Tool == nil {
		return false
	}
	h, ok := d.loop.cfg.Handlers[c.Tool.Handler].(Claimer)
	return ok && h.Claims(c)
}

// opens is the thread that a call opens which claims.
func (d *drive) opens(c *Call, claims bool) *run.Opens {
	if h, ok := d.loop.cfg.Handlers[handlerOf(c.Tool)].(Opener); ok && claims {
		return h.Opens(c)
	}
	return nil
}

// describe says what is around a call.
func (d *drive) describe(c *Call, sets [][]int, pending []run.Pending) {
	of := handlerOf(c.Tool)
	for _, set := range sets {
		if handlerOf(pending[set[0]].Tool) == of {
			c.Share++
		}
	}
	c.First, c.Moves, c.Conversation, c.Ask = d.state.First(of, c.Number), d.state.Moves, slices.Clip(d.state.Conversation), d.reply
}

func handlerOf(t *run.Tool) string {
	if t == nil {
		return ""
	}
	return t.Handler
}

// interrupted returns why the calls were cut short; nil when the run took too long,
// which the next step says.
func (d *drive) interrupted() error {
	if errors.Is(context.Cause(d.ctx), errTooLong) {
		return nil
	}
	return context.Cause(d.ctx)
}

// groups are the indexes of calls that run one after the other. The calls of a handler that
// bounds how many of them run side by side take turns in so many groups.
func groups(pending []run.Pending) [][]int {
	type place struct {
		handler string
		turn    int
	}
	at, seen := map[place]int{}, map[string]int{}
	var all [][]int
	for i, p := range pending {
		most := 0
		if p.Tool != nil {
			if most = p.Tool.Beside; p.Tool.Serial {
				most = 1
			}
		}
		if most == 0 {
			all = append(all, []int{i})
			continue
		}
		of := place{p.Tool.Handler, seen[p.Tool.Handler] % most}
		seen[p.Tool.Handler]++
		g, ok := at[of]
		if !ok {
			g = len(all)
			at[of] = g
			all = append(all, nil)
		}
		all[g] = append(all[g], i)
	}
	return all
}

func (d *drive) handler(p *run.Pending) Handler {
	if p.Tool == nil {
		return nil
	}
	return d.loop.cfg.Handlers[p.Tool.Handler]
}

// show returns what readers see of a call, and why it cannot be made.
func (d *drive) show(p *run.Pending, c *Call) (*run.Item, error) {
	h := d.handler(p)
	if h == nil {
		return nil, errors.New(d.state.Request.NoTool(p.Call.Name))
	}
	return h.Show(c)
}

func (d *drive) call(ctx context.Context, p *run.Pending, c *Call, refused error) (*run.Called, error) {
	if refused != nil {
		called := &run.Called{Call: p.Call.ID, Item: failed(c.Item, refused.Error()), Result: result(p.Call.ID, refused.Error(), true)}
		if f, ok := errors.AsType[*fullError](refused); ok {
			called.Ends = f.end()
		}
		return called, nil
	}
	out, err := d.handler(p).Do(ctx, c)
	if errors.Is(err, ErrUnknown) && c.Begun && p.Tool.Idempotent {
		again := *c
		again.Begun = false
		out, err = d.handler(p).Do(ctx, &again)
	}
	switch {
	case errors.Is(err, ErrUnknown):
		return &run.Called{
			Call: p.Call.ID, Item: failed(c.Item, outcomeUnknown), Unknown: true, Used: d.uses(p, nil), // it may have been made
			Result: result(p.Call.ID, outcomeUnknown, true),
		}, nil
	case err != nil:
		if out != nil {
			d.cutOff(c, out)
		}
		return nil, err
	}
	out.Result.CallID = p.Call.ID
	return &run.Called{Call: p.Call.ID, Result: out.Result, Item: out.Item, More: out.More, Windows: out.Windows, Notes: out.Notes, Ends: out.Ends, Used: d.uses(p, out),
		Below: out.Below, Held: out.Held, Left: out.Left, Moves: out.Moves}, nil
}

const outcomeUnknown = "outcome unknown: the server was interrupted while the call ran, and it is not repeated because it may have had effects"

// failed is an item at the end of a call that was not made, or whose outcome is not known.
func failed(it *run.Item, why string) *run.Item {
	if it == nil {
		return nil
	}
	end := *it
	end.Status = run.ItemFailed
	if end.Use != nil {
		use := *end.Use
		use.Error = why
		end.Use = &use
	}
	return &end
}

func result(call, text string, failed bool) model.Result {
	return model.Result{CallID: call, Parts: []model.Part{{Kind: model.PartText, Text: text}}, Failed: failed}
}
