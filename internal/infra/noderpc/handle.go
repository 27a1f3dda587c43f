package noderpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// handle is a sandbox.Handle.
type handle struct {
	c       *Client
	id      uint64
	sb      *sandbox.Sandbox
	granted bool // opened by Use
	once    sync.Once
	done    chan struct{}
}

// over closes Done.
func (h *handle) over() { h.once.Do(func() { close(h.done) }) }

func (h *handle) call(ctx context.Context, name string, safe bool, in args, results ...any) error {
	return h.c.call(ctx, method{target: toHandle, handle: h.id, name: name, safe: safe}, in, results...)
}

func (h *handle) Sandbox() *sandbox.Sandbox { return h.sb }

func (h *handle) Guest() sandbox.Guest { return guest{h} }

func (h *handle) Contexts() (codecontext.Contexts, error) {
	if !h.granted {
		ctx, cancel := context.WithTimeout(h.c.life, untimedCall)
		defer cancel()
		if err := h.call(ctx, "Contexts", true, nil); err != nil {
			return nil, err
		}
	}
	return contextsOf{h}, nil
}

// untimedCall limits calls without a context.
const untimedCall = 10 * time.Second

func (h *handle) CopyFolder(ctx context.Context, path string, other sandbox.Handle, name string) (bytes int64, done bool, err error) {
	to, ok := other.(*handle)
	if !ok || to.c != h.c {
		return 0, false, nil
	}
	err = h.call(ctx, "CopyFolder", false, args{path, to.id, name}, &bytes, &done)
	return bytes, done, err
}

func (h *handle) Redactor(ctx context.Context) (*redact.Set, error) {
	var c redact.Config
	if err := h.call(ctx, "Redactor", true, nil, &c); err != nil {
		return nil, err
	}
	return redact.New(c)
}

func (h *handle) CountBytes(bytes int64) {
	if bytes <= 0 {
		return
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if h.c.handles[h.id] == h {
		h.c.notify(notice{Handle: h.id, Bytes: bytes})
	}
}

func (h *handle) Stopped(ctx context.Context) error { return h.reason(ctx, "Stopped", nil) }

func (h *handle) Killed(ctx context.Context, exit process.Exit) error {
	return h.reason(ctx, "Killed", args{exit})
}

// reason returns why the server ended programs, or nil if it cannot ask the machine.
func (h *handle) reason(ctx context.Context, name string, in args) error {
	var why *remote.Failure
	if h.call(ctx, name, true, in, &why) != nil {
		return nil
	}
	return why.Decode()
}

func (h *handle) NetworkHint(since time.Time, tails [][]byte) (hint string) {
	ctx, cancel := context.WithTimeout(h.c.life, untimedCall)
	defer cancel()
	_ = h.call(ctx, "NetworkHint", true, args{since, tails}, &hint)
	return hint
}

func (h *handle) Done() <-chan struct{} { return h.done }

func (h *handle) Close() {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if h.c.handles[h.id] == h {
		delete(h.c.handles, h.id)
		h.c.notify(notice{Handle: h.id, Close: true})
	}
}

// contextsOf is codecontext.Contexts.
type contextsOf struct{ h *handle }

func (c contextsOf) call(ctx context.Context, name string, in args, results ...any) error {
	m := method{target: toContexts, handle: c.h.id, name: name, safe: name == "List" || name == "Get"}
	return c.h.c.call(ctx, m, in, results...)
}

func (c contextsOf) Create(ctx context.Context, language execution.Language, dir string) (out *codecontext.Context, err error) {
	err = c.call(ctx, "Create", args{language, dir}, &out)
	return out, err
}

func (c contextsOf) List(ctx context.Context) (all []*codecontext.Context, err error) {
	err = c.call(ctx, "List", nil, &all)
	return all, err
}

func (c contextsOf) Get(ctx context.Context, id codecontext.ID) (out *codecontext.Context, err error) {
	err = c.call(ctx, "Get", args{id}, &out)
	return out, err
}

func (c contextsOf) Run(ctx context.Context, id codecontext.ID, req codecontext.Request, sink codecontext.Sink) (res *codecontext.Result, err error) {
	err = c.call(ctx, "Run", args{id, req, sink}, &res)
	return res, err
}

func (c contextsOf) Collect(ctx context.Context, id codecontext.ID, req codecontext.Request, sink codecontext.Sink) (res *codecontext.Result, err error) {
	err = c.call(ctx, "Collect", args{id, req, sink}, &res)
	return res, err
}

func (c contextsOf) Interrupt(ctx context.Context, id codecontext.ID) error {
	return c.call(ctx, "Interrupt", args{id})
}

func (c contextsOf) Restart(ctx context.Context, id codecontext.ID) (out *codecontext.Context, err error) {
	err = c.call(ctx, "Restart", args{id}, &out)
	return out, err
}

func (c contextsOf) Delete(ctx context.Context, id codecontext.ID) error {
	return c.call(ctx, "Delete", args{id})
}

// isCut reports whether an error says that the connection ended.
func isCut(err error) bool {
	_, ok := errors.AsType[*cutError](err)
	return ok
}

var (
	_ sandbox.Handle       = (*handle)(nil)
	_ sandbox.Guest        = guest{}
	_ codecontext.Contexts = contextsOf{}
	_ process.Output       = (*output)(nil)
	_ file.Archive         = (*download)(nil)
	_ file.Events          = (*changes)(nil)
)
