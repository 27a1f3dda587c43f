package confine

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_X86_64
	foreignCalls = 0x40000000 // from here on the calls of x32
)

var forkCalls = []uint32{unix.SYS_FORK, unix.SYS_VFORK}

// refuseCall has the system call that a process is about to make fail.
func refuseCall(pid int, e unix.Errno) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		return err
	}
	r.Orig_rax = ^uint64(0) // no call
	r.Rax = uint64(-int64(e))
	return unix.PtraceSetRegs(pid, &r)
}
