package state

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Process is a sandbox's main process on the host, followed by a pidfd: it is
// not our child, so nothing else would tell when it ends.
type Process struct {
	file *os.File        // the pidfd, in Go's poller
	conn syscall.RawConn // of file
	done chan struct{}
	once sync.Once // closes done
}

// OpenProcess follows the process of a record. It fails with
// runtime.ErrNotFound when that process is gone.
func OpenProcess(r Record) (*Process, error) {
	if r.Pid <= 1 {
		return nil, runtime.ErrNotFound
	}
	fd, err := unix.PidfdOpen(r.Pid, unix.PIDFD_NONBLOCK)
	// The number may meanwhile belong to a thread of another process: the kernel then
	// answers ENOENT or, before Linux 6.15, EINVAL.
	if errors.Is(err, unix.ESRCH) || err != nil && !leads(r) {
		return nil, runtime.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", r.Pid, err)
	}
	// Only now that the pidfd pins the pid does a comparison mean anything.
	// One that has ended but whose parent has not heard of it is gone as well.
	if start, err := StartTime(r.Pid); err != nil || start != r.Start || ended(fd) {
		unix.Close(fd)
		return nil, runtime.ErrNotFound
	}
	p := &Process{file: os.NewFile(uintptr(fd), "pidfd"), done: make(chan struct{})}
	if p.conn, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, fmt.Errorf("open process %d: %w", r.Pid, err)
	}
	go p.watch()
	return p, nil
}

// watch ends when the process does, or when Close closes the pidfd.
func (p *Process) watch() {
	if err := p.conn.Read(func(fd uintptr) bool { return ended(int(fd)) }); err == nil {
		p.finish()
	}
}

func (p *Process) finish() { p.once.Do(func() { close(p.done) }) }

// ended reports whether the process of a pidfd has ended.
func ended(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}

// Done is closed when the process has ended, and is so already for who asks after
// that: a sandbox that has died must not be given work because a goroutine is late.
// If the process had not ended when Close was called, Done stays open.
func (p *Process) Done() <-chan struct{} {
	p.look()
	return p.done
}

// look finds out whether the process has ended, of which after Close nothing more
// can be known.
func (p *Process) look() {
	_ = p.control(func(fd int) {
		if ended(fd) {
			p.finish()
		}
	})
}

// Kill sends SIGKILL; a process that has ended is no error. After Close it fails
// with os.ErrClosed: the descriptor's number may be another process's by then.
func (p *Process) Kill() error {
	var sent error
	if err := p.control(func(fd int) { sent = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(sent, unix.ESRCH) {
		return nil
	}
	return sent
}

// Close stops following the process.
func (p *Process) Close() error {
	p.look()
	return p.file.Close()
}

// control calls f with the pidfd, which stays open meanwhile.
func (p *Process) control(f func(fd int)) error {
	if err := p.conn.Control(func(fd uintptr) { f(int(fd)) }); err != nil {
		return os.ErrClosed // all that can be wrong
	}
	return nil
}
