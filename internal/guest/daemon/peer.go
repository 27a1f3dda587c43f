package daemon

import (
	"errors"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// peer is a connection on which the host asks one thing after the other.
type peer struct {
	*proto.Conn
	*daemon
	of *session
}

// serve answers until the connection ends. A request that leaves the connection in
// the middle of something ends it, too.
func (c *peer) serve() {
	for {
		t, err := c.Next()
		if err != nil || t != proto.Ask {
			return
		}
		var q proto.Request
		if c.Decode(&q) != nil {
			return
		}
		if !c.handle(&q) {
			return
		}
	}
}

// handle answers one request, and reports whether another can follow.
func (c *peer) handle(q *proto.Request) bool {
	if q.Start != nil || q.Converse != nil || q.Write != nil {
		c.told.Store(time.Now().UnixNano())
	}
	switch {
	case q.Start != nil:
		return c.start(q.Start)
	case q.Follow != nil:
		return c.follow(q.Follow)
	case q.Converse != nil:
		return c.converse(q.Converse)
	case q.Processes != nil:
		return c.reply(proto.Reply{Processes: c.procs.list()}, nil)
	case q.Process != nil:
		return c.about(q.Process.ID, func(p *process) (proto.Reply, error) {
			about := p.about()
			return proto.Reply{Process: &about}, nil
		})
	case q.Wait != nil:
		return c.await(q.Wait.ID)
	case q.Write != nil:
		return c.write(q.Write)
	case q.Close != nil:
		return c.about(q.Close.ID, func(p *process) (proto.Reply, error) { return proto.Reply{}, p.closeInput() })
	case q.Resize != nil:
		return c.about(q.Resize.ID, func(p *process) (proto.Reply, error) { return proto.Reply{}, p.resize(q.Resize.Size) })
	case q.Signal != nil:
		return c.about(q.Signal.ID, func(p *process) (proto.Reply, error) { return proto.Reply{}, p.signal(q.Signal.Number, q.Signal.Group) })
	case q.Kill != nil:
		return c.about(q.Kill.ID, func(p *process) (proto.Reply, error) { return proto.Reply{}, p.kill() })
	case q.KillAll != nil:
		return c.reply(proto.Reply{}, c.procs.killAll())
	case q.EndLargest != nil:
		return c.reply(c.procs.endLargest())
	case q.Forget != nil:
		return c.reply(proto.Reply{}, c.procs.forget(q.Forget.ID))
	case q.Watch != nil:
		return c.watch(q.Watch)
	case q.Connect != nil:
		return c.connect(q.Connect)
	case q.Accept != nil:
		return c.accept(q.Accept)
	}
	defer c.files.Add(-1)
	if c.files.Add(1) > maxFiles {
		err := refuse(proto.Limited, "%d requests about files are under way in this sandbox, and it takes no more: a folder that is mounted may not answer", maxFiles)
		return c.reply(proto.Reply{}, err) && q.Create == nil && q.Unpack == nil && q.Skills == nil // whose content follows
	}
	return c.handleFiles(q)
}

func (c *peer) handleFiles(q *proto.Request) bool {
	switch {
	case q.Stat != nil:
		return c.reply(stat(q.Stat))
	case q.List != nil:
		return c.reply(list(q.List))
	case q.Glob != nil:
		return c.glob(q.Glob)
	case q.Mkdir != nil:
		return c.reply(proto.Reply{}, mkdir(q.Mkdir))
	case q.Remove != nil:
		return c.reply(proto.Reply{}, remove(q.Remove))
	case q.Move != nil:
		return c.reply(proto.Reply{}, move(q.Move))
	case q.Read != nil:
		return c.readFile(q.Read)
	case q.Create != nil:
		return c.create(q.Create)
	case q.Pack != nil:
		return c.pack(q.Pack)
	case q.Unpack != nil:
		return c.unpack(q.Unpack)
	case q.Skills != nil:
		return c.skills()
	case q.Survey != nil:
		return c.survey(q.Survey)
	case q.Adopt != nil:
		return c.adopt(q.Adopt)
	}
	return c.reply(proto.Reply{}, refuse(proto.Invalid, "the guest daemon of this sandbox is older than this request"))
}

// about answers a request about a process.
func (c *peer) about(id string, f func(*process) (proto.Reply, error)) bool {
	p, err := c.procs.get(id)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	return c.reply(f(p))
}

// reply sends an answer, an error if there is one.
func (c *peer) reply(r proto.Reply, err error) bool {
	if err != nil {
		r = proto.Reply{Error: refusal(err)}
	}
	if err := c.Encode(proto.Answer, r); err != nil {
		return c.reply(proto.Reply{}, err)
	}
	return c.Flush() == nil
}

// last sends the last frame of an exchange.
func (c *peer) last(e proto.Closing) bool {
	return c.Encode(proto.End, e) == nil && c.Flush() == nil
}

// body is what the host sends after its request. An error that is answered before
// all of it was read ends the connection, so that the host stops sending.
func (c *peer) body() *proto.Content { return &proto.Content{Conn: c.Conn} }

// concluded answers a request whose body was being read.
func (c *peer) concluded(b *proto.Content, r proto.Reply, err error) bool {
	return c.reply(r, err) && b.Done()
}

// watchOut calls gone when the host has hung up. stop ends that, before anything
// else is read from the connection.
func (c *peer) watchOut(gone func()) (stop func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := c.Await(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			gone()
		}
	}()
	return func() {
		c.SetReadDeadline(past) //nolint:errcheck // it is closed then
		<-over
		c.SetReadDeadline(never) //nolint:errcheck // see above
	}
}

// Deadlines: one that is over, and none.
var past, never = time.Unix(1, 0), time.Time{}
