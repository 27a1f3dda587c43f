package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Containers is a folder for containers of one program.
type Containers struct {
	rig  *Rig
	dir  string // their bundle, the checkpoint, and what runsc has to keep
	made int
}

// Containers makes a folder for containers of a program in Python that holds as much
// memory, which nothing can compress.
func (r *Rig) Containers(mib int) (*Containers, error) {
	dir, err := r.Temp("containers")
	if err != nil {
		return nil, err
	}
	const echo = "import os\nheld = os.urandom(%d << 20)\nwhile said := os.read(0, 1): os.write(1, said)"
	type object = map[string]any
	config, err := json.Marshal(object{
		"ociVersion": "1.2.1", "hostname": "bench", "root": object{"path": "rootfs"},
		"process": object{
			"cwd": "/", "env": r.env(), "user": object{"uid": 0, "gid": 0},
			"args": r.argv(Program{Language: execution.Python, Code: fmt.Sprintf(echo, mib)}),
		},
		"annotations": object{
			"dev.gvisor.spec.rootfs.source": r.Image.File, "dev.gvisor.spec.rootfs.type": "erofs", "dev.gvisor.spec.rootfs.overlay": "memory",
		},
		"linux": object{"namespaces": []object{{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}}},
	})
	if err != nil {
		return nil, err
	}
	c := &Containers{rig: r, dir: dir}
	return c, errors.Join(
		os.Mkdir(filepath.Join(dir, "rootfs"), 0o755),
		os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600),
	)
}

func (c *Containers) saved() string { return filepath.Join(c.dir, "saved") }

func (c *Containers) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.rig.Stock, append([]string{"--root=" + filepath.Join(c.dir, "runsc"), "--network=none"}, args...)...)
	// Ctrl-C is for the benchmarks, which end containers in their own time.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (c *Containers) run(ctx context.Context, args ...string) error {
	if out, err := c.command(ctx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("runsc %s: %w: %s", args[0], err, tail(strings.TrimSpace(string(out))))
	}
	return nil
}

// Run starts the program, and waits until it answers. The caller must Delete it.
func (c *Containers) Run(ctx context.Context) (*Container, error) {
	all, _, err := c.answering(ctx, 1, "run")
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Restore makes copies from the checkpoint, all at once, deletes them, and returns how
// long it took until all had answered.
func (c *Containers) Restore(ctx context.Context, count int) (time.Duration, error) {
	all, took, err := c.answering(ctx, count, "restore", "--image-path="+c.saved())
	return took, errors.Join(err, deleteAll(all))
}

// answering makes containers whose programs have answered.
func (c *Containers) answering(ctx context.Context, count int, command ...string) (all []*Container, took time.Duration, err error) {
	begun := time.Now()
	for range count {
		k, err := c.launch(ctx, command...)
		if err != nil {
			return nil, 0, errors.Join(err, deleteAll(all))
		}
		all = append(all, k)
		if err := k.ask(); err != nil {
			return nil, 0, errors.Join(err, deleteAll(all))
		}
	}
	for _, k := range all {
		if err := k.hear(); err != nil {
			return nil, 0, errors.Join(fmt.Errorf("runsc %s: %w", command[0], err), deleteAll(all))
		}
	}
	return all, time.Since(begun), nil
}

// launch has runsc make a container with a program, by running or by restoring it.
func (c *Containers) launch(ctx context.Context, command ...string) (_ *Container, err error) {
	c.made++
	k := &Container{of: c, id: fmt.Sprintf("c%d", c.made)}
	k.cmd = c.command(ctx, append(command, "--bundle="+c.dir, k.id)...)
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer stdout.Close()
	k.in, k.out = in, out
	k.cmd.Stdin, k.cmd.Stdout, k.cmd.Stderr = stdin, stdout, &k.stderr
	k.cmd.WaitDelay = time.Second // for what holds the other end of stderr
	if err := k.cmd.Start(); err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	return k, nil
}

func deleteAll(all []*Container) error {
	var errs []error
	for _, k := range all {
		errs = append(errs, k.Delete())
	}
	return errors.Join(errs...)
}
