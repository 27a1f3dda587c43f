// Package loop drives runs: it asks models, has handlers do tool calls, records each
// step in the run's log and publishes what readers follow.
//
// A run is driven by one process at a time, under a lease. A run that waits, for a
// provider's retry, is a row in the store and no goroutine.
package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Models are the models that runs may ask.
type Models interface {
	// Use returns a model by the name that a tenant's requests give it, and what is
	// known of it. The error is the caller's to read.
	Use(ctx context.Context, t tenant.ID, name string) (model.Model, *model.Record, error)
}

// Events are what readers of runs follow.
type Events interface {
	run.Publisher
	run.Reader
}

// Handler does the calls of some tools.
type Handler interface {
	// Show returns what readers see of a call while it runs; nil for nothing. An error is
	// for the model: the call cannot be made.
	Show(c *Call) (*run.Item, error)
	// Do makes a call, or returns the outcome of one that another process began. An
	// error is the server's, not the tool's: the run is tried again later. When ctx ends,
	// what was started has ended before Do returns, unless ErrLeft is in its cause.
	Do(ctx context.Context, c *Call) (*Outcome, error)
}

// Claimer is a Handler some of whose calls claim, before they have an effect: one that did
// not is not Begun for the process that goes on with the run.
type Claimer interface {
	// Claims reports whether a call claims. Show has returned its Item.
	Claims(c *Call) bool
}

// Opener is a Claimer some of whose calls open threads of their session.
type Opener interface {
	Claimer
	// Opens returns the thread that a call opens when it claims; nil for none. Show has
	// returned its Item.
	Opens(c *Call) *run.Opens
}

// Ender is a Handler that ends calls of processes that are gone.
type Ender interface {
	// End ends what another process began, when the run has ended without it, and begins
	// nothing. The outcome has what the call is charged for; nil if it was not made.
	End(ctx context.Context, c *Call) (*Outcome, error)
}

// Call is a tool call of a run. The run's ID and Number name it for good.
type Call struct {
	Run    *run.Run
	Number int // of the call in the run, from 1
	Call   model.Call
	Item   *run.Item // what Show returned
	// Request is what the run was asked, and Tool what is called; neither is to be changed.
	Request *run.Request
	Tool    *run.Tool
	// Begun says that a process that is gone may have made the call.
	Begun bool
	// Claim records that the call is about to have its effect. It is there for Do of a
	// Claimer's calls.
	Claim func(ctx context.Context) error
	// Used says that a call of the handler's tools went well before, in the run or in the
	// conversation before it. It is set for Do.
	Used bool
	// Left is what calls that this call makes may cost together; nil for no bound. It is set
	// for Do.
	Left *model.Money
	// Tokens is what the session's budget leaves; nil for no bound. It is set for Do.
	Tokens *int64
	// Share is how many calls of the handler are made side by side with this one, itself among
	// them.
	Share int
	// First says that the answer which asked for the call has none of the handler before it.
	First bool
	// Moves counts those of the conversation in the run so far.
	Moves int
	// Conversation is that of the run, up to the answer which asked for the call.
	Conversation []model.Item
	// Resumes has the call go on with work that it handed on, and that waited for the client; nil for
	// one that begins.
	Resumes *run.Resumed
	// Ask asks the run's model something that is no part of the conversation, as Check.Ask does.
	Ask func(ctx context.Context, name string, q model.Request) (*Reply, error)
	// Files are those of the run's input that the tools have not been given yet, by name.
	Files map[string][]byte
}

// Outcome is what a tool call came to.
type Outcome struct {
	Result model.Result
	Item   *run.Item
	More   []run.Item
	// Windows and Ends are as in run.Called.
	Windows int
	Ends    *run.End
	// Notes are as in run.Called.
	Notes map[run.ToldKind]run.Note
	// Refused calls were not made, because of what the caller may do: they are not charged.
	Refused bool
	// Uses are calls of other tools that the call made, by what they are counted as.
	Uses map[string]int
	// Below, Held, Left and Moves are as in run.Called.
	Below run.Spent
	Held  []run.Held
	Left  *run.ThreadEnd
	Moves *run.Move
}

