package daemon

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proctree"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

// Streams, as proto counts them.
const (
	stdout = iota
	stderr
	terminal
	control
)

// process is a program that was started.
type process struct {
	starting sync.Mutex // held until it has been started, or cannot be
	table    *table
	id       string
	argv     [][]byte
	dir      []byte
	started  time.Time
	lossless bool
	patient  bool     // its output waits for a reader, and not only while there is one
	mark     uint64   // of all that descends from it: see proctree.Marks
	pid      int      // also of its session and first process group
	input    *channel // nil if it has none
	requests *channel // descriptor 3, nil if it has none
	isTTY    bool
	timer    *time.Timer
	pump     *pump // guarded by starting; nil if it could not be started

	mu        sync.Mutex
	changed   sync.Cond          // of mu: more output, or the end
	ring      ring               // guarded by mu
	written   [4]int64           // guarded by mu
	exit      *proto.Exit        // guarded by mu; nil while it runs
	paused    bool               // guarded by mu; its outputs are not read for want of room
	followers map[*follower]bool // guarded by mu
	seen      int64              // guarded by mu; how far any follower has ever read
	over      bool               // guarded by mu; it has ended, its output may not have
	timedOut  bool               // guarded by mu
	together  bool               // guarded by mu; it ran when all were killed
	blocked   string             // guarded by mu; the rule it broke
	oom       bool               // guarded by mu; it, or one that it started, was ended for its memory
	forgotten bool               // guarded by mu; it keeps no output any more
}

// channel is what a process reads from.
type channel struct {
	*os.File
	mu sync.Mutex // held while something is written, so that it comes in one piece
}

// newChannel takes a descriptor.
func newChannel(fd int, name string) (*channel, error) {
	err := unix.SetNonblock(fd, true) // so that Go's poller waits for it
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &channel{File: os.NewFile(uintptr(fd), name)}, nil
}

// begin writes as much as the process has room for, if no other request is writing.
func (c *channel) begin(data []byte) (rest []byte, err error) {
	if !c.mu.TryLock() {
		return data, nil
	}
	defer c.mu.Unlock()
	return c.some(data)
}

// some writes as much as there is room for, without waiting.
func (c *channel) some(data []byte) (rest []byte, err error) {
	conn, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	if e := conn.Control(func(fd uintptr) {
		var n int
		n, err = writeNow(int(fd), data)
		if rest = data[n:]; err == unix.EAGAIN {
			err = nil
		}
	}); e != nil {
		return nil, e
	}
	return rest, err
}

// goOn writes the rest as the process reads, when no other request is writing any more,
// until stop is called. That does not wait for the other writer.
func (c *channel) goOn(rest []byte) (stop func()) {
	var mu sync.Mutex
	var writing, over bool // guarded by mu
	done := make(chan struct{})
	set := func(to bool) bool {
		mu.Lock()
		defer mu.Unlock()
		writing = to && !over
		return writing
	}
	go func() { // ends with stop and the other writer
		c.mu.Lock()
		defer c.mu.Unlock()
		if !set(true) {
			return
		}
		c.Write(rest) //nolint:errcheck // a process that reads no more has ended, or will be
		set(false)
		c.SetWriteDeadline(never)
		close(done)
	}()
	return func() {
		mu.Lock()
		over = true
		wait := writing
		if wait {
			c.SetWriteDeadline(past) // of this write alone
		}
		mu.Unlock()
		if wait {
			<-done
		}
	}
}

// close ends it. A request that waits for the process to read fails.
func (c *channel) close() {
	if c != nil {
		c.Close()
	}
}

// begun waits for the start, and reports whether there was one.
func (p *process) begun() bool {
	p.starting.Lock()
	defer p.starting.Unlock()
	return p.pump != nil
}

// about describes the process.
func (p *process) about() proto.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return proto.Process{
		ID: p.id, PID: p.pid, Argv: p.argv, Dir: p.dir, Started: p.started.UnixMicro(), Input: p.input != nil, Terminal: p.isTTY,
		Exit: p.exit, Written: p.written, First: p.ring.first, Last: p.ring.last,
	}
}

func (p *process) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit != nil
}

func (p *process) cost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ring.cost
}

// trim drops output until it costs no more than that. What a follower of a
// lossless process has not got is kept.
func (p *process) trim(cost int) (fallen int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ring.trim(cost, p.needed())
}

// needed is the place from which on output must be kept. p.mu is held.
func (p *process) needed() int64 {
	if !p.lossless {
		return everything
	}
	at := int64(everything)
	if p.patient && len(p.followers) == 0 && p.exit == nil {
		at = p.seen
	}
	for f := range p.followers {
		at = min(at, f.at)
	}
	return at
}

// held reports whether a follower must read the output before there may be more. What
// is left in the pipes of a process that is over is not much, and its end must not
// wait for a reader. p.mu is held.
func (p *process) held() bool { return len(p.followers) > 0 || p.patient && !p.over }

// room reports whether output may be read. If not, a follower that gets on has it
// looked at again.
func (p *process) room() bool {
	const enough = ringSize - 4*readSize
	p.mu.Lock()
	p.paused = false
	if !p.lossless || !p.held() || p.ring.cost < enough {
		p.mu.Unlock()
		return true
	}
	fallen := p.ring.trim(enough-readSize, p.needed()) // what has been taken makes room
	p.paused = p.ring.cost >= enough
	room := !p.paused
	p.mu.Unlock()
	p.table.grew(-fallen)
	return room
}

