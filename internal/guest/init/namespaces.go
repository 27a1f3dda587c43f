package guestinit

import (
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proctree"
	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// namespaces are what one program of a kernel that several programs have after one
// another has for itself: processes, mounts, System V objects, message queues, host
// name, sockets. They last as long as the init that was made with them, which process
// 1 ends.
type namespaces struct {
	init  *raw.Process
	pidfd int // of init; -1 once it has ended
}

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET

// steps are the system calls of an init.
type steps struct{ raw.Steps }

func (t *steps) mount(source, target, kind string, flags uintptr, data string) {
	t.Add(unix.SYS_MOUNT, t.Text(source), t.Text(target), t.Text(kind), flags, t.Text(data))
}

func (t *steps) mkdir(path string, mode uintptr) {
	t.Add(unix.SYS_MKDIRAT, raw.CWD, t.Text(path), mode)
}

// The folders of /tmp, while it still is init's own, that the new root is made from.
const (
	newRoot  = "/tmp/root"
	newFiles = "/tmp/files"
	newWork  = "/tmp/work"
)

// prepareRoot makes a root of its own: what all have, read only, under a layer in
// memory.
func (t *steps) prepareRoot(m *wire.RenewMessage) error {
	inodes := ",nr_inodes=" + strconv.FormatUint(m.Inodes, 10)
	size := func(n uint64) string { return "size=" + strconv.FormatUint(n, 10) + inodes }
	t.mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")
	t.mount("tmpfs", "/tmp", "tmpfs", unix.MS_NODEV, "mode=700,"+size(m.Root))
	for _, path := range []string{newRoot, newFiles, newWork} {
		t.mkdir(path, 0o755)
	}
	t.mount("overlay", newRoot, "overlay", unix.MS_NODEV|unix.MS_NOSUID, "lowerdir=/,upperdir="+newFiles+",workdir="+newWork)
	table, err := mountTable()
	if err != nil {
		return err
	}
	for _, m := range parseMounts(table) {
		switch m.path {
		case "/", "/tmp", "/proc", "/dev/shm", "/dev/pts":
			continue
		}
		t.mount(m.path, newRoot+m.path, "", unix.MS_BIND, "")
	}
	t.mount("proc", newRoot+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	t.mount("tmpfs", newRoot+"/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,"+size(m.Shm))
	if exists("/dev/pts/ptmx") {
		t.mount("devpts", newRoot+"/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	}
	t.mount("tmpfs", newRoot+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,"+size(m.Tmp))
	// The old root comes to lie on the new one's /tmp, and goes from there.
	t.Add(unix.SYS_PIVOT_ROOT, t.Text(newRoot), t.Text(newRoot+"/tmp"))
	t.Add(unix.SYS_CHDIR, t.Text("/"))
	t.Add(unix.SYS_UMOUNT2, t.Text("/tmp"), unix.MNT_DETACH)
	return t.Err()
}

// begin makes namespaces with an init that has made their root.
func beginNamespaces(m *wire.RenewMessage) (_ *namespaces, err error) {
	var done pair
	if err := unix.Pipe2(done[:], unix.O_CLOEXEC); err != nil {
		return nil, step("pipe", err)
	}
	defer raw.Close(done[0])
	t := &steps{}
	// A signal's handler would be Go's. What the program leaves to init ends without it.
	blocked, ignore := new(^uint64(0)), &[4]uint64{1} // SIG_IGN
	t.Add(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, raw.Address(&t.Steps, blocked), 0, 8)
	t.Add(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), raw.Address(&t.Steps, ignore), 0, 8)
	t.Add(unix.SYS_CLOSE_RANGE, 0, uintptr(done[1]-1), 0)
	t.Add(unix.SYS_CLOSE_RANGE, uintptr(done[1]+1), ^uintptr(0)>>32, 0)
	if err := t.prepareRoot(m); err != nil {
		raw.Close(done[1])
		return nil, err
	}
	t.Add(unix.SYS_WRITE, uintptr(done[1]), t.Text("R"), 1)
	t.Add(unix.SYS_CLOSE, uintptr(done[1]))
	t.Add(unix.SYS_PPOLL)
	init, err := raw.Begin(newNamespaces, &t.Steps)
	raw.Close(done[1])
	if err != nil {
		return nil, step("make namespaces", err)
	}
	n := &namespaces{init: init, pidfd: init.FD}
	if got, _ := raw.Read(done[0], make([]byte, 1)); got != 1 {
		at, why := init.Failed()
		n.kill()
		raw.Close(n.pidfd)
		if why == nil {
			why = failure("its init ended")
		}
		return nil, step("make namespaces, at step "+strconv.Itoa(at), why)
	}
	return n, nil
}

// kill ends the namespaces' init, and with it all processes in them.
func (n *namespaces) kill() { unix.Kill(n.init.PID, unix.SIGKILL) }

// endTime is how long the processes of a program may take to go once they are killed.
const endTime = 2 * time.Second

const errAlive = failure("processes of the last program do not end")

// end ends everything in the namespaces, and returns when no process of it is left.
// keep is the process that makes interpreters, which is not among them. Those that are
// process 1's own children, such as a main process that gave its last word, are there
// until reap takes them.
func (n *namespaces) end(keep int, reap func()) error {
	n.kill()
	for began := time.Now(); ; nap(100 * time.Microsecond) {
		if reap(); !anyBut(keep) {
			break
		}
		if time.Since(began) > endTime {
			return errAlive
		}
	}
	if n.pidfd >= 0 {
		raw.Close(n.pidfd)
		n.pidfd = -1
	}
	runtime.KeepAlive(n.init)
	return nil
}

// anyBut reports whether there is a process other than process 1 and one more.
func anyBut(keep int) bool {
	for _, name := range proctree.Processes() {
		if pid, err := strconv.Atoi(name); err == nil && pid != 1 && pid != keep {
			return true
		}
	}
	return false
}

// within calls f with the program's view of files, on this thread.
func (s *supervisor) within(f func() error) (err error) {
	if s.own == nil {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, e := raw.Direct(unix.SYS_UNSHARE, unix.CLONE_FS, 0, 0, 0, 0, 0); e != 0 {
		return step("unshare", e)
	}
	if err := s.own.enter(unix.CLONE_NEWNS); err != nil {
		return err
	}
	defer func() {
		if _, e := raw.Direct(unix.SYS_SETNS, uintptr(s.mounts), unix.CLONE_NEWNS, 0, 0, 0, 0); e != 0 {
			// Going on among a program's files would be worse than the sandbox's end.
			panic("atoll-guest: cannot come back from a program's mounts")
		}
	}()
	return f()
}

func (n *namespaces) enter(flags uintptr) error {
	_, e := raw.Direct(unix.SYS_SETNS, uintptr(n.pidfd), flags, 0, 0, 0, 0)
	return step("setns", raw.Number(e))
}

// fork starts a process in the namespaces. That takes a thread which nothing else
// can use afterwards, so it ends with it.
func (n *namespaces) fork(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread would not end. Kept here, it is not the next one's.
			pid, err = n.fork(path, argv, attr)
			runtime.UnlockOSThread()
			return
		}
		if err = step("unshare", unix.Unshare(unix.CLONE_FS)); err != nil {
			return
		}
		if err = n.enter(newNamespaces); err == nil {
			pid, err = forkExec(path, argv, attr)
		}
	}()
	<-done
	return pid, err
}

// forkExec starts a program as the user.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	pid, err := syscall.ForkExec(path, argv, attr)
	if err == syscall.EPERM {
		// A user namespace may forbid setgroups; the guest has no group to drop then.
		attr.Sys.Credential.NoSetGroups = true
		pid, err = syscall.ForkExec(path, argv, attr)
	}
	return pid, err
}
