package initclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

func (c *Command) wire() wire.Command {
	return wire.Command{
		Language: c.Language,
		Path:     c.Path,
		Argv:     c.Argv,
		Env:      c.Env,
		Dir:      c.Dir,
		Limits:   wire.Limits{Processes: uint64(max(c.Limits.Processes, 0)), OpenFiles: uint64(max(c.Limits.OpenFiles, 0))},
	}
}

// Warm starts an interpreter that waits for its program, and returns when it
// waits. One that waited before it ends.
func (c *Client) Warm(ctx context.Context, spec WarmSpec) error {
	m := wire.WarmMessage{Command: spec.Command.wire(), Site: spec.Site, Preload: spec.Preload}
	return c.call(ctx, "warm", wire.Warm, m.Append(nil))
}

// Renew ends all that is left of the program that ran, and returns when an interpreter
// waits for the next one in namespaces and files of its own. Nothing of the one shows in
// the other. After an error the sandbox is to be destroyed.
func (c *Client) Renew(ctx context.Context, spec RenewSpec) error {
	m := wire.RenewMessage{
		WarmMessage: wire.WarmMessage{Command: spec.Command.wire(), Site: spec.Site, Preload: spec.Preload},
		Root:        uint64(max(spec.Root, 0)), Tmp: uint64(max(spec.Tmp, 0)), Shm: uint64(max(spec.Shm, 0)), Inodes: uint64(max(spec.Inodes, 0)),
	}
	return c.call(ctx, "renew", wire.Renew, m.Append(nil))
}

// maxRule bounds what a guest says of the rule that ended a run, in bytes.
const maxRule = 4 << 10

// Confine says what programs may do, before the first is started. A guest that
// cannot enforce it says so.
func (c *Client) Confine(ctx context.Context, p runtime.Permissions) error {
	m := wire.ConfineMessage{
		Listed: p.Filesystem.Writable != nil, Writable: p.Filesystem.Writable, ReadOnly: p.Filesystem.ReadOnly, Blocked: p.Filesystem.Blocked,
		Root: p.Process.Root, NoExec: p.Process.NoExec, Commands: p.Process.BlockedCommands, MaxProcesses: uint64(max(p.Process.MaxProcesses, 0)),
	}
	return c.call(ctx, "confine", wire.Confine, m.Append(nil))
}

// Reseed tells a guest that was restored from a checkpoint that others were, too:
// from then on waiting interpreters seed their random generators anew. The
// kernel's own entropy differs between them by itself.
func (c *Client) Reseed(ctx context.Context, r Reseed) error {
	m := wire.ReseedMessage{Hostname: r.Hostname, MachineID: r.MachineID}
	return c.call(ctx, "reseed", wire.Reseed, m.Append(nil))
}

// Enter gives programs another home directory: the folder HomeName of what is
// mounted at SharedFolder, which then is mounted there no more. An empty one is
// filled with what the image has there, if that is wanted. It comes before the
// first program, and may be asked for twice.
func (c *Client) Enter(ctx context.Context, fill bool) error {
	m := wire.EnterMessage{Fill: fill}
	return c.call(ctx, "enter the home directory", wire.Enter, m.Append(nil))
}

// Protect makes folders read-only that the host has mounted since the sandbox was made.
// It comes before the first program, and once.
func (c *Client) Protect(ctx context.Context, folders []string) error {
	m := wire.ProtectMessage{Folders: folders}
	return c.call(ctx, "make folders read-only", wire.Protect, m.Append(nil))
}

// StartDaemon has the sandbox's guest daemon come to the host, which listens in the folder
// that is mounted for it, and starts it if there is none; limits are of what it
// starts. From the first time on no other programs can be run or warmed.
func (c *Client) StartDaemon(ctx context.Context, l Limits) error {
	m := wire.StartDaemonMessage{Limits: wire.Limits{Processes: uint64(max(l.Processes, 0)), OpenFiles: uint64(max(l.OpenFiles, 0))}}
	return c.call(ctx, "start the guest daemon", wire.StartDaemon, m.Append(nil))
}

// Where Enter finds the home.
const (
	SharedFolder = wire.Shared
	HomeName     = wire.HomeName
)

// Ping returns when the guest has answered.
func (c *Client) Ping(ctx context.Context) error {
	return c.call(ctx, "ping", wire.Ping, nil)
}

// call sends a request and waits for its answer, an *Error if it was refused.
func (c *Client) call(ctx context.Context, op string, t wire.Type, body []byte) error {
	answer := make(chan error, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.calls[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
	}()
	if err := c.send.send(ctx, wire.Frame{Type: t, ID: id, Payload: body}, c.ackPrefix); err != nil {
		return fmt.Errorf("%s: %w", op, c.because(err))
	}
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	case <-c.done:
		return fmt.Errorf("%s: %w", op, c.failure())
	}
	if refusal, ok := errors.AsType[*Error](err); ok {
		refusal.Op = op
	}
	return err
}
