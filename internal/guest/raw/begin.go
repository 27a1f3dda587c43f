package raw

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Step is a system call of a process that Begin starts: its number and arguments.
type Step [7]uintptr

// Process is what a process that Begin started needs of this one's memory. It must be
// kept until that has ended.
type Process struct {
	PID int

	steps  []Step
	stack  []byte
	status *[2]uintptr
}

// Begin starts a process that makes system calls, the last of them over and over. It
// shares this one's memory, so that it costs no copy, and nothing else unless flags say
// so. The first call but the last that fails ends it. Strings and structures that the
// steps point at belong to the caller, who keeps them with the Process.
func Begin(flags uintptr, steps []Step) (*Process, error) {
	p := &Process{stack: make([]byte, 4<<10), status: new([2]uintptr)}
	p.steps = append(append(p.steps, steps...), Step{^uintptr(0)})
	// Aligned, and with room above.
	top := (uintptr(unsafe.Pointer(&p.stack[0])) + uintptr(len(p.stack)) - 64) &^ 15
	pid, e := begin(flags|unix.CLONE_VM|uintptr(unix.SIGCHLD), top, uintptr(unsafe.Pointer(&p.steps[0])), uintptr(unsafe.Pointer(p.status)))
	if e != 0 {
		return nil, e
	}
	p.PID = int(pid)
	return p, nil
}

// Failed tells which step the process ended at, and why; a negative one if none failed.
func (p *Process) Failed() (step int, err error) {
	if p.status[0] == 0 {
		return -1, nil
	}
	return int((p.status[1] - uintptr(unsafe.Pointer(&p.steps[0]))) / unsafe.Sizeof(Step{})), unix.Errno(p.status[0])
}

// begin is clone(2), whose child goes on with the steps.
func begin(flags, stack, steps, status uintptr) (pid uintptr, err unix.Errno)
