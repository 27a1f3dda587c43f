package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/language"
)

// runFlags are what 'atoll run' adds to the settings.
type runFlags struct {
	language string
	env      programEnv
	timeout  time.Duration
	target   target
	files    []string // given to the program: LOCAL or LOCAL:NAME
	out      []string // brought back
}

func (a *cli) runCommand() *cobra.Command {
	var s *settings
	f := runFlags{env: programEnv{app: a}, target: target{app: a, local: devKeyFile}}
	cmd := &cobra.Command{
		Use:   "run FILE|- [ARG...]",
		Short: "Run a program in a fresh sandbox",
		Long: `Run a program in a fresh sandbox, and stream its output.

The file's extension selects the language (` + strings.Join(language.Extensions(), " ") + `), or
--language does; - reads the program from stdin, which is ` + language.Get(language.Default).Title + ` by default.

The program gets the arguments after FILE that are not flags, and everything after
--. It reads the command's stdin to the end, unless that is a terminal. --file copies
a file into its working folder, under its own name or under NAME. --out copies a file
or folder of the working folder back to the same path here; if the path ends with /,
the command creates the folder before the program starts.

With a server (--base-url or ATOLL_BASE_URL, key in ATOLL_API_KEY or --key-file)
the program runs there; otherwise in a sandbox that this command creates and
deletes.

Exit codes: the program's, 128+n after signal n. 1 when it succeeded but did not
create a file that --out names. 124 when it timed out, 125 when it did not run or
its end is unknown, 130 after Ctrl-C.`,
		Example: `  atoll run hello.py
  atoll run job.py a b < in.csv --file data.csv --out result/
  echo 'console.log(process.version)' | atoll run --language node -
  atoll run --env NAME=VALUE --env-file ./vars --timeout 5m job.sh
  ATOLL_BASE_URL=http://127.0.0.1:8080 ATOLL_API_KEY=sk-atoll-… atoll run hello.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrong("want one program: atoll run FILE, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.run(cmd.Context(), args[0], args[1:], &f, s)
			if _, ok := errors.AsType[*exit](err); err == nil || ok {
				return err
			}
			return &exit{exitNotRun, err}
		},
	}
	s = addSettings(cmd)
	a.makesSandboxes(cmd, s, func() bool {
		a.runDefaults(s)
		return f.target.given() != ""
	})
	flags := cmd.Flags()
	flags.StringVarP(&f.language, "language", "l", "", choices(execution.Languages)+" (by the file's extension)")
	f.env.addFlags(flags)
	flags.DurationVarP(&f.timeout, "timeout", "t", 0, "longest time it may run, such as 90s (60s)")
	flags.StringArrayVar(&f.files, "file", nil, "file for the program, LOCAL or LOCAL:NAME; may be repeated")
	flags.StringArrayVar(&f.out, "out", nil, "file, or folder/, to copy back when the program has ended; may be repeated")
	f.target.addServerFlags(flags)
	return cmd
}

func (a *cli) run(ctx context.Context, file string, args []string, f *runFlags, s *settings) error {
	code, err := a.readProgram(file)
	if err != nil {
		return err
	}
	req := execution.Request{Code: code, Language: execution.Language(f.language), Timeout: f.timeout}
	if req.Language == "" && file != "-" {
		l := language.ByExtension(filepath.Ext(file))
		if !language.Known(l.Name) {
			return fmt.Errorf("cannot detect the language of %s: pass --language", file)
		}
		req.Language = l.Name
	}
	if req.Env, err = f.env.values(); err != nil {
		return &exit{exitNotRun, err}
	}
	if req.Input, err = a.readInput(file, args, f); err != nil {
		return err
	}
	if f.timeout%time.Second != 0 {
		return errors.New("--timeout must be whole seconds")
	}
	if f.target.given() != "" {
		if err := s.onlyHere("image", "cpu", "memory"); err != nil {
			return err
		}
		server, err := f.target.find()
		if err != nil {
			return err
		}
		return f.target.explain(a.runRemote(ctx, server, req))
	}
	return a.runLocal(ctx, req, s)
}

// readProgram reads a program from a file or stdin, no more than is allowed.
func (a *cli) readProgram(file string) (string, error) {
	in := a.std.in
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer opened.Close()
		in = opened
	}
	code, err := io.ReadAll(io.LimitReader(in, execution.MaxCode+1))
	return string(code), err
}

// runDefaults are those of commands that make sandboxes beside a server, where
// nothing else was said.
func (a *cli) runDefaults(s *settings) {
	if _, given := s.given["log-level"]; !given && a.getenv("ATOLL_LOG_LEVEL") == "" {
		s.given["log-level"] = "warn" // stderr is the program's
	}
	if _, given := s.given["pool-size"]; !given {
		s.given["pool-size"] = "0" // sandboxes are made as they are needed
	}
}

// runLocal runs req in a sandbox of this process.
func (a *cli) runLocal(ctx context.Context, req execution.Request, s *settings) (err error) {
	a.runDefaults(s)
	cfg, log, err := a.load(s)
	if err != nil {
		return &exit{exitNotRun, err}
	}
	policy := execution.Policy{MaxTimeout: cfg.MaxTimeout, Env: cfg.EnvVars}
	if req.Language == "" {
		req.Language = language.Default
	}
	if req.Timeout == 0 {
		req.Timeout = policy.DefaultTimeout()
	}
	if err := policy.Check(req); err != nil {
		return err
	}
	req.TraceID = execution.NewTraceID()
	eng, err := openEngine(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() {
		if closed := eng.close(); closed != nil {
			fmt.Fprintf(a.std.err, "atoll: %v\n", closed)
		}
	}()
	var tails [2]execution.Tail
	e, err := eng.ExecuteFiles(ctx, req, func(stream execution.Stream, p []byte) {
		w, tail := a.std.out, &tails[0]
		if stream == execution.Stderr {
			w, tail = a.std.err, &tails[1]
		}
		_, _ = w.Write(p) // a closed pipe does not stop the program
		tail.Add(p)
	}, func(f execution.OutputFile, r io.Reader) error { return bringBack(f.Name, r) })
	if err != nil {
		return err
	}
	var names []string
	for _, f := range e.Files.Files {
		names = append(names, f.Name)
	}
	missing := a.leftOut(req.Outputs, names, e.Files.Truncated)
	if e.Status == execution.Failed && execution.LacksNetwork(tails[0], tails[1]) {
		fmt.Fprintln(a.std.err, "atoll: a program has no network without a server; start 'atoll serve', allow hosts with 'atoll env set dev --allow HOST', or pypi or npm, and give --base-url")
	}
	return cmp.Or(ended(e.Status, e.ExitCode, e.Error), missing)
}

// ended turns the end of a program into that of this one.
func ended(status execution.Status, code int, reason string) error {
	var err error
	if reason != "" {
		err = errors.New(reason)
	}
	switch {
	case status == execution.Timeout:
		code = exitTimeout
	case status == execution.Cancelled:
		return &exit{code: exitCancelled} // the user pressed Ctrl-C and needs no message
	case code < 0:
		code = exitNotRun
	case code == 0:
		return err
	}
	return &exit{code, err}
}
