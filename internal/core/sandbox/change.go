package sandbox

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Change says what to change of a sandbox; nil leaves a thing as it is.
type Change struct {
	Timeout    *time.Duration // from now until it is destroyed; 0 is the longest that the plan allows
	SleepAfter *time.Duration // 0 is the server's default, negative never
	Network    *runtime.NetworkPolicy
}
