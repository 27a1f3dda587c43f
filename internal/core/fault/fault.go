// Package fault is the one error type that crosses package boundaries when a
// caller is to be told something.
//
// An Error carries what may be shown (Msg) apart from what only the operator
// may read (Err). The HTTP layer holds the one table from Kind to status.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what sort of refusal or failure an Error is.
type Kind uint8

const (
	Internal     Kind = iota // our own failure; the caller learns nothing but that
	Invalid                  // the request breaks a documented rule
	Unauthorized             // no key, or one that is not valid
	Forbidden                // a valid key that may not do this
	NotFound                 // no such thing, or not the caller's
	Conflict                 // the thing is in a state that forbids this
	Exhausted                // a quota, plan or rate limit
	Unavailable              // nothing was started; trying again later is safe
	TooLarge                 // the request body is over the limit
	Unsupported              // the media type is not understood
)

// Error is a failure with a message that is safe to show.
type Error struct {
	Kind Kind
	Msg  string // safe to show; says what to change
	Err  error  // logged, never sent; may be nil
	Code string // a name for programs that is narrower than Kind's; "" for none

	// Of a quota, plan or rate limit: which one it is, a name for programs such as
	// "concurrency", and when it starts anew, if it does.
	Dimension string
	ResetsAt  time.Time

	// RetryAfter is how long a caller should wait after an Unavailable fault; 0 for a
	// default of the interface.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	if e.Msg == "" {
		return e.Err.Error()
	}
	return e.Msg + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// New returns an Error of a kind with a formatted, showable message.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

// Limit returns an Exhausted Error for a named limit; resets may be zero.
func Limit(dimension string, resets time.Time, format string, args ...any) *Error {
	return &Error{Kind: Exhausted, Msg: fmt.Sprintf(format, args...), Dimension: dimension, ResetsAt: resets}
}

// Wrap returns an Error that shows msg and keeps err for the log.
func Wrap(kind Kind, err error, msg string) *Error {
	return &Error{Kind: kind, Msg: msg, Err: err}
}

// KindOf returns the kind of the first Error in err's chain, Internal if none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
