package app

import (
	"runtime/debug"

	"github.com/atoll-run/atoll/internal/app/config"
)

// limitMemory has the garbage collector keep this process below half of the memory of the machine,
// or of the control group that it is in: sandboxes need the rest. It is a goal and no hard limit.
// GOMEMLIMIT of the environment wins.
func limitMemory(getenv func(string) string, m config.Machine) int64 {
	if getenv("GOMEMLIMIT") == "" && m.Memory > 0 {
		debug.SetMemoryLimit(m.Memory / 2)
	}
	return debug.SetMemoryLimit(-1)
}
