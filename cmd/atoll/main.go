// Command atoll runs code in sandboxes, as a server and from the command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/atoll-run/atoll/internal/app/tty"
)

func main() {
	if os.Getpid() == 1 { // of a container
		code, err := superviseAsInit(os.Args)
		if err != nil {
			fmt.Fprintf(os.Stderr, "atoll: %v\n", err)
			code = exitNotRun
		}
		os.Exit(code)
	}
	ctx, stop := tty.Interruptible(context.Background(), os.Stderr)
	code := run(ctx, os.Args[1:], os.Getenv, stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// Exit codes of every command but run, whose own failures must not be taken
// for its program's: those are below.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// Exit codes of run and 'sandbox exec' for ends that are not the program's own.
const (
	exitTimeout   = 124                 // as timeout(1) has it
	exitNotRun    = 125                 // nothing ran, or how it ended was not seen
	exitNoExec    = 126                 // there is a program of that name that cannot be executed
	exitNotFound  = 127                 // there is no program of that name
	exitCancelled = tty.ExitInterrupted // Ctrl-C
)

// exit ends the process with a code; err, when there is one, is printed first.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// run is the whole program; end-to-end tests start it. It returns the exit
// code.
func run(ctx context.Context, args []string, getenv func(string) string, std stdio) int {
	root := newRoot(getenv, std)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitUsage // cobra's own errors are about the command line
	if e, ok := errors.AsType[*exit](err); ok {
		code, err = e.code, e.err
	}
	if err != nil {
		fmt.Fprintf(std.err, "atoll: %s\n", tty.Printable(err.Error())) // which may quote a server
	}
	return code
}
