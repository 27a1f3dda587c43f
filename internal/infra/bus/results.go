package bus

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
)

const (
	// anyGateway is the gateway of a run that was taken over: who waits for it is
	// no longer known, so all gateways are told.
	anyGateway = "_"

	gatewaysConsumer = "gateways"
	ackWait          = time.Minute // for a gateway to record a result before another one is given it
	maxUnrecorded    = 1024        // results given out and not yet recorded
	handlers         = 32          // results handled at the same time by one gateway
)

// waits are the waiters of this process.
type waits struct {
	once sync.Once // the subscription
	done sync.WaitGroup

	mu       sync.Mutex
	open     map[string]*Waiter
	recorded recent // executions whose waiter has recorded the result
}

// Waiter waits for one Result.
type Waiter struct {
	b        *Bus
	traceID  string
	result   chan execution.Result
	closed   chan struct{}
	recorded bool // set before closed is closed
}

// Await registers for an execution's Result; call it before Start, and Close
// on the Waiter in any case. An execution has one Waiter at a time.
func (b *Bus) Await(traceID string) *Waiter {
	w := &Waiter{b: b, traceID: traceID, result: make(chan execution.Result, 1), closed: make(chan struct{})}
	b.waits.mu.Lock()
	b.waits.open[traceID] = w
	b.waits.mu.Unlock()
	b.waits.once.Do(func() { b.waits.subscribe(b) })
	return w
}

// Result gives the Result, once, as soon as it is published.
func (w *Waiter) Result() <-chan execution.Result { return w.result }

// Close ends the wait; recorded says that the Result has been concluded, so
// that Results of this process need not handle it again.
func (w *Waiter) Close(recorded bool) {
	w.b.waits.mu.Lock()
	defer w.b.waits.mu.Unlock()
	select {
	case <-w.closed:
		return
	default:
	}
	w.recorded = recorded
	if recorded {
		w.b.waits.recorded.add(w.traceID)
	}
	close(w.closed)
	if w.b.waits.open[w.traceID] == w {
		delete(w.b.waits.open, w.traceID)
	}
}

// get returns the open waiter for an execution, nil if there is none, and
// whether one has recorded its result.
func (ws *waits) get(traceID string) (w *Waiter, recorded bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.open[traceID], ws.recorded.has(traceID)
}

// offer gives the waiter a result unless it has one.
func (w *Waiter) offer(r execution.Result) {
	select {
	case w.result <- r:
	default:
	}
}

// subscribe listens to results as they are published, before they are stored.
// If that fails, as on a connection that is away, recheck finds them.
func (ws *waits) subscribe(b *Bus) {
	for _, gateway := range []string{b.cfg.Name, anyGateway} {
		_, err := b.ctl.Subscribe(b.names.result+gateway+".*", func(m *nats.Msg) {
			w, _ := ws.get(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
			if w == nil {
				return
			}
			if e, err := decodeEntry(m.Data); err == nil && e.end != nil {
				w.offer(*e.end)
			}
		})
		if err != nil {
			b.cfg.Log.Error("cannot subscribe to results", "error", err)
		}
	}
	ws.done.Go(func() {
		tick := time.NewTicker(15 * time.Second) // for what got lost between servers
		defer tick.Stop()
		for {
			select {
			case <-b.closed.Done():
				return
			case <-tick.C:
				ws.recheck(b)
			}
		}
	})
}

// recheck looks up the end of every execution that is waited for: something
// may have been published while this process was not connected.
func (ws *waits) recheck(b *Bus) {
	if b.closed.Err() != nil {
		return
	}
	ws.mu.Lock()
	open := make([]*Waiter, 0, len(ws.open))
	for _, w := range ws.open {
		open = append(open, w)
	}
	ws.mu.Unlock()
	if len(open) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(b.closed, 10*time.Second)
	defer cancel()
	for _, w := range open {
		if r, err := b.log.Result(ctx, w.traceID); err == nil {
			w.offer(*r)
		}
	}
}

// Results passes every Result to handle until ctx ends. It is gone from the bus
// once handle returns nil; on an error it comes again later, here or at another
// gateway. A Result that a Waiter of this process is there for waits for the
// Waiter's Close. handle is called concurrently.
func (b *Bus) Results(ctx context.Context, handle func(context.Context, execution.Result) error) error {
	consumer, err := b.js.CreateOrUpdateConsumer(ctx, b.names.results, jetstream.ConsumerConfig{
		Durable:       gatewaysConsumer,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxAckPending: maxUnrecorded,
	})
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return unavailable(err)
	}
	var calls sync.WaitGroup
	done := acks{b: b}
	slots := make(chan struct{}, handlers)
	work, stop := context.WithCancel(context.WithoutCancel(ctx)) // what is begun is finished
	defer stop()
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		calls.Go(func() { b.result(ctx, work, m, slots, &done, handle) })
	}, jetstream.PullMaxMessages(maxUnrecorded/4), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		b.cfg.Log.Warn("cannot fetch results", "error", err)
	}))
	if err != nil {
		return unavailable(err)
	}
	<-ctx.Done()
	consuming.Drain() // returns fetched events at once, before their timeout
	<-consuming.Closed()
	calls.Wait()
	done.send()
	return nil
}

