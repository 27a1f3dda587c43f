package confine

import (
	"math/rand/v2"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// Launcher and Tracer are the names that the guest's binary is called by.
const (
	Launcher = "atoll-launch"
	Tracer   = "atoll-trace"
)

// Launch becomes the program that it reads of from the descriptor spec, as the
// sandbox's user and under a filter if its rules need one. Where gate is not negative it waits for
// the tracer's word first. It returns only if it cannot.
func Launch(spec, gate int) error {
	// What follows changes one thread, which becomes the program.
	if unix.Gettid() != unix.Getpid() {
		return failure("the launcher does not run on its main thread")
	}
	var m wire.LaunchMessage
	text, err := readAll(spec)
	if err != nil || !m.Decode(text) {
		return failure("the launcher was told nothing it understands")
	}
	if gate >= 0 {
		var word [1]byte
		if n, err := unix.Read(gate, word[:]); n != 1 || err != nil {
			return failure("this program is not traced, which its rules need")
		}
		unix.Close(gate)
	}
	if m.Root {
		err = becomeRoot()
	} else {
		err = becomeUser()
	}
	if err != nil {
		return err
	}
	if m.Dir != "" {
		if err := unix.Chdir(m.Dir); err != nil {
			return failure("chdir " + m.Dir + ": " + err.Error())
		}
	}
	return execute(&m, gate >= 0)
}

func readAll(fd int) (text []byte, err error) {
	b := make([]byte, 64<<10)
	for {
		n, err := unix.Read(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			unix.Close(fd)
			return text, err
		}
		text = append(text, b[:n]...)
	}
}

// becomeUser makes this thread the unprivileged user's.
func becomeUser() error {
	group := uint32(wire.GID)
	// A user namespace may forbid it; process 1 has no group to drop then.
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&group)), 0); e != 0 && e != unix.EPERM {
		return failure("setgroups: " + e.Error())
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, wire.GID, wire.GID, wire.GID); e != 0 {
		return failure("setresgid: " + e.Error())
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, wire.UID, wire.UID, wire.UID); e != 0 {
		return failure("setresuid: " + e.Error())
	}
	return nil
}

// execute makes the filter that the program is under, if there is one, and the call
// that it allows.
func execute(m *wire.LaunchMessage, isTraced bool) error {
	path, err := pointers([]string{m.Path})
	if err != nil {
		return err
	}
	argv, err := pointers(m.Argv)
	if err != nil {
		return err
	}
	env, err := pointers(m.Env)
	if err != nil {
		return err
	}
	filter := traced(m.Count)
	// The path is the first string of its list; the lists begin with pointers.
	args := secrets{path: *(*uint64)(at(path)), argv: path, env: path}
	args.argv, args.env = argv, env
	if m.NoExec {
		filter = noExec(args)
	}
	if m.NoExec || isTraced {
		if e := filter.install(); e != 0 {
			return failure("seccomp: " + e.Error())
		}
	}
	_, _, e := syscall.RawSyscall(unix.SYS_EXECVE, uintptr(args.path), uintptr(args.argv), uintptr(args.env))
	return failure("start " + m.Path + ": " + e.Error())
}

func at(address uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// pointers writes texts as execve wants them, at an address that no program can
// guess, and returns it.
func pointers(texts []string) (uint64, error) {
	head := 8 * (len(texts) + 1)
	size := head
	for _, s := range texts {
		size += len(s) + 1
	}
	shift := rand.N(512) * 8
	base, err := somewhere(size + shift)
	if err != nil {
		return 0, err
	}
	list := base + uint64(shift)
	memory := unsafe.Slice((*byte)(at(list)), size)
	next := head
	for i, s := range texts {
		*(*uint64)(at(list + uint64(8*i))) = list + uint64(next)
		next += copy(memory[next:], s) + 1 // behind it there is a zero
	}
	return list, nil
}

// somewhere maps memory at a random address.
func somewhere(size int) (uint64, error) {
	const pages = 1<<46/4096 - 1<<20
	for range 64 {
		want := uintptr(rand.N(uint64(pages))+1<<16) * 4096
		got, _, e := unix.RawSyscall6(unix.SYS_MMAP, want, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0), 0)
		if e != 0 {
			return 0, failure("mmap: " + e.Error())
		}
		if got == want {
			return uint64(got), nil
		}
		if _, _, e := unix.RawSyscall(unix.SYS_MUNMAP, got, uintptr(size), 0); e != 0 {
			return 0, failure("munmap: " + e.Error())
		}
	}
	return 0, failure("mmap: no address is free")
}
