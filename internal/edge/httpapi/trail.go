package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Recorder writes audit rows of uses of named sandboxes.
type Recorder func(context.Context, *tenant.Principal, sandbox.Call) error

// Trail is the audit row of a request. Its methods do nothing on a nil Trail, which is
// that of a request that leaves no row.
//
// The row is written before the first byte of the answer, or at the end: an answer whose
// row cannot be written is not given.
type Trail struct {
	Row sandbox.Call
	// Begun says that a sandbox was asked to do something, so that even a request that
	// was wrong leaves its row.
	Begun bool
	// Late has the row written when all is over, because it tells how that was.
	Late bool

	record Recorder
	caller *tenant.Principal // nil until the request was found to be about something
	left   bool              // the row was written, or none will be
	err    error             // why it could not be written
}

// audited runs an operation's endpoint and leaves its audit row.
func (c *Call) audited(run func() error) (err error) {
	if c.op.Audit == "" {
		return run()
	}
	ctx := c.R.Context()
	t := &Trail{record: c.server.record, Row: sandbox.Call{TraceID: c.TraceID(), Source: c.op.Audit, Began: time.Now()}}
	c.Trail, c.W = t, &trailedResponse{c.W, ctx, t}
	defer func() {
		if p := recover(); p != nil {
			_ = t.Leave(ctx, errors.New("panic")) // which is answered and logged as one
			panic(p)
		}
	}()
	err = run()
	if failed := t.Leave(ctx, err); failed != nil {
		return failed
	}
	return err
}

// By notes who asks for something in a session, and for what.
func (t *Trail) By(caller *tenant.Principal, session, command string) {
	if t != nil {
		t.caller, t.Row.Session, t.Row.Command = caller, session, []byte(command)
	}
}

// On notes which sandbox is meant.
func (t *Trail) On(sb *sandbox.Sandbox) {
	if t != nil {
		t.Row.Session, t.Row.Mounts = sb.Session, storage.Labels(sb.Mounts)
		t.Row.SetSandbox(sb)
	}
}

// Asks notes what is asked for. The row has a digest of it.
func (t *Trail) Asks(command string) {
	if t != nil {
		t.Row.Command = []byte(command)
	}
}

// Begin notes that a sandbox is asked to do something.
func (t *Trail) Begin() {
	if t != nil {
		t.Begun = true
	}
}

// Leave writes the row, once. A request that is wrong in itself leaves none.
func (t *Trail) Leave(ctx context.Context, err error) error {
	if t == nil {
		return nil
	}
	if t.left {
		return t.err
	}
	t.left = true
	if t.caller == nil {
		if err == nil {
			t.err = errors.New("a request was served whose caller was not noted for its audit row")
		}
		return t.err
	}
	if p, ok := errors.AsType[*ProtocolError](err); ok {
		err = fault.New(fault.Invalid, "%s", p.Message)
	}
	if t.Row.Ended(ctx, err, t.Begun) {
		t.err = t.record(ctx, t.caller, t.Row)
	}
	return t.err
}

// trailedResponse is an answer that comes after its audit row.
type trailedResponse struct {
	http.ResponseWriter
	ctx context.Context
	t   *Trail
}

func (w *trailedResponse) WriteHeader(status int) {
	var err error
	if status >= http.StatusBadRequest {
		err = fault.New(fault.Forbidden, "HTTP %d", status)
	}
	if w.t.Late || w.t.Leave(w.ctx, err) == nil {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *trailedResponse) Write(p []byte) (int, error) {
	if !w.t.Late {
		if err := w.t.Leave(w.ctx, nil); err != nil {
			return 0, err
		}
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the server's own writer.
func (w *trailedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
