package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/app/attack"
)

// redteamProgram is the program that contains the attacks.
const redteamProgram = "atoll-redteam"

const redteamLong = `Attack a running server like a hostile client and a hostile program, and report for
each attack whether the server held. The command is safe in production: it works in
the tenants redteam and redteam-victim, within the limits of their plan, and removes
everything it created when it ends, also after Ctrl-C. The tenants stay, disabled.

Cases about agents start their own model, MCP servers and pages. The server must
reach them: on loopback if it runs on this machine, otherwise at --listen.

A case passes or fails with evidence. The command skips a case if the server's
configuration disables its target, and reports a missing requirement as "not run:
needs …".
--run takes groups, ids and globs, separated by commas; --list shows them.`

func (a *cli) redteamCommand() *cobra.Command {
	t := target{app: a, local: adminKeyFile}
	var o attack.Options
	cmd := &cobra.Command{
		Use:   "redteam",
		Short: "Attack a running server and report what held",
		Long:  redteamLong + t.help() + "\n\nExit codes: 0 no case failed, 1 one failed or the run was cut short, 2 a wrong command line.",
		Example: `  atoll redteam
  atoll redteam --list
  atoll redteam --run tenancy,escape/mount
  atoll redteam --url https://atoll.example.com --key-file admin.key --format junit --output report.xml`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: failing(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			if !slices.Contains(attack.Formats, o.Format) {
				return wrong("--format %s: want %s", o.Format, choices(attack.Formats))
			}
			if o.List {
				return a.redteam(ctx, o)
			}
			e, err := t.find()
			if err != nil {
				if _, unmatched := a.redteamCases(ctx, o.Run); unmatched != nil {
					return unmatched // the first of two mistakes
				}
				return err
			}
			o.URL, o.Key, o.Data, o.Advice = e.url, e.key, t.dataOf(e), t.unreachable()
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			return a.redteam(ctx, o)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&o.List, "list", false, "list the cases without running them")
	flags.StringVar(&o.Run, "run", "", "cases to run: groups, ids and globs, separated by commas (all)")
	flags.StringVar((*string)(&o.Format), "format", string(attack.Text), choices(attack.Formats))
	flags.StringVar(&o.Output, "output", "", "file for the report (stdout)")
	flags.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "longest time for the run")
	flags.IntVar(&o.Parallel, "parallel", 3, "cases to run at the same time, 1 to 4")
	flags.BoolVar(&o.Force, "force", false, "start even if another run seems to be in progress")
	flags.StringVar(&o.Listen, "listen", "", "HOST:PORT at which the server reaches this command's model, MCP servers and pages (loopback for a server there)")
	flags.StringVar(&t.baseURL, "url", "", "the same as --base-url")
	t.addFlags(flags)
	completions := map[string]func(context.Context) []string{
		"run":    func(ctx context.Context) []string { names, _ := a.redteamCases(ctx, ""); return names }, // a shell cannot show errors
		"format": func(context.Context) []string { return texts(attack.Formats) },
	}
	for name, values := range completions {
		if err := cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return values(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		}); err != nil {
			panic(err) // the flag is above
		}
	}
	return cmd
}

// redteam replaces this process by the program that attacks, which then receives signals and
// determines the exit code. If the streams are not those of this process, it starts a child process.
func (a *cli) redteam(ctx context.Context, o attack.Options) error {
	path, input, err := redteamInput(o)
	if err != nil {
		return err
	}
	defer input.Close()
	if a.std != (stdio{os.Stdin, os.Stdout, os.Stderr}) {
		return redteamChild(ctx, path, input, a.std.out, a.std.err)
	}
	if err := unix.Dup3(int(input.Fd()), unix.Stdin, 0); err != nil {
		return err
	}
	signal.Reset(os.Interrupt, unix.SIGTERM) // from now on a signal ends this process
	if ctx.Err() != nil {                    // one reached it before
		return context.Cause(ctx)
	}
	return fmt.Errorf("start %s: %w", path, unix.Exec(path, []string{path}, os.Environ()))
}

// redteamCases returns the groups and ids of the cases that patterns select; "" selects all.
func (a *cli) redteamCases(ctx context.Context, patterns string) ([]string, error) {
	path, input, err := redteamInput(attack.Options{List: true, Run: patterns, Format: attack.JSON})
	if err != nil {
		return nil, err
	}
	defer input.Close()
	var out bytes.Buffer
	if err := redteamChild(ctx, path, input, &out, a.std.err); err != nil {
		return nil, err
	}
	var cases []struct{ ID, Group string }
	if err := json.Unmarshal(out.Bytes(), &cases); err != nil {
		return nil, fmt.Errorf("read the list of %s: %w", redteamProgram, err)
	}
	var names []string
	for _, c := range cases {
		if !slices.Contains(names, c.Group) {
			names = append(names, c.Group)
		}
		names = append(names, c.ID)
	}
	return names, nil
}

// redteamInput returns the path of the program that attacks, and its stdin with the options. The
// caller closes the file.
func redteamInput(o attack.Options) (path string, _ *os.File, err error) {
	path = helper("", redteamProgram)
	if _, err := os.Stat(path); err != nil {
		return "", nil, fmt.Errorf("the program that attacks is missing: %w; reinstall Atoll, or run 'make build' in its sources", err)
	}
	fd, err := unix.MemfdCreate(redteamProgram, unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL) // in memory, because it contains the key
	if errors.Is(err, unix.EINVAL) {                                                   // before Linux 6.3
		fd, err = unix.MemfdCreate(redteamProgram, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return "", nil, fmt.Errorf("keep the options in memory: %w", err)
	}
	input := os.NewFile(uintptr(fd), redteamProgram)
	if err = json.NewEncoder(input).Encode(o); err == nil {
		_, err = input.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", nil, errors.Join(err, input.Close())
	}
	return path, input, nil
}

func redteamChild(ctx context.Context, path string, input *os.File, out, errs io.Writer) error {
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, out, errs
	err := cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.Exited() {
		return &exit{code: ended.ExitCode()}
	}
	return err
}
