package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	// maxOffers bounds how many executors are asked for one job. One that is full
	// has left the group when its answer arrives, so each is asked once.
	maxOffers = 16

	startTimeout = 10 * time.Second // for an executor to take a job on
	aliveTimeout = 2 * time.Second
	cancelAgain  = 5 * time.Second // a cancellation without an answer is repeated
)

// What is asked about a run.
const (
	askAlive  = 'a'
	askCancel = 'c'
)

// Headers, for people who watch the bus.
const traceHeader = "Atoll-Trace-Id"

// refused is when an executor last had no room, and how long it asked callers to wait.
type refused struct {
	at         time.Time
	retryAfter time.Duration
}

// errNoListener says that no executor listens to a subject.
var errNoListener = errors.New("no executor listens")

type runner struct{ b *Bus }

var _ execution.Runner = runner{}

// Start implements execution.Runner. When an answer is lost and it cannot be
// known whether the job was taken on, Start returns nil: if it was not, no
// executor has it and no Result comes, which is how a lost run looks too.
func (r runner) Start(ctx context.Context, job execution.Job) error {
	if !isToken(job.TraceID) {
		return fault.New(fault.Internal, "trace id %q cannot be part of a subject", job.TraceID)
	}
	msg := &nats.Msg{Data: encodeStart(r.b.cfg.Name, &job), Header: r.b.headers(ctx, job.TraceID)}
	subject := r.b.names.start
	if job.Turn != "" {
		subject = r.b.names.turn + turnKey(job.Turn)
	}
	var full *fault.Error
	for range maxOffers {
		a, err := r.offer(ctx, subject, msg)
		switch {
		case errors.Is(err, errNoListener) && subject == r.b.names.start:
			if full != nil {
				return full
			}
			none := execution.NoRoom()
			if last := r.b.lastFull.Load(); last != nil && time.Since(last.at) < 2*pause { // full executors do not answer
				none.RetryAfter = last.retryAfter
			}
			return none
		case errors.Is(err, errNoListener) && subject == r.b.names.turn+turnKey(job.Turn):
			subject = r.b.names.start // no executor has the turn yet: the one that gets the job claims it
		case errors.Is(err, errNoListener):
			return execution.ErrTurnGone
		case errors.Is(err, errUncertain):
			r.settle(ctx, job.TraceID)
			return nil
		case err != nil:
			return err
		case a.code == answerDone:
			return nil
		case a.code == answerMoved:
			subject = r.b.names.exec + a.owner
		case a.code == answerFull && subject == r.b.names.start:
			full = a.fault
			r.b.lastFull.Store(&refused{time.Now(), full.RetryAfter})
		default:
			return a.fault
		}
	}
	return full
}

// errUncertain says that a message may have arrived.
var errUncertain = errors.New("the answer did not arrive")

// offer asks for a job to be taken on and returns the answer.
func (r runner) offer(ctx context.Context, subject string, msg *nats.Msg) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	msg.Subject, msg.Reply = subject, ""
	raw, err := r.b.request(ctx, msg)
	if err != nil {
		return answer{}, err
	}
	a, err := decodeAnswer(raw)
	if err != nil {
		return answer{}, errUncertain
	}
	return a, nil
}

// settle waits a little for a job to show up whose answer was lost, so that
// the caller who next asks about it is told the truth.
func (r runner) settle(ctx context.Context, traceID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aliveTimeout)
	defer cancel()
	tick := time.NewTicker(aliveTimeout / 10)
	defer tick.Stop()
	for {
		if alive, err := r.Alive(ctx, traceID); err == nil && alive {
			return
		}
		if _, err := r.b.log.Result(ctx, traceID); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.b.cfg.Log.Warn("a job's answer was lost; it counts as started", "trace_id", traceID)
			return
		}
	}
}

