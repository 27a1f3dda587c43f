// Package confine starts programs under rules about what they may start in turn.
//
// It runs in two helpers of process 1. The launcher becomes the program: it drops
// its rights, installs a seccomp filter and executes it. The tracer watches over
// a program and all that descends from it: it looks at what is executed, and
// counts processes. Both are the guest's binary under another name.
package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// failure is an error made without package fmt.
type failure string

func (f failure) Error() string { return string(f) }

// Offsets in struct seccomp_data, of a little-endian machine.
const (
	dataCall = 0
	dataArch = 4
	dataArgs = 16
)

// Answers of a filter.
const (
	retAllow = 0x7fff0000
	retTrace = 0x7ff00000
	retErrno = 0x00050000
)

// program is a filter that is being written: instructions, one after another.
type program []unix.SockFilter

func (p *program) load(offset uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (p *program) ret(answer uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: answer})
}

// call begins what holds for one system call; the function it returns ends it.
// What falls through goes on with the next call.
func (p *program) call(number uint32) (end func()) {
	p.load(dataCall)
	at := len(*p)
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number})
	return func() { (*p)[at].Jf = uint8(len(*p) - at - 1) }
}

// unless skips the next n instructions when a word of an argument has the bits.
func (p *program) unless(arg int, bits uint32, n uint8) {
	p.load(uint32(dataArgs + 8*arg))
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: bits, Jt: n})
}

// only answers EPERM when an argument is not value.
func (p *program) only(arg int, value uint64) {
	for i, word := range []uint32{uint32(value), uint32(value >> 32)} {
		p.load(uint32(dataArgs + 8*arg + 4*i))
		*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: word, Jt: 1})
		p.ret(retErrno | uint32(unix.EPERM))
	}
}

// begin refuses the system calls of every other architecture.
func (p *program) begin() {
	p.load(dataArch)
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: auditArch, Jt: 1})
	p.ret(retErrno | uint32(unix.EPERM))
	if foreignCalls != 0 {
		p.load(dataCall)
		*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: foreignCalls, Jf: 1})
		p.ret(retErrno | uint32(unix.EPERM))
	}
}

// secrets are the addresses that the one execve is called with that is allowed.
type secrets struct{ path, argv, env uint64 }

// noExec lets a program make threads, and execute what is called with secrets:
// the launcher's own call, whose addresses mean nothing once it was made, and
// cannot be guessed.
func noExec(s secrets) program {
	var p program
	p.begin()
	end := p.call(unix.SYS_EXECVE)
	p.only(0, s.path)
	p.only(1, s.argv)
	p.only(2, s.env)
	p.ret(retAllow)
	end()
	end = p.call(unix.SYS_EXECVEAT)
	p.ret(retErrno | uint32(unix.EPERM))
	end()
	p.forks(retErrno | uint32(unix.EPERM))
	p.ret(retAllow)
	return p
}

// traced keeps what a program starts from leaving its tracer. With count each
// fork is the tracer's to allow.
func traced(count bool) program {
	var p program
	p.begin()
	end := p.call(unix.SYS_CLONE)
	p.unless(0, unix.CLONE_UNTRACED, 1)
	p.jump(1)
	p.ret(retErrno | uint32(unix.EPERM))
	end()
	if count {
		p.forks(retTrace)
	} else {
		p.noClone3()
	}
	p.ret(retAllow)
	return p
}

// jump passes over n instructions.
func (p *program) jump(n uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: n})
}

// forks gives one answer to every call that makes a process. Threads are let be.
func (p *program) forks(answer uint32) {
	for _, number := range forkCalls {
		end := p.call(number)
		p.ret(answer)
		end()
	}
	end := p.call(unix.SYS_CLONE)
	p.unless(0, unix.CLONE_THREAD, 1)
	p.ret(answer)
	end()
	p.noClone3()
}

// noClone3 has callers fall back to clone, whose flags a filter can see.
func (p *program) noClone3() {
	end := p.call(unix.SYS_CLONE3)
	p.ret(retErrno | uint32(unix.ENOSYS))
	end()
}

// install makes p a filter of the calling thread and of what it becomes. It makes
// no call but that.
func (p program) install() unix.Errno {
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	return e
}
