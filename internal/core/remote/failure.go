package remote

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// sentinels are the errors that callers compare, by their names in messages.
var sentinels = map[string]error{
	"eof": io.EOF, "unexpected_eof": io.ErrUnexpectedEOF, "closed_pipe": io.ErrClosedPipe, "closed": net.ErrClosed,
	"canceled": context.Canceled, "deadline": context.DeadlineExceeded, "io_deadline": os.ErrDeadlineExceeded,
	"not_exist": fs.ErrNotExist, "exist": fs.ErrExist, "permission": fs.ErrPermission, "invalid": fs.ErrInvalid,
	"refused": syscall.ECONNREFUSED, "reset": syscall.ECONNRESET, "pipe": syscall.EPIPE,
	"gone": process.ErrGone, "enough": process.ErrEnough,
	"detached": codecontext.ErrDetached, "not_begun": codecontext.ErrNotBegun, "no_trace": codecontext.ErrNoTrace,
	"runtime_not_found": runtime.ErrNotFound, "unsupported": runtime.ErrUnsupported, "no_network": runtime.ErrNoNetwork,
	"sandbox_not_found": sandbox.ErrNotFound, "no_valid_key": sandbox.ErrNoValidKey, "key_invalid": tenant.ErrKeyInvalid,
	"no_snapshot": sandbox.ErrNoSnapshot, "snapshot_given_up": sandbox.ErrSnapshotGivenUp,
	"no_log": execution.ErrNoLog, "stopping": execution.ErrStopping,
}

// Failure is an error in a message. It keeps the text of the error, the fields of its fault.Error
// and sandbox.ElsewhereError, and the well-known errors that errors.Is finds in it.
type Failure struct {
	Text      string           `cbor:",omitempty"`
	Is        []string         `cbor:",omitempty"` // names of well-known errors
	Same      bool             `cbor:",omitempty"` // the error is the well-known error itself
	Fault     *Fault           `cbor:",omitempty"`
	Elsewhere *sandbox.Sandbox `cbor:",omitempty"` // of a sandbox.ElsewhereError, and its Executor
	Executor  string           `cbor:",omitempty"`
}

// Fault is a fault.Error in a message. Cause is the text of its Err.
type Fault struct {
	Kind       fault.Kind
	Msg        string        `cbor:",omitempty"`
	Code       string        `cbor:",omitempty"`
	Dimension  string        `cbor:",omitempty"`
	ResetsAt   time.Time     `cbor:",omitzero"`
	RetryAfter time.Duration `cbor:",omitempty"`
	Cause      string        `cbor:",omitempty"`
}

// EncodeError returns the message of err, nil if err is nil.
func EncodeError(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Text: err.Error()}
	for name, s := range sentinels {
		if err == s {
			return &Failure{Is: []string{name}, Same: true}
		}
		if errors.Is(err, s) {
			f.Is = append(f.Is, name)
		}
	}
	slices.Sort(f.Is)
	if e, ok := errors.AsType[*sandbox.ElsewhereError](err); ok {
		f.Elsewhere, f.Executor = e.Sandbox, e.Executor
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		f.Fault = &Fault{Kind: e.Kind, Msg: e.Msg, Code: e.Code, Dimension: e.Dimension, ResetsAt: encodable(e.ResetsAt), RetryAfter: e.RetryAfter}
		if e.Err != nil {
			f.Fault.Cause = e.Err.Error()
		}
	}
	return f
}

// Decode returns the error of a message, nil if f is nil. It accepts any message: it ignores
// unknown names, treats an unknown kind of fault as Internal, and drops times that RFC 3339
// cannot express.
func (f *Failure) Decode() error {
	if f == nil {
		return nil
	}
	e := &remoteError{text: f.Text}
	for _, name := range f.Is {
		s := sentinels[name]
		if s == nil || slices.Contains(e.is, s) {
			continue
		}
		if f.Same {
			return s
		}
		e.is = append(e.is, s)
	}
	if f.Elsewhere != nil {
		elsewhere := &sandbox.ElsewhereError{Sandbox: f.Elsewhere, Executor: f.Executor}
		if f.Fault == nil && elsewhere.Error() == f.Text {
			return elsewhere
		}
		e.is = append(e.is, elsewhere)
	}
	if f.Fault == nil {
		return e
	}
	fe := f.Fault.decode()
	if f.Fault.Cause != "" {
		fe.Err = &remoteError{text: f.Fault.Cause, is: e.is}
		e.is = nil
	}
	if fe.Error() == f.Text && len(e.is) == 0 {
		return fe
	}
	return &remoteError{text: f.Text, is: append([]error{fe}, e.is...)}
}

func (f *Fault) decode() *fault.Error {
	e := &fault.Error{Kind: f.Kind, Msg: f.Msg, Code: f.Code, Dimension: f.Dimension, ResetsAt: encodable(f.ResetsAt), RetryAfter: max(0, f.RetryAfter)}
	if e.Kind > fault.Unsupported {
		e.Kind = fault.Internal
	}
	return e
}

// encodable returns t in UTC, or the zero time if RFC 3339 cannot express it.
func encodable(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// remoteError is an error of another process.
type remoteError struct {
	text string
	is   []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.is }
