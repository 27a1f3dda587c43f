package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Starts decides for each doubtful job whether an executor starts it or a gateway
// declares it lost. The first message of the job's subject decides, so no clock does.
type Starts struct{ b *Bus }

var _ execution.StartGuard = Starts{}

// Starts returns the decisions of all processes on the bus.
func (b *Bus) Starts() Starts { return Starts{b} }

// voided is the decision against a start. The name of an executor is one for it.
const voided = "!"

// Begin implements execution.StartGuard. The decision for this process stands when it is
// repeated, also after a restart.
func (s Starts) Begin(ctx context.Context, traceID string) (bool, error) {
	by, err := s.decide(ctx, traceID, s.b.cfg.Name)
	return by == s.b.cfg.Name, err
}

// Void implements execution.StartGuard.
func (s Starts) Void(ctx context.Context, traceID string) (bool, error) {
	by, err := s.decide(ctx, traceID, voided)
	return by == voided, err
}

// decide records a decision unless there is one, and returns the one that counts.
func (s Starts) decide(ctx context.Context, traceID, by string) (string, error) {
	if !isToken(traceID) {
		return "", fmt.Errorf("trace id %q cannot be part of a subject", traceID)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	msg := &nats.Msg{Subject: s.b.names.starts + traceID, Data: []byte(by)}
	for {
		_, err := s.b.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(s.b.names.startsStream), jetstream.WithExpectLastSequencePerSubject(0))
		if err == nil {
			return by, nil
		}
		if !decided(err) {
			return "", unavailable(err)
		}
		m, err := s.b.starts.GetLastMsgForSubject(ctx, s.b.names.starts+traceID)
		if err == nil {
			return string(m.Data), nil
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return "", unavailable(err)
		}
		select { // the stream has not stored the other decision yet
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return "", unavailable(context.Cause(ctx))
		}
	}
}

// decided reports whether the stream rejected a decision because another decision exists. A
// replicated stream returns a different error while it is storing the other decision.
func decided(err error) bool {
	refused, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
