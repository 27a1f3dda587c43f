// Package webcall makes the calls of programs in sandboxes by the operations of HTTP, so that
// scopes, rates, limits and records are the same.
package webcall

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

// Service makes the calls.
type Service struct {
	Server  http.Handler
	Holders Holders
	// Reserve holds what a call of a service costs until release is called, or refuses it,
	// by what the call's execution and its tenant may spend; nil for no bounds.
	Reserve func(ctx context.Context, p *tenant.Principal, c *execution.WebCall, service string) (release func(), err error)
}

var _ execution.Web = Service{}

// Call is what the request of a program's call has instead of a key.
type Call struct {
	TraceID string // of its execution
	Held    bool   // to the network of its environment
	// Caller finds who has the key of the execution.
	Caller  func(context.Context) (tenant.Principal, error)
	reserve func(ctx context.Context, p *tenant.Principal, service string) (release func(), err error)
}

type callKey struct{}

// Of returns the call that a request belongs to; nil for a request that came by HTTP.
func Of(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Reserve returns what holds the cost of a caller's calls of services; nil for a request
// that came by HTTP, which is not charged in money.
func (c *Call) Reserve(p *tenant.Principal) func(ctx context.Context, service string) (release func(), err error) {
	if c == nil || c.reserve == nil {
		return nil
	}
	return func(ctx context.Context, service string) (func(), error) { return c.reserve(ctx, p, service) }
}

// CallWeb implements execution.Web. The call has the trace id of its execution.
func (s Service) CallWeb(ctx context.Context, c execution.WebCall) (_ execution.WebAnswer, err error) {
	path, ok := web.Paths[c.Path]
	if !ok {
		return execution.WebAnswer{}, fault.New(fault.Internal, "a program's call has the path %q", c.Path)
	}
	call := &Call{TraceID: c.TraceID, Held: c.Held, Caller: func(ctx context.Context) (tenant.Principal, error) {
		return s.Holders.Entrant(ctx, c.Tenant, c.Key, c.Environment)
	}}
	if s.Reserve != nil {
		call.reserve = func(ctx context.Context, p *tenant.Principal, service string) (func(), error) {
			return s.Reserve(ctx, p, &c, service)
		}
	}
	ctx = context.WithValue(ctx, callKey{}, call)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(c.Body))
	if err != nil {
		return execution.WebAnswer{}, fault.Wrap(fault.Internal, err, "")
	}
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = "127.0.0.1:0"
	w := &answer{header: http.Header{}}
	defer func() {
		if v := recover(); v != nil { // half an answer
			if cut, ok := v.(error); !ok || !errors.Is(cut, http.ErrAbortHandler) {
				panic(v)
			}
			err = fault.New(fault.Internal, "the answer broke off")
		}
	}()
	s.Server.ServeHTTP(w, r)
	if w.tooLong {
		const says = `{"error":"payload_too_large","message":"the answer is too long for a program in a sandbox: ask for less, by max_tokens or max_tokens_per_page"}`
		return execution.WebAnswer{Status: http.StatusRequestEntityTooLarge, Body: []byte(says)}, nil
	}
	return execution.WebAnswer{Status: w.status, RetryAfter: w.header.Get("Retry-After"), Body: w.body.Bytes()}, nil
}

// answer keeps what is answered.
type answer struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	tooLong bool
}

func (w *answer) Header() http.Header { return w.header }

func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *answer) Write(p []byte) (int, error) {
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
