package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0
)

var forkCalls []uint32 // clone does it all

const regsetCall = 0x404 // NT_ARM_SYSTEM_CALL

// refuseCall has the system call that a process is about to make fail.
func refuseCall(pid int, e unix.Errno) error {
	none := int32(-1)
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(&none)), Len: 4}
	if _, _, err := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETREGSET, uintptr(pid), regsetCall, uintptr(unsafe.Pointer(&iov)), 0, 0); err != 0 {
		return err
	}
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		return err
	}
	r.Regs[0] = uint64(-int64(e))
	return unix.PtraceSetRegs(pid, &r)
}
