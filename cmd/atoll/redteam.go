package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/redteam"
)

// redteamFlags are those of redteam.
type redteamFlags struct {
	list     bool
	run      string
	format   reportFormat
	output   string
	timeout  time.Duration
	parallel int
	force    bool
	listen   string
}

type reportFormat string

var reportFormats = []reportFormat{"text", "json", "junit"}

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
	var f redteamFlags
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(reportFormats, f.format) {
				return wrong("--format %s: want %s", f.format, choices(reportFormats))
			}
			cases, err := redteam.Match(redteam.Cases(), f.run)
			if err != nil {
				return wrong("--run: %w", err)
			}
			if f.list {
				return a.listCases(cases, f.format)
			}
			return failing(func(ctx context.Context, _ *cobra.Command, _ []string) error {
				e, err := t.find()
				if err != nil {
					return err
				}
				o := redteam.Options{URL: e.url, Key: strings.TrimSpace(e.key), Cases: cases, Parallel: f.parallel, Force: f.force, Listen: f.listen, Data: t.dataOf(e)}
				if o.Program, err = os.Executable(); err != nil {
					return err
				}
				return t.explain(a.redteam(ctx, o, f))
			})(cmd, nil)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.list, "list", false, "list the cases without running them")
	flags.StringVar(&f.run, "run", "", "cases to run: groups, ids and globs, separated by commas (all)")
	flags.StringVar((*string)(&f.format), "format", "text", choices(reportFormats))
	flags.StringVar(&f.output, "output", "", "file for the report (stdout)")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "longest time for the run")
	flags.IntVar(&f.parallel, "parallel", 3, "cases to run at the same time, 1 to 4")
	flags.BoolVar(&f.force, "force", false, "start even if another run seems to be in progress")
	flags.StringVar(&f.listen, "listen", "", "HOST:PORT at which the server reaches this command's model, MCP servers and pages (loopback for a server there)")
	flags.StringVar(&t.baseURL, "url", "", "the same as --base-url")
	t.addFlags(flags)
	for name, values := range map[string]func() []string{"run": caseNames, "format": func() []string { return texts(reportFormats) }} {
		if err := cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		}); err != nil {
			panic(err) // the flag is above
		}
	}
	return cmd
}

// caseNames are the groups and ids of all cases, for the shell.
func caseNames() (all []string) {
	for _, c := range redteam.Cases() {
		if !slices.Contains(all, c.Group()) {
			all = append(all, c.Group())
		}
		all = append(all, c.ID)
	}
	return all
}

func (a *cli) listCases(cases []redteam.Case, format reportFormat) error {
	if format == "json" {
		return redteam.ListJSON(a.std.out, cases)
	}
	p := printer{out: a.std.out}
	return p.print(nil, func(w io.Writer) {
		row(w, "CASE", "SEVERITY", "TRIES")
		for _, c := range cases {
			row(w, c.ID, c.Severity, c.Tries)
		}
	})
}

// redteam runs cases. Their lines are written as they end where stdout is not for a
// report that programs read.
func (a *cli) redteam(ctx context.Context, o redteam.Options, f redteamFlags) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("the run did not end within %v", f.timeout))
	defer cancel()
	out, lines := a.std.out, a.std.out
	if f.output != "" {
		file, err := os.Create(f.output)
		if err != nil {
			return err
		}
		defer func() {
			if closed := file.Close(); err == nil {
				err = closed
			}
		}()
		out = file
	} else if f.format != "text" {
		lines = io.Discard
	}
	o.Each = func(r redteam.Result) { fmt.Fprintln(lines, r.Line()) }
	report, err := redteam.Run(ctx, o)
	if report == nil {
		return err
	}
	fmt.Fprintln(lines, report.Summary())
	if written := write(report, f, out); written != nil {
		return written
	}
	if err == nil && report.Count(redteam.Fail) > 0 {
		err = &exit{code: exitFailure}
	}
	return err
}

func write(report *redteam.Report, f redteamFlags, out io.Writer) error {
	switch {
	case f.format == "json":
		return report.JSON(out)
	case f.format == "junit":
		return report.JUnit(out)
	case f.output != "":
		return report.Text(out)
	}
	return nil // it was written as it came
}
