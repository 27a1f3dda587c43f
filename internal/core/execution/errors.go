package execution

import "github.com/atoll-run/atoll/internal/core/fault"

var (
	// ErrNotFound is returned if the tenant has no such execution.
	ErrNotFound = fault.New(fault.NotFound, "execution not found")
	// ErrDelivering rejects another delivery of a webhook during one.
	ErrDelivering = fault.New(fault.Conflict, "a delivery of this webhook is in progress; wait for its end")
	// ErrManyFilters rejects a Filter with more than MaxMetadata pairs.
	ErrManyFilters = fault.New(fault.Invalid, "at most %d metadata filters are possible", MaxMetadata)

	// ErrNoExecutor is returned if no executor has the execution.
	ErrNoExecutor = fault.New(fault.NotFound, "no executor has this execution")
	// ErrTurnGone rejects a job whose turn's executor does not answer.
	ErrTurnGone = fault.New(fault.Unavailable, "the executor with this turn's sandbox is not there; nothing was run. Retry in a few seconds")
	// ErrTurnElsewhere rejects a claim of a turn that another executor has.
	ErrTurnElsewhere = fault.New(fault.Conflict, "another executor has the turn")
	// ErrTurnMoved rejects a job of a turn that another executor has.
	ErrTurnMoved = fault.New(fault.Unavailable, "another executor has this turn")
	// ErrStopping rejects a job on an executor that is about to stop.
	ErrStopping = fault.New(fault.Unavailable, "this executor is about to stop; nothing was run. Retry in a few seconds")
	// ErrNoGateway rejects a call of a program if no gateway answers.
	ErrNoGateway = fault.New(fault.Unavailable, "no gateway can make the call; nothing was done. Retry in a few seconds")
)

// NoRoom rejects a job that no executor accepts. The caller may set RetryAfter.
func NoRoom() *fault.Error {
	return fault.New(fault.Unavailable, "no executor has room; nothing was run. Retry in a few seconds")
}

// UnknownStatus rejects a Filter with an undefined status.
func UnknownStatus(s Status) error {
	return fault.New(fault.Invalid, "status %q does not exist", s)
}

// UnknownLanguage rejects a Filter with an undefined language.
func UnknownLanguage(l Language) error {
	return fault.New(fault.Invalid, "language %q does not exist", l)
}

// NotFinal rejects a Result with a status that is not an end.
func NotFinal(s Status) error { return fault.New(fault.Invalid, "%q is no status to end with", s) }

// NotStarted says that a sandbox could not start the program.
func NotStarted(err error) *fault.Error {
	return fault.Wrap(fault.Unavailable, err, "the sandbox could not start the program; nothing was run. Retry in a few seconds")
}
