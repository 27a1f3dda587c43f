package sandboxtest

import (
	"context"
	"net"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Remote returns a Node that uses n as a caller on another machine has to: through
// connections over which every argument, answer and error goes as CBOR, and every stream
// in pieces. The two sides share no memory. An implementation for machines needs no more
// of the contract than this one has.
func Remote(n sandbox.Node) sandbox.Node { return remoteNode{&remote{server: newServer(n)}} }

// remote calls a server. Each call has a connection of its own.
type remote struct{ server *server }

// dial returns a connection that the server answers.
func (r *remote) dial() *link {
	here, there := net.Pipe()
	go r.server.serve(newLink(there)) // ends with the connection
	return newLink(here)
}

// part is what of a server a call is for.
type part struct {
	Kind   string // "node", or of a handle: "handle", "guest", "contexts"
	Handle uint64
}

// args are the arguments of a call, without its context.
type args []any

// call makes a call whose answer is values. results point at them.
func (r *remote) call(ctx context.Context, of part, method string, in args, results ...any) error {
	l, err := r.open(ctx, of, method, in, results...)
	if l != nil {
		l.close()
	}
	return err
}

// open makes a call whose answer goes on as a stream over the connection that it
// returns. The connection ends with ctx.
func (r *remote) open(ctx context.Context, of part, method string, in args, results ...any) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	q := request{Part: of, Method: method}
	c := caller{}
	for _, a := range in {
		value, err := c.encode(a)
		if err != nil {
			return nil, err
		}
		q.Args = append(q.Args, value)
	}
	l := r.dial()
	l.until(ctx)
	err := l.send(q)
	for err == nil {
		var f frame
		if f, err = l.receive(); err != nil {
			break
		}
		if f.Answer == nil {
			err = l.send(c.served(f))
			continue
		}
		if err = f.Err.decode(); err == nil {
			for i, to := range results {
				if err == nil {
					err = decoding.Unmarshal(f.Answer.Results[i], to)
				}
			}
		}
		if err == nil {
			return l, nil
		}
	}
	l.close()
	if c.failed != nil { // the caller's own reader or sink: its error goes no other way
		return nil, c.failed
	}
	return nil, err
}

// caller has what of a call's arguments stays with the caller, and is asked for.
type caller struct {
	sink   codecontext.Sink
	reader interface{ Read([]byte) (int, error) }
	failed error
	buf    []byte
}

// encode returns what goes to the server for an argument.
func (c *caller) encode(a any) (cbor.RawMessage, error) {
	switch v := a.(type) {
	case codecontext.Sink:
		c.sink, a = v, nil
	case interface{ Read([]byte) (int, error) }:
		c.reader, a = v, nil
	}
	return encoding.Marshal(a)
}

// served does what the server asks of the caller.
func (c *caller) served(f frame) frame {
	switch {
	case f.Event != nil:
		err := c.sink(*f.Event)
		return frame{Err: encodeError(err)}
	default:
		if len(c.buf) < f.Read {
			c.buf = make([]byte, f.Read)
		}
		n, err := c.reader.Read(c.buf[:f.Read])
		if e := encodeError(err); e != nil && !e.EOF {
			c.failed = err
		}
		return frame{Data: c.buf[:n], Err: encodeError(err)}
	}
}

// remoteNode is a sandbox.Node.
type remoteNode struct{ r *remote }

var node = part{Kind: "node"}

func (n remoteNode) Ensure(ctx context.Context, grant *sandbox.Grant, session, name string, spec *sandbox.Spec) (sb *sandbox.Sandbox, created bool, err error) {
	err = n.r.call(ctx, node, "Ensure", args{grant, session, name, spec}, &sb, &created)
	return sb, created, err
}

func (n remoteNode) Use(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sandbox.Handle, error) {
	return n.use(ctx, "Use", args{grant, session, nameOrID})
}

func (n remoteNode) Reach(ctx context.Context, id runtime.ID) (sandbox.Handle, error) {
	return n.use(ctx, "Reach", args{id})
}

func (n remoteNode) use(ctx context.Context, method string, in args) (sandbox.Handle, error) {
	h := &remoteHandle{r: n.r, done: make(chan struct{})}
	if err := n.r.call(ctx, node, method, in, &h.id, &h.sb); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() { // ends with Close
		if h.call(watching, "handle", "Done", nil) == nil {
			close(h.done)
		}
	}()
	return h, nil
}

func (n remoteNode) Get(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sb *sandbox.Sandbox, err error) {
	err = n.r.call(ctx, node, "Get", args{grant, session, nameOrID}, &sb)
	return sb, err
}

func (n remoteNode) List(ctx context.Context, grant *sandbox.Grant, session string) (all []*sandbox.Sandbox, err error) {
	err = n.r.call(ctx, node, "List", args{grant, session}, &all)
	return all, err
}

