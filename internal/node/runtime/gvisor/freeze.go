package gvisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// pauseFile says in a sandbox's folder that it is paused, or may be. gVisor counts
// pauses, cannot be asked for their number, and dies of an end without a beginning.
const pauseFile = "pause"

const (
	paused    = "paused"   // it is
	uncertain = "changing" // it is about to be, or to go on
)

// pauseTime bounds pausing and going on, which take milliseconds: a kernel that does
// not answer must not keep a caller that waits for it and may be about to end it.
const pauseTime = 30 * time.Second

// Freeze implements runtime.Instance. The kernel itself is asked: one that is
// stopped from outside, by its control group or by signals, while its programs are
// busy loses the state of some, which then die. One that has not said that they stand
// still may have stopped them, or be about to: they go on.
func (i *Instance) Freeze(ctx context.Context) error {
	err := i.change(ctx, true)
	if err != nil {
		if undo := i.change(context.WithoutCancel(ctx), false); undo != nil {
			err = fmt.Errorf("%w; %w", err, undo)
		}
	}
	return err
}

// Thaw implements runtime.Instance.
func (i *Instance) Thaw(ctx context.Context) error {
	return i.change(ctx, false)
}

// change pauses the kernel's programs, or has them go on, unless it is so.
func (i *Instance) change(ctx context.Context, pause bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pauseTime, fmt.Errorf("it took more than %s", pauseTime))
	defer cancel()
	i.pausing.Lock()
	defer i.pausing.Unlock()
	is, err := i.isPaused(ctx)
	if err != nil || is == pause {
		return err
	}
	method := controlResume
	if pause {
		method = controlPause
	}
	if err := os.WriteFile(i.runtime.dir.Path(i.id, pauseFile), []byte(uncertain), 0o600); err != nil {
		return err
	}
	if err := i.runtime.control(ctx, i.id, method, nil); err != nil {
		return err
	}
	return i.note(pause)
}

// note writes down what is certain.
func (i *Instance) note(pause bool) error {
	path := i.runtime.dir.Path(i.id, pauseFile)
	if pause {
		return os.WriteFile(path, []byte(paused), 0o600)
	}
	return os.Remove(path)
}

// isPaused reports whether the kernel's programs are paused. i.pausing is held.
func (i *Instance) isPaused(ctx context.Context) (bool, error) {
	said, err := os.ReadFile(i.runtime.dir.Path(i.id, pauseFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case string(said) == paused:
		return true, nil
	}
	// The process that changed it last was killed meanwhile.
	is, err := i.runtime.stands(ctx, i.id)
	if err != nil {
		return false, err
	}
	return is, i.note(is)
}

// standsFor is how long process 1 is looked at, and how often. It waits for
// something that does not concern it, such as a program it has just forked, for
// moments only.
const (
	standsFor = 300 * time.Millisecond
	looks     = 30
)

// stands reports whether the programs of a sandbox are paused: then process 1 is,
// which nothing inside can stop.
func (r *Runtime) stands(ctx context.Context, id runtime.ID) (bool, error) {
	tick := time.NewTicker(standsFor / looks)
	defer tick.Stop()
	for range looks {
		state, err := r.read(ctx, id, "/proc/1/stat")
		if err != nil {
			return false, fmt.Errorf("find out whether sandbox %s is paused: %w", id, err)
		}
		// "1 (name) D …": neither running nor waiting to be interrupted.
		if end := bytes.LastIndexByte(state, ')'); end < 0 || !bytes.HasPrefix(state[end+1:], []byte(" D ")) {
			return false, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return true, nil
}

// read reads the beginning of a file as a sandbox's kernel shows it.
func (r *Runtime) read(ctx context.Context, id runtime.ID, path string) ([]byte, error) {
	const most = 4096 // a pipe holds it
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	err = r.control(ctx, id, controlRead, map[string]any{"path": path, "size": most}, in)
	in.Close()
	if err != nil {
		return nil, err
	}
	// The kernel has said that it has written, and may have lied.
	defer context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(time.Unix(1, 0)) })()
	data := make([]byte, most)
	n, err := out.Read(data)
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return data[:n], nil
}
