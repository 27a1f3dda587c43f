package gvisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// The files of a checkpoint, in the order in which a kernel is given them: its
// objects, where the pages of memory belong, and these.
var checkpointFiles = [...]string{"checkpoint.img", "pages_meta.img", "pages.img"}

// Checkpoint implements runtime.Instance. Programs are paused around it: gVisor
// ends a sandbox whose checkpoint has failed unless it is to go on anyway, and one
// that goes on would change its mounts.
func (i *Instance) Checkpoint(ctx context.Context, dir string) error {
	if err := i.Freeze(ctx); err != nil {
		return err
	}
	files, err := openAll(dir, os.O_CREATE|os.O_EXCL|os.O_RDWR)
	if err == nil {
		err = i.runtime.control(ctx, i.id, controlCheckpoint, map[string]any{
			"Metadata": map[string]string{"compression": "none"}, "have_pages_file": true, "Resume": true,
		}, files...)
	}
	if err = errors.Join(err, closeAll(files)); err == nil {
		return nil
	}
	undo := context.WithoutCancel(ctx)
	err = errors.Join(err, empty(dir))
	if resumed := i.Resume(undo); resumed != nil {
		return errors.Join(err, resumed)
	}
	if refused, ok := errors.AsType[*controlError](err); ok {
		return &runtime.SaveError{Reason: refused.message}
	}
	return err
}

func openAll(dir string, flags int) (files []*os.File, err error) {
	for _, name := range checkpointFiles {
		f, err := os.OpenFile(filepath.Join(dir, name), flags, 0o600)
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Resume implements runtime.Instance.
func (i *Instance) Resume(ctx context.Context) error { return i.Thaw(ctx) }

// empty removes what a checkpoint that failed has left in its folder.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}
