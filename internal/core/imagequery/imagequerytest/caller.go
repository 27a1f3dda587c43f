package imagequerytest

import (
	"context"
	"errors"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// Caller is a remote.Caller that calls Handlers in the same process, and encodes like the bus.
type Caller remote.Handlers

var encMode, _ = cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode()

// message is an answer.
type message struct {
	Out   cbor.RawMessage
	Fault *refusal
}

// refusal is a fault in an answer.
type refusal struct {
	Kind       fault.Kind
	Msg        string
	Dimension  string
	ResetsAt   time.Time
	RetryAfter time.Duration
}

// Call implements remote.Caller.
func (c Caller) Call(ctx context.Context, name string, in, out any) error {
	handler := c[name]
	if handler == nil {
		return fault.New(fault.Unavailable, "no process answers %s", name)
	}
	argument, err := encMode.Marshal(in)
	if err != nil {
		return err
	}
	result, err := handler(ctx, "gateway", func(to any) error { return cbor.Unmarshal(argument, to) })
	var sent, got message
	if f, ok := errors.AsType[*fault.Error](err); ok {
		sent.Fault = &refusal{f.Kind, f.Msg, f.Dimension, f.ResetsAt, f.RetryAfter}
	} else if err != nil {
		return err
	} else if sent.Out, err = encMode.Marshal(result); err != nil {
		return err
	}
	answer, err := encMode.Marshal(sent)
	if err != nil {
		return err
	}
	if err := cbor.Unmarshal(answer, &got); err != nil {
		return err
	}
	if f := got.Fault; f != nil {
		return &fault.Error{Kind: f.Kind, Msg: f.Msg, Dimension: f.Dimension, ResetsAt: f.ResetsAt, RetryAfter: f.RetryAfter}
	}
	return cbor.Unmarshal(got.Out, out)
}
