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
	Entrant(ctx context.Context, t tenant.ID, key, environment string) (tenant.Principal, error)
}

// Inner makes the calls of programs in sandboxes by the operations of HTTP, so that scopes,
// rates, limits and records are the same.
type Inner struct {
	Server  *Server
	Holders Holders
	// Reserve holds what a call of a service costs until release is called, or refuses it,
	// by what the call's execution and its tenant may spend; nil for no bounds.
	Reserve func(ctx context.Context, p *tenant.Principal, c *execution.WebCall, service string) (release func(), err error)
}

var _ execution.Web = Inner{}

// inner is what the context of a program's call has.
type inner struct {
	traceID string
	find    func(context.Context) (tenant.Principal, error)
	held    bool
	reserve func(ctx context.Context, p *tenant.Principal, service string) (release func(), err error)
}

type innerKey struct{}

// innerOf returns what a request has instead of a key; nil for one that came by HTTP.
func innerOf(ctx context.Context) *inner {
	in, _ := ctx.Value(innerKey{}).(*inner)
	return in
}

// Reserve returns what holds the cost of a program's calls of services; nil for a request
// that came by HTTP, which is not charged in money.
func (c *Call) Reserve() func(ctx context.Context, service string) (release func(), err error) {
	in := innerOf(c.R.Context())
	if in == nil || in.reserve == nil {
		return nil
	}
	return func(ctx context.Context, service string) (func(), error) { return in.reserve(ctx, c.Caller, service) }
}

// Held reports whether a program's call is held to the network of its environment.
func (c *Call) Held() bool {
	in := innerOf(c.R.Context())
	return in != nil && in.held
}

// CallWeb implements execution.Web. The call has the trace id of its execution.
func (i Inner) CallWeb(ctx context.Context, c execution.WebCall) (_ execution.WebAnswer, err error) {
	path, ok := web.Paths[c.Path]
	if !ok {
		return execution.WebAnswer{}, fault.New(fault.Internal, "a program's call has the path %q", c.Path)
	}
	in := &inner{traceID: c.TraceID, find: func(ctx context.Context) (tenant.Principal, error) {
		return i.Holders.Entrant(ctx, c.Tenant, c.Key, c.Environment)
	}, held: c.Held}
	if i.Reserve != nil {
		in.reserve = func(ctx context.Context, p *tenant.Principal, service string) (func(), error) {
			return i.Reserve(ctx, p, &c, service)
		}
	}
	ctx = context.WithValue(ctx, innerKey{}, in)
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
