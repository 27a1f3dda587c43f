package model

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Failure classifies a request that got no complete answer, and so tells the caller how to react.
type Failure string

// Kinds of failures.
const (
	// Transient failures may succeed on retry: a 5xx status, a broken connection, or a stream that
	// ended early or stalled.
	Transient Failure = "transient"
	// RateLimited requests exceeded a rate limit of the provider.
	RateLimited Failure = "rate_limited"
	// ContextTooLong requests exceed the model's context limit.
	ContextTooLong Failure = "context_too_long"
	// Rejected requests are invalid or unsupported by the model. A retry does not help.
	Rejected Failure = "rejected"
	// Unauthorized requests used a key that the provider rejects.
	Unauthorized Failure = "unauthorized"
	// Broken answers violate the protocol or exceed a limit.
	Broken Failure = "broken"
)

// Error says why a request got no answer or only a part of it.
type Error struct {
	Failure Failure
	// Msg says what happened, with the provider's message if it helps. It contains no key, so the
	// caller may see it.
	Msg        string
	RetryAfter time.Duration // the wait that the provider asks for; 0 if it sent none
	Status     int           // of the provider's HTTP response; 0 if none arrived
	RequestID  string        // the provider's request id; "" if it has none
}

func (e *Error) Error() string { return e.Msg }

// Retryable reports whether the same request to the same model may succeed later.
func (e *Error) Retryable() bool { return e.Failure == Transient || e.Failure == RateLimited }

// Errorf returns an Error.
func Errorf(f Failure, format string, args ...any) *Error {
	return &Error{Failure: f, Msg: fmt.Sprintf(format, args...)}
}

// asError returns the Error for a sequence that ended with err while its context was still alive.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Errorf(Transient, "the model did not answer in time")
	}
	return Errorf(Broken, "the model's answer could not be read")
}
