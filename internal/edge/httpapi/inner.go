package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Holders find out who has a key, by its id; a *tenant.Authority does.
type Holders interface {
	Holder(ctx context.Context, t tenant.ID, key string) (tenant.Principal, error)
}

// Inner makes the calls of programs in sandboxes by the operations of HTTP, so that scopes,
// rates, limits and records are the same.
type Inner struct {
	Server  *Server
	Holders Holders
	// Budget refuses a call of a program whose tenant has used up its budget in money; nil
	// for no budgets.
	Budget func(ctx context.Context, p *tenant.Principal, traceID string) error
}

var _ execution.Web = Inner{}

// inner is what the context of a program's call has.
type inner struct {
	traceID string
	find    func(context.Context) (tenant.Principal, error)
}

type innerKey struct{}

// innerOf returns what a request has instead of a key; nil for one that came by HTTP.
func innerOf(ctx context.Context) *inner {
	in, _ := ctx.Value(innerKey{}).(*inner)
	return in
}

// CallWeb implements execution.Web. The call has the trace id of its execution.
func (i Inner) CallWeb(ctx context.Context, c execution.WebCall) (_ execution.WebAnswer, err error) {
	path, ok := web.Paths[c.Path]
	if !ok {
		return execution.WebAnswer{}, fault.New(fault.Internal, "a program's call has the path %q", c.Path)
	}
	ctx = context.WithValue(ctx, innerKey{}, &inner{c.TraceID, func(ctx context.Context) (tenant.Principal, error) {
		p, err := i.Holders.Holder(ctx, c.Tenant, c.Key)
		if err == nil && i.Budget != nil {
			err = i.Budget(ctx, &p, c.TraceID)
		}
		return p, err
	}})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(c.Body))
	if err != nil {
		return execution.WebAnswer{}, fault.Wrap(fault.Internal, err, "")
	}
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = "127.0.0.1:0"
	w := &innerWriter{header: http.Header{}}
	defer func() {
		if v := recover(); v != nil { // half an answer
			if cut, ok := v.(error); !ok || !errors.Is(cut, http.ErrAbortHandler) {
				panic(v)
			}
			err = fault.New(fault.Internal, "the answer broke off")
		}
	}()
	i.Server.handler.ServeHTTP(w, r)
	if w.tooLong {
		const says = `{"error":"payload_too_large","message":"the answer is too long for a program in a sandbox: ask for less, by max_tokens or max_tokens_per_page"}`
		return execution.WebAnswer{Status: http.StatusRequestEntityTooLarge, Body: []byte(says)}, nil
	}
	return execution.WebAnswer{Status: w.status, RetryAfter: w.header.Get("Retry-After"), Body: w.body.Bytes()}, nil
}

// innerWriter keeps an answer.
type innerWriter struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	tooLong bool
}

func (w *innerWriter) Header() http.Header { return w.header }

func (w *innerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *innerWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(p) > execution.MaxWebAnswer {
		w.tooLong = true
		w.body.Reset()
	}
	if w.tooLong {
		return len(p), nil
	}
	return w.body.Write(p)
}