// Cancel implements execution.Runner.
func (r runner) Cancel(ctx context.Context, traceID string) error {
	for {
		try, cancel := context.WithTimeout(ctx, cancelAgain)
		a, err := r.ask(try, traceID, askCancel)
		cancel()
		switch {
		case errors.Is(err, errNoListener), err == nil && a.code != answerDone && a.fault != nil && a.fault.Kind == fault.NotFound:
			if _, err := r.b.log.Result(ctx, traceID); err == nil {
				return nil // it has ended meanwhile
			}
			return execution.ErrNoExecutor
		case errors.Is(err, errUncertain) && ctx.Err() == nil:
			continue
		case errors.Is(err, errUncertain):
			return fmt.Errorf("the executor has not said that the execution has ended: %w", errors.Join(context.Cause(ctx), err))
		case err != nil:
			return err
		case a.code == answerDone:
			return nil
		default:
			return a.fault
		}
	}
}

// EndTurn implements execution.Runner.
func (r runner) EndTurn(ctx context.Context, turn string) error {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	raw, err := r.b.request(ctx, &nats.Msg{Subject: r.b.names.turn + turnKey(turn), Data: encodeEndTurn(turn)})
	switch {
	case errors.Is(err, errNoListener):
		return nil
	case errors.Is(err, errUncertain):
		return unavailable(err)
	case err != nil:
		return err
	}
	a, err := decodeAnswer(raw)
	if err != nil {
		return unavailable(err)
	}
	if a.code != answerDone {
		return a.fault
	}
	return nil
}

// Alive implements execution.Runner.
func (r runner) Alive(ctx context.Context, traceID string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	a, err := r.ask(ctx, traceID, askAlive)
	if errors.Is(err, errNoListener) {
		return false, nil
	}
	if errors.Is(err, errUncertain) {
		err = unavailable(err)
	}
	return err == nil && a.code == answerDone, err
}

// ask asks the executor that has a run.
func (r runner) ask(ctx context.Context, traceID string, what byte) (answer, error) {
	if !isToken(traceID) {
		return answer{}, errNoListener
	}
	raw, err := r.b.request(ctx, &nats.Msg{Subject: r.b.names.run + traceID, Data: []byte{version, what}, Header: r.b.headers(ctx, traceID)})
	if err != nil {
		return answer{}, err
	}
	return decodeAnswer(raw)
}

// request sends a message and returns the answer: errNoListener if no executor
// listens, an Unavailable fault if it was not sent, errUncertain if it may
// have been.
func (b *Bus) request(ctx context.Context, msg *nats.Msg) ([]byte, error) {
	if err := b.Ready(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(fault.Unavailable, context.Cause(ctx), "the request was given up; nothing was done")
	}
	m, err := b.ctl.RequestMsgWithContext(ctx, msg)
	switch {
	case err == nil:
		return m.Data, nil
	case errors.Is(err, nats.ErrNoResponders):
		return nil, errNoListener
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrMaxPayload):
		return nil, unavailable(err)
	default:
		return nil, errors.Join(errUncertain, err)
	}
}

// headers are the trace id and the trace context of ctx.
func (b *Bus) headers(ctx context.Context, traceID string) nats.Header {
	h := nats.Header{}
	if traceID != "" {
		h[traceHeader] = []string{traceID}
	}
	if b.cfg.Inject != nil {
		for k, v := range b.cfg.Inject(ctx) {
			h[k] = []string{v}
		}
	}
	return h
}

// extract gives ctx the trace context that a message carries.
func (b *Bus) extract(ctx context.Context, h nats.Header) context.Context {
	if b.cfg.Extract == nil {
		return ctx
	}
	m := make(map[string]string, len(h))
	for k := range h {
		m[k] = h[k][0]
	}
	return b.cfg.Extract(ctx, m)
}

// turnKey is a turn's name on the bus, which says nothing about the turn.
func turnKey(turn string) string {
	sum := sha256.Sum256([]byte(turn))
	return hex.EncodeToString(sum[:16])
}
