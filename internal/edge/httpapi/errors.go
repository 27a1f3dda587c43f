package httpapi

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/upgrade"
)

// ErrorResponse is the body of every refusal and failure.
type ErrorResponse struct {
	Error   string `json:"error" doc:"A code for programs, such as validation_error." example:"validation_error"`
	Message string `json:"message" doc:"A sentence for people." example:"code must be between 1 byte and 1 MB"`

	Dimension string     `json:"dimension,omitzero" doc:"With rate_limited: which limit it is, such as concurrency, timeout or credits."`
	ResetsAt  *time.Time `json:"resets_at,omitzero" nullable:"false" doc:"With rate_limited: when the limit starts again, if it does."`
}

// kinds is the one table from a failure's kind to its status and code.
var kinds = map[fault.Kind]struct {
	status int
	code   string
}{
	fault.Internal:     {http.StatusInternalServerError, "internal_error"},
	fault.Invalid:      {http.StatusBadRequest, "validation_error"},
	fault.Unauthorized: {http.StatusUnauthorized, "unauthorized"},
	fault.Forbidden:    {http.StatusForbidden, "forbidden"},
	fault.NotFound:     {http.StatusNotFound, "not_found"},
	fault.Conflict:     {http.StatusConflict, "conflict"},
	fault.Exhausted:    {http.StatusTooManyRequests, "rate_limited"},
	fault.Unavailable:  {http.StatusServiceUnavailable, "service_unavailable"},
	fault.TooLarge:     {http.StatusRequestEntityTooLarge, "payload_too_large"},
	fault.Unsupported:  {http.StatusUnsupportedMediaType, "unsupported_media_type"},
}

// Codes lists the codes of the table.
func Codes() []string {
	var out []string
	for _, row := range kinds {
		out = append(out, row.code)
	}
	return out
}

// Invalid is a refusal of what a caller sent.
func Invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// ProtocolError is a refusal that belongs to HTTP and has no kind in the domain.
type ProtocolError struct {
	Status        int
	Code, Message string
}

func (e *ProtocolError) Error() string { return e.Message }

// Render turns an error into a status and a body that is safe to send.
func Render(err error) (int, ErrorResponse) {
	if p, ok := errors.AsType[*ProtocolError](err); ok {
		return p.Status, ErrorResponse{Error: p.Code, Message: p.Message}
	}
	kind, msg, code := fault.Internal, "", ""
	if f, ok := errors.AsType[*fault.Error](err); ok {
		kind, msg, code = f.Kind, f.Msg, f.Code
	}
	row, ok := kinds[kind]
	if !ok {
		row = kinds[fault.Internal]
	}
	if msg == "" {
		msg = http.StatusText(row.status)
	}
	if kind == fault.Internal {
		msg = "something went wrong on our side; the trace id names it in the server's log"
	}
	body := ErrorResponse{Error: cmp.Or(code, row.code), Message: msg}
	if kind == fault.Exhausted {
		f, _ := errors.AsType[*fault.Error](err)
		body.Message += upgrade.Advice(f)
		body.Dimension = f.Dimension
		if !f.ResetsAt.IsZero() {
			resets := f.ResetsAt.UTC()
			body.ResetsAt = &resets
		}
	}
	return row.status, body
}

// Reason returns the sentence that callers are told of an error, "" for nil.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	_, body := Render(err)
	return body.Message
}

// retryAfter is how many seconds a client is asked to wait after a 503: long enough for a
// sandbox to be made.
const retryAfter = "1"

// seconds renders a Retry-After, which is at least 1.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64(math.Ceil(d.Seconds()))), 10)
}

// writeError answers with err. The headers must not have been written.
func writeError(w http.ResponseWriter, err error) {
	WriteRefusal(w, err, func(_ int, body ErrorResponse) any { return body })
}

// WriteRefusal answers with err as another protocol has it: of makes the body from what
// our envelope would say. The headers must not have been written.
func WriteRefusal(w http.ResponseWriter, err error, of func(status int, body ErrorResponse) any) {
	status, body := Advise(w.Header(), err)
	_ = WriteJSON(w, status, of(status, body)) // a failed write means that the client has gone
}

// Advise sets the headers of a refusal, which say what a client can do about it, and
// renders it.
func Advise(h http.Header, err error) (int, ErrorResponse) {
	status, body := Render(err)
	switch status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="atoll"`)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", retryAfter)
		if f, ok := errors.AsType[*fault.Error](err); ok && f.RetryAfter > 0 {
			h.Set("Retry-After", seconds(f.RetryAfter))
		}
	case http.StatusTooManyRequests:
		if body.ResetsAt != nil {
			h.Set("Retry-After", seconds(time.Until(*body.ResetsAt)))
		}
	}
	return status, body
}
