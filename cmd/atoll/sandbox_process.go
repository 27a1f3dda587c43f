package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// output writes what a process writes to out and errs, and returns its end if that
// has come.
func (s *sandboxes) output(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, id string, follow bool, out, errs io.Writer) (end *sdk.ProcessEvent, err error) {
	for e, err := range c.FollowProcess(ctx, at, id, 0, follow) {
		if err != nil {
			return nil, err
		}
		switch e.Type {
		case "exit":
			if e.ExitCode == nil {
				return nil, errors.New("the server reported the end of the process without an exit code")
			}
			end = &e
		case "stopped":
			return nil, errors.New(e.Reason)
		case "output":
			if e.Dropped > 0 {
				fmt.Fprintf(s.app.std.err, "atoll: the server dropped %s of output\n", humanBytes(e.Dropped))
			}
			w := out
			if e.Stream == "stderr" {
				w = errs
			}
			_, _ = io.WriteString(w, e.Data) // a closed pipe does not stop the program
		}
	}
	return end, nil
}

func (s *sandboxes) logs() *cobra.Command {
	var follow bool
	cmd := s.command("logs NAME [PROCESS]", "Show what processes have printed", `  atoll sandbox logs builder
  atoll sandbox logs -f builder p-d8c50e53298d90e4`, cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			at := s.at(args[0])
			var ids []string
			if len(args) == 2 {
				ids = args[1:]
			} else {
				all, err := c.Processes(ctx, at)
				if err != nil {
					return err
				}
				for _, p := range all {
					ids = append(ids, p.ProcessID)
				}
			}
			err := s.showLogs(ctx, c, at, ids, follow)
			if ctx.Err() != nil {
				return &exit{code: exitCancelled}
			}
			return err
		})
	cmd.Long = `Show what a process that runs in the background has printed, or, without PROCESS,
what all have: then each line begins with the process, if there are several.

'atoll sandbox processes' lists them. Kept is the last MiB of each.`
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow the output until the processes end")
	return cmd
}

// showLogs shows the output of processes, at the same time if they are followed.
func (s *sandboxes) showLogs(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, ids []string, follow bool) error {
	if len(ids) == 1 {
		return s.showLog(ctx, c, at, ids[0], follow, s.app.std.out, s.app.std.err)
	}
	var mu sync.Mutex // taken for each line
	show := func(id string) error {
		out := &prefixed{to: s.app.std.out, mu: &mu, prefix: id + " | "}
		errs := &prefixed{to: s.app.std.err, mu: &mu, prefix: id + " | "}
		return errors.Join(s.showLog(ctx, c, at, id, follow, out, errs), out.flush(), errs.flush())
	}
	failed := make([]error, len(ids))
	var following sync.WaitGroup
	for i, id := range ids {
		if !follow {
			failed[i] = show(id)
			continue
		}
		following.Go(func() { failed[i] = show(id) })
	}
	following.Wait()
	return errors.Join(failed...)
}

func (s *sandboxes) showLog(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, id string, follow bool, out, errs io.Writer) error {
	end, err := s.output(ctx, c, at, id, follow, out, errs)
	if end != nil && end.Reason != "" {
		fmt.Fprintf(s.app.std.err, "atoll: %s ended with status %d: %s\n", id, *end.ExitCode, end.Reason)
	}
	return err
}

// prefixed writes whole lines, each behind a prefix.
type prefixed struct {
	to     io.Writer
	mu     *sync.Mutex // of to
	prefix string
	held   []byte // the beginning of a line
}

func (p *prefixed) Write(data []byte) (int, error) {
	p.held = append(p.held, data...)
	for {
		line, rest, whole := bytes.Cut(p.held, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		if err := p.line(line); err != nil {
			return len(data), err
		}
		p.held = rest
	}
}

// flush writes a line that has no end.
func (p *prefixed) flush() error {
	if len(p.held) == 0 {
		return nil
	}
	line := p.held
	p.held = nil
	return p.line(line)
}

func (p *prefixed) line(text []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.to, "%s%s\n", p.prefix, text)
	return err
}

func (s *sandboxes) processes() *cobra.Command {
	cmd := s.command("processes NAME", "List the processes that were started in a sandbox", "", cobra.ExactArgs(1), shows(
		func(ctx context.Context, c *sdk.Client, args []string) ([]sdk.SandboxProcess, error) {
			return c.Processes(ctx, s.at(args[0]))
		}, listing(&s.printer, []any{"PROCESS", "PID", "STATE", "EXIT", "STARTED", "COMMAND"}, func(p sdk.SandboxProcess) []any {
			return []any{p.ProcessID, p.PID, p.State, number(p.ExitCode), when(p.StartedAt), fmt.Sprintf("%.60q", p.Argv)}
		})))
	s.addQuiet(cmd.Flags())
	return cmd
}

func (s *sandboxes) kill() *cobra.Command {
	var signal string
	var all bool
	cmd := s.command("kill NAME PROCESS…", "Send a signal to processes and their process groups", `  atoll sandbox kill builder p-d8c50e53298d90e4
  atoll sandbox kill --all builder           # kill every program in it, as after a fork bomb
  atoll sandbox kill -s TERM --all builder   # ask each listed process to end`, cobra.MinimumNArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			at, ids := s.at(args[0]), args[1:]
			switch {
			case all == (len(ids) > 0):
				return wrong("name the ids of processes, which 'atoll sandbox processes' lists, or pass --all")
			case all && killSignal(signal):
				if err := c.KillAllProcesses(ctx, at); err != nil {
					return err
				}
				return s.say("killed every program in %s", args[0])
			case all:
				running, err := c.Processes(ctx, at)
				if err != nil {
					return err
				}
				for _, p := range running {
					if p.State == "running" {
						ids = append(ids, p.ProcessID)
					}
				}
			}
			var errs []error // one that cannot be signalled does not keep the others
			for _, id := range ids {
				_, err := c.SignalProcess(ctx, at, id, signal)
				if err == nil {
					err = s.say("sent %s to %s", signal, id)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		})
	cmd.Flags().StringVarP(&signal, "signal", "s", "KILL", "signal, by name or number")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "every program in the sandbox; with a signal other than KILL, each process that is listed as running")
	return cmd
}

// killSignal reports whether a signal's name or number is that of SIGKILL.
func killSignal(name string) bool {
	return slices.Contains([]string{"KILL", "SIGKILL", "9"}, strings.ToUpper(name))
}
