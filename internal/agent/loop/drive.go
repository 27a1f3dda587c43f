package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// recordTime bounds what is recorded after the context of a run has ended.
const recordTime = 10 * time.Second

// maxLeases is how often a run is taken on before it is given up: each failure of the
// server's own costs one, and each wait for a provider.
const maxLeases = 1000

// drive is one run while this process drives it. Its fields belong to the goroutine of
// drive.
type drive struct {
	loop   *Loop
	run    run.Run
	lease  run.Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
	since  time.Time // before the lease was given
	done   chan struct{}

	loaded    bool // state and published match the log and the events
	state     *run.State
	published *run.Published
	entries   []run.Entry // applied to state and not recorded yet
	left      run.Trace   // by entries
	held      holds
	answering *answering   // to the last Asked entry of this process; nil before it is asked
	mine      map[int]bool // numbers of the calls that this process has made or collected

	mu   sync.Mutex
	cut  map[int]*Outcome // guarded by mu: of calls that were ended with the run, by their number
	lost []run.Lost       // guarded by mu: to go on record with the next entry
}

func newDrive(l *Loop, r run.Run) *drive {
	d := &drive{loop: l, run: r, since: time.Now(), done: make(chan struct{}), state: run.NewState(r.ID), published: &run.Published{}}
	d.ctx, d.cancel = context.WithCancelCause(l.ctx)
	return d
}

// begin records the run with its first entries.
func (d *drive) begin(ctx context.Context, q *run.Request, limit int, cause error) error {
	if err := d.loop.recall(ctx, d.state, q); err != nil {
		return err
	}
	if q.Turn != nil {
		q.Turn.Items = len(d.state.Earlier)
	}
	if err := d.add(run.Entry{Begun: q}); err != nil {
		return err
	}
	// The first question is on record with the run: a process that takes it over knows
	// that it may have been asked.
	if ask := d.next().Ask; ask != nil {
		if err := d.add(run.Entry{Asked: ask}); err != nil {
			return err
		}
	}
	d.run.Status, d.run.CreatedAt = run.InProgress, d.state.Began
	lease, err := d.loop.cfg.Store.Create(ctx, &d.run, d.entries, d.loop.cfg.Holder, limit, cause, d.left)
	d.lease, d.entries, d.left = lease, nil, run.Trace{}
	return err
}

// add applies an entry, to be recorded by the next flush.
func (d *drive) add(e run.Entry) error {
	e.Seq, e.At = d.state.Seq+1, time.Now()
	e.Lost = d.takeLost()
	left, err := d.state.Record(&d.run, &e)
	if err != nil {
		return err
	}
	d.left.Add(left)
	d.entries = append(d.entries, e)
	return nil
}

// flush records what was added, and then publishes it.
func (d *drive) flush(ctx context.Context) error {
	if err := d.record(ctx); err != nil {
		return err
	}
	return d.publish(ctx, d.published.Missing(d.state))
}

func (d *drive) record(ctx context.Context) error {
	if len(d.entries) == 0 {
		return nil
	}
	if err := d.loop.cfg.Store.Append(ctx, d.run.ID, d.lease, d.entries, d.left); err != nil {
		return err
	}
	d.entries, d.left = nil, run.Trace{}
	d.held.recorded()
	return nil
}

// publish tells readers of events.
func (d *drive) publish(ctx context.Context, events []run.Event) error {
	if !d.state.Request.Publish || len(events) == 0 {
		return nil
	}
	if !d.holds() {
		d.cancel(errLost)
		return errLost
	}
	if ctx.Err() != nil { // before they count as published
		return context.Cause(ctx)
	}
	for i := range events {
		if !d.published.Apply(&events[i]) {
			return fmt.Errorf("run %s: event %d cannot follow those before it", d.run.ID, i)
		}
	}
	return d.loop.cfg.Events.Publish(context.WithoutCancel(ctx), &d.run, events)
}

