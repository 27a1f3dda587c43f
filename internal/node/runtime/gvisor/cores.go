package gvisor

import (
	"fmt"
	"math"
	"os/exec"
	goruntime "runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// cores gives sandboxes processors of their own number, where there is no
// control group to hold their share: a sandbox bound to n processors cannot use
// more than n. Fractions cannot be held in that way.
type cores struct {
	mu   sync.Mutex
	next int // guarded by mu; where the search for the next sandbox's begins
}

// check reports, as ErrUnsupported, a share that cannot be held.
func (c *cores) check(share float64) error {
	if share >= float64(goruntime.NumCPU()) || share == math.Trunc(share) {
		return nil
	}
	return fmt.Errorf("%w: %g cores cannot be held without control groups, only whole ones: set cpu to a whole number, or delegate cgroups "+
		"(systemd-run --user --scope -p Delegate=yes atoll …)", runtime.ErrUnsupported, share)
}

// start starts cmd on as many processors as the share is; more than there are
// means all.
func (c *cores) start(cmd *exec.Cmd, share float64) error {
	var all unix.CPUSet
	n := int(min(share, float64(goruntime.NumCPU())))
	if n >= goruntime.NumCPU() || unix.SchedGetaffinity(0, &all) != nil {
		return cmd.Start()
	}
	// A process starts with the processors of the thread that started it.
	goruntime.LockOSThread()
	some := c.pick(all, n)
	if err := unix.SchedSetaffinity(0, &some); err != nil {
		goruntime.UnlockOSThread()
		return fmt.Errorf("bind to %d processors: %w", n, err)
	}
	err := cmd.Start()
	if undo := unix.SchedSetaffinity(0, &all); undo != nil {
		// Not unlocked, the thread ends with its goroutine.
		return fmt.Errorf("undo binding to %d processors: %w", n, undo)
	}
	goruntime.UnlockOSThread()
	return err
}

// pick takes n processors in turn.
func (c *cores) pick(all unix.CPUSet, n int) unix.CPUSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	var some unix.CPUSet
	for size := len(all) * 64; some.Count() < n; c.next = (c.next + 1) % size {
		if all.IsSet(c.next) {
			some.Set(c.next)
		}
	}
	return some
}

// bound reports a process that may use more processors than its share.
func bound(pid int, share float64) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return err
	}
	if n := set.Count(); float64(n) > share && share < float64(goruntime.NumCPU()) {
		return fmt.Errorf("the sandbox may use %d processors instead of %g", n, share)
	}
	return nil
}
