package tools

import (
	"math"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/wire"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// integer reads a number that must be whole, from least to limit.
func integer(name string, v *wire.Whole, least, limit int64) (int64, error) {
	n := float64(*v)
	if n != math.Trunc(n) || n < float64(least) || n > float64(limit) {
		return 0, invalid("%s must be a whole number from %d to %d", name, least, limit)
	}
	return int64(n), nil
}
