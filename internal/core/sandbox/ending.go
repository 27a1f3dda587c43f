package sandbox

import (
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Ending is a time in which all programs of a sandbox were ended.
type Ending struct {
	From, Until time.Time // Until is zero while they are
	Reason      string
	Dimension   string // of the limit that was reached; "" for none
}

// why is what a caller is told whose program ended so.
func (e *Ending) Err() error {
	if e.Dimension != "" {
		return fault.Limit(e.Dimension, time.Time{}, "%s", e.Reason)
	}
	return fault.New(fault.Unavailable, "%s", e.Reason)
}

// ending begins one.
func NewEnding(why error) Ending {
	e := Ending{From: time.Now().UTC(), Reason: why.Error()}
	if f, ok := errors.AsType[*fault.Error](why); ok {
		e.Reason, e.Dimension = f.Msg, f.Dimension
	}
	return e
}
