package attendant

import (
	"io"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// follower is somebody who reads the output of a process.
type follower struct {
	*process
	at   int64 // guarded by mu; how far it has read
	gone bool  // guarded by mu; nobody reads any more
}

// join begins to follow at a place.
func (p *process) join(at int64) *follower {
	f := &follower{process: p, at: at}
	p.mu.Lock()
	defer p.mu.Unlock()
	f.at = min(at, p.ring.last)
	p.followers[f] = true
	return f
}

func (f *follower) leave() {
	f.mu.Lock()
	delete(f.followers, f)
	paused := f.paused
	f.mu.Unlock()
	if paused {
		f.pump.kick()
	}
}

// follow answers with the output of a process, until its end.
func (c *peer) follow(q *proto.Follow) bool {
	p, err := c.procs.get(q.ID)
	if err == nil && q.After < 0 {
		err = refuse(proto.Invalid, "output begins at 0")
	}
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	f := p.join(q.After)
	defer f.leave()
	about := p.about()
	return c.Encode(proto.Answer, proto.Reply{Process: &about}) == nil && c.tell(f)
}

// tell sends output, and the end of the process when it comes.
func (c *peer) tell(f *follower) bool {
	for {
		exit, more := f.put(c.Conn)
		if exit != nil {
			return c.last(proto.Closing{Exit: exit})
		}
		if err := c.Flush(); err != nil {
			return false
		}
		if more {
			continue
		}
		if !c.idle(f) {
			return false
		}
	}
}

// put makes frames of output that was not sent yet. The end of the process comes
// once there is no more.
func (f *follower) put(c *proto.Conn) (exit *proto.Exit, more bool) {
	f.mu.Lock()
	for c.Pending() < proto.Piece {
		p, ok := f.ring.from(f.at)
		if !ok {
			exit = f.exit
			break
		}
		b := c.Space(proto.OutputSize + len(p.data))
		proto.PutOutput(b, p.stream, p.at, p.at-f.at)
		copy(b[proto.OutputSize:], p.data)
		c.Commit(proto.Output, len(b))
		f.at = p.at + int64(len(p.data))
		more = true
	}
	f.seen = max(f.seen, f.at)
	paused := f.paused
	f.mu.Unlock()
	if paused && more {
		f.pump.kick()
	}
	return exit, more
}

// idle waits for more output, or the end, and reports whether the host is there.
func (c *peer) idle(f *follower) bool {
	stop := c.watchOut(func() {
		f.mu.Lock()
		f.gone = true
		f.changed.Broadcast()
		f.mu.Unlock()
	})
	defer stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.gone && f.exit == nil && f.at >= f.ring.last {
		f.changed.Wait()
	}
	return !f.gone
}

// await answers with the end of a process.
func (c *peer) await(id string) bool {
	p, err := c.procs.get(id)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	f := &follower{process: p, at: everything} // who is not among the followers
	if !p.hasEnded() && !c.idle(f) {
		return false
	}
	about := p.about()
	return c.reply(proto.Reply{Process: &about}, nil)
}

// write writes what follows the request to what a process reads.
func (c *peer) write(q *proto.Write) bool {
	p, err := c.procs.get(q.ID)
	b := c.body()
	if err != nil {
		return c.concluded(b, proto.Reply{}, err)
	}
	ch := p.input
	if q.Control {
		ch = p.requests
	}
	if ch == nil {
		return c.concluded(b, proto.Reply{}, refuse(proto.Mistaken, "process %q was started without what is to be written to", p.id))
	}
	data, err := io.ReadAll(io.LimitReader(b, proto.MaxData))
	if err != nil || !b.Done() {
		return false
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	stop := c.watchOut(func() { ch.SetWriteDeadline(past) })
	n, err := ch.Write(data)
	stop()
	ch.SetWriteDeadline(never)
	r := proto.Reply{Size: int64(n)}
	if err != nil {
		if n > 0 {
			return c.concluded(b, r, nil)
		}
		return c.concluded(b, r, refuse(proto.Exists, "process %q does not read this any more", p.id))
	}
	return c.concluded(b, r, nil)
}