// Prices are what runs are charged beside their models' tokens.
type Prices struct {
	Tools  map[string]model.Money // for a call, by what it is counted as
	Window model.Money            // for a window of the sandbox
}

// ErrUnknown says that the outcome of a call that another process began cannot be found.
var ErrUnknown = errors.New("the outcome of the call is unknown")

// Config of a Loop.
type Config struct {
	Store    run.Store
	Models   Models
	Handlers map[string]Handler // by run.Tool.Handler
	Events   Events
	News     run.News // nil where no other process drives runs of the store
	// Conversation returns what was said in a session before a turn. It may be nil where no
	// run is a turn.
	Conversation func(ctx context.Context, t *run.Turn) ([]model.Item, error)
	Log          *slog.Logger
	Prices       Prices
	// Budget holds tenants to their budgets in money; nil for no budgets.
	Budget *usage.Budget
	// Spent is what was charged to a token, by its id, and the most that may be; 0 is no bound.
	// nil where no run is begun by a token.
	Spent func(ctx context.Context, token string) (used, most model.Money, err error)
	// Room refuses tool calls for which the disk, or what the caller's tenant may keep, has
	// no room left; nil for no such bounds.
	Room func(ctx context.Context, r *run.Run) error
	// Check has skills say what they have to before a run ends as its model wants it to; nil for
	// no skills. It returns nil to let the run end.
	Check func(ctx context.Context, c *Check) (*run.Checked, error)
	// Grade evaluates the outcome of a run, whose check has been made. It may be nil where no run
	// has an outcome.
	Grade func(ctx context.Context, c *Check) (*run.Checked, error)
	// Ended hears of the end of each run that this process drives; nil for none.
	Ended func(r *run.Run)
	// Used hears of the tokens of each answer; nil for none.
	Used func(r *run.Run, model string, tokens int64)
	// Forget removes what handlers keep for a run that is gone. What it fails to remove is
	// removed later, by what removes old executions. It may be nil.
	Forget func(ctx context.Context, id run.ID) error
	// LetGo removes what handlers keep for the conversation of a run that has ended and is
	// not kept, so that no other goes on with it. It may be nil.
	LetGo func(ctx context.Context, r *run.Run) error
	// Holder names the process among those that share the store, the same after a restart.
	Holder string
	// MaxRuns bounds the runs that this process drives; 0 for 10,000.
	MaxRuns int
}

// Loop drives runs. Its methods may be called at the same time.
type Loop struct {
	cfg    Config
	tokens *usage.Budget // of tokens; nil without Config.Spent
	wake   chan struct{}
	ctx    context.Context
	stop   context.CancelCauseFunc
	wg     sync.WaitGroup

	renewed atomic.Pointer[time.Time] // before the leases were renewed last

	mu      sync.Mutex
	driving map[run.ID]*drive
}

// Causes of the end of a drive's context.
var (
	errCancelled = errors.New("the run was cancelled")
	errTooLong   = errors.New("the run took too long")
	errLost      = fmt.Errorf("%w: its lease is lost", ErrLeft)
	errStopping  = fmt.Errorf("%w: the server is shutting down", ErrLeft)
)

// ErrLeft is in the cause of the end of a call's context when another process goes on with
// the run. What the call started goes on: that process asks for its outcome.
var ErrLeft = errors.New("this process no longer runs this run")

const (
	renewEvery  = run.LeaseTime / 3
	cancelEvery = 500 * time.Millisecond
	// pollEvery finds runs of processes that are gone.
	pollEvery = 5 * time.Second
	retryPoll = time.Second // after a failure of the store
)

// New returns a Loop, which drives nothing before Start.
func New(cfg Config) *Loop {
	if cfg.MaxRuns == 0 {
		cfg.MaxRuns = 10_000
	}
	l := &Loop{cfg: cfg, tokens: newTokenBudget(cfg.Spent), wake: make(chan struct{}, 1), driving: map[run.ID]*drive{}}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	return l
}

