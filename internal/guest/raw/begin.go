package raw

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// step is a system call: its number and arguments.
type step [7]uintptr

// Steps are the system calls of a process that Begin or Exec starts, with what they
// point at.
type Steps struct {
	list []step
	held []any
	err  error
}

// Add adds a call.
func (s *Steps) Add(call uintptr, args ...uintptr) {
	one := step{call}
	copy(one[1:], args)
	s.list = append(s.list, one)
}

// Len is how many calls there are.
func (s *Steps) Len() int { return len(s.list) }

// Err tells of the first string that no call can have.
func (s *Steps) Err() error { return s.err }

// Text returns the address of a string; that of "" is 0.
func (s *Steps) Text(text string) uintptr {
	if text == "" {
		return 0
	}
	p, err := unix.BytePtrFromString(text)
	if err != nil {
		s.fail(err)
		return 0
	}
	return Address(s, p)
}

// Texts returns the address of a list of strings, such as execve(2) takes.
func (s *Steps) Texts(list []string) uintptr {
	p, err := syscall.SlicePtrFromStrings(list)
	if err != nil {
		s.fail(err)
		return 0
	}
	return Address(s, &p[0])
}

func (s *Steps) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Address returns the address of what p points at, which is kept with the steps.
func Address[T any](s *Steps, p *T) uintptr {
	s.held = append(s.held, p) // it never is on a stack, which may be moved
	return uintptr(unsafe.Pointer(p))
}

// Process is what a process that Begin started needs of this one's memory. It must be
// kept until that has ended.
type Process struct {
	PID int
	FD  int // a descriptor of it, the caller's to close

	clone  cloneArgs
	pidfd  int32
	steps  []step
	stack  []byte
	status [2]uintptr // why a step failed, and where that is
	held   []any
}

// cloneArgs is what clone3(2) takes: see struct clone_args.
type cloneArgs [8]uint64

const (
	cloneFlags      = 0
	clonePidfd      = 1
	cloneExitSignal = 4
	cloneStack      = 5
	cloneStackSize  = 6
)

// Begin starts a process that makes system calls, the last of them over and over. It
// shares this one's memory, so that it costs no copy, and nothing else unless flags say
// so. The first call but the last that fails ends it.
func Begin(flags uint64, s *Steps) (*Process, error) {
	return begun(flags, s, step{^uintptr(0)})
}

// Exec is Begin for calls of which the last is execve(2), and returns when the program
// is executed or a call has failed, which ends the process. Signals have no handlers in
// it; they are to be blocked meanwhile, because those of this process run until then.
func Exec(s *Steps) (*Process, error) {
	p, err := begun(unix.CLONE_VFORK|unix.CLONE_CLEAR_SIGHAND, s, step{})
	runtime.KeepAlive(p)
	return p, err
}

// begun starts a process; end comes after its steps.
func begun(flags uint64, s *Steps, end step) (*Process, error) {
	if s.err != nil {
		return nil, s.err
	}
	p := &Process{stack: make([]byte, 4<<10), steps: append(s.list[:len(s.list):len(s.list)], end), held: s.held}
	const aligned = 16
	bottom := (uint64(uintptr(unsafe.Pointer(&p.stack[0]))) + aligned - 1) &^ (aligned - 1)
	p.clone = cloneArgs{
		cloneFlags:      flags | unix.CLONE_VM | unix.CLONE_PIDFD,
		clonePidfd:      uint64(uintptr(unsafe.Pointer(&p.pidfd))),
		cloneExitSignal: uint64(unix.SIGCHLD),
		cloneStack:      bottom,
		cloneStackSize:  uint64(len(p.stack)) - aligned,
	}
	pid, e := begin(uintptr(unsafe.Pointer(&p.clone)), unsafe.Sizeof(p.clone), uintptr(unsafe.Pointer(&p.steps[0])), uintptr(unsafe.Pointer(&p.status)))
	if e != 0 {
		return nil, e
	}
	p.PID, p.FD = int(pid), int(p.pidfd)
	return p, nil
}

// Failed tells which step the process ended at, and why; a negative one if none failed.
func (p *Process) Failed() (at int, err error) {
	if p.status[0] == 0 {
		return -1, nil
	}
	return int((p.status[1] - uintptr(unsafe.Pointer(&p.steps[0]))) / unsafe.Sizeof(step{})), unix.Errno(p.status[0])
}

// begin is clone3(2), whose child goes on with the steps: one with a negative number
// sends it back to the one before.
func begin(args, size, steps, status uintptr) (pid uintptr, err unix.Errno)
