package model

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Failure says what kind of end a request without an answer had, and so what helps.
type Failure string

// Failures.
const (
	// Transient failures may be gone at the next try: 5xx, a connection that was cut, a
	// stream that ended early or went silent.
	Transient Failure = "transient"
	// RateLimited requests are over a limit of the provider that time resets.
	RateLimited Failure = "rate_limited"
	// ContextTooLong requests are longer than the model reads.
	ContextTooLong Failure = "context_too_long"
	// Rejected requests are wrong, or more than the model can do: no retry helps.
	Rejected Failure = "rejected"
	// Unauthorized requests had a key that the provider does not take.
	Unauthorized Failure = "unauthorized"
	// Broken answers are none that the protocol has, or are over a bound.
	Broken Failure = "broken"
)

// Error is why a request has no answer, or not all of it.
type Error struct {
	Failure Failure
	// Msg says what happened, with what the provider said where it is of use. It has no
	// key, and may be shown to the caller.
	Msg        string
	RetryAfter time.Duration // what the provider asks to wait; 0 if it says nothing
	Status     int           // of the provider's HTTP answer; 0 if there was none
	RequestID  string        // the provider's name for the request; "" if it has none
}

func (e *Error) Error() string { return e.Msg }

// Retryable reports whether the same request to the same model may succeed later.
func (e *Error) Retryable() bool { return e.Failure == Transient || e.Failure == RateLimited }

// Errorf returns an Error.
func Errorf(f Failure, format string, args ...any) *Error {
	return &Error{Failure: f, Msg: fmt.Sprintf(format, args...)}
}

// asError is the Error of a sequence that ended with err before its context did.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Errorf(Transient, "the model did not answer in time")
	}
	return Errorf(Broken, "the model's answer could not be read")
}
