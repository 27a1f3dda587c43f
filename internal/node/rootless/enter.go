package rootless

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// DataDirEnv and StateDirEnv are set for the process inside: root has other
// defaults, and would look for its data elsewhere.
const (
	DataDirEnv  = "ATOLL_DATA_DIR"
	StateDirEnv = "ATOLL_STATE_DIR"
)

// Enter starts this program anew, with the same arguments, in the namespace of
// a data folder, whose sandboxes' state is in stateDir, and waits for its end.
// The caller has to exit with the code it returns; an error means that nothing
// was started.
func Enter(dataDir, stateDir string, log *slog.Logger) (code int, err error) {
	path, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// The child ends with the thread that forked it, which so must not end
	// before this process does.
	runtime.LockOSThread()
	// From here on no signal is lost: those that come early wait.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	reg, err := openRegistry(dataDir)
	if err != nil {
		return 0, err
	}
	pid, err := launch(reg, dataDir, stateDir, path, log)
	err = errors.Join(err, reg.unlock())
	if err != nil {
		return 0, err
	}
	forwarding := make(chan struct{})
	go func() {
		defer close(forwarding)
		forward(pid, signals)
	}()
	// Reaped only after it was forgotten, and after the last signal was passed
	// on: until then no other process has its pid.
	if err := wait(pid, unix.WNOWAIT); err != nil {
		return 0, err
	}
	signal.Stop(signals)
	close(signals)
	<-forwarding
	if err := reg.remove(pid); err != nil {
		log.Warn("cannot forget a process that ended", "error", err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil { // at once: it has ended
		return 0, err
	}
	if !status.Signaled() {
		return status.ExitStatus(), nil
	}
	dieOf(status.Signal())
	return 128 + int(status.Signal()), nil
}

// launch starts the process inside and returns its pid.
func launch(reg *registry, dataDir, stateDir, path string, log *slog.Logger) (_ int, err error) {
	ns, err := reg.find(stateDir)
	if err != nil {
		return 0, err
	}
	join := -1
	if ns != nil {
		defer ns.Close()
		join = int(ns.Fd())
	}
	env := append(os.Environ(), DataDirEnv+"="+dataDir, StateDirEnv+"="+stateDir, insideEnv+"=1")
	c, err := start(join, path, os.Args, env)
	if err != nil {
		return 0, explain(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.end())
		}
	}()
	if ns == nil {
		alone, err := writeMaps(c.pid)
		if err != nil {
			return 0, explain(fmt.Errorf("map users: %w", err))
		}
		if alone != "" {
			log.Info("sandboxes run as this user: there is no other to give them", "reason", alone)
		}
	}
	if err := reg.add(c.pid); err != nil {
		return 0, err
	}
	if err := c.release(); err != nil {
		return 0, errors.Join(explain(err), reg.remove(c.pid))
	}
	return c.pid, nil
}

// forwarded are the signals that people and service managers send. Ctrl-C
// reaches both processes by itself; the second SIGINT that this makes of it
// means nothing to a program that is ending.
var forwarded = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
}

func forward(pid int, signals <-chan os.Signal) {
	for s := range signals {
		if n, ok := s.(syscall.Signal); ok {
			_ = unix.Kill(pid, n) // it may have ended
		}
	}
}

// wait returns when a child has ended; with unix.WNOWAIT it stays to be reaped.
func wait(pid, options int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|options, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// dieOf ends this process by the signal that ended the one inside, so that who
// waits for it sees the same. It returns for signals of which Go makes a crash
// report: there has been one.
func dieOf(s syscall.Signal) {
	switch s {
	case unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGKILL, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE:
		signal.Reset(s)
		_ = unix.Kill(os.Getpid(), s)
		select {} // the signal is on its way to one of our threads
	}
}