// wrote keeps output.
func (p *process) wrote(stream uint8, data []byte) {
	p.mu.Lock()
	p.written[stream] += int64(len(data))
	if p.forgotten || p.exit != nil {
		p.mu.Unlock()
		return
	}
	grown := p.ring.add(stream, data)
	grown -= p.ring.trim(ringSize, p.needed())
	p.changed.Broadcast()
	p.mu.Unlock()
	p.table.grew(grown)
}

// broke notes the rule that the process has broken, which ends it.
func (p *process) broke(rule string) {
	p.mu.Lock()
	p.blocked = rule
	p.mu.Unlock()
	p.kill() //nolint:errcheck // it may have ended
}

// expire ends the process when its time is over.
func (p *process) expire() {
	p.mu.Lock()
	ended := p.exit != nil
	p.timedOut = p.timedOut || !ended
	p.mu.Unlock()
	p.kill() //nolint:errcheck // it may have ended
}

// finish notes the end, when all output has been read.
func (p *process) finish(status unix.WaitStatus, usage *unix.Rusage) {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.input.close()
	p.requests.close()
	e := &proto.Exit{
		Code: status.ExitStatus(), At: time.Now().UnixMicro(),
		CPU: max(usage.Utime.Nano()+usage.Stime.Nano(), 0), PeakRSS: max(usage.Maxrss, 0) << 10,
	}
	if status.Signaled() {
		e.Signal = int(status.Signal())
		e.Code = 128 + e.Signal
	}
	p.mu.Lock()
	e.TimedOut, e.Blocked = p.timedOut, p.blocked
	e.Together = p.together && status.Signal() == unix.SIGKILL
	e.OutOfMemory = p.oom && e.Code == 128+int(unix.SIGKILL)
	p.exit = e
	p.changed.Broadcast()
	p.mu.Unlock()
	p.table.ended(p)
}

// errEnded is the answer to what a process cannot be asked any more.
func (p *process) errEnded() error {
	return refuse(proto.Exists, "process %q has ended", p.id)
}

// signal sends a signal to the process, or its group.
func (p *process) signal(number int, group bool) error {
	if number < 1 || number > 64 {
		return refuse(proto.Invalid, "there is no signal %d", number)
	}
	p.pump.alive.Lock()
	defer p.pump.alive.Unlock()
	if p.pump.reaped {
		return p.errEnded()
	}
	target := p.pid
	if group {
		target = -p.pid
	}
	if group && p.isTTY { // it is for what is in the foreground, as keys are
		front, err := unix.IoctlGetInt(p.pump.fds[terminal], unix.TIOCGPGRP)
		if err == nil && front > 0 {
			target = -front
		} else if key, ok := keys[unix.Signal(number)]; ok {
			// A kernel that does not tell what that is: gVisor's.
			rest, err := p.input.some([]byte{key})
			if err != nil || len(rest) == 0 {
				return err
			} // else the terminal is not read, and its first group gets the signal
		}
	}
	return step("signal", p.id, unix.Kill(target, unix.Signal(number)))
}

// kill ends the process with all it started.
func (p *process) kill() error {
	p.pump.alive.Lock()
	defer p.pump.alive.Unlock()
	if p.pump.reaped {
		return p.errEnded()
	}
	proctree.Kill(p.pid, p.mark)
	return nil
}

// killAll ends every process but this one and process 1. Those of the table that run will
// say what ended them.
func (t *table) killAll() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.order {
		p.mu.Lock()
		p.together = p.together || !p.over
		p.mu.Unlock()
	}
	return step("kill", "all processes", proctree.KillAll())
}

// endLargest ends the process in the sandbox that has the most memory, and marks those
// of the table that it belongs to. It answers how many bytes that process had.
func (t *table) endLargest() (proto.Reply, error) {
	pid, rss, lineage := proctree.Largest() // before locking: it reads /proc, which is slow in a sandbox of many processes
	t.mu.Lock()
	defer t.mu.Unlock()
	if pid == 0 {
		return proto.Reply{}, refuse(proto.Missing, "no program runs in this sandbox")
	}
	for _, p := range t.order {
		p.mu.Lock()
		p.oom = p.oom || !p.over && lineage[p.pid]
		p.mu.Unlock()
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
		return proto.Reply{}, step("kill", "the largest process", err)
	}
	return proto.Reply{Size: rss}, nil
}

// closeInput ends what the process reads.
func (p *process) closeInput() error {
	if p.input == nil {
		return refuse(proto.Mistaken, "process %q was started without input", p.id)
	}
	if p.isTTY {
		p.input.mu.Lock()
		defer p.input.mu.Unlock()
		rest, err := p.input.some([]byte{4}) // end of transmission, at the beginning of a line
		if err == nil && len(rest) > 0 {
			err = refuse(proto.Exists, "process %q does not read what its terminal has for it; end it instead", p.id)
		}
		return err
	}
	p.input.close()
	return nil
}

// resize changes the size of the terminal.
func (p *process) resize(s proto.Size) error {
	if !p.isTTY {
		return refuse(proto.Mistaken, "process %q has no terminal", p.id)
	}
	p.pump.alive.Lock()
	defer p.pump.alive.Unlock()
	if p.pump.reaped {
		return p.errEnded()
	}
	return step("resize", p.id, unix.IoctlSetWinsize(p.pump.fds[terminal], unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Columns}))
}

// keys are those of a terminal that send signals.
var keys = map[unix.Signal]byte{unix.SIGINT: 'C' & 31, unix.SIGTSTP: 'Z' & 31, unix.SIGQUIT: '\\' & 31}
