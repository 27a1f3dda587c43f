package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// freezeTime bounds the wait for processes to stop, which takes them less than a
// millisecond.
const freezeTime = 5 * time.Second

// Freeze implements sandbox.Instance.
func (i *Instance) Freeze(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, freezeTime, fmt.Errorf("its processes have not stopped within %s", freezeTime))
	defer cancel()
	if i.runtime.cfg.Cgroups != nil {
		return i.runtime.cfg.Cgroups.Group(string(i.id)).Freeze(ctx)
	}
	if err := i.stop(ctx); err != nil {
		return errors.Join(fmt.Errorf("freeze %s: %w", i.id, err), i.Thaw(ctx))
	}
	return nil
}

// Thaw implements sandbox.Instance.
func (i *Instance) Thaw(context.Context) error {
	if i.runtime.cfg.Cgroups != nil {
		return i.runtime.cfg.Cgroups.Group(string(i.id)).Thaw()
	}
	var errs []error
	for _, pid := range append(descendants(i.pid), i.pid) {
		if err := unix.Kill(pid, unix.SIGCONT); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("continue process %d of %s: %w", pid, i.id, err))
		}
	}
	return errors.Join(errs...)
}

// stop stops the kernel, which could start other processes and let them go on,
// and then those that run the programs. The file server has nothing to do
// without them.
func (i *Instance) stop(ctx context.Context) error {
	stopped := map[int]bool{}
	for pids := []int{i.pid}; len(pids) > 0; pids = descendants(i.pid) {
		fresh := false
		for _, pid := range pids {
			if stopped[pid] {
				continue
			}
			if err := unix.Kill(pid, unix.SIGSTOP); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			if err := untilStopped(ctx, pid); err != nil {
				return fmt.Errorf("process %d: %w", pid, err)
			}
			stopped[pid], fresh = true, true
		}
		if !fresh {
			return nil
		}
	}
	return nil
}

// untilStopped waits for all threads of a process to have stopped, or ended.
func untilStopped(ctx context.Context, pid int) error {
	for wait := 50 * time.Microsecond; running(pid); wait = min(2*wait, 10*time.Millisecond) {
		select {
		case <-time.After(wait): // a stop of somebody else's child gives no signal
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func running(pid int) bool {
	stats, err := filepath.Glob(procPath(pid, "task/*/stat"))
	if err != nil {
		return false
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
		if rest != "" && !strings.ContainsRune("TtZX", rune(rest[0])) {
			return true
		}
	}
	return false
}

// descendants lists the processes that a process started, and those they did.
func descendants(pid int) []int {
	lists, err := filepath.Glob(procPath(pid, "task/*/children")) // a process hangs from the thread that started it
	if err != nil {
		return nil
	}
	var pids []int
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread ended
		}
		for f := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(f); err == nil {
				pids = append(append(pids, child), descendants(child)...)
			}
		}
	}
	return pids
}
