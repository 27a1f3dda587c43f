// Package supervisor is process 1 of a sandbox: it starts, feeds, reaps and ends
// programs for the host, and passes their output on.
//
// Everything happens in one loop on one thread. A wake-up of a second thread
// costs more under gVisor than all the work between a request and its program,
// so there are no goroutines, and a request is answered with as few system
// calls as it can be.
package supervisor

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// The channel's descriptors.
const (
	fromHost = 0
	toHost   = 1
)

// supervisor is the state of process 1. Only the loop touches it.
type supervisor struct {
	version string

	dec     *wire.Decoder
	partial message // the message whose frames are arriving
	out     spool

	warm   *warmed
	runs   []*run
	orphan []*pipe // pipes of ended runs that background processes still hold
	limits wire.Limits
	twin   bool // restored from a checkpoint; interpreters must reseed
	dirty  bool // a program has run, so zombies may come without notice

	polls   []unix.PollFd
	targets []func(revents int16)
	scratch []byte
}

// Run serves the host until the sandbox ends. It returns only when the process
// cannot be a sandbox's process 1, with the reason.
func Run(version string) error {
	runtime.LockOSThread() // the thread's uid changes back and forth
	if unix.Getpid() != 1 {
		return errNotInit
	}
	if err := prepare(); err != nil {
		return err
	}
	s := &supervisor{version: version, dec: wire.NewDecoder(wire.MaxRequest - wire.HeaderSize)}
	for {
		s.turn()
	}
}

// prepare makes the process fit to hold programs at a distance.
func prepare() error {
	unix.Umask(0o022)
	// Nothing a program inherits may lead back here.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil && err != unix.ENOSYS {
		return step("close_range", err)
	}
	for _, fd := range []int{fromHost, toHost} {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return step("channel", err)
		}
	}
	if err := unix.SetNonblock(toHost, true); err != nil {
		return step("nonblock", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return step("no_new_privs", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return step("dumpable", err)
	}
	core := unix.Rlimit{}
	return step("rlimit core", unix.Prlimit(0, unix.RLIMIT_CORE, &core, nil))
}

// turn waits for something to happen and deals with it.
func (s *supervisor) turn() {
	s.polls, s.targets = s.polls[:0], s.targets[:0]
	s.watch(fromHost, unix.POLLIN, s.readHost)
	if s.out.pending() {
		s.watch(toHost, unix.POLLOUT, func(int16) {})
	}
	s.watchWarm()
	wait := s.watchRuns()
	s.watchOrphans()

	n, err := ppoll(s.polls, wait)
	if err == unix.EINTR || n == 0 {
		s.reap()
	}
	for i := 0; n > 0 && i < len(s.polls); i++ {
		if e := s.polls[i].Revents; e != 0 {
			n--
			s.targets[i](e)
		}
	}
	s.settle()
	s.out.flush(toHost)
}

func (s *supervisor) watch(fd int, events int16, f func(int16)) {
	s.polls = append(s.polls, unix.PollFd{Fd: int32(fd), Events: events})
	s.targets = append(s.targets, f)
}

// ppoll waits for at most d; a negative d waits for ever.
func ppoll(fds []unix.PollFd, d time.Duration) (int, error) {
	if d < 0 {
		return unix.Ppoll(fds, nil, nil)
	}
	ts := unix.NsecToTimespec(int64(d))
	return unix.Ppoll(fds, &ts, nil)
}
