// Package loop drives runs: it asks models, passes tool calls to handlers, records each
// step in the run's log and publishes events for readers.
//
// One process at a time drives a run, under a lease. A run that waits, such as for a
// provider's retry, occupies a row in the store and no goroutine.
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

// Models finds the models that runs may ask.
type Models interface {
	// Use returns a model and its record, by the name that the tenant's requests use. The
	// caller may see the error.
	Use(ctx context.Context, t tenant.ID, name string) (model.Model, *model.Record, error)
}

// Events publishes the events of runs and delivers them to readers.
type Events interface {
	run.Publisher
	run.Reader
}

// Handler makes the calls of some tools.
type Handler interface {
	// Show returns the item that readers see while a call runs; nil shows nothing. An error
	// means that the call cannot be made, and goes to the model.
	Show(c *Call) (*run.Item, error)
	// Do makes a call, or returns the outcome of one that another process started. An error
	// is a failure of the server, not of the tool: the loop retries the run later. When ctx
	// ends, Do stops its work before it returns, unless ErrLeft is in the cause.
	Do(ctx context.Context, c *Call) (*Outcome, error)
}

// Claimer is a Handler whose calls can claim before they take effect. An unclaimed call had no
// effect, so Begun is false for it when another process takes over the run.
type Claimer interface {
	// Claims reports whether a call claims. Call.Item is set.
	Claims(c *Call) bool
}

// Opener is a Claimer whose calls can open threads in their session.
type Opener interface {
	Claimer
	// Opens returns the thread that a call opens when it claims, or nil. Call.Item is set.
	Opens(c *Call) *run.Opens
}

// Ender is a Handler that ends the calls of processes that are gone.
type Ender interface {
	// End stops a call that another process started, after the run has ended. It starts
	// nothing. The outcome has the charges of the call; nil if the call was not made.
	End(ctx context.Context, c *Call) (*Outcome, error)
}

// Call is a tool call of a run. The run's ID and Number identify it permanently.
type Call struct {
	Run    *run.Run
	Number int // of the call in the run, from 1
	Call   model.Call
	Item   *run.Item // the Item that Show returned
	// Request is the run's request, and Tool the called tool. Handlers must not modify them.
	Request *run.Request
	Tool    *run.Tool
	// Begun reports that an earlier process may already have made the call.
	Begun bool
	// Claim records that the call is about to take effect. It is set for Do, if the call
	// claims.
	Claim func(ctx context.Context) error
	// Used reports that an earlier call of the handler's tools succeeded, in the run or in the
	// conversation before it. It is set for Do.
	Used bool
	// Left limits the total cost of calls that this call makes; nil means no limit. It is set
	// for Do.
	Left *model.Money
	// Tokens is how many tokens the session's budget has left; nil means no limit. It is set for Do.
	Tokens *int64
	// Share is how many calls of the handler run concurrently, including this one.
	Share int
	// First reports that this is the handler's first call in the model's answer.
	First bool
	// Moves counts how often the conversation has moved to another agent in the run so far.
	Moves int
	// Conversation is the run's conversation, up to the answer that asked for the call.
	Conversation []model.Item
	// Resumes is the delegated work, paused for the client, that the call continues; nil for a new
	// call.
	Resumes *run.Resumed
	// Ask asks a model outside the conversation; see Check.Ask.
	Ask func(ctx context.Context, name string, q model.Request) (*Reply, error)
	// Files are the run's input files that the handler's tools have not received yet, by name.
	Files map[string][]byte
}

// Outcome is the result of a tool call.
type Outcome struct {
	Result model.Result
	Item   *run.Item
	More   []run.Item
	// Windows and Ends have the meaning of run.Called.
	Windows int
	Ends    *run.End
	// Notes have the meaning of run.Called.
	Notes map[run.EventKind]run.Note
	// Refused reports that Atoll did not make the call, such as for lack of permission. It is not charged.
	Refused bool
	// Uses counts the calls of other tools that the call made, by their billing name.
	Uses map[string]int
	// Below, Held, Left and Moves have the meaning of run.Called.
	Below run.Spent
	Held  []run.Held
	Left  *run.ThreadEnd
	Moves *run.Move
}

// Prices are the charges of runs other than model tokens.
type Prices struct {
	Tools  map[string]model.Money // per call, by billing name
	Window model.Money            // per window of the sandbox
}

// ErrUnknown reports that the outcome of another process's call cannot be found.
var ErrUnknown = errors.New("the outcome of the call is unknown")

