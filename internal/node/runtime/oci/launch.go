package oci

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

// command prepares a command of the OCI runtime on a sandbox. Its own state is
// in the sandbox's folder, and goes with it.
func (r *Runtime) command(ctx context.Context, id runtime.ID, args ...string) *exec.Cmd {
	global := []string{"--root", r.dir.Path(id, runtimeDir), "--log", r.dir.Path(id, logFile)}
	if r.hidesCgroups() {
		global = append(global, "--cgroup-manager=disabled")
	}
	cmd := exec.CommandContext(ctx, r.cfg.Binary, append(global, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Dir = "/"
	// Killed with us: a sandbox without a record must not start.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return cmd
}

// entry is the way into a control group: its open files that a process writes
// "0" to. The group is hidden where the process begins.
type entry []*os.File

func openEntry(group *cgroup.Group) (entry, error) {
	var e entry
	for _, path := range group.Procs() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			e.close()
			return nil, err
		}
		e = append(e, f)
	}
	return e, nil
}

func (e entry) close() {
	for _, f := range e {
		f.Close()
	}
}

// join makes a command enter the group before it begins. No system call does
// so with one group per controller, so a shell goes first.
func (e entry) join(cmd *exec.Cmd) {
	var script strings.Builder
	for i := range e {
		fd := 3 + i // one digit: a shell need not know more
		fmt.Fprintf(&script, "echo 0 >&%d && exec %d>&- && ", fd, fd)
	}
	cmd.ExtraFiles = e
	cmd.Args = append([]string{"sh", "-c", script.String() + `exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// launch starts the sandbox and returns the process id of its guest.
func (r *Runtime) launch(ctx context.Context, spec runtime.Spec, group *cgroup.Group) (pid int, err error) {
	for _, path := range []*string{&spec.Rootfs.Image, &spec.Rootfs.Tree, &spec.Guest} {
		if *path != "" {
			if *path, err = hostPath(*path); err != nil {
				return 0, err
			}
		}
	}
	var join entry
	if group != nil && r.hidesCgroups() {
		if join, err = openEntry(group); err != nil {
			return 0, err
		}
		defer join.close()
	} // else the runtime has the group's name, and insists on finding it empty
	err = onThread(func() error {
		images := []string{cmp.Or(spec.Guest, r.cfg.Guest)}
		if spec.Rootfs.Image != "" {
			images = append(images, spec.Rootfs.Image)
		}
		dirs, err := r.stage.enter(images...)
		if err != nil {
			return err
		}
		lower := append(dirs, spec.Rootfs.Tree)[1]
		if err := buildBox(spec, lower, dirs[0]); err != nil {
			return err
		}
		return r.start(ctx, spec.ID, join)
	})
	if err != nil {
		return 0, err
	}
	data, err := os.ReadFile(r.dir.Path(spec.ID, pidFile))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(data)))
}

// start runs the OCI runtime on this thread's box.
func (r *Runtime) start(ctx context.Context, id runtime.ID, group entry) error {
	cmd := r.command(ctx, id, "run", "--detach", "--bundle", r.dir.Path(id, bundleDir), "--pid-file", r.dir.Path(id, pidFile), string(id))
	if group != nil {
		group.join(cmd)
	}
	stdin, stdout, err := r.dir.OpenStdio(id)
	if err != nil {
		return err
	}
	defer stdin.Close()
	defer stdout.Close()
	discard, err := state.Discard()
	if err != nil {
		return err
	}
	defer discard.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, discard
	if err := cmd.Run(); err != nil {
		return errors.Join(fmt.Errorf("%s run: %w: %s", r.name, err, state.Tail(r.dir.Path(id, logFile))), context.Cause(ctx))
	}
	return nil
}
