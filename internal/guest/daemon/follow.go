package daemon

import (
	"bytes"
	"io"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// follower is a connection that reads the output of a process.
type follower struct {
	*process
	at   int64 // guarded by mu; how far it has read
	gone bool  // guarded by mu; it does not read any more
	said bool  // guarded by mu; the host has said something meanwhile
	deaf bool  // guarded by mu; the process does not read what it is told, and lives

	ends   bool // the process may say that it is enough
	enough bool // and has
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
		if f.ends && p.stream == control && bytes.HasSuffix(p.data, []byte(proto.Last)) {
			f.enough = true
			break
		}
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

// answerTime is how long converse keeps the processor for the process to answer.
const answerTime = time.Millisecond

// converse writes to descriptor 3 and answers with the output, until the host has
// had enough of it, or the process says so.
func (c *peer) converse(q *proto.Converse) bool {
	p, err := c.procs.get(q.ID)
	switch {
	case err != nil:
	case p.requests == nil:
		err = refuse(proto.Mistaken, "process %q was started without what is to be written to", p.id)
	case q.After < 0:
		err = refuse(proto.Invalid, "output begins at 0")
	}
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	f := p.join(q.After)
	f.ends = q.Ends
	defer f.leave()
	rest, err := p.requests.begin(q.Data)
	if err != nil { // most likely it is about to end
		patience := time.AfterFunc(time.Second, func() {
			f.mu.Lock()
			f.deaf = true
			f.changed.Broadcast()
			f.mu.Unlock()
		})
		defer patience.Stop()
	}
	about := p.about()
	if c.Encode(proto.Answer, proto.Reply{Process: &about, Ends: q.Ends}) != nil {
		return false
	}
	if len(rest) > 0 {
		stop := p.requests.goOn(rest)
		defer stop()
	}
	if len(rest) == 0 && err == nil && p.pump.expect(answerTime) {
		if f.put(c.Conn); f.enough {
			return c.last(proto.Closing{})
		}
	}
	// Something comes by all means: that it is enough, or the end of the connection.
	told := make(chan struct{})
	go func() {
		defer close(told)
		err := c.Await()
		f.mu.Lock()
		f.said, f.gone = err == nil, err != nil
		f.changed.Broadcast()
		f.mu.Unlock()
	}()
	exit, said, ok := c.pass(f)
	if ok && !said {
		end := proto.Closing{Exit: exit}
		if exit == nil && !f.enough {
			end.Error = refuse(proto.Exists, "process %q does not read this any more", p.id)
		}
		ok = c.last(end)
	}
	if !ok || f.enough {
		c.SetReadDeadline(past) //nolint:errcheck // it is closed then
	}
	<-told
	if !ok || f.enough {
		c.SetReadDeadline(never) //nolint:errcheck // see above
		return ok
	}
	if t, err := c.Next(); err != nil || t != proto.Enough {
		return false
	}
	return !said || c.last(proto.Closing{})
}

// pass sends output until the end of the process, which it returns, until the host
// says something, or the process turns out deaf. It reports whether the host is there.
func (c *peer) pass(f *follower) (exit *proto.Exit, said, ok bool) {
	for {
		exit, more := f.put(c.Conn)
		if exit != nil || f.enough {
			return exit, false, true
		}
		if c.Flush() != nil {
			return nil, false, false
		}
		if more {
			continue
		}
		f.mu.Lock()
		for !f.gone && !f.said && !f.deaf && f.exit == nil && f.at >= f.ring.last {
			f.changed.Wait()
		}
		deaf, said, gone := f.deaf, f.said, f.gone
		f.mu.Unlock()
		if deaf || said || gone {
			return nil, said, !gone
		}
	}
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
