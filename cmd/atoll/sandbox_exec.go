package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/tty"
	"github.com/atoll-run/atoll/internal/core/process"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// execFlags are those of 'sandbox exec'.
type execFlags struct {
	env                   programEnv
	dir                   string
	timeout               time.Duration
	stdin, detach, screen bool
}

func (s *sandboxes) exec() *cobra.Command {
	f := execFlags{env: programEnv{app: s.app}}
	var cmd *cobra.Command
	cmd = s.command("exec [flags] NAME COMMAND [ARGUMENT…]", "Run a command in a sandbox", `  atoll sandbox exec builder -- sh -c 'ls | wc -l'
  atoll sandbox exec -it builder -- bash
  tar c . | atoll sandbox exec -i builder -- tar x
  atoll sandbox exec -d builder -- python3 -m http.server 8000`, cobra.MinimumNArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			command, err := execCommand(cmd, args[1:])
			if err != nil {
				return err
			}
			return s.runExec(ctx, c, s.at(args[0]), command, &f)
		})
	cmd.Long = `Run a command in a sandbox, and stream its output.

Exit codes: the command's, 128+n after signal n, 124 when it timed out, 126 when it
cannot be executed, 127 when it was not found, 130 after Ctrl-C, which stops it.`
	cmd.DisableFlagsInUseLine = true
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows NAME is the command's
	flags.BoolVarP(&f.stdin, "stdin", "i", false, "forward stdin to the command")
	flags.BoolVarP(&f.screen, "tty", "t", false, "allocate a terminal; use -it for an interactive one")
	f.env.addFlags(flags)
	flags.StringVarP(&f.dir, "workdir", "w", "", "folder to run in (/home/user)")
	flags.DurationVar(&f.timeout, "timeout", 0, "longest time it may run (no limit)")
	flags.BoolVarP(&f.detach, "detach", "d", false, "do not wait until it ends; print its id for 'atoll sandbox logs'")
	return cmd
}

// execCommand is what stands behind NAME. Flags may stand there too, if -- follows
// them, as in kubectl exec NAME -it -- bash.
func execCommand(cmd *cobra.Command, rest []string) ([]string, error) {
	if !strings.HasPrefix(rest[0], "-") {
		return rest, nil
	}
	end := slices.Index(rest, "--")
	if end < 0 {
		return nil, wrong("%s is where the command must begin: put flags of exec before NAME, and -- before a command that begins with a dash", rest[0])
	}
	if err := cmd.Flags().Parse(rest[:end]); err != nil {
		return nil, &exit{exitUsage, err}
	}
	if cmd.Flags().NArg() > 0 || end+1 == len(rest) {
		return nil, wrong("want %s", cmd.UseLine())
	}
	return rest[end+1:], nil
}

func (s *sandboxes) runExec(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, command []string, f *execFlags) error {
	if f.detach && (f.stdin || f.screen) {
		return wrong("--detach cannot be combined with --stdin or --tty")
	}
	vars, err := f.env.values()
	if err != nil {
		return err
	}
	wait := !f.detach // or output that is not read in time is lost
	in := sdk.NewProcess{WaitForReader: &wait, Argv: &command, TimeoutMS: milliseconds(f.timeout)}
	if f.dir != "" {
		in.WorkingDir = &f.dir
	}
	t := &terminal{app: s.app, client: c, at: at, input: f.stdin}
	if f.screen {
		if vars["TERM"] == "" {
			vars["TERM"] = "xterm-256color"
		}
		rows, columns := t.size()
		in.Terminal = &sdk.TerminalSize{Rows: int32(rows), Columns: int32(columns)}
	} else {
		in.Stdin = &f.stdin
	}
	in.EnvVars = vars
	p, err := c.StartProcess(ctx, at, in)
	if err != nil {
		return notStarted(err)
	}
	switch {
	case f.detach:
		return s.print(p, func(w io.Writer) { row(w, p.ProcessID) })
	case f.screen:
		t.process = p.ProcessID
		err := t.run(ctx)
		if refused, ok := errors.AsType[*sdk.Error](err); ok && refused.Status == http.StatusConflict && t.cursor == 0 {
			return s.attached(ctx, c, at, p.ProcessID, false) // it ended before its terminal could be shown
		}
		return s.ended(ctx, c, at, p.ProcessID, err)
	}
	return s.attached(ctx, c, at, p.ProcessID, f.stdin)
}

// notStarted gives the errors of programs that cannot be started the exit codes
// that shells have for them.
func notStarted(err error) error {
	refused, ok := errors.AsType[*sdk.Error](err)
	switch {
	case ok && refused.Code == process.NoProgram:
		return &exit{exitNotFound, err}
	case ok && refused.Code == process.NoExecutable:
		return &exit{exitNoExec, err}
	}
	return err
}

// attached passes input and output on, and ends as the process does.
func (s *sandboxes) attached(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, id string, stdin bool) error {
	if stdin {
		go func() {
			// Its end closes the process's input; a process that does not read any more has
			// ended, or will tell by its exit code.
			_ = c.FeedProcess(ctx, at, id, s.app.std.in)
		}()
	}
	end, err := s.output(ctx, c, at, id, true, s.app.std.out, s.app.std.err)
	switch {
	case err == nil && end == nil:
		return errors.New("the server's stream ended before the command")
	case err == nil:
		if end.Hint != "" {
			fmt.Fprintf(s.app.std.err, "atoll: %s\n", tty.Printable(end.Hint))
		}
		err = processEnd(end)
	case ctx.Err() == nil:
		return err // the process goes on
	}
	return s.ended(ctx, c, at, id, err)
}

// ended has the server forget a process whose output was seen, and end it if this
// command was cancelled. err is how it ended.
func (s *sandboxes) ended(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, id string, err error) error {
	if ctx.Err() == nil {
		if _, ok := errors.AsType[*exit](err); err != nil && !ok {
			return err // the connection broke; the process goes on
		}
		if forgot := c.EndProcess(ctx, at, id); forgot != nil && err == nil {
			return forgot
		}
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := c.EndProcess(last, at, id); err != nil {
		return &exit{exitCancelled, fmt.Errorf("cancelled; the command continues: %w", err)}
	}
	return &exit{code: exitCancelled}
}

// processEnd turns the end of a process into that of this one.
func processEnd(end *sdk.ProcessEvent) error {
	switch {
	case end.TimedOut:
		return &exit{exitTimeout, errors.New("timed out")}
	case end.Reason != "":
		return &exit{int(*end.ExitCode), errors.New(end.Reason)}
	case end.Blocked != "":
		return &exit{int(*end.ExitCode), fmt.Errorf("stopped by the permission %s", end.Blocked)}
	case *end.ExitCode != 0:
		return &exit{code: int(*end.ExitCode)}
	}
	return nil
}
