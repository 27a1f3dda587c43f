package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Handler is an executor as the bus needs it. Its methods are called
// concurrently, with a context that has the trace context of who asks and ends
// with the Executor's Close.
type Handler interface {
	// Start takes a job on and returns. An error says that nothing was or will be
	// run; with an Unavailable fault other executors are asked.
	Start(ctx context.Context, job execution.Job) error
	// Cancel ends a run at once and returns when its Result is stored.
	Cancel(ctx context.Context, traceID string) error
	// EndTurn ends a turn, as execution.Runner has it.
	EndTurn(turn string)
}

// pause is how long an executor that is full stays away when none of its runs
// ends: what it lacked may have been something else than a place.
const pause = time.Second

// Executor is a Handler on the bus.
type Executor struct {
	b     *Bus
	id    string
	h     Handler
	log   *slog.Logger
	ctx   context.Context // of the handler's calls; ends with Close
	stop  context.CancelFunc
	inbox chan *nats.Msg // of every subscription
	calls sync.WaitGroup // handler calls
	loops sync.WaitGroup // dispatch, housekeep

	mu       sync.Mutex
	own      *nats.Subscription // starts for this executor by name
	group    *nats.Subscription // starts for any executor; nil while full or draining
	draining bool
	back     *time.Timer // ends a pause
	runs     map[string]*taken
	ended    recent // runs, so that a job that is offered again is not run again
	retired  []*nats.Subscription
	turns    map[string]*turn
}

// taken is an execution that this executor has taken on.
type taken struct {
	sub   *nats.Subscription
	ready chan struct{} // closed once the handler has answered
	err   error         // its answer
}

// Serve puts h on the bus; id is the executor's name, the same over restarts,
// unique on the bus. It can be asked as soon as Serve returns.
func (b *Bus) Serve(id string, h Handler) (_ *Executor, err error) {
	if !isToken(id) {
		return nil, fmt.Errorf("bus: executor id %q must be letters, digits, - and _", id)
	}
	x := &Executor{
		b: b, id: id, h: h, log: b.cfg.Log.With("executor", id), inbox: make(chan *nats.Msg, 4096),
		runs: map[string]*taken{}, turns: map[string]*turn{},
	}
	x.ctx, x.stop = context.WithCancel(b.closed)
	x.back = time.AfterFunc(pause, x.join)
	if x.own, err = b.ctl.ChanSubscribe(b.names.exec+id, x.inbox); err != nil {
		x.back.Stop()
		return nil, unavailable(err)
	}
	x.loops.Go(x.dispatch)
	x.loops.Go(x.housekeep)
	x.join()
	if err := b.ctl.Flush(); err != nil {
		x.Close()
		return nil, unavailable(err)
	}
	return x, nil
}

// join makes the executor one of those that any job may go to.
func (x *Executor) join() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.draining || x.group != nil {
		return
	}
	sub, err := x.b.ctl.ChanQueueSubscribe(x.b.names.start, startGroup, x.inbox)
	if err != nil {
		x.back.Reset(pause)
		return
	}
	x.group = sub
}

// leave ends what join began, for a while. What is asked next goes to the
// executors that have room, or is refused when there is none.
func (x *Executor) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unsubscribe(&x.group)
	if !x.draining {
		x.back.Reset(pause)
	}
}

// unsubscribe ends a subscription that may be nil. What is on its way is still
// delivered: else its sender would wait in vain. It fails only on a closed
// connection, where there are no subscriptions.
func (x *Executor) unsubscribe(sub **nats.Subscription) {
	if *sub != nil {
		_ = (*sub).Drain()
		*sub = nil
	}
}

// retire ends the subscription of a run that is over, after a while: who asks
// about the run just then is told that it is gone, and the hot path is spared
// the wait for what is on its way. mu is held.
func (x *Executor) retire(sub *nats.Subscription) {
	if sub != nil {
		x.retired = append(x.retired, sub)
	}
}

// housekeep ends retired subscriptions and keeps leases.
func (x *Executor) housekeep() {
	const every = time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	var old []*nats.Subscription
	for n := 1; ; n++ {
		select {
		case <-x.ctx.Done():
			return
		case <-tick.C:
		}
		for _, sub := range old {
			_ = sub.Unsubscribe()
		}
		x.mu.Lock()
		old, x.retired = x.retired, nil
		x.mu.Unlock()
		if n%int(turnLease/4/every) == 0 {
			x.renew()
		}
	}
}

func (x *Executor) dispatch() {
	for {
		select {
		case <-x.ctx.Done():
			return
		case m := <-x.inbox:
			x.calls.Go(func() { x.serve(m) })
		}
	}
}

// rest answers what has arrived when dispatch has ended.
func (x *Executor) rest() {
	for {
		select {
		case m := <-x.inbox:
			x.serve(m)
		default:
			return
		}
	}
}

// serve answers one message.
func (x *Executor) serve(m *nats.Msg) {
	ctx := x.b.extract(x.ctx, m.Header)
	var a answer
	if traceID, ok := strings.CutPrefix(m.Subject, x.b.names.run); ok {
		a = x.asked(ctx, traceID, m.Data)
	} else if turn, ok := decodeEndTurn(m.Data); ok {
		x.h.EndTurn(turn)
		a = answer{code: answerDone}
	} else {
		a = x.start(ctx, m.Data)
	}
	if a.code == answerFull {
		x.leave() // before the answer, so that the gateway's next try is not ours
	}
	if err := m.Respond(a.encode()); err != nil && x.ctx.Err() == nil {
		x.log.Warn("cannot answer a gateway", "error", err)
	}
}

