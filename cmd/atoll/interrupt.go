package main

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
	// oneCtrlC is how long after a SIGINT another is the same Ctrl-C: in a user
	// namespace it comes from the terminal and from the process outside.
	oneCtrlC = 300 * time.Millisecond

	// slowEnd is how long a command may take to end before it says that another
	// Ctrl-C ends it at once.
	slowEnd = 2 * time.Second
)

// interruptible returns a context that the first SIGINT or SIGTERM cancels, so that
// a command can undo what it began. A second Ctrl-C ends the process at once, with
// exit code 130; what it leaves is swept by the next command.
func interruptible(parent context.Context, errs io.Writer) (ctx context.Context, stop func()) {
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
				if s == os.Interrupt && time.Since(first) > oneCtrlC {
					os.Exit(exitCancelled)
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
