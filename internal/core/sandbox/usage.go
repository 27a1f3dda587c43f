package sandbox

import (
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Usage is what a sandbox uses: zero for one that has no memory of this machine.
// It wakes nothing.
type Usage struct {
	runtime.Usage
	Disk int64 // bytes of its home, /tmp and /var/tmp
}
