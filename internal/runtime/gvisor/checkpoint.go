package gvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Checkpoint implements sandbox.Instance. Programs are paused around it by a
// command of their own: gVisor ends a sandbox whose checkpoint has failed unless
// it is to go on anyway, and one that goes on would change its mounts.
func (i *Instance) Checkpoint(ctx context.Context, dir string) error {
	if err := i.Freeze(ctx); err != nil {
		return err
	}
	err := i.runsc(ctx, "checkpoint", "--image-path="+dir, "--compression=none", "--leave-running")
	if err == nil {
		return nil
	}
	undo := context.WithoutCancel(ctx)
	if resumed := i.Resume(undo); resumed != nil {
		return errors.Join(err, resumed)
	}
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(&sandbox.SaveError{Reason: err.Error()}, empty(dir))
}

// Resume implements sandbox.Instance.
func (i *Instance) Resume(ctx context.Context) error {
	err := i.runsc(ctx, "resume")
	if err == nil {
		return nil
	}
	if status, unknown := i.status(ctx); unknown == nil && status == "running" {
		return nil // it was not paused
	}
	return err
}

// status is what runsc says the sandbox is.
func (i *Instance) status(ctx context.Context) (string, error) {
	out, err := i.runtime.command(ctx, i.id, "state", string(i.id)).Output()
	if err != nil {
		return "", err
	}
	var state struct{ Status string }
	err = json.Unmarshal(out, &state)
	return state.Status, err
}

// runsc runs a command on the sandbox.
func (i *Instance) runsc(ctx context.Context, name string, args ...string) error {
	cmd := i.runtime.command(ctx, i.id, append(append([]string{name}, args...), string(i.id))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("runsc %s %s: %w: %s", name, i.id, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// empty removes what a checkpoint that failed has left in its folder.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}
