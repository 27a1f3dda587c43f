package noderpc

import (
	"errors"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// cutError says that the connection ended during a call.
type cutError struct{ err error }

func (e *cutError) Error() string { return e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

// sentError is the cause of a sandbox.ErrMayHaveRun.
type sentError struct{ error }

func (e *sentError) Is(target error) bool { return target == sandbox.ErrMayHaveRun }
func (e *sentError) Unwrap() error        { return e.error }

// notRun is the fault for a call that the server never received.
func notRun(err error) error {
	return fault.Wrap(fault.Unavailable, &cutError{err}, "cannot reach the machine of the sandbox; the call did not run. Retry in a few seconds")
}

// mayHaveRun is the fault for a call whose answer was lost.
func mayHaveRun(err error) error {
	return fault.Wrap(fault.Unavailable, &cutError{&sentError{err}}, "the connection to the machine of the sandbox was interrupted; the call may have run. Check its effect, then retry")
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
