package sandboxes

import (
	"context"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
)

// stdinPiece is how many bytes Feed writes to a process at a time.
const stdinPiece = 32 << 10

// Process is a process of a sandbox.
type Process struct {
	process.Info
	Killed error // why the server ended it; nil if it did not, or the process runs
}

func (u *Use) processOf(ctx context.Context, info process.Info) Process {
	p := Process{Info: info}
	if info.Exit != nil {
		p.Killed = u.Killed(ctx, *info.Exit)
	}
	return p
}

// commandOf returns the command of a process for the audit row.
func commandOf(spec *process.Spec) string {
	if spec.Shell != "" {
		return spec.Shell
	}
	return strings.Join(spec.Argv, "\x00")
}

func withEnv(spec process.Spec, env map[string]string) process.Spec {
	for name, value := range env {
		spec.Env = append(spec.Env, name+"="+value)
	}
	return spec
}

// Start starts a process with the given variables. The process continues after the use.
func (u *Use) Start(ctx context.Context, spec process.Spec, env map[string]string) (Process, error) {
	u.trail.starts(&spec)
	started, err := u.Guest().Start(ctx, withEnv(spec, env))
	if err != nil {
		return Process{}, err
	}
	return u.processOf(ctx, started), nil
}

// Process returns a process by id.
func (u *Use) Process(ctx context.Context, id process.ID) (Process, error) {
	found, err := u.Guest().Process(ctx, id)
	if err != nil {
		return Process{}, err
	}
	return u.processOf(ctx, found), nil
}

// Processes returns the processes that were not discarded, oldest first.
func (u *Use) Processes(ctx context.Context) ([]Process, error) {
	all, err := u.Guest().Processes(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Process, len(all))
	for i := range all {
		out[i] = u.processOf(ctx, all[i])
	}
	return out, nil
}

// Running returns the running processes, without the interpreters of code contexts.
func (u *Use) Running(ctx context.Context) ([]process.Info, error) {
	all, err := u.Guest().Processes(ctx)
	return slices.DeleteFunc(all, func(p process.Info) bool {
		return p.Exit != nil || strings.HasPrefix(string(p.ID), codecontext.ProcessPrefix)
	}), err
}

// ByPID returns a running process by its PID within the sandbox.
func (u *Use) ByPID(ctx context.Context, pid int64) (process.Info, error) {
	all, err := u.Running(ctx)
	if err != nil {
		return process.Info{}, err
	}
	i := slices.IndexFunc(all, func(p process.Info) bool { return int64(p.PID) == pid })
	if i < 0 {
		return process.Info{}, fault.New(fault.NotFound, "process with pid %d not found", pid)
	}
	return all[i], nil
}

// Wait waits until a process ends, or for timeout, and returns its state.
func (u *Use) Wait(ctx context.Context, id process.ID, timeout time.Duration) (Process, error) {
	wait, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := u.Guest().Wait(wait, id); err != nil && wait.Err() == nil {
		return Process{}, err
	}
	return u.Process(ctx, id)
}

// Feed writes content to the standard input of a process, and closes the input if end is set. It
// returns how many bytes the process's pipe has taken.
func (u *Use) Feed(ctx context.Context, id process.ID, content io.Reader, end bool) (taken int64, err error) {
	piece := make([]byte, stdinPiece)
	for {
		n, err := content.Read(piece)
		if n > 0 {
			written, err := u.Guest().Write(ctx, id, piece[:n])
			if taken += int64(written); err != nil {
				return taken, err
			}
		}
		if err == io.EOF { // not a failure that wraps it, after which the input is incomplete
			break
		}
		if err != nil {
			return taken, err
		}
	}
	if end {
		err = u.Guest().CloseInput(ctx, id)
	}
	return taken, err
}

// Signal sends a signal to a process, or to its whole process group, and returns its state.
func (u *Use) Signal(ctx context.Context, id process.ID, sig syscall.Signal, group bool) (Process, error) {
	if err := u.Guest().Signal(ctx, id, sig, group); err != nil {
		return Process{}, err
	}
	return u.Process(ctx, id)
}
