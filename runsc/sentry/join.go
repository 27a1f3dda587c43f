package main

import (
	"bytes"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/arch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/kernel/auth"
	"gvisor.dev/gvisor/pkg/sentry/socket"
	"gvisor.dev/gvisor/pkg/sentry/syscalls"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
	"gvisor.dev/gvisor/pkg/usermem"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// joinCall is the number of a system call that Linux does not have. The guest daemon
	// (internal/guest/daemon) makes it under every kernel.
	joinCall = 1999
	// joinPiece is how many bytes are moved at a time, and the length of each half of the
	// caller's memory.
	joinPiece = 32 << 10
	// joinTurns is how many pieces one direction moves before it is the other's turn.
	joinTurns = 8
	// joinRounds is how often both directions have their turns between two signs of life.
	joinRounds = 1024
)

// addJoin adds the system call by which the guest daemon has the kernel carry bytes between
// two connections:
//
//	n = join(a, b, left)
//
// The daemon itself makes six system calls for each page of a preview, and programs wait
// meanwhile for its process to be switched to. join returns when there is anything to do but
// to carry bytes: a direction has ended, a connection failed, or the sandbox is to stand
// still. The bytes that were read by then and not taken are in the caller's memory, and n has
// their lengths: of a's in its lower half, of b's in the upper one.
func addJoin() {
	for _, table := range kernel.SyscallTables() {
		table.Table[joinCall] = syscalls.Supported("join", join)
		table.Init()
	}
}

var joinBuffers = sync.Pool{New: func() any { return new([joinPiece]byte) }}

func join(t *kernel.Task, _ uintptr, args arch.SyscallArguments) (uintptr, *kernel.SyscallControl, error) {
	if t.Credentials().EffectiveKUID != auth.RootKUID {
		return 0, nil, linuxerr.ENOSYS // programs do without it
	}
	j := &joint{wake: make(chan struct{}, 1)}
	defer j.close(t)
	for i := range j.ends {
		if err := j.ends[i].open(t, j, args[i].Int()); err != nil {
			return 0, nil, err
		}
	}
	interrupted := j.carry(t)
	var n uint64
	for i := range j.ends {
		left := j.ends[i].left
		if len(left) == 0 {
			continue
		}
		if _, err := t.CopyOutBytes(args[2].Pointer()+hostarch.Addr(i*joinPiece), left); err != nil {
			return 0, nil, err
		}
		n |= uint64(len(left)) << (32 * i)
	}
	if interrupted && n == 0 {
		return 0, nil, linuxerr.ERESTARTSYS
	}
	return uintptr(n), nil, nil
}

// gone is what a connection is told of that has ended in both directions.
const gone = waiter.EventHUp | waiter.EventErr

// joint is two connections that are joined, until join returns.
type joint struct {
	ends [2]joinEnd
	wake chan struct{}
	over atomic.Bool // a connection has ended, or failed
}

// joinEnd is a connection, and what comes from it.
type joinEnd struct {
	file *vfs.FileDescription
	in   waiter.Entry
	says atomic.Bool // there may be something to read

	left  []byte // what was read and the other end does not take yet
	room  waiter.Entry
	waits bool // room is registered with the other end
}

func (e *joinEnd) open(t *kernel.Task, j *joint, fd int32) error {
	file := t.GetFile(fd)
	if file == nil {
		return linuxerr.EBADF
	}
	s, ok := file.Impl().(socket.Socket)
	if ok {
		_, kind, _ := s.Type()
		ok = kind == linux.SOCK_STREAM
	}
	if !ok {
		file.DecRef(t)
		return linuxerr.EINVAL
	}
	e.says.Store(true)
	e.in = waiter.NewFunctionEntry(waiter.ReadableEvents|gone, func(events waiter.EventMask) {
		if events&gone != 0 {
			j.over.Store(true)
		}
		e.says.Store(true)
		j.rouse()
	})
	e.room = waiter.NewFunctionEntry(waiter.WritableEvents, func(waiter.EventMask) { j.rouse() })
	if err := file.EventRegister(&e.in); err != nil {
		file.DecRef(t)
		return err
	}
	e.file = file
	return nil
}

func (j *joint) rouse() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *joint) close(t *kernel.Task) {
	for i := range j.ends {
		if e, other := &j.ends[i], &j.ends[1-i]; e.waits {
			other.file.EventUnregister(&e.room)
		}
	}
	for i := range j.ends {
		if e := &j.ends[i]; e.file != nil {
			e.file.EventUnregister(&e.in)
			e.file.DecRef(t)
		}
	}
}

// carry moves bytes until there is anything else to do, and reports whether that is an
// interruption.
func (j *joint) carry(t *kernel.Task) (interrupted bool) {
	for n := 1; ; n++ {
		buf := joinBuffers.Get().(*[joinPiece]byte)
		goesOn := j.move(t, 0, buf[:]) && j.move(t, 1, buf[:])
		joinBuffers.Put(buf)
		if !goesOn || j.over.Load() {
			return false
		}
		if n%joinRounds == 0 {
			t.UninterruptibleSleepStart() // to gVisor's watchdog, a task that never waits is stuck
			t.UninterruptibleSleepFinish()
		}
		if t.Interrupted() || t.Block(j.wake) != nil { // Block does not look while there is something to move
			return true
		}
	}
}

// move moves what there is in one direction, and reports whether both are to go on.
func (j *joint) move(t *kernel.Task, from int, buf []byte) bool {
	e, to := &j.ends[from], &j.ends[1-from]
	for range joinTurns {
		b := e.left
		if len(b) == 0 {
			if !e.says.Swap(false) {
				return true
			}
			n, err := e.file.Read(t, usermem.BytesIOSequence(buf), vfs.ReadOptions{})
			if linuxerr.Equals(linuxerr.ErrWouldBlock, err) {
				continue
			}
			if err != nil || n <= 0 {
				return false
			}
			b = buf[:n]
			e.says.Store(true) // nobody tells again of what follows by now, such as the end
		}
		n, err := to.file.Write(t, usermem.BytesIOSequence(b), vfs.WriteOptions{})
		if err != nil && !linuxerr.Equals(linuxerr.ErrWouldBlock, err) {
			return false
		}
		if b = b[n:]; len(b) == 0 {
			if e.left = nil; e.waits {
				to.file.EventUnregister(&e.room)
				e.waits = false
			}
			continue
		}
		if len(e.left) == 0 {
			b = bytes.Clone(b) // buf is another's while this one waits
		}
		e.left = b
		if e.waits {
			return true
		}
		if to.file.EventRegister(&e.room) != nil {
			return false
		}
		e.waits = true // and there may be room by now
	}
	j.rouse()
	return true
}
