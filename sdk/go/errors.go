package atoll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Code names a kind of error, for errors.Is:
//
//	if errors.Is(err, atoll.ErrNotFound) { … }
type Code string

// Codes of the server. It may send others.
const (
	ErrValidation      Code = "validation_error"
	ErrUnauthorized    Code = "unauthorized"
	ErrForbidden       Code = "forbidden"
	ErrNotFound        Code = "not_found"
	ErrConflict        Code = "conflict"
	ErrRequestTimeout  Code = "request_timeout"
	ErrPayloadTooLarge Code = "payload_too_large"
	ErrRateLimited     Code = "rate_limited"
	ErrInternal        Code = "internal_error"
	ErrBadGateway      Code = "bad_gateway"
	ErrUnavailable     Code = "service_unavailable"
	ErrProgramTimeout  Code = "gateway_timeout" // the program ran longer than its timeout
)

// Codes of calls without an answer, and of webhook messages.
const (
	ErrTimeout          Code = "timeout"    // the call timed out
	ErrConnection       Code = "connection" // no answer, or an incomplete one
	ErrCanceled         Code = "cancelled"  // the caller's context was cancelled
	ErrInvalidSignature Code = "invalid_signature"
)

// Error returns the code.
func (c Code) Error() string { return string(c) }

// Error is an error that the server returned.
type Error struct {
	Status     int           // of HTTP
	Code       Code          // for programs, such as ErrNotFound
	Message    string        // for people
	Dimension  string        // with rate_limited: which limit
	ResetsAt   time.Time     // with rate_limited: when the limit starts again; zero if it does not
	RetryAfter time.Duration // when to try again; 0 if the server does not say
	TraceID    string        // names the request in the server's log
	// Result is the result of a program that timed out.
	Result *ExecuteResponse
}

// Error returns the message with status, code and trace id.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (%d %s, %s)", e.Message, e.Status, e.Code, e.TraceID)
}

// Is reports whether target is the error's Code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Advice says what to do about the error.
func (e *Error) Advice() string {
	switch e.Code {
	case ErrUnauthorized:
		return "Use a key that exists and has neither expired nor been revoked."
	case ErrForbidden:
		return "Use a key with the scope that the message names, or ask the operator to give it."
	case ErrConflict:
		return "Read what is there now, and decide by it; the same request is refused again until that changes."
	case ErrRateLimited:
		if !e.ResetsAt.IsZero() {
			return "Wait until " + e.ResetsAt.Format(time.RFC3339) + ", or ask for a larger plan."
		}
		return "Wait for what runs to end, or ask for a larger plan."
	case ErrProgramTimeout:
		return "Give the program a longer timeout, or less to do. Result has what it wrote."
	case ErrUnavailable, ErrBadGateway, ErrRequestTimeout:
		return "Try again later."
	case ErrInternal:
		return "Give the server's operator the trace id: its log has the reason."
	}
	return "Change the request as the message says."
}

// TransportError is the error of a call that got no answer from the server.
type TransportError struct {
	Code    Code   // ErrTimeout, ErrConnection or ErrCanceled
	TraceID string // of a stream that broke off
	Err     error
}

// Error returns what went wrong.
func (e *TransportError) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e *TransportError) Unwrap() error { return e.Err }

// Is reports whether target is the error's Code.
func (e *TransportError) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// broken is the error of a call that ended without an answer.
func broken(ctx context.Context, traceID string, err error) error {
	code := ErrConnection
	switch cause := ctx.Err(); {
	case errors.Is(cause, context.DeadlineExceeded):
		code, err = ErrTimeout, because(err, cause)
	case cause != nil:
		code, err = ErrCanceled, because(err, cause)
	}
	return &TransportError{Code: code, TraceID: traceID, Err: err}
}

// because is err with its cause in its chain.
func because(err, cause error) error {
	if errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// noAnswer is the error of a request to which none came.
func (c *Client) noAnswer(ctx context.Context, err error) error {
	var e *url.Error
	if errors.As(err, &e) { // which repeats method and path
		err = e.Err
	}
	return broken(ctx, "", fmt.Errorf("no answer from %s: %w", c.base, err))
}

// codes are those of answers that have none, such as a proxy's.
var codes = map[int]Code{
	http.StatusBadRequest: ErrValidation, http.StatusUnauthorized: ErrUnauthorized, http.StatusForbidden: ErrForbidden,
	http.StatusNotFound: ErrNotFound, http.StatusConflict: ErrConflict, http.StatusRequestTimeout: ErrRequestTimeout,
	http.StatusRequestEntityTooLarge: ErrPayloadTooLarge, http.StatusTooManyRequests: ErrRateLimited,
	http.StatusInternalServerError: ErrInternal, http.StatusBadGateway: ErrBadGateway,
	http.StatusServiceUnavailable: ErrUnavailable,
}

// maxRefusal bounds the bytes of an error's body: that of a time-out holds the output.
const maxRefusal = 64 << 20

// refused reads the error that a server answered with.
func refused(res *http.Response) *Error {
	failure := &Error{Status: res.StatusCode, Code: codes[res.StatusCode], Message: "the server answered " + res.Status, TraceID: res.Header.Get("X-Trace-Id"), RetryAfter: retryAfter(res.Header)}
	if failure.Code == "" {
		failure.Code = "no code"
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	if err != nil {
		return failure
	}
	var told struct {
		Code string
		ErrorResponse
	}
	if err := json.Unmarshal(raw, &told); err == nil && told.Message != "" && (told.Error != "" || told.Code != "") {
		failure.Code, failure.Message, failure.Dimension, failure.ResetsAt = Code(told.Error), told.Message, told.Dimension, told.ResetsAt
		if told.Code != "" { // of an execution, whose error is a text
			failure.Code, failure.Result = Code(told.Code), &ExecuteResponse{}
			if json.Unmarshal(raw, failure.Result) != nil {
				failure.Result = nil
			}
		}
		return failure
	}
	var open ResponseRefusal // of responses
	if err := json.Unmarshal(raw, &open); err == nil && open.Error.Message != "" {
		failure.Code, failure.Message, failure.Dimension, failure.ResetsAt = Code(open.Error.Code), open.Error.Message, open.Dimension, open.ResetsAt
	}
	return failure
}

// retryAfter is when a server wants to be asked again, 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return max(time.Duration(seconds)*time.Second, 0)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
