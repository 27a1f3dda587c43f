package noderpc

import (
	"context"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// dispatch makes the call.
func (c *call) dispatch() error {
	switch c.q.Target {
	case toNode:
		return c.callNode(c.k.s.node)
	case toClient:
		if c.q.Method == "Resume" {
			return c.resume()
		}
		return c.unknown()
	}
	h, err := c.k.st.handle(c.q.Handle)
	if err != nil {
		return err
	}
	switch c.q.Target {
	case toHandle:
		return c.callHandle(h)
	case toGuest:
		return c.callGuest(h.Guest())
	case toContexts:
		all, err := h.Contexts()
		if err != nil {
			return err
		}
		return c.callContexts(all)
	}
	return c.unknown()
}

func (c *call) unknown() error { return badRequest("there is no method %.40q", c.q.Method) }

// named decodes the arguments with which most methods of a Node begin.
func (c *call) named(rest ...any) (grant *sandbox.Grant, session, name string, err error) {
	err = c.args(append([]any{&grant, &session, &name}, rest...)...)
	return grant, session, name, c.granted(grant, err)
}

func (c *call) granted(grant *sandbox.Grant, err error) error {
	if err == nil && grant == nil {
		return badRequest("%s has no grant", c.q.Method)
	}
	return err
}

func (c *call) callNode(n sandbox.Node) error {
	ctx := c.ctx
	switch c.q.Method {
	case "Ensure":
		var spec *sandbox.Spec
		grant, session, name, err := c.named(&spec)
		if err != nil {
			return err
		}
		sb, created, err := n.Ensure(ctx, grant, session, name, spec)
		if err != nil {
			return err
		}
		return c.answer(sb, created)
	case "Use":
		var id uint64
		grant, session, name, err := c.named(&id)
		if err != nil {
			return err
		}
		return c.use(id, func() (sandbox.Handle, error) { return n.Use(ctx, grant, session, name) })
	case "Reach":
		var sb runtime.ID
		var id uint64
		if err := c.args(&sb, &id); err != nil {
			return err
		}
		return c.use(id, func() (sandbox.Handle, error) { return n.Reach(ctx, sb) })
	case "Get":
		grant, session, name, err := c.named()
		if err != nil {
			return err
		}
		sb, err := n.Get(ctx, grant, session, name)
		return answered(c, sb, err)
	case "List":
		var grant *sandbox.Grant
		var session string
		err := c.args(&grant, &session)
		if err := c.granted(grant, err); err != nil {
			return err
		}
		all, err := n.List(ctx, grant, session)
		return answered(c, all, err)
	case "Orphans", "Reap":
		if err := c.args(); err != nil {
			return err
		}
		list := n.Orphans
		if c.q.Method == "Reap" {
			list = n.Reap
		}
		ids, err := list(ctx)
		return answered(c, ids, err)
	case "Usage":
		grant, session, name, err := c.named()
		if err != nil {
			return err
		}
		u, err := n.Usage(ctx, grant, session, name)
		return answered(c, u, err)
	case "Update":
		var change sandbox.Change
		grant, session, name, err := c.named(&change)
		if err != nil {
			return err
		}
		sb, err := n.Update(ctx, grant, session, name, change)
		return answered(c, sb, err)
	case "Sleep":
		grant, session, name, err := c.named()
		if err != nil {
			return err
		}
		sb, err := n.Sleep(ctx, grant, session, name)
		return answered(c, sb, err)
	case "Restart":
		grant, session, name, err := c.named()
		if err != nil {
			return err
		}
		sb, err := n.Restart(ctx, grant, session, name)
		return answered(c, sb, err)
	case "Fork":
		var count int
		grant, session, name, err := c.named(&count)
		if err != nil {
			return err
		}
		forks, err := n.Fork(ctx, grant, session, name, count)
		return answered(c, forks, err)
	case "Destroy":
		grant, session, name, err := c.named()
		if err != nil {
			return err
		}
		sb, err := n.Destroy(ctx, grant, session, name)
		return answered(c, sb, err)
	case "Snapshot":
		var keep time.Duration
		grant, session, name, err := c.named(&keep)
		if err != nil {
			return err
		}
		sn, err := n.Snapshot(ctx, grant, session, name, keep)
		return answered(c, sn, err)
	}
	return c.unknown()
}

// use answers with a handle.
func (c *call) use(id uint64, open func() (sandbox.Handle, error)) error {
	if id == 0 {
		return badRequest("%s has no number for the handle", c.q.Method)
	}
	h, err := c.k.st.use(c.ctx, id, open)
	if err != nil {
		return err
	}
	return c.answer(h.Sandbox())
}

func (c *call) callHandle(h sandbox.Handle) error {
	ctx := c.ctx
	switch c.q.Method {
	case "Contexts":
		_, err := h.Contexts()
		return done(c, err)
	case "CopyFolder":
		var path, name string
		var to uint64
		if err := c.args(&path, &to, &name); err != nil {
			return err
		}
		other, err := c.k.st.handle(to)
		if err != nil {
			return err
		}
		bytes, copied, err := h.CopyFolder(ctx, path, other, name)
		if err != nil {
			return err
		}
		return c.answer(bytes, copied)
	case "Redactor":
		set, err := h.Redactor(ctx)
		if err != nil {
			return err
		}
		return c.answer(set.Config())
	case "Stopped":
		return c.reason(h.Stopped(ctx))
	case "Killed":
		var exit process.Exit
		if err := c.args(&exit); err != nil {
			return err
		}
		return c.reason(h.Killed(ctx, exit))
	case "NetworkHint":
		var since time.Time
		var tails [][]byte
		if err := c.args(&since, &tails); err != nil {
			return err
		}
		return c.answer(h.NetworkHint(since, tails))
	}
	return c.unknown()
}

// reason answers with an error that is the result of the call.
func (c *call) reason(why error) error { return c.answer(remote.EncodeError(why)) }

func (c *call) callGuest(g sandbox.Guest) error {
	switch c.q.Method {
	case "Stat", "List", "Glob", "Mkdir", "Remove", "Move", "Read", "Create", "Pack", "Unpack", "PutSkills", "Watch":
		return c.callFiles(g)
	case "Listening":
		ports, err := g.Listening(c.ctx)
		return answered(c, ports, err)
	case "Connect", "Accept":
		var port uint16
		var wait time.Duration
		if err := c.args(&port, &wait); err != nil {
			return err
		}
		open := g.Connect
		if c.q.Method == "Accept" {
			open = g.Accept
		}
		conn, err := open(c.ctx, port, wait)
		if err != nil {
			return err
		}
		return c.connect(conn)
	}
	return c.callProcesses(g)
}

func (c *call) callProcesses(g process.Manager) error {
	ctx := c.ctx
	var id process.ID
	switch c.q.Method {
	case "Start", "Run":
		var spec process.Spec
		if err := c.args(&spec); err != nil {
			return err
		}
		if c.q.Method == "Run" {
			return c.sendOutput(func(ctx context.Context) (process.Output, error) { return g.Run(ctx, spec) })
		}
		info, err := g.Start(ctx, spec)
		return answered(c, info, err)
	case "Follow":
		var after process.Seq
		if err := c.args(&id, &after); err != nil {
			return err
		}
		return c.sendOutput(func(ctx context.Context) (process.Output, error) { return g.Follow(ctx, id, after) })
	case "Converse":
		var data []byte
		var after process.Seq
		if err := c.args(&id, &data, &after); err != nil {
			return err
		}
		o, err := g.Converse(ctx, id, data, after)
		if err != nil {
			return err
		}
		return c.converse(o)
	case "Processes":
		all, err := g.Processes(ctx)
		return answered(c, all, err)
	case "Process":
		if err := c.args(&id); err != nil {
			return err
		}
		info, err := g.Process(ctx, id)
		return answered(c, info, err)
	case "Wait":
		if err := c.args(&id); err != nil {
			return err
		}
		exit, err := g.Wait(ctx, id)
		return answered(c, exit, err)
	case "Write":
		var data []byte
		if err := c.args(&id, &data); err != nil {
			return err
		}
		n, err := g.Write(ctx, id, data)
		return c.answer(n, remote.EncodeError(err))
	case "CloseInput":
		if err := c.args(&id); err != nil {
			return err
		}
		return done(c, g.CloseInput(ctx, id))
	case "Resize":
		var size process.Size
		if err := c.args(&id, &size); err != nil {
			return err
		}
		return done(c, g.Resize(ctx, id, size))
	case "Signal":
		var sig syscall.Signal
		var group bool
		if err := c.args(&id, &sig, &group); err != nil {
			return err
		}
		return done(c, g.Signal(ctx, id, sig, group))
	case "Kill":
		if err := c.args(&id); err != nil {
			return err
		}
		return done(c, g.Kill(ctx, id))
	case "Discard":
		if err := c.args(&id); err != nil {
			return err
		}
		return done(c, g.Discard(ctx, id))
	case "KillAll":
		return done(c, g.KillAll(ctx))
	}
	return c.unknown()
}

func (c *call) callFiles(g sandbox.Guest) error {
	ctx := c.ctx
	var path string
	switch c.q.Method {
	case "Stat":
		if err := c.args(&path); err != nil {
			return err
		}
		info, err := g.Stat(ctx, path)
		return answered(c, info, err)
	case "List":
		var o file.ListOptions
		if err := c.args(&path, &o); err != nil {
			return err
		}
		l, err := g.List(ctx, path, o)
		return answered(c, l, err)
	case "Glob":
		var pattern string
		var limit int
		if err := c.args(&path, &pattern, &limit); err != nil {
			return err
		}
		p, err := g.Glob(ctx, path, pattern, limit)
		return answered(c, p, err)
	case "Mkdir":
		if err := c.args(&path); err != nil {
			return err
		}
		return done(c, g.Mkdir(ctx, path))
	case "Remove":
		var recursive bool
		if err := c.args(&path, &recursive); err != nil {
			return err
		}
		return done(c, g.Remove(ctx, path, recursive))
	case "Move":
		var to string
		var replace bool
		if err := c.args(&path, &to, &replace); err != nil {
			return err
		}
		return done(c, g.Move(ctx, path, to, replace))
	case "Read":
		var offset, limit int64
		if err := c.args(&path, &offset, &limit); err != nil {
			return err
		}
		info, r, err := g.Read(ctx, path, offset, limit)
		if err != nil {
			return err
		}
		return c.download(r, info)
	case "Pack":
		if err := c.args(&path); err != nil {
			return err
		}
		a, err := g.Pack(ctx, path)
		if err != nil {
			return err
		}
		return c.download(a)
	case "Create":
		var o file.CreateOptions
		if err := c.args(&path, &o, nil); err != nil {
			return err
		}
		size, err := g.Create(ctx, path, o, &c.upload)
		return answered(c, size, err)
	case "Unpack":
		if err := c.args(&path, nil); err != nil {
			return err
		}
		n, err := g.Unpack(ctx, path, &c.upload)
		return c.answer(n, remote.EncodeError(err))
	case "PutSkills":
		if err := c.args(nil); err != nil {
			return err
		}
		return done(c, g.PutSkills(ctx, &c.upload))
	case "Watch":
		var recursive bool
		if err := c.args(&path, &recursive); err != nil {
			return err
		}
		e, err := g.Watch(ctx, path, recursive)
		if err != nil {
			return err
		}
		return c.watch(e)
	}
	return c.unknown()
}

func (c *call) callContexts(all codecontext.Contexts) error {
	ctx := c.ctx
	var id codecontext.ID
	switch c.q.Method {
	case "Create":
		var language execution.Language
		var dir string
		if err := c.args(&language, &dir); err != nil {
			return err
		}
		out, err := all.Create(ctx, language, dir)
		return answered(c, out, err)
	case "List":
		list, err := all.List(ctx)
		return answered(c, list, err)
	case "Run", "Collect":
		var req codecontext.Request
		if err := c.context(&id, &req, nil); err != nil {
			return err
		}
		run := all.Run
		if c.q.Method == "Collect" {
			run = all.Collect
		}
		res, err := run(ctx, id, req, c.sink)
		return answered(c, res, err)
	case "Get":
		if err := c.context(&id); err != nil {
			return err
		}
		out, err := all.Get(ctx, id)
		return answered(c, out, err)
	case "Interrupt":
		if err := c.context(&id); err != nil {
			return err
		}
		return done(c, all.Interrupt(ctx, id))
	case "Restart":
		if err := c.context(&id); err != nil {
			return err
		}
		out, err := all.Restart(ctx, id)
		return answered(c, out, err)
	case "Delete":
		if err := c.context(&id); err != nil {
			return err
		}
		return done(c, all.Delete(ctx, id))
	}
	return c.unknown()
}

// context decodes the id of a context and other arguments.
func (c *call) context(id *codecontext.ID, rest ...any) error {
	if err := c.args(append([]any{id}, rest...)...); err != nil {
		return err
	}
	_, err := codecontext.ParseID(string(*id)) // ID.Language panics otherwise
	return err
}
