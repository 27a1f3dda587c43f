package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (s *sandboxes) exec() *cobra.Command {
	var in sdk.NewProcess
	var env []string
	var dir string
	var timeout time.Duration
	var stdin, detach bool
	cmd := s.command("exec [flags] NAME COMMAND [ARGUMENT…]", "Run a command in a sandbox", `  atoll sandbox exec builder -- sh -c 'ls | wc -l'
  tar c . | atoll sandbox exec --stdin builder -- tar x
  atoll sandbox exec --detach builder -- python3 -m http.server 8000`, cobra.MinimumNArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			vars, err := pairs("env", env)
			if err != nil {
				return err
			}
			in.EnvVars = map[string]string{}
			for name, value := range vars {
				in.EnvVars[name] = value
			}
			command := args[1:]
			if command[0] == "--" && len(command) > 1 {
				command = command[1:]
			} else if strings.HasPrefix(command[0], "-") {
				return wrong("%s stands where the command begins: flags of exec come before NAME, and a command that begins with a dash behind --", command[0])
			}
			in.Argv = &command
			if dir != "" {
				in.WorkingDir = &dir
			}
			attached := !detach // what reads all of it, loses nothing of it
			in.Stdin, in.WaitForReader, in.TimeoutMS = &stdin, &attached, milliseconds(timeout)
			p, err := c.StartProcess(ctx, s.at(args[0]), in)
			if err != nil {
				return err
			}
			if detach {
				return s.print(p, func(w io.Writer) { row(w, p.ProcessID) })
			}
			return s.attached(ctx, c, s.at(args[0]), p.ProcessID, stdin)
		})
	cmd.Long = `Run a command in a sandbox; its output comes as it is written.

Exit codes: the command's own, 128+n when signal n ended it, 124 when it timed
out, 130 after Ctrl-C, which ends it.`
	cmd.DisableFlagsInUseLine = true
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows NAME is the command's
	flags.StringArrayVarP(&env, "env", "e", nil, "variable for the command, NAME=value; may be repeated")
	flags.StringVarP(&dir, "workdir", "w", "", "folder to run in (/home/user)")
	flags.DurationVarP(&timeout, "timeout", "t", 0, "longest time it may run (for ever)")
	flags.BoolVarP(&stdin, "stdin", "i", false, "pass stdin on to it")
	flags.BoolVarP(&detach, "detach", "d", false, "do not wait for its end; print its id for 'atoll sandbox logs'")
	cmd.MarkFlagsMutuallyExclusive("stdin", "detach")
	return cmd
}

// attached passes input and output on, and ends as the process does.
func (s *sandboxes) attached(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, id string, stdin bool) error {
	if stdin {
		go func() {
			// Its end closes the process's input; one that does not read any more has
			// ended, or will tell by its exit code.
			_ = c.FeedProcess(ctx, at, id, s.app.std.in)
		}()
	}
	end, err := s.output(ctx, c, at, id, true)
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := c.EndProcess(last, at, id); err != nil {
			return &exit{exitCancelled, fmt.Errorf("cancelled here; the command goes on: %w", err)}
		}
		return &exit{code: exitCancelled}
	}
	if err != nil {
		return err
	}
	if end == nil {
		return errors.New("the server's stream ended before the command")
	}
	if err := c.EndProcess(ctx, at, id); err != nil { // its output was seen
		return err
	}
	return processEnd(end)
}

// processEnd turns the end of a process into that of this one.
func processEnd(end *sdk.ProcessEvent) error {
	switch {
	case end.TimedOut:
		return &exit{exitTimeout, errors.New("timed out")}
	case end.Reason != "":
		return &exit{int(*end.ExitCode), errors.New(end.Reason)}
	case end.Blocked != "":
		return &exit{int(*end.ExitCode), fmt.Errorf("ended by the permission %s", end.Blocked)}
	case *end.ExitCode != 0:
		return &exit{code: int(*end.ExitCode)}
	}
	return nil
}

// output writes what a process writes, and returns its end if that has come.
func (s *sandboxes) output(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, id string, follow bool) (end *sdk.ProcessEvent, err error) {
	err = c.FollowProcess(ctx, at, id, follow, func(e sdk.ProcessEvent) error {
		switch e.Type {
		case "exit":
			if e.ExitCode == nil {
				return errors.New("the server told of an end without an exit code")
			}
			end = &e
		case "stopped":
			return errors.New(e.Reason)
		case "output":
			if e.Dropped > 0 {
				fmt.Fprintf(s.app.std.err, "atoll: %d bytes of output were not kept\n", e.Dropped)
			}
			data, err := base64.StdEncoding.DecodeString(e.Data)
			if err != nil {
				return err
			}
			w := s.app.std.out
			if e.Stream == "stderr" {
				w = s.app.std.err
			}
			_, _ = w.Write(data) // a closed pipe does not stop the program
		}
		return nil
	})
	return end, err
}

func (s *sandboxes) logs() *cobra.Command {
	var follow bool
	cmd := s.command("logs NAME [PROCESS]", "Show what a process has written, or list processes", `  atoll sandbox logs builder
  atoll sandbox logs --follow builder p-d8c50e53298d90e4`, cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			if len(args) == 2 {
				end, err := s.output(ctx, c, s.at(args[0]), args[1], follow)
				if ctx.Err() != nil {
					return &exit{code: exitCancelled}
				}
				if end != nil && end.Reason != "" {
					fmt.Fprintf(s.app.std.err, "atoll: ended with status %d: %s\n", *end.ExitCode, end.Reason)
				}
				return err
			}
			if follow {
				return wrong("--follow needs the id of a process; without --follow they are listed")
			}
			all, err := c.Processes(ctx, s.at(args[0]))
			if err != nil {
				return err
			}
			return listing(s.remote, []any{"PROCESS", "STATE", "EXIT", "STARTED", "COMMAND"}, func(p sdk.SandboxProcess) []any {
				code := any("-")
				if p.ExitCode != nil {
					code = *p.ExitCode
				}
				return []any{p.ProcessID, p.State, code, when(p.StartedAt), fmt.Sprintf("%.60q", p.Argv)}
			})(all)
		})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the process ends")
	return cmd
}
