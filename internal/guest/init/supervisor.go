// Package guestinit is process 1 of a sandbox: it starts, feeds, reaps and ends
// programs for the host, and passes their output on.
//
// Everything happens in one loop on one thread. A wake-up of a second thread
// costs more under gVisor than all the work between a request and its program,
// so there is one goroutine, and a request is answered with as few system calls
// as it can be.
package guestinit

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proctree"
	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// The channel's descriptors.
const (
	fromHost = 0
	toHost   = 1
)

// supervisor is the state of process 1. Only the loop touches it.
type supervisor struct {
	*poller
	version string

	dec     *wire.Decoder
	partial message // the message whose frames are arriving
	out     spool

	warm    *warmed
	draft   *draft // of the file of the program that warm waits for; nil when there is none
	late    []int  // descriptors that are closed once the host has its answer
	runs    []*run
	marks   *proctree.Marks // nil until the first program
	parting []int           // main processes that gave their last word and were not reaped
	orphan  []*pipe         // pipes of ended runs that background processes still hold
	limits  wire.Limits
	rules   wire.ConfineMessage
	offered bool // stdinFile is there, or may be
	// Of the machine's id and the generation's file, where rules may make those read-only;
	// otherwise -1.
	machine, generation int

	readOnly [len(readOnly)]int // the folders of readOnly; -1 until there is one
	home     int                // the home's folder, to write a program to that may not write there; -1 where it may
	confined bool
	sealed   string // the mounts when they were last bound to the rules; "" before
	moved    bool   // Home is another folder than the waiting interpreter started in
	restored bool   // restored from a checkpoint; interpreters must reseed
	dirty    bool   // a program has run, so zombies may come without notice

	host uint64 // nonce of the host that greeted last
	door *door  // of the run that may ask the host; nil when there is none

	own      *namespaces // of the program that runs or comes next; nil where all is the sandbox's
	forks    *forkServer // makes the interpreters that wait in own; nil when there is none
	unforked bool        // a fork server could not be started
	mounts   int         // process 1's own mount namespace, once there are others; else -1

	daemon    *guestDaemon // nil when there is none
	hadDaemon bool         // there was one, so programs are its to start

	turns   uint
	took    int // bytes of output read in this turn
	brake   brake
	scratch []byte
}

// Run serves the host until the sandbox ends. It returns only when the process
// cannot be a sandbox's process 1, with the reason.
func Run(version string) error {
	runtime.GOMAXPROCS(1)
	if unix.Getpid() != 1 {
		return errNotInit
	}
	if err := prepare(); err != nil {
		return err
	}
	if err := joinNetwork(); err != nil {
		return err
	}
	if name := hostName(); name != "" {
		_ = resolveHost(-1, name, name) // an image that cannot have the file is used as it is
	}
	// Programs of the contract's clients name their home so. An image that cannot have the
	// link, or has something there, is used as it is.
	_ = unix.Symlink(wire.Home, wire.HomeAlias)
	p, err := newPoller()
	if err != nil {
		return err
	}
	s := &supervisor{poller: p, version: version, home: -1, mounts: -1, machine: -1, generation: -1, readOnly: [len(readOnly)]int{-1, -1}, dec: wire.NewDecoder(wire.MaxRequest - wire.HeaderSize)}
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
	// Every thread has the flag if the runtime set it for the process.
	if on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || on == 0 {
		if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
			return step("no_new_privs", e)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return step("dumpable", err)
	}
	// A child's end is known by its pidfd. Go's handler for the signal would only
	// run in between; by default it is dropped.
	var dfl [4]uint64
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), uintptr(unsafe.Pointer(&dfl)), 0, 8, 0, 0); e != 0 {
		return step("sigaction", e)
	}
	core := unix.Rlimit{}
	return step("rlimit core", unix.Prlimit(0, unix.RLIMIT_CORE, &core, nil))
}

// turn waits for something to happen and deals with it.
func (s *supervisor) turn() {
	s.reset()
	s.watch(fromHost, unix.POLLIN, s.readHost)
	if s.out.pending() {
		s.watch(toHost, unix.POLLOUT, func() {})
	}
	s.watchWarm()
	s.watchRuns()
	s.watchOrphans()
	s.watchDoor()
	s.watchDaemon()

	n := s.wait(s.patience())
	s.dispatch(n)
	if n == 0 && s.dirty {
		s.reap()
	}
	if s.turns++; n == 0 || s.turns%64 == 0 {
		s.expire(time.Now())
	}
	s.settle()
	s.settleDoor()
	s.out.flush(toHost)
	for _, fd := range s.late {
		raw.Close(fd)
	}
	s.late = s.late[:0]
	s.brake.after(s.took)
	s.took = 0
}

// closeLater closes a descriptor when the turn is over, and what is to go to the host has.
func (s *supervisor) closeLater(fd int) { s.late = append(s.late, fd) }

// brake slows the loop down when a program writes byte by byte as fast as it
// can, so that a turn finds more than a byte to pass on: the program, the guest
// and the host all have less work for the same output.
type brake struct {
	small uint // turns with little output since it was last looked at
	since time.Time
	on    bool
}

const (
	brakeTurns = 64
	brakeTime  = 20 * time.Millisecond  // so many turns in less are too many
	brakeBytes = 4 << 10                // less is little output
	brakeNap   = 300 * time.Microsecond // how long the pipe may fill
)

// after is told how many bytes of output a turn brought.
func (b *brake) after(n int) {
	if n >= brakeBytes {
		b.on, b.small = false, 0
	}
	if n == 0 || n >= brakeBytes {
		return
	}
	if b.small++; b.small >= brakeTurns {
		now := time.Now()
		b.on = now.Sub(b.since) < brakeTime+brakeTurns*brakeNap
		b.small, b.since = 0, now
	}
	if b.on {
		nap(brakeNap)
	}
}

// How often zombies are looked for. Their parent was the program, so no pidfd
// tells of them, and while they last they count against its limit of processes.
const (
	reapBusy = 50 * time.Millisecond // while a run goes on
	reapIdle = time.Second           // while it has left processes behind
	reapSelf = 5 * time.Millisecond  // where the kernel has no pidfd
)

// patience returns how long to wait at most, -1 for ever.
func (s *supervisor) patience() time.Duration {
	d := time.Duration(-1)
	if s.dirty {
		d = reapIdle
	}
	for _, r := range s.runs {
		switch {
		case r.ended:
		case r.pidfd < 0:
			return reapSelf
		case !r.hold.IsZero():
			return max(0, time.Until(r.hold))
		default:
			d = reapBusy
		}
	}
	return d
}
