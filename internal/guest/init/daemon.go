package guestinit

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/confine"
	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// guest daemon is the process that starts programs, in a sandbox that lives for
// long, instead of process 1.
type guestDaemon struct {
	pidfd int
	cue   int // the end of a pipe; a byte in it sends the guest daemon to the host
}

const (
	errHasDaemon     = failure("this sandbox has a guest daemon, which starts its programs")
	errHasRuns       = failure("programs run that no guest daemon could look after")
	errNoDaemonMount = failure("no folder is mounted at " + wire.DaemonMount + " to meet the host in")
)

// callDaemon has the guest daemon come to the host, and starts it if there is none.
func (s *supervisor) callDaemon(m *wire.StartDaemonMessage) error {
	if s.daemon == nil {
		if err := s.startDaemon(m); err != nil {
			return err
		}
	}
	if _, err := raw.Write(s.daemon.cue, []byte{'h'}); err != nil && err != unix.EAGAIN { // a full pipe says enough
		return step("cue the guest daemon", err)
	}
	return nil
}

func (s *supervisor) startDaemon(m *wire.StartDaemonMessage) error {
	var st unix.Stat_t
	switch {
	case len(s.runs) > 0, s.own != nil: // it would start programs outside of the namespaces
		return errHasRuns
	case unix.Stat(wire.DaemonMount, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return errNoDaemonMount
	}
	if w := s.warm; w != nil {
		s.warm = nil
		s.discard(w)
	}
	skills := s.skillsFolder()
	// Clients of other vendors name the home of a sandbox that lives for long so. An image
	// that has something there is used as it is.
	_ = unix.Symlink(wire.Home, wire.Workspace)
	if err := s.seal(); err != nil {
		return err
	}
	if err := s.limit(wire.Limits{Processes: m.Limits.Processes}); err != nil {
		return err
	}
	// From now on process 1 does not ask how a child has ended: what programs leave
	// behind goes without process 1 having to look for it.
	s.reap()
	s.dirty = false
	if err := disregardChildren(); err != nil {
		return err
	}
	a, err := spawnDaemon(&s.rules, m.Limits.OpenFiles, skills)
	if err == nil {
		s.daemon, s.hadDaemon = a, true
	}
	return err
}

func disregardChildren() error {
	ignore := [4]uint64{1} // SIG_IGN
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), uintptr(unsafe.Pointer(&ignore)), 0, 8, 0, 0); e != 0 {
		return step("sigaction", e)
	}
	return nil
}

// daemonFiles is how many descriptors a guest daemon may have open itself.
const daemonFiles = 8192

// spawnDaemon starts the guest daemon. It reads the rules that it is to start
// programs under first, and cues from then on. The number of files is its soft
// limit, which a Go program raises for itself and gives its children back. skills is the
// folder of skills, negative for none.
func spawnDaemon(rules *wire.ConfineMessage, files uint64, skills int) (*guestDaemon, error) {
	text, err := confine.Told(rules.Append(nil))
	if err != nil {
		return nil, err
	}
	defer unix.Close(text)
	var cue pair
	if err := unix.Pipe2(cue[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, step("pipe", err)
	}
	defer unix.Close(cue[0])
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(cue[1])
		return nil, step("/dev/null", err)
	}
	defer unix.Close(null)
	if skills < 0 {
		skills = null
	}
	if files == 0 {
		files = 1024
	}
	own := unix.Rlimit{}
	err = unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &own)
	if err == nil {
		err = unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: max(files, daemonFiles)}, nil)
	}
	if err != nil {
		unix.Close(cue[1])
		return nil, step("limit open files", err)
	}
	a := &guestDaemon{pidfd: -1, cue: cue[1]}
	_, err = syscall.ForkExec(DaemonPath, []string{DaemonPath}, &syscall.ProcAttr{
		Dir:   "/",
		Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(text), uintptr(cue[0]), uintptr(skills)},
		Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &a.pidfd},
	})
	if e := unix.Prlimit(0, unix.RLIMIT_NOFILE, &own, nil); err == nil {
		err = e
	}
	if err != nil {
		unix.Close(cue[1])
		return nil, step("start the guest daemon", err)
	}
	return a, nil
}

// DaemonPath is the guest daemon's binary.
const DaemonPath = hooks + "/atoll-guestd"

// watchDaemon waits for a sudden end, after which StartDaemon starts another one.
func (s *supervisor) watchDaemon() {
	if a := s.daemon; a != nil && a.pidfd >= 0 {
		s.watch(a.pidfd, unix.POLLIN, func() {
			raw.Close(a.pidfd)
			raw.Close(a.cue)
			s.daemon = nil
		})
	}
}