func (d *drive) specs(name string) model.Spec {
	_, rec, err := d.loop.cfg.Models.Use(d.ctx, d.run.Tenant, name)
	if err != nil {
		return model.Spec{} // asking says what is wrong
	}
	return rec.Spec
}

func (d *drive) next() run.Next {
	now := time.Now()
	if errors.Is(context.Cause(d.ctx), errTooLong) {
		now = d.state.Began.Add(d.state.Request.Limits.Duration) // whatever the clocks say
	}
	return d.state.Next(now, run.Known{Spec: d.specs, Price: d.price, Window: d.loop.cfg.Prices.Window})
}

// drive goes on with the run until it has ended, waits, or is another process's.
func (d *drive) drive() {
	defer d.cancel(nil)
	defer d.held.release()
	fresh := d.state.Seq > 0
	err := error(nil)
	if !fresh {
		err = d.load()
	}
	d.loaded = err == nil
	if err == nil {
		err = d.steps(fresh)
	}
	switch {
	case err == nil:
	case errors.Is(err, run.ErrLeaseLost): // also where what failed was on record after all, and the lease is still there
		ctx, cancel := d.recording()
		defer cancel()
		_ = d.loop.cfg.Store.Release(ctx, d.run.ID, d.lease, time.Now())
	default:
		d.giveUp(err)
	}
}

// load reads the log, and what readers were told. A run that is to be cancelled needs
// both too.
func (d *drive) load() error {
	ctx := d.loop.ctx
	entries, err := d.loop.cfg.Store.Log(ctx, d.run.ID)
	if err != nil {
		return err
	}
	if err := d.loop.replay(ctx, d.state, entries); err != nil {
		return err
	}
	if d.state.Request != nil && d.state.Request.Publish {
		published, err := d.loop.cfg.Events.Published(ctx, &d.run)
		switch {
		case errors.Is(err, run.ErrNoEvents): // the stream dropped them: readers get the rest from the record
			d.state.Request.Publish = false
		case err != nil:
			return err
		default:
			d.published = published
		}
	}
	return nil
}

// steps takes one step after the other. asked says that the last entry is an Asked of
// this process, whose model was not asked yet.
func (d *drive) steps(asked bool) error {
	if limit := d.state.Request.Limits.Duration; limit > 0 {
		var cancel context.CancelFunc
		d.ctx, cancel = context.WithDeadlineCause(d.ctx, d.state.Began.Add(limit), errTooLong)
		defer cancel()
	}
	late := false // a step was cut short as the run took too long
	for {
		if d.ctx.Err() != nil && !errors.Is(context.Cause(d.ctx), errTooLong) {
			return context.Cause(d.ctx)
		}
		next := d.next()
		var err error
		switch {
		case next.Lost && asked:
			err = d.ask()
		case next.Lost && late:
			err = d.fail(d.tooLong())
		case next.Lost:
			err = d.fail(d.state.Interrupted(time.Now(), d.published.Shown(d.state)))
		case next.Ask != nil:
			var over *run.End
			if over, err = d.overBudget(); err != nil {
				break
			}
			if over != nil {
				err = d.end(over)
				break
			}
			d.answering = nil
			if err = d.add(run.Entry{Asked: next.Ask}); err == nil {
				err = d.ask()
			}
		case next.Compact != nil:
			err = d.compact(next.Compact)
		case len(next.Calls) > 0:
			err = d.calls(next.Calls)
		case next.Check && (d.loop.cfg.Check != nil || d.state.Progress.Open):
			err = d.check(next)
		case next.Evaluate != nil:
			err = d.add(run.Entry{Evaluating: next.Evaluate})
		case next.End != nil:
			err = d.end(next.End)
		case !next.Wait.IsZero():
			return d.wait(next.Wait)
		default:
			return nil
		}
		if !late && d.state.End == nil && errors.Is(err, errTooLong) && !errors.Is(err, errLost) && !errors.Is(err, run.ErrLeaseLost) {
			late, err = true, nil // the next step ends the run
		}
		if err != nil {
			return err
		}
		asked = false
	}
}

