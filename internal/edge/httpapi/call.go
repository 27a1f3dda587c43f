package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/control/connections"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/control/webcall"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Call is one request to an operation.
type Call struct {
	W http.ResponseWriter
	R *http.Request
	// Caller is who asks; nil with Public, and with Delegated until Authorize.
	Caller *tenant.Principal
	// Query has the parameters of the query, which are as the operation documents them.
	Query url.Values
	// Trail is the audit row that the request leaves; nil for none.
	Trail *sandboxes.Trail

	op     *Operation
	server *Server
	auth   *tenant.Authorization // nil unless the operation is watched
	held   []func()              // releases what its body takes
	status int                   // of the answer, if it is not the operation's own
	unkept bool                  // the answer is not kept for an Idempotency-Key
	// objects are what a kept answer is about, beside what its path and names say.
	objects []string
	// holder finds the caller again, where something stands for the key; nil where nothing does.
	holder atomic.Pointer[func(context.Context) (tenant.Principal, error)]
}

var timeType = reflect.TypeFor[time.Time]()

// Context returns the request's context.
func (c *Call) Context() context.Context { return c.R.Context() }

// Path returns a part of the request's path.
func (c *Call) Path(name string) string { return c.R.PathValue(name) }

// Has reports whether the query has a parameter.
func (c *Call) Has(name string) bool { return c.Query.Has(name) }

// Text returns a parameter of the query, "" if it was omitted.
func (c *Call) Text(name string) string { return c.Query.Get(name) }

// Int returns a parameter of the query, or its documented default.
func (c *Call) Int(name string) int64 {
	if !c.Query.Has(name) {
		return paramOf(c.op.Params, name).Default
	}
	n, _ := strconv.ParseInt(c.Query.Get(name), 10, 64) // it was checked
	return n
}

// Bool returns a parameter of the query, false if it was omitted.
func (c *Call) Bool(name string) bool { return c.Query.Get(name) == "true" }

// Time returns a parameter of the query, the zero time if it was omitted.
func (c *Call) Time(name string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, c.Query.Get(name)) // it was checked
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// Span returns the parameters since and before, of which the first must be the earlier.
func (c *Call) Span() (since, before time.Time, err error) {
	since, before = c.Time("since"), c.Time("before")
	if !since.IsZero() && !before.IsZero() && !since.Before(before) {
		return since, before, Invalid("since must be earlier than before")
	}
	return since, before, nil
}

// TraceID names the request.
func (c *Call) TraceID() string { return traceOf(c.W) }

// SetStatus sets the status of the answer, where it is not the operation's first.
func (c *Call) SetStatus(status int) { c.status = status }

// send answers with JSON.
func (c *Call) send(body any) error {
	status := c.status
	if status == 0 {
		status = c.op.success().Status
	}
	return WriteJSON(c.W, status, body)
}

// Authorize finds the caller, whose key must have a scope, and counts the request.
func (c *Call) Authorize(scope tenant.Scope) error {
	if err := c.identify(scope); err != nil {
		return err
	}
	return c.Charge(c.Caller)
}

// Charge counts the request, and its body, against the rates of the caller's plan.
func (c *Call) Charge(caller *tenant.Principal) error {
	err := c.server.rates.Request(caller)
	if err == nil {
		c.R.Body, err = c.server.rates.Body(c.R.Context(), caller, c.R.ContentLength, c.R.Body)
	}
	c.RateLimited(err)
	return err
}

// RateLimited counts a refusal for a rate; nil is none.
func (c *Call) RateLimited(err error) {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		c.server.metrics.rateLimited.WithLabelValues(f.Dimension).Inc()
	}
}

// identify finds the caller, whose key must have a scope.
func (c *Call) identify(scope tenant.Scope) error {
	find := c.server.authenticate
	if c.op != nil && c.op.Compat != nil && c.op.Compat.Caller != nil {
		find = c.op.Compat.Caller
	}
	if holder := c.holder.Load(); holder != nil {
		find = func(r *http.Request) (tenant.Principal, error) { return (*holder)(r.Context()) }
	}
	if call := webcall.Of(c.R.Context()); call != nil {
		find = func(r *http.Request) (tenant.Principal, error) { return call.Caller(r.Context()) }
	}
	caller, err := find(c.R)
	if err != nil {
		return err
	}
	connections.Trust(c.Context(), caller.Tenant.ID)
	if scope != "" && !caller.May(scope) {
		return fault.New(fault.Forbidden, "this key lacks the scope %q; ask an administrator to add it", scope)
	}
	if err := c.heldToToken(caller.Token); err != nil {
		return err
	}
	c.Caller = &caller
	c.R = c.R.WithContext(outbound.For(c.R.Context(), caller.Tenant.ID))
	return nil
}

// AuthorizeBy is Authorize for a request that has something which stands for a key. find
// returns whose key that is, and is asked again for as long as the request is watched.
func (c *Call) AuthorizeBy(scope tenant.Scope, find func(context.Context) (tenant.Principal, error)) error {
	c.holder.Store(&find)
	return c.Authorize(scope)
}

// Authorized returns a context that lasts as long as ctx and as the key of the request is
// valid, also where ctx outlives the request.
func (c *Call) Authorized(ctx context.Context) (context.Context, func()) {
	if c.auth == nil {
		return ctx, func() {}
	}
	return c.auth.Watch(ctx)
}

// Draining refuses a request to begin something while the server shuts down.
func (c *Call) Draining() error { return c.server.Draining() }

// Living returns ctx for as long as a shutdown waits. Call stop when the request is
// answered.
func (c *Call) Living(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.server.life, func() { cancel(ErrShutdown) })
	return ctx, func() { unhook(); cancel(nil) }
}

// Log returns the server's log.
func (c *Call) Log() *slog.Logger { return c.server.log }
