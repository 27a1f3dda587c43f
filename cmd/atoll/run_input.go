package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// readInput is what a program is given besides its code and variables. program is the
// file it is read from.
func (a *cli) readInput(program string, args []string, f *runFlags) (in execution.Input, err error) {
	in.Args, in.Outputs = args, f.out
	for _, out := range f.out {
		if err := execution.CheckFileName("--out", strings.TrimSuffix(out, "/")); err != nil {
			return in, err
		}
	}
	for _, spec := range f.files {
		local, name, named := strings.Cut(spec, ":")
		if !named {
			name = filepath.Base(local)
		}
		if err := execution.CheckFileName("--file", name); err != nil {
			return in, err
		}
		file, err := os.Open(local)
		if err != nil {
			return in, err
		}
		data, err := readBounded(file)
		file.Close()
		if err != nil {
			return in, fmt.Errorf("--file %s: %w", local, err)
		}
		if in.Files == nil {
			in.Files = map[string][]byte{}
		}
		if _, twice := in.Files[name]; twice {
			return in, fmt.Errorf("--file: duplicate file name %s", name)
		}
		in.Files[name] = data
	}
	if program != "-" && !isTerminal(a.std.in) {
		if in.Stdin, err = readBounded(a.std.in); err != nil {
			return in, fmt.Errorf("stdin: %w", err)
		}
	}
	return in, nil
}

// readBounded reads no more than a program may be given.
func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, execution.MaxInputBytes+1))
	if err == nil && len(data) > execution.MaxInputBytes {
		err = fmt.Errorf("larger than %s; copy large files into a sandbox with 'atoll sandbox cp', or mount storage", humanBytes(execution.MaxInputBytes))
	}
	return data, err
}

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// bringBack writes a file that a program gave back, below the working directory and
// through no link that leads out of it.
func bringBack(name string, r io.Reader) error {
	if err := execution.CheckFileName("file", name); err != nil {
		return err
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		return err
	}
	defer root.Close()
	local := filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(local), 0o777); err != nil {
		return err
	}
	file, err := root.Create(local)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, r); err != nil {
		file.Close()
		return fmt.Errorf("copy back %s: %w", name, err)
	}
	return file.Close()
}

// leftOut reports files that were not brought back: those over a limit on stderr, and as an
// error those that --out names and the program did not leave. Folders that end with a slash
// were made for the program and may stay empty.
func (a *cli) leftOut(wanted, got []string, truncated bool) error {
	if truncated {
		fmt.Fprintf(a.std.err, "atoll: some files were omitted: a run returns at most %d files and %d MiB\n", execution.MaxOutputFiles, execution.MaxOutputBytes>>20)
		return nil
	}
	for _, name := range wanted {
		if !strings.HasSuffix(name, "/") && !slices.ContainsFunc(got, func(g string) bool { return g == name || strings.HasPrefix(g, name+"/") }) {
			return &exit{exitFailure, fmt.Errorf("--out %s: file not found in the program's working folder", name)}
		}
	}
	return nil
}
