package gvisor

import (
	"context"
	"fmt"
)

// Freeze implements sandbox.Instance. The kernel itself is asked: one that is
// stopped from outside, by its control group or by signals, while its programs are
// busy loses the state of some, which then die.
func (i *Instance) Freeze(ctx context.Context) error {
	err := i.runsc(ctx, "pause")
	if err == nil {
		return nil
	}
	if status, unknown := i.status(ctx); unknown == nil && status == "paused" {
		return nil
	}
	return fmt.Errorf("freeze: %w", err)
}

// Thaw implements sandbox.Instance.
func (i *Instance) Thaw(ctx context.Context) error { return i.Resume(ctx) }
