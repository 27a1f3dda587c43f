package daemon

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Beside the streams, what a pump watches.
const (
	endOf  = iota + 4 // the process
	note              // which says what rule was broken
	tracer            // of the process
	watched
)

// readSize is how much is read from a pipe at a time.
const readSize = 64 << 10

var readBuffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// pump reads what a process writes, in one goroutine that owns its descriptors,
// so that what came first is kept first.
type pump struct {
	*process
	fds    [watched]int // -1 for what there is not
	poll   int          // an epoll of them
	file   *os.File     // which has it, so that Go's poller waits for it
	wait   syscall.RawConn
	held   [watched]bool // whether the epoll has it
	found  atomic.Uint32 // what converse has seen to be ready, a bit for each of fds
	warden int           // the process id of the tracer, 0 for none

	alive  sync.Mutex // held while the process id, or the terminal, is used
	reaped bool       // guarded by alive; the id may be another process's

	ended  bool // nothing is to be kept any more but what left has
	status unix.WaitStatus
	usage  unix.Rusage
	left   [watched]int // bytes of each stream that were there at the end
}

func newPump(p *process) (*pump, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	u := &pump{process: p, poll: fd, file: os.NewFile(uintptr(fd), "epoll")}
	for i := range u.fds {
		u.fds[i] = -1
	}
	if u.wait, err = u.file.SyscallConn(); err != nil {
		u.file.Close()
		return nil, err
	}
	return u, nil
}

// hold has the epoll watch what there is, or not.
func (u *pump) hold(i int, on bool) {
	if u.fds[i] < 0 || u.held[i] == on {
		return
	}
	op := unix.EPOLL_CTL_DEL
	if on {
		op = unix.EPOLL_CTL_ADD
	}
	if unix.EpollCtl(u.poll, op, u.fds[i], &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}) == nil {
		u.held[i] = on
	}
}

// drop closes what is at its end.
func (u *pump) drop(i int) {
	if u.fds[i] < 0 {
		return
	}
	if i == terminal { // which has another descriptor
		u.hold(i, false)
	}
	closeRead(u.fds[i]) // by which it leaves the epoll
	u.fds[i], u.held[i] = -1, false
}

// run goes on until nothing is left to be read.
func (u *pump) run() {
	defer u.file.Close()
	for u.watch() {
		ready := u.await()
		for _, i := range []int{stdout, stderr, terminal} {
			if ready[i] {
				u.read(i, maxTurn)
			}
		}
		if ready[control] {
			u.answers()
		}
		if ready[note] {
			u.heed()
		}
		if ready[endOf] {
			u.reap()
		}
		if ready[tracer] {
			u.reapTracer()
		}
		u.conclude()
		runtime.Gosched() // who follows tells the host before this looks for more
	}
}

// watch has the epoll watch what there is to wait for, and reports whether there is
// anything.
func (u *pump) watch() bool {
	for i := endOf; i < watched; i++ {
		u.hold(i, true)
	}
	room := u.ended && u.finished() || u.room()
	open := false
	for i := range endOf {
		u.hold(i, room)
		open = open || u.fds[i] >= 0
	}
	if !open && u.fds[endOf] < 0 && u.fds[tracer] < 0 && u.finished() {
		u.drop(note)
		return false
	}
	return true
}

