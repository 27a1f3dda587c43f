package atoll

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// StartProcess starts a process in a sandbox.
func (c *Client) StartProcess(ctx context.Context, ref SandboxRef, in NewProcess) (SandboxProcess, error) {
	return create[SandboxProcess](ctx, c, ref.path("processes"), ref.query(), in)
}

// Processes lists the processes of a sandbox.
func (c *Client) Processes(ctx context.Context, ref SandboxRef) ([]SandboxProcess, error) {
	all, err := call[SandboxProcesses](ctx, c, http.MethodGet, ref.path("processes"), ref.query(), nil)
	return all.Data, err
}

// Process returns a process.
func (c *Client) Process(ctx context.Context, ref SandboxRef, id string) (SandboxProcess, error) {
	return call[SandboxProcess](ctx, c, http.MethodGet, ref.path("processes", id), ref.query(), nil)
}

// WaitProcess waits until a process ends, at most for most, and returns the process. 0 means the
// server's own limit.
func (c *Client) WaitProcess(ctx context.Context, ref SandboxRef, id string, most time.Duration) (SandboxProcess, error) {
	q := ref.query()
	if most > 0 {
		q.Set("timeout_ms", strconv.FormatInt(most.Milliseconds(), 10))
	}
	return call[SandboxProcess](ctx, c, http.MethodGet, ref.path("processes", id, "wait"), q, nil)
}

// SignalProcess sends a signal to a process and its process group.
func (c *Client) SignalProcess(ctx context.Context, ref SandboxRef, id, signal string) (SandboxProcess, error) {
	return call[SandboxProcess](ctx, c, http.MethodPost, ref.path("processes", id, "signal"), ref.query(), ProcessSignal{Signal: signal})
}

// EndProcess ends a process with all its children, and discards its output.
func (c *Client) EndProcess(ctx context.Context, ref SandboxRef, id string) error {
	return c.do(ctx, http.MethodDelete, ref.path("processes", id), ref.query())
}

// KillAllProcesses ends all programs in a sandbox, including code contexts and programs that no
// process of the API started. Files stay.
func (c *Client) KillAllProcesses(ctx context.Context, ref SandboxRef) error {
	return c.do(ctx, http.MethodPost, ref.path("processes:killall"), ref.query())
}

// FollowProcess yields the output of a process after a cursor until the process ends; 0 starts at
// the oldest output that is kept. The last event says how the process ended. Data has the raw
// bytes. With follow false, FollowProcess stops after the existing output.
func (c *Client) FollowProcess(ctx context.Context, ref SandboxRef, id string, after int64, follow bool) iter.Seq2[ProcessEvent, error] {
	from := func(after int64) *request {
		return &request{method: http.MethodGet, path: ref.path("processes", id, "output"), accept: mediaNDJSON, query: ref.query(
			"encoding", "base64", "follow", strconv.FormatBool(follow), "after", strconv.FormatInt(after, 10))}
	}
	s := source[ProcessEvent]{
		first: from(after),
		again: func(last *ProcessEvent) *request {
			if last == nil {
				return from(after)
			}
			return from(last.Cursor)
		},
		hidden: func(ev *ProcessEvent) bool {
			if data, err := base64.StdEncoding.DecodeString(ev.Data); err == nil {
				ev.Data = string(data)
			}
			return ev.Type == keepalive
		},
	}
	if follow {
		s.ends = func(ev *ProcessEvent) bool { return ev.Type == "exit" || ev.Type == "stopped" }
	}
	return events(ctx, c, s)
}

// FeedProcess writes all of r to the input of a process and closes it.
func (c *Client) FeedProcess(ctx context.Context, ref SandboxRef, id string, r io.Reader) error {
	_, err := c.WriteProcess(ctx, ref, id, r, true)
	return err
}

// WriteProcess writes all of r to the input of a process; end closes it.
func (c *Client) WriteProcess(ctx context.Context, ref SandboxRef, id string, r io.Reader, end bool) (ProcessWritten, error) {
	return upload[ProcessWritten](ctx, c, http.MethodPost, ref.path("processes", id, "stdin"), ref.query("close", strconv.FormatBool(end)), r)
}

// Command is a command for Exec and StreamExec.
type Command struct {
	Argv       []string          // a program and its arguments
	Shell      string            // in place of Argv: a line for the shell
	Env        map[string]string // over that of the sandbox
	WorkingDir string            // /home/user if ""
	Stdin      io.Reader         // nil for no input
	Timeout    time.Duration     // after which it is ended; 0 for none
}

// Result is how a command ended.
type Result struct {
	ExitCode       int64
	Stdout, Stderr []byte
	Signal         string // that ended it, "" if none
	TimedOut       bool
}

// Exec runs a command in a sandbox to its end. If ctx ends first, Exec ends the command with all
// its children.
func (c *Client) Exec(ctx context.Context, ref SandboxRef, cmd Command) (Result, error) {
	var out Result
	for ev, err := range c.StreamExec(ctx, ref, cmd) {
		switch {
		case err != nil:
			return out, err
		case ev.Type == "exit" && ev.ExitCode != nil:
			out.ExitCode, out.Signal, out.TimedOut = *ev.ExitCode, ev.Signal, ev.TimedOut
		case ev.Stream == "stderr":
			out.Stderr = append(out.Stderr, ev.Data...)
		default:
			out.Stdout = append(out.Stdout, ev.Data...)
		}
	}
	return out, nil
}

// StreamExec runs a command in a sandbox and yields its output as it arrives; the last event says
// how the command ended. A slow reader blocks the command. If ctx ends, or the caller leaves the
// loop, StreamExec ends the command with all its children.
func (c *Client) StreamExec(ctx context.Context, ref SandboxRef, cmd Command) iter.Seq2[ProcessEvent, error] {
	return func(yield func(ProcessEvent, error) bool) {
		p, err := c.StartProcess(ctx, ref, cmd.process())
		if err != nil {
			yield(ProcessEvent{}, err)
			return
		}
		feeding, stop := context.WithCancel(ctx)
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			if cmd.Stdin != nil {
				// Its end closes the process's input. A process that does not read any more has
				// ended, or tells by its exit code.
				_ = c.FeedProcess(feeding, ref, p.ProcessID, cmd.Stdin)
			}
		}()
		for ev, err := range c.FollowProcess(ctx, ref, p.ProcessID, 0, true) {
			if err == nil && ev.Type == "stopped" {
				err = broken(ctx, "", errors.New(ev.Reason))
			}
			if !yield(ev, err) || err != nil {
				break
			}
		}
		stop()
		<-fed
		work, c, cancel := c.abandoning(ctx)
		defer cancel()
		_ = c.EndProcess(work, ref, p.ProcessID) // it ends with its sandbox otherwise
	}
}

// process is a command as the server is asked.
func (cmd *Command) process() NewProcess {
	wait, stdin := true, cmd.Stdin != nil
	in := NewProcess{WaitForReader: &wait, Stdin: &stdin, EnvVars: cmd.Env}
	if cmd.Argv != nil {
		in.Argv = &cmd.Argv
	}
	if cmd.Shell != "" {
		in.Command = &cmd.Shell
	}
	if cmd.WorkingDir != "" {
		in.WorkingDir = &cmd.WorkingDir
	}
	if ms := cmd.Timeout.Milliseconds(); ms > 0 {
		in.TimeoutMS = &ms
	}
	return in
}

// Shell is a line for the shell.
func Shell(line ...string) Command { return Command{Shell: strings.Join(line, " ")} }
