// Package remotetest carries calls to handlers without a bus.
package remotetest

import (
	"context"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// The encoding of the bus.
var (
	encoding, _ = cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode()
	decoding, _ = cbor.DecOptions{TagsMd: cbor.TagsForbidden, IndefLength: cbor.IndefLengthForbidden, UTF8: cbor.UTF8DecodeInvalid}.DecMode()
)

// Encode encodes a value as the bus does.
func Encode(v any) ([]byte, error) { return encoding.Marshal(v) }

// Decode decodes a value as the bus does.
func Decode(b []byte, v any) error { return decoding.Unmarshal(b, v) }

// Wire carries the calls of one server to handlers, which get the caller's context.
type Wire struct {
	Handlers remote.Handlers
	From     string
	Failures *[]error // of the next calls; nil for none
	Lost     bool     // a call that fails reaches its handler
}

// Call implements remote.Caller.
func (w Wire) Call(ctx context.Context, name string, in, out any) error {
	raw, err := Encode(in)
	if err != nil {
		return err
	}
	h, ok := w.Handlers[name]
	if !ok {
		return fault.New(fault.Invalid, "no handler of %q", name)
	}
	var failure error
	if w.Failures != nil && len(*w.Failures) > 0 {
		failure, *w.Failures = (*w.Failures)[0], (*w.Failures)[1:]
		if !w.Lost {
			return failure
		}
	}
	answer, err := h(ctx, w.From, func(v any) error { return Decode(raw, v) })
	if failure != nil {
		return failure
	}
	if err != nil {
		return err
	}
	if raw, err = Encode(answer); err != nil {
		return err
	}
	return Decode(raw, out)
}
