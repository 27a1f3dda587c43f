package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// homeError is why a program is ended that fills its home or the disk.
type homeError struct{ reason string }

func (e *homeError) Error() string { return e.reason }

// homeTick is how often a home is looked at while its program runs.
const homeTick = 250 * time.Millisecond

// watchHome ends the program when its home outgrows the thread's quota, or when
// the disk is about to be full. Both are noticed late: a program may write for
// homeTick and as long as the measuring takes before it is stopped.
func (t *task) watchHome() (stop func()) {
	if t.job.Thread == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(t.ctx)
	w := &disk.Watch{Dir: t.x.cfg.Sandboxes.HomePath(t.sandbox.Folder()), Limit: t.job.Thread.Quota, Keep: t.x.cfg.HomeFree}
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(homeTick)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if err := w.Look(ctx, now); err != nil {
					t.cancel(homeReason(err, t.job.Thread.Quota))
					return
				}
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// homeReason is what the caller is told of what Look has found. What cannot be
// measured is left to who saves the home.
func homeReason(err error, quota int64) *homeError {
	switch {
	case errors.Is(err, disk.ErrFull):
		return &homeError{"the server is low on disk space; the program was ended, and its thread is as it was before"}
	case errors.Is(err, disk.ErrFiles):
		return &homeError{"the server's disk takes hardly more files; the program was ended, and its thread is as it was before"}
	}
	return &homeError{fmt.Sprintf("thread quota exceeded: the home directory takes more than %s of disk; the program was ended, and its thread is as it was before",
		runtime.FormatBytes(quota))}
}
