package main

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/bench/rig"
)

// alone is what a user has of gVisor's own runsc without Atoll: a container
// whose program holds some memory and answers.
type alone struct {
	*rig.Containers
	one    *rig.Container
	failed error // why there is none: every sample says so
}

// contain starts one. It must be ended.
func contain(ctx context.Context, b *bench, mib int) *alone {
	a := new(alone)
	if a.Containers, a.failed = b.rig.Containers(mib); a.failed == nil {
		a.one, a.failed = a.Run(ctx)
	}
	return a
}

func (a *alone) end() error {
	if a.one == nil {
		return nil
	}
	one := a.one
	a.one = nil
	return one.Delete()
}

func (a *alone) baseline(name string, count int, take func() (time.Duration, error)) baseline {
	return baseline{name, count, func() (time.Duration, error) {
		if a.failed != nil {
			return 0, a.failed
		}
		return take()
	}}
}

// resume is the baseline of a frozen sandbox's wake.
func (a *alone) resume(ctx context.Context, count int) baseline {
	return a.baseline("runsc resume, p50", count, func() (time.Duration, error) {
		if err := a.one.Pause(ctx); err != nil {
			return 0, err
		}
		return a.one.Resume(ctx)
	})
}

// restore is the baseline of a wake from disk. What is on disk runs no longer.
func (a *alone) restore(ctx context.Context, count int) baseline {
	if a.failed == nil {
		_, a.failed = a.one.Checkpoint(ctx)
	}
	if a.failed == nil {
		a.failed = a.end()
	}
	return a.baseline("runsc restore, p50", count, func() (time.Duration, error) { return a.Restore(ctx, 1) })
}

// copy is the baseline of copies of a sandbox that goes on.
func (a *alone) copy(ctx context.Context, count, copies int) baseline {
	return a.baseline(fmt.Sprintf("runsc checkpoint, %d × restore, p50", copies), count, func() (time.Duration, error) {
		saved, err := a.one.Checkpoint(ctx)
		if err != nil {
			return 0, err
		}
		made, err := a.Restore(ctx, copies)
		return saved + made, err
	})
}
