// Command atoll-redteam attacks a running server. 'atoll redteam' starts it and passes
// attack.Options as JSON on stdin, because other users can see command lines.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/atoll-run/atoll/internal/app/attack"
	"github.com/atoll-run/atoll/internal/app/tty"
	"github.com/atoll-run/atoll/internal/redteam"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // a case failed, or the run was cut short
	exitUsage   = 2 // --run matches no case
)

func main() {
	ctx, stop := tty.Interruptible(context.Background(), os.Stderr)
	code, err := run(ctx, os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "atoll: %s\n", tty.Printable(err.Error())) // it may quote a server
	}
	os.Exit(code)
}

// run lists or runs the cases that the options on in select, and returns the exit code. The error
// is nil if a case failed, because the report says so.
func run(ctx context.Context, in io.Reader, out io.Writer) (int, error) {
	o, err := attack.Read(in)
	if err != nil {
		return exitFailure, err
	}
	cases, err := redteam.Match(redteam.Cases(), o.Run)
	if err != nil {
		return exitUsage, fmt.Errorf("--run: %w", err)
	}
	failed := false
	if o.List {
		err = list(out, cases, o.Format)
	} else {
		failed, err = attackServer(ctx, o, cases, out)
	}
	if failed || err != nil {
		return exitFailure, o.Advice.Explain(err)
	}
	return exitOK, nil
}

func list(out io.Writer, cases []redteam.Case, format attack.Format) error {
	if format == attack.JSON {
		return redteam.ListJSON(out, cases)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CASE\tSEVERITY\tTRIES")
	for _, c := range cases {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.ID, c.Severity, c.Tries)
	}
	return w.Flush()
}

// attackServer runs cases and reports whether one failed. Each result is printed when its case ends,
// unless stdout is for a report in a format for programs.
func attackServer(ctx context.Context, o attack.Options, cases []redteam.Case, stdout io.Writer) (failed bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("the run did not end within %v", o.Timeout))
	defer cancel()
	out, lines := stdout, stdout
	if o.Output != "" {
		file, created := os.Create(o.Output)
		if created != nil {
			return false, created
		}
		defer func() {
			if closed := file.Close(); err == nil {
				err = closed
			}
		}()
		out = file
	} else if o.Format != attack.Text {
		lines = io.Discard
	}
	report, err := redteam.Run(ctx, redteam.Options{
		URL: o.URL, Key: strings.TrimSpace(o.Key), Cases: cases, Parallel: o.Parallel, Force: o.Force, Listen: o.Listen, Data: o.Data, Program: o.Program,
		Each: func(r redteam.Result) { fmt.Fprintln(lines, r.Line()) },
	})
	if report == nil {
		return false, err
	}
	fmt.Fprintln(lines, report.Summary())
	if written := write(report, o, out); written != nil {
		return false, written
	}
	return report.Count(redteam.Fail) > 0, err
}

func write(report *redteam.Report, o attack.Options, out io.Writer) error {
	switch {
	case o.Format == attack.JSON:
		return report.JSON(out)
	case o.Format == attack.JUnit:
		return report.JUnit(out)
	case o.Output != "":
		return report.Text(out)
	}
	return nil // the lines are the report
}
