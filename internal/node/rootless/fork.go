package rootless

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A process that has threads can neither make nor join a user namespace for
// itself, and a Go program always has threads. So a child is forked that has
// one, and it does so before it executes anything. The syscall package can make
// a namespace in that way, but not join one, nor wait for newuidmap.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// childPlan is all that the child needs: after the fork it may not allocate.
type childPlan struct {
	join       int // user namespace to enter; -1 makes one
	parent     uintptr
	path       *byte
	argv, envv **byte
	reports    int // the child writes a report after each stage and when one fails
	orders     int // the child reads a byte before it goes on

	// The child's own: what it writes and reads.
	report report
	order  byte
}

// Stages of the child, as it reports them.
const (
	stageNamespace = iota + 1
	stageUser
	stageMount
	stageParent
	stageExec
)

var stageNames = map[uint32]string{
	stageNamespace: "enter a user namespace", stageUser: "become its root", stageMount: "enter a mount namespace",
	stageParent: "follow the parent", stageExec: "start again",
}

// report is what the child writes; errno 0 says that the stage is done.
type report struct{ stage, errno uint32 }

const reportSize = int(unsafe.Sizeof(report{}))

// child is a forked process that has not executed anything yet.
type child struct {
	pid     int
	reports *os.File
	orders  *os.File
}

// start forks a child that has entered its user namespace and waits to be let
// go. The calling goroutine must be locked to its thread: the child ends with
// that thread.
func start(join int, path string, argv, env []string) (_ *child, err error) {
	pathp, err := syscall.BytePtrFromString(path)
	if err != nil {
		return nil, err
	}
	argvp, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return nil, err
	}
	envvp, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return nil, err
	}
	reports, toParent, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	toChild, orders, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, reports.Close(), toParent.Close())
	}
	plan := &childPlan{
		join: join, parent: uintptr(os.Getpid()), path: pathp, argv: &argvp[0], envv: &envvp[0],
		reports: dup(toParent), orders: dup(toChild),
	}
	_ = toParent.Close() // pipes
	_ = toChild.Close()
	syscall.ForkLock.Lock()
	pid, errno := fork(plan)
	syscall.ForkLock.Unlock()
	_ = unix.Close(plan.reports)
	_ = unix.Close(plan.orders)
	c := &child{pid: pid, reports: reports, orders: orders}
	if errno != 0 {
		return nil, errors.Join(fmt.Errorf("fork: %w", errno), c.close())
	}
	if err := c.expect(stageNamespace); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// dup returns a second descriptor, blocking and closed on exec: the child
// knows nothing of Go's poller. It is -1 when there are too many, which the
// child's first write reports by its end.
func dup(f *os.File) int {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3) // Fd makes it blocking
	if err != nil {
		return -1
	}
	return fd
}

// expect waits for a stage to be done.
func (c *child) expect(stage uint32) error {
	r, err := c.read()
	if err != nil {
		return fmt.Errorf("%s: the child ended: %w", stageNames[stage], err)
	}
	if r.errno != 0 {
		return fmt.Errorf("%s: %w", stageNames[r.stage], syscall.Errno(r.errno))
	}
	return nil
}

func (c *child) read() (report, error) {
	var buf [reportSize]byte
	n, err := c.reports.Read(buf[:])
	if err != nil {
		return report{}, err
	}
	if n != reportSize {
		return report{}, errors.New("a report was cut")
	}
	return *(*report)(unsafe.Pointer(&buf)), nil
}

// release lets the child go on and returns when it has executed its program.
func (c *child) release() error {
	if _, err := c.orders.Write([]byte{1}); err != nil {
		return err
	}
	if r, err := c.read(); err == nil {
		return fmt.Errorf("%s: %w", stageNames[r.stage], syscall.Errno(r.errno))
	}
	return c.close() // the end of the pipe: exec closed it
}

// end reaps a child that failed or is not wanted.
func (c *child) end() error {
	_ = unix.Kill(c.pid, unix.SIGKILL) // it may have ended
	_, err := unix.Wait4(c.pid, nil, 0, nil)
	return errors.Join(err, c.close())
}

func (c *child) close() error { return errors.Join(c.reports.Close(), c.orders.Close()) }

// fork returns the child's pid; the child itself never returns from it.
//
//go:noinline
//go:norace
//go:nocheckptr
func fork(p *childPlan) (int, syscall.Errno) {
	beforeFork()
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		afterFork()
		return int(pid), errno
	}
	afterForkInChild()
	p.run()
	return 0, 0
}

// run is the child's life until it executes its program. Raw system calls only,
// and no growing stack: there is no Go runtime in this process.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (p *childPlan) run() {
	var n, parent uintptr
	var errno syscall.Errno

	p.report.stage = stageNamespace
	if p.join >= 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, uintptr(p.join), unix.CLONE_NEWUSER, 0)
	} else {
		_, _, errno = syscall.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0)
	}
	p.report.errno = uint32(errno)
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(p.reports), uintptr(unsafe.Pointer(&p.report)), unsafe.Sizeof(p.report))
	if errno != 0 {
		goto end
	}

	// The parent writes the maps and the registry. A parent that ended has
	// closed the pipe.
	n, _, errno = syscall.RawSyscall(unix.SYS_READ, uintptr(p.orders), uintptr(unsafe.Pointer(&p.order)), 1)
	if errno != 0 || n != 1 {
		goto end
	}

	p.report.stage = stageUser
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETRESGID, 0, 0, 0); errno != 0 {
		goto fail
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); errno != 0 {
		goto fail
	}
	p.report.stage = stageMount
	if _, _, errno = syscall.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWNS, 0, 0); errno != 0 {
		goto fail
	}
	// Last, since a change of credentials takes it back.
	p.report.stage = stageParent
	if _, _, errno = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		goto fail
	}
	if parent, _, _ = syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); parent != p.parent {
		goto end
	}
	p.report.stage = stageExec
	_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(p.path)), uintptr(unsafe.Pointer(p.argv)), uintptr(unsafe.Pointer(p.envv)))

fail:
	p.report.errno = uint32(errno)
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(p.reports), uintptr(unsafe.Pointer(&p.report)), unsafe.Sizeof(p.report))
end:
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 126, 0, 0)
	}
}
