package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// RootCapabilities are those of programs that run as uid 0 of the sandbox: what a
// package manager needs to give files their owners and to become its own users.
// Each is one of process 1's as well, so that no sandbox is made otherwise for it.
const RootCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID

// becomeRoot leaves this thread, which has process 1's capabilities, those of
// RootCapabilities. What it executes can get no others: they leave the bounding set
// too.
func becomeRoot() error {
	group := uint32(0)
	// A user namespace may forbid it; process 1 has no group to drop then.
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&group)), 0); e != 0 && e != unix.EPERM {
		return failure("setgroups: " + e.Error())
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if RootCapabilities&(1<<c) != 0 {
			continue
		}
		// EINVAL is a capability that this kernel does not know.
		if _, _, e := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); e != 0 && e != unix.EINVAL {
			return failure("drop a capability: " + e.Error())
		}
	}
	return failed("capset", setCapabilities(RootCapabilities, RootCapabilities))
}

// AsRoot runs f with the rights of programs that run as uid 0, and only those: of
// process 1's capabilities it has RootCapabilities in effect. It is for a thread
// that is locked.
func AsRoot(f func() error) error {
	all, e := capabilities()
	if e == 0 {
		e = setCapabilities(RootCapabilities, all)
	}
	if e != 0 {
		return failed("capset", e)
	}
	defer func() {
		if setCapabilities(all, all) != 0 {
			panic("this guest cannot take its capabilities back") // it could start nothing any more
		}
	}()
	return f()
}

func failed(what string, e unix.Errno) error {
	if e != 0 {
		return failure(what + ": " + e.Error())
	}
	return nil
}

// setCapabilities gives this thread capabilities, as bits, of those it is permitted.
// It inherits none to what it executes.
func setCapabilities(effective, permitted uint64) unix.Errno {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{
		{Effective: uint32(effective), Permitted: uint32(permitted)},
		{Effective: uint32(effective >> 32), Permitted: uint32(permitted >> 32)},
	}
	_, _, e := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&data)), 0)
	return e
}

// capabilities are those that this thread is permitted, as bits.
func capabilities() (permitted uint64, e unix.Errno) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	_, _, e = unix.RawSyscall(unix.SYS_CAPGET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&data)), 0)
	return uint64(data[0].Permitted) | uint64(data[1].Permitted)<<32, e
}
