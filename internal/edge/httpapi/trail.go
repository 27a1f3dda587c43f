package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// audited runs an operation's endpoint and leaves its audit row.
func (c *Call) audited(run func() error) (err error) {
	if c.op.Audit == "" {
		return run()
	}
	ctx := c.R.Context()
	c.Trail = sandboxes.NewTrail(c.server.record, sandbox.Call{TraceID: c.TraceID(), Source: c.op.Audit, Began: time.Now()})
	c.W = &trailedResponse{c.W, ctx, c.Trail}
	defer func() {
		if p := recover(); p != nil {
			_ = c.Trail.Leave(ctx, errors.New("panic")) // which is answered and logged as one
			panic(p)
		}
	}()
	err = run()
	if failed := c.Leave(ctx, err); failed != nil {
		return failed
	}
	return err
}

// Leave writes the audit row of a request that ended with err, once.
func (c *Call) Leave(ctx context.Context, err error) error {
	if p, ok := errors.AsType[*ProtocolError](err); ok {
		err = fault.New(fault.Invalid, "%s", p.Message)
	}
	return c.Trail.Leave(ctx, err)
}

// trailedResponse is an answer that comes after its audit row.
type trailedResponse struct {
	http.ResponseWriter
	ctx context.Context
	t   *sandboxes.Trail
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
