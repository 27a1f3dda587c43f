// Package tty stops commands on Ctrl-C and makes text safe to print.
package tty

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// OneCtrlC is how long after a SIGINT another is the same Ctrl-C: in a user
	// namespace it comes from the terminal and from the process outside.
	OneCtrlC = 300 * time.Millisecond

	// slowEnd is how long a command may take to end before it says that another
	// Ctrl-C ends it at once.
	slowEnd = 2 * time.Second
)

// ExitInterrupted is the exit code of a process that a second Ctrl-C ends.
const ExitInterrupted = 130

// Interruptible returns a context that the first SIGINT or SIGTERM cancels, so that
// a command can clean up. A second Ctrl-C ends the process immediately with
// ExitInterrupted, and the next command cleans up. Messages go to errs.
func Interruptible(parent context.Context, errs io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		cancel()
		first := time.Now()
		slow := time.NewTimer(slowEnd)
		defer slow.Stop()
		for {
			select {
			case <-slow.C:
				fmt.Fprintln(errs, "atoll: ending; another Ctrl-C ends at once")
			case s, ok := <-signals:
				if !ok {
					return
				}
				if s == os.Interrupt && time.Since(first) > OneCtrlC {
					os.Exit(ExitInterrupted)
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}
