package bus

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

const (
	// nodeEventsBytes bounds the events that no gateway has applied yet. When it is reached none is
	// lost: executors keep further events until gateways have caught up. Events do not expire, because
	// an event that expires is a charge that is lost.
	nodeEventsBytes = 256 << 20
	// maxNodeEvents bounds them for one executor, so that one does not use up the stream.
	maxNodeEvents = 50_000
	eventRoom     = 4 << 10 // bytes of an event's headers

	// eventWait is how long a gateway that says nothing keeps an event from the others.
	eventWait     = 10 * time.Second
	eventTime     = 30 * time.Second // to apply an event
	eventPause    = 100 * time.Millisecond
	maxEventPause = 5 * time.Second // between tries to apply an event; the first pause is 2 * eventPause
	eventRetry    = time.Second     // between tries to reach the queue
	// maxEventTries is how often an error that is no outage delays all events. The event is dropped then.
	maxEventTries = 100

	eventSeq = "Atoll-Event" // header: the number of the event
)

// NodeEventWriter publishes the events of this executor's sandboxes.
type NodeEventWriter struct{ b *Bus }

// NodeEventWriter returns the writer of this process, whose name is the executor's.
func (b *Bus) NodeEventWriter() NodeEventWriter { return NodeEventWriter{b} }

// Publish returns nil once the bus stores an event. A repeated event reaches gateways once, or with
// the same number again. It returns an Unavailable fault if the bus is away or no gateway has ever
// started, and for a full stream.
func (w NodeEventWriter) Publish(ctx context.Context, seq uint64, event []byte) error {
	m := &nats.Msg{Subject: w.b.names.nodeEvents + w.b.cfg.Name, Header: nats.Header{}, Data: event}
	m.Header.Set(eventSeq, strconv.FormatUint(seq, 10))
	// The id has a hash of the event, which another executor cannot know: it could use the id first.
	sum := sha256.Sum256(event)
	_, err := w.b.js.PublishMsg(ctx, m, jetstream.WithExpectStream(w.b.names.nodeEventsStream),
		jetstream.WithMsgID(w.b.cfg.Name+"."+strconv.FormatUint(seq, 10)+"."+hex.EncodeToString(sum[:16])))
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// NodeEvents passes the events of all executors to handle until ctx ends, in the order of each
// executor and one at a time in the whole installation. If handle returns an Invalid, Forbidden or
// NotFound fault, the event is logged and dropped. After any other error it comes again later, here
// or at another gateway, before all others. An event can come twice. While the bus is away, NodeEvents
// logs that and retries; it always returns nil.
func (b *Bus) NodeEvents(ctx context.Context, handle func(ctx context.Context, executor string, seq uint64, event []byte) error) error {
	r := &eventReader{b: b, ctx: ctx, wait: cmp.Or(b.cfg.eventWait, eventWait), handle: handle}
	told := false
	for {
		worked, err := r.consume()
		if ctx.Err() != nil {
			return nil
		}
		if worked || !told {
			b.cfg.Log.Error("cannot fetch events of executors, so sandboxes show old states and charges wait; retrying", "error", err)
		}
		told = true
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(cmp.Or(b.cfg.eventRetry, eventRetry)):
		}
	}
}

// errNoQueue says that the queue of events was deleted.
var errNoQueue = errors.New("the queue of events was deleted")

// consume handles events until ctx ends or the queue is deleted. worked says that it found the queue.
func (r *eventReader) consume() (worked bool, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, storeTimeout)
	defer context.AfterFunc(r.b.connection(), cancel)() // an answer to a former connection never comes
	consumer, err := r.b.nodeEventConsumer(ctx)
	cancel()
	if err != nil {
		return false, err
	}
	consuming, err := consumer.Consume(r.take, jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		if !errors.Is(err, jetstream.ErrNoHeartbeat) || r.b.ctl.IsConnected() {
			r.b.cfg.Log.Warn("cannot fetch events of executors", "error", err)
		}
	}))
	if err != nil {
		return false, err
	}
	select {
	case <-r.ctx.Done():
		consuming.Drain() // returns fetched events at once, before their timeout
	case <-consuming.Closed():
	}
	<-consuming.Closed()
	return true, errNoQueue
}