// await waits until something is ready, which it returns, or there may be room again.
func (u *pump) await() (ready [watched]bool) {
	var set uint32
	err := u.wait.Read(func(uintptr) bool {
		var err error
		set, err = u.look(0)
		return set != 0 || err != nil && err != unix.EINTR
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		u.file.SetReadDeadline(never)
		set = u.found.Swap(0)
	}
	for i := range ready {
		ready[i] = set&(1<<i) != 0
	}
	return ready
}

// look returns a bit for each of fds that the epoll has and that is ready within a time.
// Meanwhile it keeps the processor.
func (u *pump) look(within time.Duration) (set uint32, err error) {
	var events [watched]unix.EpollEvent
	n, err := pollBriefly(u.poll, events[:], within)
	for _, e := range events[:n] {
		set |= 1 << e.Fd
	}
	return set, err
}

// kick has the pump look again whether there is room.
func (u *pump) kick() {
	u.file.SetReadDeadline(past)
}

// expect waits for output for so long, without giving the processor up: to begin anew
// costs more than most programs take to answer. Nothing else of the daemon goes on
// meanwhile. What there is, the pump has taken when expect returns true.
func (u *pump) expect(within time.Duration) bool {
	set, err := u.look(within)
	if err != nil || set == 0 {
		return false
	}
	u.found.Or(set)
	u.kick() // which costs less than to have Go's poller find it
	runtime.Gosched()
	return true
}

// maxTurn bounds what is read of one stream before the others are looked at.
const maxTurn = 4 * readSize

// read takes what stands in a stream's pipe, until it has that many bytes.
func (u *pump) read(i, most int) {
	b := readBuffers.Get().(*[readSize]byte)
	defer readBuffers.Put(b)
	for total := 0; total < most && u.fds[i] >= 0 && u.held[i]; {
		p := b[:min(len(b), most-total)]
		dropping := u.ended && u.left[i] <= 0
		if u.ended && !dropping {
			p = p[:min(u.left[i], len(p))]
		}
		n, err := readNow(u.fds[i], p)
		switch {
		case err == unix.EAGAIN:
			u.left[i] = 0 // another reader took it
			return
		case err != nil || n == 0: // of a terminal, EIO
			u.left[i] = 0
			u.lose(i)
			return
		}
		if !dropping {
			u.wrote(uint8(i), p[:n])
			u.left[i] -= n
		}
		if total += n; !u.ended && !u.room() {
			return
		}
	}
}

// answers reads what stands in descriptor 4's pipe. What was written before it is
// kept before it; what is written meanwhile is not looked at yet.
func (u *pump) answers() {
	n, err := readable(u.fds[control])
	if err != nil {
		return
	}
	before, err := u.look(0) // one call, where most have written nothing else
	if err != nil {
		return
	}
	for i := range control {
		if before&(1<<i) != 0 && !u.drain(i) {
			return
		}
	}
	u.read(control, max(n, 1)) // 1 finds the end
}

// drain reads what stands in a stream's pipe now, and reports whether it could.
func (u *pump) drain(i int) bool {
	for u.fds[i] >= 0 {
		n, err := readable(u.fds[i])
		if err != nil || n == 0 {
			return true
		}
		if !u.room() {
			return false
		}
		u.read(i, n)
	}
	return true
}

// lose closes a stream that is at its end. The terminal may be in use.
func (u *pump) lose(i int) {
	u.alive.Lock()
	defer u.alive.Unlock()
	u.drop(i)
}

// heed takes the rule that was broken.
func (u *pump) heed() {
	b := make([]byte, 4<<10)
	n, err := unix.Read(u.fds[note], b)
	if err == unix.EAGAIN || err == unix.EINTR {
		return
	}
	u.drop(note)
	if n > 0 && u.reaped {
		unix.Kill(u.warden, unix.SIGKILL) // what it traces ends with it
	} else if n > 0 {
		u.broke("blocked_commands: " + strings.ToValidUTF8(string(b[:n]), "?"))
	}
}

// reap takes the status of the process, and notes what it has left in its pipes.
func (u *pump) reap() {
	if u.fds[endOf] < 0 {
		return
	}
	u.alive.Lock()
	defer u.alive.Unlock()
	pid, err := unix.Wait4(u.pid, &u.status, unix.WNOHANG, &u.usage)
	if err == nil && pid == 0 || err == unix.EINTR {
		return
	}
	u.reaped, u.ended = true, true
	u.mu.Lock()
	u.over = true
	u.mu.Unlock()
	u.drop(endOf)
	for i := range endOf {
		if u.fds[i] >= 0 {
			u.left[i] = outputSize // or until there is nothing
			if n, err := readable(u.fds[i]); err == nil && i != terminal {
				u.left[i] = n
			}
		}
	}
}

// finished reports whether the end was told.
func (u *pump) finished() bool { return u.ended && u.hasEnded() }

// conclude tells the end when all that was written before it has been kept.
func (u *pump) conclude() {
	if !u.ended || u.hasEnded() {
		return
	}
	for i := range endOf {
		if u.left[i] > 0 {
			u.read(i, u.left[i])
		}
		if u.fds[i] >= 0 && u.left[i] > 0 {
			return
		}
	}
	if u.fds[note] >= 0 {
		u.heed()
	}
	if u.fds[terminal] >= 0 {
		u.lose(terminal) // who still has it is told, as when a window is closed
	}
	u.finish(u.status, &u.usage)
}

// reapTracer takes the end of the tracer, which outlives the process as long as
// there is something to trace.
func (u *pump) reapTracer() {
	var status unix.WaitStatus
	if pid, err := unix.Wait4(u.warden, &status, unix.WNOHANG, nil); err == nil && pid == 0 {
		return
	}
	u.drop(tracer)
}
