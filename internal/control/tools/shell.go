package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// MaxShown limits the bytes of each stream that shell returns: 256 KiB. Atoll reads
// and discards the rest, so that the command does not block.
const MaxShown = 256 << 10

// overdue is how long the caller waits after a command's timeout, at which the sandbox
// should have ended the command.
const overdue = 10 * time.Second

var errOverdue = fault.New(fault.Conflict, "the command timed out, and the sandbox did not stop it and does not respond. The command may have taken effect. Destroy the sandbox if this happens again")

// timedOut is shell's exit code for a command that timed out, the same as timeout(1)'s.
const timedOut = 124

func shell(ctx context.Context, c *call, in *ShellInput) (*ShellOutput, error) {
	timeout, err := c.timeout(in.TimeoutMS)
	if err != nil {
		return nil, err
	}
	c.row.Command = []byte(*in.Command)
	var out *ShellOutput
	err = c.use(ctx, *in.Sandbox, func(h sandbox.Handle) error {
		covers, err := h.Redactor(ctx)
		if err != nil {
			return err
		}
		work, end := context.WithTimeoutCause(ctx, timeout+c.set.overdue, errOverdue)
		defer end()
		env, leave, err := c.offerWeb(work, h)
		if err != nil {
			return err
		}
		defer leave()
		began := time.Now()
		run, err := c.start(work, h, process.Spec{
			Shell: *in.Command, Dir: *in.WorkingDir, Env: env, Timeout: timeout, Lossless: true,
		})
		if err != nil {
			return err
		}
		defer run.Close()
		var tails [2]execution.Tail
		if out, err = c.gather(run, covers, &tails); err != nil {
			return abandoned(ctx, h, run, err)
		}
		if out.ExitCode != 0 {
			if started := run.Info().Started; started.Before(began) { // another caller has begun it
				began = started
			}
			out.Hint = h.NetworkHint(began, [][]byte{tails[1], tails[0]})
		}
		if out.Blocked == "" && h.Sandbox().Permissions.Process.NoExec && refusedFork(out) {
			out.Blocked = "allow_exec: false, so commands start no other programs"
			c.row.Reason = "stopped by the permission allow_exec"
		}
		return h.Killed(ctx, run.Exit())
	})
	return out, err
}

// timeout returns the timeout of a command, which the caller's plan limits.
func (c *call) timeout(ms *wire.Whole) (time.Duration, error) {
	asked, err := integer("timeout_ms", ms, 1, maxWhole)
	if err != nil {
		return 0, err
	}
	most := c.set.cfg.Policies.Policy(c.by.Principal).MaxTimeout
	if asked > most.Milliseconds() {
		return 0, fault.Limit("timeout", time.Time{}, "timeout_ms exceeds your plan's maximum of %d; lower it, or start the command in the background", most.Milliseconds())
	}
	return time.Duration(asked) * time.Millisecond, nil
}

// gather reads a command's output until it ends, and keeps the tails of its streams.
func (c *call) gather(run process.Output, covers *redact.Set, tails *[2]execution.Tail) (*ShellOutput, error) {
	var stdout, stderr shown
	covered := covers.Pair(
		func(p []byte) { stdout.add(p); tails[0].Add(p) },
		func(p []byte) { stderr.add(p); tails[1].Add(p) },
	)
	for {
		chunk, err := run.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch chunk.Stream {
		case process.Stdout:
			c.row.StdoutBytes += int64(len(chunk.Data)) + chunk.Dropped
			covered.Write(redact.Stdout, chunk.Data)
		case process.Stderr:
			c.row.StderrBytes += int64(len(chunk.Data)) + chunk.Dropped
			covered.Write(redact.Stderr, chunk.Data)
		}
	}
	covered.Flush()
	exit := run.Exit()
	out := &ShellOutput{
		Stdout: stdout.text(), StdoutTruncated: stdout.more, Stderr: stderr.text(), StderrTruncated: stderr.more,
		ExitCode: exit.Code, TimedOut: exit.TimedOut,
	}
	c.row.StdoutTruncated, c.row.StderrTruncated = out.StdoutTruncated, out.StderrTruncated
	if exit.TimedOut {
		out.ExitCode = timedOut
	}
	switch c.row.ExitCode = out.ExitCode; {
	case exit.TimedOut:
		c.row.Status, c.row.Reason = audit.Timeout, "timeout_ms was over"
	case exit.Blocked != "":
		out.Blocked = exit.Blocked
		c.row.Status, c.row.Reason = audit.Error, "ended by the permission "+exit.Blocked
	case exit.Code != 0:
		c.row.Status, c.row.Reason = audit.Error, fmt.Sprintf("the command exited with status %d", exit.Code)
	}
	return out, nil
}

// refusedFork reports whether a command failed because it could not start another program. Shells
// word this differently.
func refusedFork(out *ShellOutput) bool {
	return out.ExitCode != 0 && (strings.Contains(strings.ToLower(out.Stderr), "fork") || strings.Contains(out.Stderr, "Operation not permitted"))
}

// shown keeps the beginning of a stream.
type shown struct {
	kept []byte
	more bool
}

func (s *shown) add(p []byte) {
	room := min(len(p), MaxShown-len(s.kept))
	s.kept = append(s.kept, p[:room]...)
	s.more = s.more || room < len(p)
}

// text returns the kept bytes, cut at a whole character.
func (s *shown) text() string {
	if s.more {
		return text(whole(s.kept))
	}
	return text(s.kept)
}

// text converts bytes to a valid UTF-8 string for JSON.
func text(p []byte) string { return strings.ToValidUTF8(string(p), "\ufffd") }