// Start takes on the runs that an earlier process of this name left, and what is due
// from then on.
func (l *Loop) Start(ctx context.Context) error {
	if err := l.cfg.Store.Abandon(ctx, l.cfg.Holder); err != nil {
		return err
	}
	l.wg.Go(l.claim)
	l.wg.Go(l.renew)
	return nil
}

// Stop gives back all runs that are under way, and returns when they are.
func (l *Loop) Stop() {
	l.stop(errStopping)
	l.wg.Wait()
}

// Begin records a run and drives it. done is closed when this process drives it no
// more: its state is in the store.
//
// It is refused when limit runs of the tenant have not ended, with cause in the error's
// chain; 0 is no limit.
func (l *Loop) Begin(ctx context.Context, r *run.Run, q *run.Request, limit int, cause error) (done <-chan struct{}, err error) {
	if l.ctx.Err() != nil {
		return nil, fault.New(fault.Unavailable, "the server is shutting down; try again")
	}
	d := newDrive(l, *r)
	if err := d.allot(ctx, q); err != nil {
		return nil, err
	}
	if err := d.begin(ctx, q, limit, cause); err != nil {
		return nil, err
	}
	if !l.start(d) {
		return nil, fault.New(fault.Unavailable, "the server is shutting down; try again")
	}
	return d.done, nil
}

// Cancel ends a run, wherever it is driven. The process that drives it hears of it
// within cancelEvery, at once if it is this one.
func (l *Loop) Cancel(ctx context.Context, t tenant.ID, id run.ID) error {
	if err := l.cfg.Store.Cancel(ctx, t, id); err != nil {
		return err
	}
	l.Cancelled(id)
	return nil
}

// Cancelled says that the store has been asked to cancel a run.
func (l *Loop) Cancelled(id run.ID) {
	l.mu.Lock()
	d := l.driving[id]
	l.mu.Unlock()
	if d != nil {
		d.cancel(errCancelled)
		return
	}
	l.Wake()
}

// Delete removes a run that has ended, and its events. With the last run of a conversation
// its sandbox goes, too.
func (l *Loop) Delete(ctx context.Context, r *run.Run) error {
	if err := l.cfg.Store.Delete(ctx, r.Tenant, r.ID); err != nil {
		return err
	}
	l.forget(ctx, r.ID)
	if r.Session == "" && r.Keep > 0 { // runs that are not kept lose it when they end
		used, err := l.cfg.Store.HasSandbox(ctx, r.Tenant, r.Sandbox)
		if err != nil {
			l.cfg.Log.WarnContext(ctx, "cannot delete the sandbox of a deleted run; it stays until its idle timeout", "run", r.ID, "error", err)
		} else if !used {
			l.letGo(r)
		}
	}
	return l.cfg.Events.Delete(ctx, r.ID)
}

func (l *Loop) forget(ctx context.Context, id run.ID) {
	if l.cfg.Forget == nil {
		return
	}
	if err := l.cfg.Forget(ctx, id); err != nil {
		l.cfg.Log.WarnContext(ctx, "cannot clean up after a run yet; retrying later", "run", id, "error", err)
	}
}

// expireBatch bounds the runs that are removed in one transaction.
const expireBatch = 200

// Expire removes the runs that are kept no longer, and their events.
func (l *Loop) Expire(ctx context.Context) error {
	for {
		gone, err := l.cfg.Store.Expire(ctx, expireBatch)
		if err != nil {
			return err
		}
		for _, id := range gone {
			l.forget(ctx, id)
			if err := l.cfg.Events.Delete(ctx, id); err != nil {
				return err
			}
		}
		if len(gone) < expireBatch {
			return nil
		}
	}
}

// Wake looks for runs that are due now.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// letGoTime bounds how long what a run has left behind is being removed.
const letGoTime = time.Minute