// refusal turns an error into an answer.
func refusal(err error) answer {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.Wrap(fault.Internal, err, "")
	}
	if f.Kind == fault.Unavailable {
		return answer{code: answerFull, fault: f}
	}
	return answer{code: answerFault, fault: f}
}

// start takes a job on, once however often it is offered.
func (x *Executor) start(ctx context.Context, raw []byte) answer {
	gateway, job, err := decodeStart(raw)
	if err != nil || !isToken(job.TraceID) || !isToken(gateway) {
		return refusal(fault.Wrap(fault.Internal, errMessage, "the job cannot be read by this executor"))
	}
	x.mu.Lock()
	r, known := x.runs[job.TraceID]
	switch {
	case x.ended.has(job.TraceID):
		x.mu.Unlock()
		return answer{code: answerDone}
	case known:
		x.mu.Unlock()
		<-r.ready
		if r.err != nil {
			return refusal(r.err)
		}
		return answer{code: answerDone}
	case x.draining:
		x.mu.Unlock()
		return refusal(execution.ErrStopping)
	}
	r = &taken{ready: make(chan struct{})}
	x.runs[job.TraceID] = r
	x.mu.Unlock()

	a := x.take(ctx, r, gateway, job)
	close(r.ready)
	return a
}

// take hands a new job to the handler.
func (x *Executor) take(ctx context.Context, r *taken, gateway string, job execution.Job) answer {
	forget := func(err error) answer {
		x.mu.Lock()
		r.err = err
		x.retire(r.sub)
		delete(x.runs, job.TraceID)
		x.mu.Unlock()
		x.b.origins.Delete(job.TraceID)
		x.b.tenants.Delete(job.TraceID)
		return refusal(err)
	}
	var t *turn
	if job.Turn != "" {
		var owner string
		var err error
		if t, owner, err = x.enter(ctx, job.Turn); err != nil {
			return forget(err)
		}
		if owner != "" {
			forget(execution.ErrTurnMoved)
			return answer{code: answerMoved, owner: owner}
		}
	}
	sub, err := x.b.ctl.ChanSubscribe(x.b.names.run+job.TraceID, x.inbox)
	if err == nil {
		x.mu.Lock()
		r.sub = sub
		x.mu.Unlock()
		x.b.origins.Store(job.TraceID, gateway)
		x.b.tenants.Store(job.TraceID, job.Tenant)
		err = x.h.Start(ctx, job)
	} else {
		err = unavailable(err)
	}
	if t != nil {
		x.entered(job.Turn, t, err == nil)
	}
	if err != nil {
		return forget(err)
	}
	return answer{code: answerDone}
}

// asked answers a question about a run.
func (x *Executor) asked(ctx context.Context, traceID string, raw []byte) answer {
	if len(raw) != 2 || raw[0] != version {
		return refusal(fault.Wrap(fault.Internal, errMessage, "the question cannot be read by this executor"))
	}
	x.mu.Lock()
	r := x.runs[traceID]
	x.mu.Unlock()
	if r != nil && raw[1] == askAlive {
		return answer{code: answerDone}
	}
	if r != nil {
		<-r.ready
	}
	if r == nil || r.err != nil {
		return refusal(execution.ErrNoExecutor)
	}
	if err := x.h.Cancel(ctx, traceID); err != nil {
		a := refusal(err)
		a.code = answerFault // other executors cannot help
		return a
	}
	return answer{code: answerDone}
}

// Hold makes a run of a tenant reachable that was taken over from an earlier
// process; one that came by Start is.
func (x *Executor) Hold(traceID, tenant string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.runs[traceID] != nil {
		return nil
	}
	sub, err := x.b.ctl.ChanSubscribe(x.b.names.run+traceID, x.inbox)
	if err != nil {
		return unavailable(err)
	}
	r := &taken{sub: sub, ready: make(chan struct{})}
	close(r.ready)
	x.runs[traceID] = r
	x.b.tenants.Store(traceID, tenant)
	return nil
}

// Release ends what Hold or Start began, after Finish; the executor has room
// again.
func (x *Executor) Release(traceID string) {
	x.b.origins.Delete(traceID)
	x.b.tenants.Delete(traceID)
	x.mu.Lock()
	r := x.runs[traceID]
	if r != nil {
		x.retire(r.sub)
		delete(x.runs, traceID)
		x.ended.add(traceID)
	}
	away := x.group == nil
	x.mu.Unlock()
	if away {
		x.join()
	}
}

// Drain takes no more jobs, but answers for those it has.
func (x *Executor) Drain() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.draining = true
	x.back.Stop()
	x.unsubscribe(&x.own)
	x.unsubscribe(&x.group)
	for _, t := range x.turns {
		x.unsubscribe(&t.sub)
	}
}

// Close takes the executor off the bus and waits for the handler's calls.
func (x *Executor) Close() {
	x.Drain()
	x.mu.Lock()
	for _, r := range x.runs {
		x.unsubscribe(&r.sub)
	}
	for _, sub := range x.retired {
		x.unsubscribe(&sub)
	}
	x.mu.Unlock()
	if err := x.b.ctl.FlushTimeout(aliveTimeout); err == nil { // what is on its way is here
		x.calls.Go(x.rest)
	}
	x.stop()
	x.loops.Wait()
	x.calls.Wait()
}