// nodeEventConsumer makes the stream and the queue that gateways share.
func (b *Bus) nodeEventConsumer(ctx context.Context) (jetstream.Consumer, error) {
	err := b.ensureStream(ctx, jetstream.StreamConfig{
		Name:                 b.names.nodeEventsStream,
		Description:          "changes of sandboxes that no gateway has recorded yet",
		Subjects:             []string{b.names.nodeEvents + "*"},
		Retention:            jetstream.WorkQueuePolicy,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		MaxBytes:             nodeEventsBytes,
		MaxMsgsPerSubject:    maxNodeEvents,
		MaxMsgSize:           sandbox.MaxEvent + eventRoom,
	})
	if err != nil {
		return nil, err
	}
	return b.js.CreateOrUpdateConsumer(ctx, b.names.nodeEventsStream, jetstream.ConsumerConfig{
		Durable:       gatewaysConsumer,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       cmp.Or(b.cfg.eventWait, eventWait),
		MaxAckPending: 1, // else events of an executor could overtake one another
	})
}

// eventReader handles the events that a gateway fetches.
type eventReader struct {
	b      *Bus
	ctx    context.Context // ends before the next event
	wait   time.Duration
	handle func(ctx context.Context, executor string, seq uint64, event []byte) error

	failing uint64 // number in the stream of the event that failed last
	tries   int    // how often it failed without an outage
}

// take handles a message. It is called for one at a time.
func (r *eventReader) take(m jetstream.Msg) {
	log := r.b.cfg.Log.With("subject", m.Subject())
	if r.ctx.Err() != nil {
		r.b.settle(m.Nak())
		return
	}
	meta, err := m.Metadata()
	if err != nil {
		log.Error("dropping an event of an executor that is not from the stream", "error", err)
		r.b.settle(m.Term())
		return
	}
	executor := strings.TrimPrefix(m.Subject(), r.b.names.nodeEvents)
	seq, err := strconv.ParseUint(m.Headers().Get(eventSeq), 10, 64)
	if err != nil || !isToken(executor) {
		log.Error("dropping an event of an executor that has no number")
		r.b.settle(m.Term())
		return
	}
	log = log.With("executor", executor, "event", seq)
	err = r.apply(m, executor, seq)
	switch k := fault.KindOf(err); {
	case err == nil:
		r.b.settle(m.Ack())
		return
	case k == fault.Invalid, k == fault.Forbidden, k == fault.NotFound:
		log.Error("dropping an event of an executor; check the executor if this repeats", "error", err)
		r.b.settle(m.Term())
		return
	case r.hopeless(meta.Sequence.Stream, err):
		log.Error("dropping an event of an executor that could not be applied for minutes, because all later events wait; report this error", "error", err)
		r.b.settle(m.Term())
		return
	}
	pause := min(cmp.Or(r.b.cfg.eventPause, eventPause)<<min(meta.NumDelivered, 10), maxEventPause)
	if r.ctx.Err() == nil {
		log.Warn("cannot apply an event of an executor; retrying", "error", err, "after", pause)
	}
	r.b.settle(m.NakWithDelay(pause))
}

// hopeless counts errors that are no outage, and reports whether an event has had too many.
func (r *eventReader) hopeless(seq uint64, err error) bool {
	if fault.KindOf(err) == fault.Unavailable || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if r.failing != seq {
		r.failing, r.tries = seq, 0
	}
	r.tries++
	return r.tries >= maxEventTries
}

// apply handles an event to its end. Until then, it tells NATS that the work continues.
func (r *eventReader) apply(m jetstream.Msg, executor string, seq uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), eventTime)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(r.wait / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.b.settle(m.InProgress())
			case <-done:
				return
			}
		}
	}()
	return r.handle(ctx, executor, seq, m.Data())
}
