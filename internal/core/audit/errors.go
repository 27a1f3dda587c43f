package audit

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// ErrRetention rejects a Row whose retention is not a number of days up to MaxRetention.
var ErrRetention = fault.New(fault.Invalid, "the retention of an audit row is 1 to %d whole days", MaxRetention/(24*time.Hour))

// UnknownExitStatus rejects a Row with an undefined exit status.
func UnknownExitStatus(s ExitStatus) error {
	return fault.New(fault.Invalid, "%q is no exit status", s)
}
