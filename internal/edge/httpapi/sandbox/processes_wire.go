package sandbox

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// SandboxProcess is a process that was started in a sandbox.
type SandboxProcess struct {
	ID          string     `json:"process_id" doc:"Its id, by which other calls name it."`
	PID         int        `json:"pid" doc:"Inside the sandbox."`
	Argv        []string   `json:"argv" doc:"The program and its arguments."`
	WorkingDir  string     `json:"working_dir" doc:"The folder that it works in."`
	State       string     `json:"state" enum:"running,exited" doc:"Whether it runs."`
	ExitCode    *int       `json:"exit_code" doc:"128+n when signal n ended it; null while it runs."`
	Signal      string     `json:"signal,omitzero" doc:"That ended it, such as SIGKILL."`
	TimedOut    bool       `json:"timed_out,omitzero" doc:"Whether it timed out."`
	Blocked     string     `json:"blocked,omitzero" doc:"The permission that ended it."`
	Reason      string     `json:"reason,omitzero" doc:"Why it was ended, where that was for a bound of the sandbox; a server that has started since does not know."`
	Stdin       bool       `json:"stdin" doc:"Whether it can be written to."`
	Terminal    bool       `json:"terminal" doc:"Whether it has a terminal."`
	StartedAt   time.Time  `json:"started_at" doc:"When it started."`
	EndedAt     *time.Time `json:"ended_at" doc:"When it ended; null until then."`
	StdoutBytes int64      `json:"stdout_bytes" doc:"Bytes that were written to standard output."`
	StderrBytes int64      `json:"stderr_bytes" doc:"Bytes that were written to standard error."`
	FirstCursor int64      `json:"first_cursor" doc:"Output from here on is kept."`
	LastCursor  int64      `json:"last_cursor" doc:"Where its output ends so far."`
}

// SandboxProcesses are the processes that are known, oldest first.
type SandboxProcesses struct {
	Data []SandboxProcess `json:"data"`
}

// NewProcess is the body that starts a process.
type NewProcess struct {
	Command    *string              `json:"command,omitzero" doc:"Command for bash, or for sh if the image has no bash. Use either command or argv."`
	Argv       []wire.Text          `json:"argv,omitzero" nullable:"true" doc:"A program and its arguments. Instead of command."`
	WorkingDir *string              `json:"working_dir,omitzero" default:"/home/user" doc:"The folder to start it in; the home if omitted."`
	EnvVars    map[string]wire.Text `json:"env_vars,omitzero" nullable:"true" doc:"Variables that override those of the sandbox. The rules of an execution's env_vars apply, except that names may contain lowercase letters and start with an underscore."`
	Stdin      *bool                `json:"stdin,omitzero" default:"false" doc:"Whether it can be written to."`
	Terminal   *TerminalSize        `json:"terminal,omitzero" doc:"Gives it a terminal."`
	Wait       *bool                `json:"wait_for_reader,omitzero" default:"false" doc:"Whether it waits when 1 MiB of its output has not been read, instead of losing the oldest."`
	TimeoutMS  *wire.Millis         `json:"timeout_ms,omitzero" minimum:"1" doc:"Ends the process and everything that it started after this time; no limit if omitted."`
}

// TerminalSize is the size of a terminal.
type TerminalSize struct {
	Rows    uint16 `json:"rows" minimum:"1" doc:"Height in lines, at least 1."`
	Columns uint16 `json:"columns" minimum:"1" doc:"Width in characters, at least 1."`
}

// ProcessSignal is the body that sends a signal.
type ProcessSignal struct {
	Signal *string `json:"signal" required:"true" doc:"Such as TERM, SIGTERM or 15."`
	Group  *bool   `json:"group,omitzero" default:"true" doc:"To its whole process group."`
}

// ProcessWritten says how much of what was sent a process has got.
type ProcessWritten struct {
	Bytes int64 `json:"bytes" doc:"Bytes that the process's pipe has taken."`
}

// ProcessEvent is one line of a process's output.
type ProcessEvent struct {
	Type     string `json:"type" enum:"output,keepalive,exit,stopped" doc:"stopped is the last one where the conversation with the sandbox ended for a bound of it."`
	Stream   string `json:"stream,omitzero" enum:"stdout,stderr,terminal" doc:"On output."`
	Data     string `json:"data,omitzero" doc:"On output: text, in which bytes that are not UTF-8 are U+FFFD; or base64, with encoding=base64."`
	Dropped  int64  `json:"dropped,omitzero" doc:"On output: bytes before it that were not kept."`
	ExitCode *int   `json:"exit_code,omitzero" doc:"On exit."`
	Signal   string `json:"signal,omitzero" doc:"On exit."`
	TimedOut bool   `json:"timed_out,omitzero" doc:"On exit."`
	Blocked  string `json:"blocked,omitzero" doc:"On exit: the permission that ended it."`
	Reason   string `json:"reason,omitzero" doc:"On stopped: why. On exit: why it was ended, where that was for a bound of the sandbox."`
	Hint     string `json:"hint,omitzero" doc:"On exit: how to fix a failure that the network policy may have caused."`
	Cursor   int64  `json:"cursor" doc:"Give it as after to continue behind this event. Of several events with one cursor those come again."`
}

func processOf(p *sandboxes.Process) SandboxProcess {
	out := SandboxProcess{
		ID: string(p.ID), PID: p.PID, Argv: make([]string, len(p.Argv)), WorkingDir: strings.ToValidUTF8(p.Dir, "\ufffd"), State: "running", Stdin: p.Input || p.Terminal, Terminal: p.Terminal,
		StartedAt: p.Started.UTC(), StdoutBytes: p.Written[process.Stdout] + p.Written[process.Terminal], StderrBytes: p.Written[process.Stderr],
		FirstCursor: int64(p.First), LastCursor: int64(p.Last), Reason: httpapi.Reason(p.Killed),
	}
	for i, arg := range p.Argv {
		out.Argv[i] = strings.ToValidUTF8(arg, "\ufffd")
	}
	if p.Exit != nil {
		at := p.Exit.At.UTC()
		out.State, out.ExitCode, out.EndedAt = "exited", &p.Exit.Code, &at
		out.Signal, out.TimedOut, out.Blocked = signalName(p.Exit.Signal), p.Exit.TimedOut, p.Exit.Blocked
	}
	return out
}

func signalName(sig syscall.Signal) string {
	if sig == 0 {
		return ""
	}
	return unix.SignalName(sig)
}