// tooLong is the failure of a model that was asked when the run had taken too long.
func (d *drive) tooLong() *run.ModelFailed {
	return &run.ModelFailed{Message: errTooLong.Error(), Shown: d.published.Shown(d.state)}
}

// recording is a context to record in after that of the run has ended.
func (d *drive) recording() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(d.ctx), recordTime)
}

func (d *drive) end(e *run.End) error {
	if err := d.endOthers(); err != nil {
		return err
	}
	if err := d.endPaused(e); err != nil {
		return err
	}
	d.settle(e)
	if err := d.add(run.Entry{Ended: e}); err != nil {
		return err
	}
	ctx, cancel := d.recording()
	defer cancel()
	if err := d.flush(ctx); err != nil {
		return err
	}
	d.loop.cfg.Events.Close(d.run.ID)
	if d.run.Keep == 0 && d.run.Sandbox == run.SandboxOf(d.run.ID) {
		d.loop.letGo(&d.run)
	}
	if d.loop.cfg.Ended != nil {
		d.loop.cfg.Ended(&d.run)
	}
	return nil
}

// endCancelled ends the run with what readers have seen of the answer that was under way.
func (d *drive) endCancelled() error {
	if d.next().Lost {
		if err := d.fail(&run.ModelFailed{Message: errCancelled.Error(), Shown: d.published.Shown(d.state)}); err != nil {
			return err
		}
	}
	return d.end(&run.End{Status: run.Cancelled})
}

// wait gives the run back until a time.
func (d *drive) wait(until time.Time) error {
	ctx, cancel := d.recording()
	defer cancel()
	if err := d.flush(ctx); err != nil {
		return err
	}
	if err := d.loop.cfg.Store.Release(ctx, d.run.ID, d.lease, until); err != nil {
		return err
	}
	time.AfterFunc(time.Until(until), d.loop.Wake)
	return nil
}

// stopped adds what an answer cost that the end of this process cuts: no other process knows.
func (d *drive) stopped() error {
	if d.state.Seq == 0 || !d.next().Lost || d.answering == nil || !d.answering.begun {
		return nil
	}
	return d.fail(d.state.Interrupted(time.Now(), d.published.Shown(d.state)))
}

// giveUp ends a drive that cannot go on.
func (d *drive) giveUp(why error) {
	ctx, cancel := d.recording()
	defer cancel()
	cause := context.Cause(d.ctx)
	switch {
	case errors.Is(cause, errLost):
		return
	case errors.Is(cause, errCancelled) && d.loaded:
		if err := d.endCancelled(); err != nil && !errors.Is(err, run.ErrLeaseLost) {
			d.loop.cfg.Log.Error("cannot record a cancelled run; retrying", "run", d.run.ID, "error", err)
			_ = d.loop.cfg.Store.Release(ctx, d.run.ID, d.lease, time.Now().Add(renewEvery))
		}
		return
	case errors.Is(cause, errStopping):
		if err := d.stopped(); err != nil {
			return
		}
		if err := d.record(ctx); err != nil { // what was done must not be done again
			return
		}
		_ = d.loop.cfg.Store.Release(ctx, d.run.ID, d.lease, time.Now()) // else its lease ends by itself
		return
	}
	d.loop.cfg.Log.Error("a run cannot continue", "run", d.run.ID, "error", why, "lease", d.lease.Epoch)
	if d.lease.Epoch >= maxLeases {
		if err := d.end(&run.End{Status: run.Failed, Reason: run.ServerError, Message: "the server could not continue with the run"}); err == nil {
			return
		}
	}
	_ = d.loop.cfg.Store.Release(ctx, d.run.ID, d.lease, time.Now().Add(renewEvery))
}
