package tools

import (
	"math"

	"github.com/atoll-run/atoll/internal/core/fault"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// integer reads a number that must be whole, from least to limit: the contract has one
// type of number.
func integer(name string, v *float64, least, limit int64) (int64, error) {
	if *v != math.Trunc(*v) || *v < float64(least) || *v > float64(limit) {
		return 0, invalid("%s must be a whole number from %d to %d", name, least, limit)
	}
	return int64(*v), nil
}