// acks are acknowledgements that go out together, a little later. A queue that
// runs empty costs the server a new file each time, and this way it seldom does
// while there is much to do.
type acks struct {
	b     *Bus
	mu    sync.Mutex
	queue []jetstream.Msg
}

const ackDelay = 50 * time.Millisecond

func (a *acks) add(m jetstream.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(a.queue, m)
	if len(a.queue) == 1 {
		time.AfterFunc(ackDelay, a.send)
	}
}

func (a *acks) send() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.queue {
		a.b.settle(m.Ack())
	}
	a.queue = nil
}

// result handles one message of the results.
func (b *Bus) result(ctx, work context.Context, m jetstream.Msg, slots chan struct{}, done *acks, handle func(context.Context, execution.Result) error) {
	if b.isProbe(m.Subject()) {
		done.add(m)
		return
	}
	e, err := decodeEntry(m.Data())
	if err != nil || e.end == nil {
		b.cfg.Log.Error("dropping an unreadable result", "subject", m.Subject())
		b.settle(m.Term())
		return
	}
	w, recorded := b.waits.get(e.end.TraceID)
	if w != nil && !recorded {
		w.offer(*e.end)
		if !b.hold(ctx, m, w) {
			return
		}
		recorded = w.recorded
	}
	if recorded {
		done.add(m)
		return
	}
	slots <- struct{}{}
	defer func() { <-slots }()
	if ctx.Err() != nil {
		b.settle(m.Nak())
		return
	}
	work, cancel := context.WithTimeout(work, ackWait/2)
	defer cancel()
	if err := handle(b.extract(work, m.Headers()), *e.end); err != nil {
		delay := time.Minute
		if meta, err := m.Metadata(); err == nil && meta.NumDelivered < 10 {
			delay = 100 * time.Millisecond << meta.NumDelivered
		}
		b.cfg.Log.Error("cannot record a result; retrying", "trace_id", e.end.TraceID, "error", err, "after", delay)
		b.settle(m.NakWithDelay(delay))
		return
	}
	done.add(m)
}

// hold keeps a message until its waiter is closed, and reports whether it was.
func (b *Bus) hold(ctx context.Context, m jetstream.Msg, w *Waiter) bool {
	tick := time.NewTicker(ackWait / 3)
	defer tick.Stop()
	for {
		select {
		case <-w.closed:
			return true
		case <-tick.C:
			b.settle(m.InProgress())
		case <-ctx.Done():
			b.settle(m.Nak())
			return false
		}
	}
}

// settle logs that the server could not be told about a message; it will be
// given out again, which is harmless.
func (b *Bus) settle(err error) {
	if err != nil && b.closed.Err() == nil {
		b.cfg.Log.Warn("cannot acknowledge a message", "error", err)
	}
}
