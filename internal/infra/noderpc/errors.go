package noderpc

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
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

// sentinels are the errors that callers compare, by their names in the protocol.
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

// failure is an error in a message.
type failure struct {
	Text      string           `cbor:",omitempty"`
	Is        []string         `cbor:",omitempty"` // names of sentinels
	Same      bool             `cbor:",omitempty"` // the error is the sentinel
	Fault     *faultOf         `cbor:",omitempty"`
	Elsewhere *sandbox.Sandbox `cbor:",omitempty"`
	Executor  string           `cbor:",omitempty"`
}

// faultOf is a fault.Error.
type faultOf struct {
	Kind       fault.Kind
	Msg        string        `cbor:",omitempty"`
	Code       string        `cbor:",omitempty"`
	Dimension  string        `cbor:",omitempty"`
	ResetsAt   time.Time     `cbor:",omitzero"`
	RetryAfter time.Duration `cbor:",omitempty"`
	Cause      string        `cbor:",omitempty"`
}

func encodeError(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	for name, s := range sentinels {
		if err == s {
			return &failure{Is: []string{name}, Same: true}
		}
		if errors.Is(err, s) {
			f.Is = append(f.Is, name)
		}
	}
	if e, ok := errors.AsType[*sandbox.ElsewhereError](err); ok {
		f.Elsewhere, f.Executor = e.Sandbox, e.Executor
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		f.Fault = &faultOf{Kind: e.Kind, Msg: e.Msg, Code: e.Code, Dimension: e.Dimension, ResetsAt: e.ResetsAt, RetryAfter: e.RetryAfter}
		if e.Err != nil {
			f.Fault.Cause = e.Err.Error()
		}
	}
	return f
}

func (f *failure) decode() error {
	if f == nil {
		return nil
	}
	e := &remoteError{text: f.Text}
	for _, name := range f.Is {
		if s := sentinels[name]; s != nil {
			if f.Same {
				return s
			}
			e.is = append(e.is, s)
		}
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
	if f.Fault.Kind > fault.Unsupported {
		f.Fault.Kind = fault.Internal
	}
	fe := &fault.Error{
		Kind: f.Fault.Kind, Msg: f.Fault.Msg, Code: f.Fault.Code, Dimension: f.Fault.Dimension, ResetsAt: f.Fault.ResetsAt, RetryAfter: f.Fault.RetryAfter,
	}
	if f.Fault.Cause != "" {
		fe.Err = &remoteError{text: f.Fault.Cause, is: e.is}
		e.is = nil
	}
	if fe.Error() == f.Text && len(e.is) == 0 {
		return fe
	}
	return &remoteError{text: f.Text, is: append([]error{fe}, e.is...)}
}

// remoteError is an error from the other machine.
type remoteError struct {
	text string
	is   []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.is }

// cutError says that the connection ended during a call.
type cutError struct{ err error }

func (e *cutError) Error() string { return e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

// notRun is the fault for a call that the server never received.
func notRun(err error) error {
	return fault.Wrap(fault.Unavailable, &cutError{err}, "cannot reach the machine of the sandbox; the call did not run. Retry in a few seconds")
}

// mayHaveRun is the fault for a call whose answer was lost.
func mayHaveRun(err error) error {
	return fault.Wrap(fault.Unavailable, &cutError{err}, "the connection to the machine of the sandbox was interrupted; the call may have run. Check its effect, then retry")
}

// interrupted is the fault for a stream that a cut ended.
func interrupted(err error) error {
	return fault.Wrap(fault.Unavailable, &cutError{err}, "the connection to the machine of the sandbox was interrupted before the end of the stream. Retry the call")
}

var (
	errNoHandle = fault.New(fault.Unavailable, "the machine closed this use of the sandbox because the connection was interrupted for too long; the call did not run. Use the sandbox again")
	errNoOutput = fault.New(fault.Unavailable, "the connection to the machine of the sandbox was interrupted for too long; the process may still run. Follow it again")
	errHandles  = fault.New(fault.Unavailable, "this client already uses %d sandboxes of the machine at once; the call did not run. Retry later", maxHandles)
	errCalls    = fault.New(fault.Unavailable, "this client already has %d calls to the machine; the call did not run. Retry later", maxCalls)
	errClosed   = errors.New("the client is closed")
	errProtocol = errors.New("the peer broke the protocol")
)