func (n remoteNode) Usage(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (u sandbox.Usage, err error) {
	err = n.r.call(ctx, node, "Usage", args{grant, session, nameOrID}, &u)
	return u, err
}

func (n remoteNode) Update(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, c sandbox.Change) (sb *sandbox.Sandbox, err error) {
	err = n.r.call(ctx, node, "Update", args{grant, session, nameOrID, c}, &sb)
	return sb, err
}

func (n remoteNode) Sleep(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sb *sandbox.Sandbox, err error) {
	err = n.r.call(ctx, node, "Sleep", args{grant, session, nameOrID}, &sb)
	return sb, err
}

func (n remoteNode) Restart(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sb *sandbox.Sandbox, err error) {
	err = n.r.call(ctx, node, "Restart", args{grant, session, nameOrID}, &sb)
	return sb, err
}

func (n remoteNode) Fork(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, count int) (forks []*sandbox.Sandbox, err error) {
	err = n.r.call(ctx, node, "Fork", args{grant, session, nameOrID, count}, &forks)
	return forks, err
}

func (n remoteNode) Destroy(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) error {
	return n.r.call(ctx, node, "Destroy", args{grant, session, nameOrID})
}

func (n remoteNode) Snapshot(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, keep time.Duration) (sn *sandbox.Snapshot, err error) {
	err = n.r.call(ctx, node, "Snapshot", args{grant, session, nameOrID, keep}, &sn)
	return sn, err
}

func (n remoteNode) Orphans(ctx context.Context) (ids []runtime.ID, err error) {
	err = n.r.call(ctx, node, "Orphans", nil, &ids)
	return ids, err
}

func (n remoteNode) Reap(ctx context.Context) (ids []runtime.ID, err error) {
	err = n.r.call(ctx, node, "Reap", nil, &ids)
	return ids, err
}

// remoteHandle is a sandbox.Handle.
type remoteHandle struct {
	r    *remote
	id   uint64
	sb   *sandbox.Sandbox
	done chan struct{}
	stop context.CancelFunc
}

func (h *remoteHandle) call(ctx context.Context, kind, method string, in args, results ...any) error {
	return h.r.call(ctx, part{kind, h.id}, method, in, results...)
}

func (h *remoteHandle) Sandbox() *sandbox.Sandbox { return h.sb }

func (h *remoteHandle) Guest() sandbox.Guest { return remoteGuest{h} }

func (h *remoteHandle) Contexts() (codecontext.Contexts, error) {
	if err := h.call(context.Background(), "handle", "Contexts", nil); err != nil {
		return nil, err
	}
	return remoteContexts{h}, nil
}

func (h *remoteHandle) CopyFolder(ctx context.Context, path string, other sandbox.Handle, name string) (bytes int64, done bool, err error) {
	to, ok := other.(*remoteHandle)
	if !ok || to.r != h.r {
		return 0, false, nil
	}
	err = h.call(ctx, "handle", "CopyFolder", args{path, to.id, name}, &bytes, &done)
	return bytes, done, err
}

func (h *remoteHandle) Redactor(ctx context.Context) (*redact.Set, error) {
	var c redact.Config
	if err := h.call(ctx, "handle", "Redactor", nil, &c); err != nil {
		return nil, err
	}
	return redact.New(c)
}

func (h *remoteHandle) CountBytes(bytes int64) {
	_ = h.call(context.Background(), "handle", "CountBytes", args{bytes})
}

// stopReason is why programs were ended, if err is not that this could not be asked.
func stopReason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (h *remoteHandle) Stopped(ctx context.Context) error {
	return stopReason(ctx, h.call(ctx, "handle", "Stopped", nil))
}

func (h *remoteHandle) Killed(ctx context.Context, exit process.Exit) error {
	return stopReason(ctx, h.call(ctx, "handle", "Killed", args{exit}))
}

func (h *remoteHandle) NetworkHint(since time.Time, tails [][]byte) (hint string) {
	_ = h.call(context.Background(), "handle", "NetworkHint", args{since, tails}, &hint)
	return hint
}

func (h *remoteHandle) Done() <-chan struct{} { return h.done }

func (h *remoteHandle) Close() {
	h.stop()
	_ = h.call(context.Background(), "handle", "Close", nil)
}

// remoteContexts is codecontext.Contexts.
type remoteContexts struct{ h *remoteHandle }

func (c remoteContexts) call(ctx context.Context, method string, in args, results ...any) error {
	return c.h.call(ctx, "contexts", method, in, results...)
}

func (c remoteContexts) Create(ctx context.Context, language execution.Language, dir string) (out *codecontext.Context, err error) {
	err = c.call(ctx, "Create", args{language, dir}, &out)
	return out, err
}

func (c remoteContexts) List(ctx context.Context) (all []*codecontext.Context, err error) {
	err = c.call(ctx, "List", nil, &all)
	return all, err
}

func (c remoteContexts) Get(ctx context.Context, id codecontext.ID) (out *codecontext.Context, err error) {
	err = c.call(ctx, "Get", args{id}, &out)
	return out, err
}

func (c remoteContexts) Run(ctx context.Context, id codecontext.ID, req codecontext.Request, sink codecontext.Sink) (res *codecontext.Result, err error) {
	err = c.call(ctx, "Run", args{id, req, sink}, &res)
	return res, err
}

func (c remoteContexts) Collect(ctx context.Context, id codecontext.ID, req codecontext.Request, sink codecontext.Sink) (res *codecontext.Result, err error) {
	err = c.call(ctx, "Collect", args{id, req, sink}, &res)
	return res, err
}

func (c remoteContexts) Interrupt(ctx context.Context, id codecontext.ID) error {
	return c.call(ctx, "Interrupt", args{id})
}

func (c remoteContexts) Restart(ctx context.Context, id codecontext.ID) (out *codecontext.Context, err error) {
	err = c.call(ctx, "Restart", args{id}, &out)
	return out, err
}

func (c remoteContexts) Delete(ctx context.Context, id codecontext.ID) error {
	return c.call(ctx, "Delete", args{id})
}

var (
	_ sandbox.Node         = remoteNode{}
	_ sandbox.Handle       = (*remoteHandle)(nil)
	_ sandbox.Guest        = remoteGuest{}
	_ codecontext.Contexts = remoteContexts{}
	_ process.Output       = (*remoteOutput)(nil)
	_ file.Archive         = (*remoteReader)(nil)
	_ file.Events          = (*remoteEvents)(nil)
)
