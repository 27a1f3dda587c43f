package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Freeze stops every process of the group, and returns when all have stopped.
// If that cannot be, they go on.
//
// Version 1 has a hierarchy of its own for this. A group is made in it when it is
// first frozen: most sandboxes never are, and each group costs their start.
func (g *Group) Freeze(ctx context.Context) error {
	err := g.freeze(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("freeze control group %s: %w", g.name, err), g.Thaw())
	}
	return nil
}

func (g *Group) freeze(ctx context.Context) error {
	if g.parent.version == V2 {
		dir := filepath.Join(g.parent.dirs[""], g.name)
		if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("1"), 0); err != nil {
			return err
		}
		return until(ctx, func() (bool, error) { return readKeys(filepath.Join(dir, "cgroup.events"), "frozen") == 1, nil })
	}
	dir := g.freezer()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := g.gather(dir); err != nil {
		return err
	}
	state := filepath.Join(dir, "freezer.state")
	// What was just being started, or told something else, may miss that it is to
	// stop, and is told again; what misses it for long, once it has gone on a little.
	for {
		try, cancel := context.WithTimeoutCause(ctx, freezeAgain, errNotFrozen)
		err := until(try, func() (bool, error) {
			if err := os.WriteFile(state, []byte("FROZEN"), 0); err != nil {
				return false, err
			}
			now, err := os.ReadFile(state)
			return strings.TrimSpace(string(now)) == "FROZEN", err
		})
		cancel()
		if !errors.Is(err, errNotFrozen) {
			return err
		}
		if err := os.WriteFile(state, []byte("THAWED"), 0); err != nil {
			return err
		}
		time.Sleep(freezePause)
	}
}

var errNotFrozen = errors.New("the processes have not stopped yet")

const (
	freezeAgain = 250 * time.Millisecond // of being told to stop, before they go on
	freezePause = 10 * time.Millisecond  // in which they do
)

// gather moves the group's processes into its freezer group. What one of them
// starts after it was moved is there from its beginning.
func (g *Group) gather(dir string) error {
	target := filepath.Join(dir, "cgroup.procs")
	for {
		there, err := os.ReadFile(target)
		if err != nil {
			return err
		}
		known := map[string]bool{strconv.Itoa(os.Getpid()): true} // listed while a thread of it starts one
		for pid := range strings.FieldsSeq(string(there)) {
			known[pid] = true
		}
		members, err := os.ReadFile(filepath.Join(g.parent.dirs["memory"], g.name, "cgroup.procs"))
		if err != nil {
			return err
		}
		moved := false
		for pid := range strings.FieldsSeq(string(members)) {
			if known[pid] {
				continue
			}
			if _, err := strconv.Atoi(pid); err != nil {
				return err
			}
			if err := os.WriteFile(target, []byte(pid), 0); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			moved = true
		}
		if !moved {
			return nil
		}
	}
}

// freezer is the group's folder in version 1's hierarchy for freezing.
func (g *Group) freezer() string { return filepath.Join(mountpoint, "freezer", g.parent.name, g.name) }

// Thaw has the processes of the group go on; one that is not frozen, or does not
// exist, is no error.
func (g *Group) Thaw() error {
	path, text := filepath.Join(g.parent.dirs[""], g.name, "cgroup.freeze"), "0"
	if g.parent.version == V1 {
		path, text = filepath.Join(g.freezer(), "freezer.state"), "THAWED"
	}
	if err := os.WriteFile(path, []byte(text), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("thaw control group %s: %w", g.name, err)
	}
	return nil
}

// until asks ever less often until the answer is yes.
func until(ctx context.Context, done func() (bool, error)) error {
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
