package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// Gateways sends calls to any gateway that AnswerExecutors put on the bus.
func (b *Bus) Gateways() remote.Caller {
	base := b.names.control + b.cfg.Name
	return caller{b, base, base, "no gateway answers; check that a gateway runs with the same NATS server, then retry"}
}

// Executors sends each call to any executor that AnswerGateways put on the bus.
func (b *Bus) Executors() remote.Caller {
	base := b.names.command + b.cfg.Name
	return caller{b, base, base, "no executor answers; check that an executor runs with the same NATS server, then retry"}
}

// ExecutorNamed sends calls to one executor.
func (b *Bus) ExecutorNamed(id string) remote.Caller {
	base := b.names.command + b.cfg.Name
	c := caller{b, base, "", fmt.Sprintf("executor %q does not answer; check that it runs and reaches NATS, then retry", id)}
	if isToken(id) {
		c.subject = base + toInfix + id
	}
	return c
}

// caller sends calls.
type caller struct {
	b       *Bus
	base    string // of the caller's subjects
	subject string // of calls; "" for a server that cannot exist
	silent  string // the message if no server answers
}

var _ remote.Caller = caller{}

var (
	errInterrupted = errors.New("the connection to the message bus was interrupted")
	errSilentCall  = errors.New("the server sent nothing for a while")
	errLostCall    = errors.New("the server has ended")
)

// refusedError says why a server did not run a call.
type refusedError string

func (e refusedError) Error() string { return string(e) }

// lostError says why a server does not send an answer.
type lostError string

func (e lostError) Error() string { return string(e) }

// callAttempts is how many servers are asked if the first ones stop or are full.
const callAttempts = 3

// Call implements remote.Caller. A context without a deadline ends the call after 1 minute, and no
// call takes more than 10 minutes.
func (c caller) Call(ctx context.Context, name string, in, out any) error {
	nc := c.b.data
	if c.subject == "" {
		return fault.New(fault.Unavailable, "%s", c.silent)
	}
	if !nc.IsConnected() {
		return unavailable(errors.New("connection is " + nc.Status().String()))
	}
	left := callTime
	if deadline, ok := ctx.Deadline(); ok {
		left = min(max(time.Until(deadline), time.Nanosecond), maxCallTime)
	}
	wait, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	if wait.Err() != nil {
		return fault.Wrap(fault.Unavailable, context.Cause(wait), "the call "+name+" was given up; nothing was done")
	}
	data, err := encodeValue(&callOutgoing{name, left, in})
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot encode the call "+name)
	}
	h := c.b.headers(ctx, "")
	if limit := nc.MaxPayload() - headerRoom; int64(len(data)) > limit {
		return fault.New(fault.TooLarge, "the call %s has %d bytes, more than the %d that NATS accepts; raise max_payload of the NATS server, or send less", name, len(data), limit)
	}
	var body []byte
	for attempt := 1; ; attempt++ {
		body, err = c.ask(wait, data, h)
		if _, refused := errors.AsType[refusedError](err); !refused || attempt == callAttempts || !pauseFor(wait, time.Duration(attempt)*20*time.Millisecond) {
			break
		}
	}
	if err != nil {
		return c.fault(ctx, wait, name, err)
	}
	return decodeResult(body, out)
}

// headerRoom is what remains of a payload for headers.
const headerRoom = 16 << 10

// fault returns the fault for a call without an answer.
func (c caller) fault(ctx, wait context.Context, name string, err error) error {
	refused, isRefused := errors.AsType[refusedError](err)
	lost, isLost := errors.AsType[lostError](err)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fault.Wrap(fault.Unavailable, err, c.silent)
	case errors.Is(err, nats.ErrMaxPayload):
		return fault.Wrap(fault.TooLarge, err, "the call "+name+" is larger than NATS accepts; raise max_payload of the NATS server, or send less")
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed):
		return unavailable(err)
	case isRefused:
		return fault.New(fault.Unavailable, "%s", string(refused))
	case isLost:
		return fault.New(fault.Unavailable, "%s", string(lost))
	case ctx.Err() != nil:
		return fault.Wrap(fault.Unavailable, context.Cause(ctx), "the call "+name+" was given up before its answer; it may have run. Check its effect, then retry")
	case wait.Err() != nil:
		return fault.Wrap(fault.Unavailable, context.Cause(wait), "the call "+name+" took too long; it may have run. Check its effect, then retry")
	}
	return fault.Wrap(fault.Unavailable, err, "the answer of the call "+name+" did not arrive; it may have run. Check its effect, then retry")
}

