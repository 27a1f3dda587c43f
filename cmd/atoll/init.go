package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// superviseAsInit runs this program's command in a child process and returns its
// exit code, 128+n when signal n ended it. It is for process 1 of a container:
// the kernels of sandboxes are detached from what starts them, so they become
// children of process 1, which must wait for each that ends. Doing that in the
// process that starts programs would take their exit codes away from it.
//
// Signals are passed on to the child.
func superviseAsInit(args []string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	attr := &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{}}
	if term.IsTerminal(0) {
		// Ctrl-C is for the child alone, which otherwise would get it twice.
		attr.Sys.Foreground, attr.Sys.Ctty = true, 0
	}
	child, err := os.StartProcess(self, args, attr)
	if err != nil {
		return 0, fmt.Errorf("start the command: %w", err)
	}
	for {
		s := <-signals
		if s != syscall.SIGCHLD {
			_ = child.Signal(s) // it may have ended, which the next signal says
			continue
		}
		status, ended, err := reap(child.Pid)
		switch {
		case err != nil:
			return 0, err
		case ended && status.Signaled():
			return 128 + int(status.Signal()), nil
		case ended:
			return status.ExitStatus(), nil
		}
	}
}

// reap waits for every process that has ended, and returns the status of pid if
// that is one of them.
func reap(pid int) (status syscall.WaitStatus, ended bool, err error) {
	for {
		var s syscall.WaitStatus
		got, err := syscall.Wait4(-1, &s, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD) || err == nil && got == 0:
			return status, ended, nil
		case err != nil:
			return status, ended, fmt.Errorf("wait for processes: %w", err)
		case got == pid:
			status, ended = s, true
		}
	}
}
