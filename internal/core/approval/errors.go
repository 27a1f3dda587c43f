package approval

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// TooLate rejects a decision after the deadline of a tool's call.
func TooLate(tool string, deadline time.Time) error {
	return fault.New(fault.Conflict, "the approval of %q has expired: %s; deny it, and have the model ask again", tool, NoAnswer(deadline))
}

// HasExpired rejects a decision that arrives after the deadline.
func HasExpired(deadline time.Time) error {
	return fault.New(fault.Conflict, "the approval has expired: %s", NoAnswer(deadline))
}

// DecidedBefore rejects a decision that contradicts the status of a tool's call.
func DecidedBefore(tool string, s Status) error {
	return fault.New(fault.Conflict, "the call of %q was decided before: it is %s", tool, s)
}