// letGo removes what handlers keep for a run that has ended, in the background.
func (l *Loop) letGo(r *run.Run) {
	if l.cfg.LetGo == nil {
		return
	}
	l.wg.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, letGoTime)
		defer cancel()
		if err := l.cfg.LetGo(ctx, r); err != nil {
			l.cfg.Log.WarnContext(ctx, "cannot clean up after a run; its data stays until it expires", "run", r.ID, "error", err)
		}
	})
}

// start drives a run in the background.
func (l *Loop) start(d *drive) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.driving[d.run.ID] = d
	l.wg.Go(func() {
		d.drive()
		l.mu.Lock()
		if l.driving[d.run.ID] == d { // it may have been taken on again
			delete(l.driving, d.run.ID)
		}
		l.mu.Unlock()
		close(d.done)
	})
	return true
}

// room is how many more runs this process may drive.
func (l *Loop) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg.MaxRuns - len(l.driving)
}

// claim takes on runs that are due, until the loop stops.
func (l *Loop) claim() {
	for l.ctx.Err() == nil {
		wait := pollEvery
		switch next, err := l.claimDue(); {
		case err != nil && l.ctx.Err() == nil:
			l.cfg.Log.Warn("cannot look for due runs", "error", err)
			wait = retryPoll
		case !next.IsZero():
			wait = min(wait, max(0, time.Until(next)))
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.ctx.Done():
		}
		timer.Stop()
	}
}

// claimBatch bounds the runs that are taken on together, so that several processes get
// some each.
const claimBatch = 32

func (l *Loop) claimDue() (next time.Time, err error) {
	for {
		limit := min(claimBatch, l.room())
		if limit <= 0 {
			return time.Time{}, nil
		}
		due, next, err := l.cfg.Store.Claim(l.ctx, l.cfg.Holder, limit)
		if err != nil {
			return time.Time{}, err
		}
		for i := range due {
			d := newDrive(l, due[i].Run)
			d.lease = due[i].Lease
			if due[i].Cancelled {
				d.cancel(errCancelled)
			}
			l.start(d)
		}
		if len(due) < limit {
			return next, nil
		}
	}
}

// renew keeps the leases of the runs that this process drives, and looks which of them
// are to be cancelled. Where that fails for long, they are given up before another process
// may take them on.
func (l *Loop) renew() {
	tick := time.NewTicker(cancelEvery)
	defer tick.Stop()
	l.hold(time.Now())
	for {
		select {
		case <-tick.C:
		case <-l.ctx.Done():
			return
		}
		l.mu.Lock()
		idle := len(l.driving) == 0
		l.mu.Unlock()
		began := time.Now()
		if idle {
			l.hold(began)
			continue
		}
		if began.Sub(*l.renewed.Load()) >= renewEvery {
			if err := l.within(func(ctx context.Context) error { return l.cfg.Store.Renew(ctx, l.cfg.Holder) }); err == nil {
				l.hold(began)
			}
			l.lose()
		}
		_ = l.within(func(ctx context.Context) error {
			cancelled, err := l.cfg.Store.Cancelled(ctx, l.cfg.Holder)
			for _, id := range cancelled {
				l.Cancelled(id)
			}
			return err
		})
	}
}

// within asks the store something, and not for long.
func (l *Loop) within(ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(l.ctx, renewEvery)
	defer cancel()
	err := ask(ctx)
	if err != nil && l.ctx.Err() == nil {
		l.cfg.Log.Warn("cannot renew the leases of this process's runs", "error", err)
	}
	return err
}

// lose gives up the runs whose leases are about to end.
func (l *Loop) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.driving {
		if !d.holds() {
			d.cancel(errLost)
		}
	}
}

// hold notes when leases were renewed.
func (l *Loop) hold(at time.Time) { l.renewed.Store(&at) }

// holds reports whether the run's lease lasts for a while. A process that was stopped and
// goes on finds out before it says anything.
func (d *drive) holds() bool {
	const most = run.LeaseTime - renewEvery
	renewed := d.loop.renewed.Load()
	return time.Since(d.since) <= most || renewed != nil && time.Since(*renewed) <= most
}