// ask sends a call to one server and returns its whole result.
func (c caller) ask(ctx context.Context, data []byte, h nats.Header) (_ []byte, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.b.connection(), func() { cancel(errInterrupted) })()
	a := answers{caller: c, id: rand.Text()}
	a.inbox = inboxOf(c.b.cfg.Name, a.id)
	if a.sub, err = c.b.data.SubscribeSync(a.inbox); err != nil {
		return nil, err
	}
	defer func() { _ = a.sub.Unsubscribe() }() // fails on a closed connection only
	if err := a.sub.SetPendingLimits(64, 4*maxPiece); err != nil {
		return nil, err
	}
	if err := c.b.data.PublishMsg(&nats.Msg{Subject: c.subject, Reply: a.inbox, Data: data, Header: h}); err != nil {
		return nil, err
	}
	body, err := a.all(ctx)
	if _, refused := errors.AsType[refusedError](err); err != nil && !refused && !errors.Is(err, nats.ErrNoResponders) {
		_ = c.b.data.Publish(c.base+endSuffix, []byte(a.id)) // without a connection the server's deadline ends the call
	}
	return body, err
}

// answers receives the messages of a server about one call.
type answers struct {
	caller
	id, inbox string
	sub       *nats.Subscription
}

// all returns the whole result.
func (a *answers) all(ctx context.Context) ([]byte, error) {
	m := callAnswer{Busy: true}
	for m.Busy {
		var err error
		if m, err = a.next(ctx, a.b.cfg.calls.silence); err != nil {
			return nil, err
		}
	}
	switch {
	case m.Total < 0 || m.Total > maxAnswer || m.Offset != 0 || len(m.Data) > m.Total:
		return nil, errMessage
	case len(m.Data) == m.Total:
		return m.Data, nil
	case !isToken(m.Server):
		return nil, errMessage
	}
	return a.pieces(ctx, m)
}

// pieces asks for the pieces of an answer. first is the message that tells the size.
func (a *answers) pieces(ctx context.Context, first callAnswer) ([]byte, error) {
	a.b.fetching.Add(1)
	defer a.b.fetching.Add(-1)
	subject := a.base + moreInfix + first.Server
	body := first.Data // grows with the data, because the claimed size may be false
	for len(body) < first.Total {
		m, err := a.piece(ctx, subject, callMore{a.id, len(body), a.b.pieceSize()})
		if err != nil {
			return nil, err
		}
		if m.Total != first.Total || len(m.Data) == 0 || len(m.Data) > min(maxPiece, first.Total-len(body)) {
			return nil, errMessage
		}
		body = append(body, m.Data...)
	}
	_ = a.publish(subject, callMore{ID: a.id, Offset: len(body)}, "") // without it the server forgets the answer later
	return body, nil
}

// piece asks for a piece until it comes.
func (a *answers) piece(ctx context.Context, subject string, more callMore) (m callAnswer, err error) {
	for began := time.Now(); time.Since(began) < a.b.cfg.calls.silence; {
		if err := a.publish(subject, more, a.inbox); err != nil {
			return m, errors.Join(errInterrupted, ctx.Err()) // the call has run
		}
		for {
			m, err = a.next(ctx, a.b.cfg.calls.again)
			if err != nil || !m.Busy && m.Offset == more.Offset && len(m.Data) > 0 {
				break // others are a beat, or a piece that was asked for twice
			}
		}
		switch {
		case errors.Is(err, errSilentCall): // ask again
		case errors.Is(err, nats.ErrNoResponders):
			return m, errLostCall
		default:
			return m, err
		}
	}
	return m, errSilentCall
}

func (a *answers) publish(subject string, more callMore, reply string) error {
	return a.b.data.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: appendMessage(nil, &more, 64)})
}

// next returns the next message. It returns errSilentCall if none comes in time.
func (a *answers) next(ctx context.Context, limit time.Duration) (callAnswer, error) {
	wait, cancel := context.WithTimeoutCause(ctx, limit, errSilentCall)
	defer cancel()
	for {
		m, err := a.sub.NextMsgWithContext(wait)
		switch {
		case err == nil:
			return decodeAnswerOfCall(m.Data)
		case errors.Is(err, nats.ErrSlowConsumer): // the server sends more than it was asked for
		case wait.Err() != nil:
			return callAnswer{}, context.Cause(wait)
		default:
			return callAnswer{}, err
		}
	}
}

// decodeAnswerOfCall decodes a message of a server. It returns a refusedError or lostError for a call
// without an answer.
func decodeAnswerOfCall(b []byte) (callAnswer, error) {
	var m callAnswer
	if err := parseMessage(b, &m); err != nil {
		return m, err
	}
	if m.Refused != "" {
		return m, refusedError(m.Refused)
	}
	if m.Lost != "" {
		return m, lostError(m.Lost)
	}
	return m, nil
}

// pieceSize returns how many bytes a call may ask for, so that the connection carries all of them
// in time however many calls fetch large answers.
func (b *Bus) pieceSize() int {
	return max(firstPiece, min(maxPiece, maxAsked/int(max(1, b.fetching.Load()))))
}

// pauseFor reports whether ctx lasts for d.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