// Config configures a Loop.
type Config struct {
	Store    run.Store
	Models   Models
	Handlers map[string]Handler // by run.Tool.Handler
	Events   Events
	News     run.News // nil if no other process drives runs of the store
	// Conversation returns the conversation of a session before a turn. It may be nil if no
	// run is a turn.
	Conversation func(ctx context.Context, t *run.Turn) ([]model.Item, error)
	Log          *slog.Logger
	Prices       Prices
	// Budget enforces the tenants' money budgets; nil means no budgets.
	Budget *usage.Budget
	// Spent returns the charges and the limit of a token, by its id; a limit of 0 means no
	// limit. It is nil if no token starts runs.
	Spent func(ctx context.Context, token string) (used, most model.Money, err error)
	// Room rejects tool calls when the disk or the tenant's storage quota is full; nil means
	// no such limits.
	Room func(ctx context.Context, r *run.Run) error
	// Check runs the skills' checks when the model wants to end a run; nil means no skills. It
	// returns nil to let the run end.
	Check func(ctx context.Context, c *Check) (*run.Checked, error)
	// Grade evaluates the outcome of a run after its check. It may be nil if no run has an
	// outcome.
	Grade func(ctx context.Context, c *Check) (*run.Checked, error)
	// Ended is called at the end of each run that this process drives. It may be nil.
	Ended func(r *run.Run)
	// Used is called with the tokens of each answer. It may be nil.
	Used func(r *run.Run, model string, tokens int64)
	// Forget deletes the handlers' data of a deleted run. If it fails, the cleanup of old
	// executions deletes the rest later. It may be nil.
	Forget func(ctx context.Context, id run.ID) error
	// LetGo deletes the handlers' data of a conversation that no run can continue, because its
	// last run was deleted or is not kept. It may be nil.
	LetGo func(ctx context.Context, r *run.Run) error
	// Holder names this process in a shared store. It must survive a restart.
	Holder string
	// MaxRuns limits the runs that this process drives; 0 means 10,000.
	MaxRuns int
}

// Loop drives runs. It is safe for concurrent use.
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

// ErrLeft is in the cause of a call's context when another process takes over the run. The
// handler must let started work continue: the other process collects the outcome.
var ErrLeft = errors.New("this process no longer runs this run")

const (
	renewEvery  = run.LeaseTime / 3
	cancelEvery = 500 * time.Millisecond
	// pollEvery finds runs of processes that are gone.
	pollEvery = 5 * time.Second
	retryPoll = time.Second // after a failure of the store
)

// New returns a Loop. It drives no run before Start.
func New(cfg Config) *Loop {
	if cfg.MaxRuns == 0 {
		cfg.MaxRuns = 10_000
	}
	l := &Loop{cfg: cfg, tokens: newTokenBudget(cfg.Spent), wake: make(chan struct{}, 1), driving: map[run.ID]*drive{}}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	return l
}

// Start releases the leases of an earlier process with the same Holder, and drives due runs
// until Stop.
func (l *Loop) Start(ctx context.Context) error {
	if err := l.cfg.Store.Abandon(ctx, l.cfg.Holder); err != nil {
		return err
	}
	l.wg.Go(l.claim)
	l.wg.Go(l.renew)
	return nil
}

// Stop releases all runs that this process drives, and waits until they are released.
func (l *Loop) Stop() {
	l.stop(errStopping)
	l.wg.Wait()
}

// Begin records a run and drives it. The loop closes done when this process stops driving the
// run; its state is then in the store.
//
// Begin fails, with cause in the error chain, if limit runs of the tenant have not ended. A
// limit of 0 means no limit.
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

// Cancel cancels a run in whichever process drives it: immediately in this process, within
// cancelEvery in another.
func (l *Loop) Cancel(ctx context.Context, t tenant.ID, id run.ID) error {
	if err := l.cfg.Store.Cancel(ctx, t, id); err != nil {
		return err
	}
	l.Cancelled(id)
	return nil
}

// Cancelled tells the loop that the store has recorded the cancellation of a run.
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

// Delete deletes an ended run and its events. With the last run of a conversation, it also
// deletes the conversation's sandbox, in the background.
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

// expireBatch limits the runs deleted in one transaction.
const expireBatch = 200

// Expire deletes the runs whose retention has ended, and their events.
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

// Wake makes the loop look for due runs now.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// letGoTime limits how long LetGo may take.
const letGoTime = time.Minute

// letGo deletes the handlers' data of an ended run, in the background.
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

// room returns how many more runs this process may drive.
func (l *Loop) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg.MaxRuns - len(l.driving)
}

// claim drives due runs until the loop stops.
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

// claimBatch limits the runs claimed at once, so that several processes share them.
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

// renew renews the leases of this process's runs and looks for cancelled ones. If renewal
// keeps failing, it gives up the runs before another process may claim them.
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

// within calls ask with a short timeout.
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

// holds reports whether the run's lease is still safely valid. A process that was suspended
// must notice a lost lease before it publishes anything.
func (d *drive) holds() bool {
	const most = run.LeaseTime - renewEvery
	renewed := d.loop.renewed.Load()
	return time.Since(d.since) <= most || renewed != nil && time.Since(*renewed) <= most
}
