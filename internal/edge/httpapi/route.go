package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/control/webcall"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// TraceHeader is the header of every answer that names its request.
const TraceHeader = "X-Trace-Id"

// traceOf returns the trace id that the request was given.
func traceOf(w http.ResponseWriter) string { return w.Header().Get(TraceHeader) }

// handler answers a request or returns why not. The connection of one that fails in the
// middle of its answer is cut.
type handler func(w http.ResponseWriter, r *http.Request) error

// route builds the handler of a table. A path that exists with another method is answered
// with 405.
func (s *Server) route(table []Operation) (http.Handler, error) {
	paths := map[string]map[string]*Operation{}
	for i := range table {
		op := &table[i]
		if err := op.check(); err != nil {
			return nil, err
		}
		methods := []string{op.Method}
		if op.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		for _, method := range methods {
			if paths[op.Path][method] != nil {
				return nil, fmt.Errorf("%s %s is in the table twice", method, op.Path)
			}
			if paths[op.Path] == nil {
				paths[op.Path] = map[string]*Operation{}
			}
			paths[op.Path][method] = op
		}
	}
	mux := http.NewServeMux()
	for path, methods := range paths {
		allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		mux.Handle(path, s.wrap(path, func(w http.ResponseWriter, r *http.Request) error {
			if op := methods[r.Method]; op != nil {
				return s.serve(op, w, r)
			}
			w.Header().Set("Allow", allow)
			return &ProtocolError{http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("%s answers to %s", r.URL.Path, allow)}
		}, statuses(methods)...))
	}
	nothing := s.wrap("other", func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.NotFound, "path not found; /docs lists the API's operations")
	}, http.StatusNotFound)
	mux.Handle("/", nothing)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		traceID := execution.NewTraceID()
		if call := webcall.Of(r.Context()); call != nil {
			traceID = call.TraceID
		}
		w.Header().Set(TraceHeader, traceID) // here, so that the mux's own answers have it too
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !strings.HasPrefix(r.URL.Path, "/") { // CONNECT, which the mux would refuse without our envelope
			nothing.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}), nil
}

// statuses are the documented answers of a path's operations, in order.
func statuses(methods map[string]*Operation) (all []int) {
	for _, op := range methods {
		for _, answer := range op.Answers {
			all = append(all, answer.Status)
		}
	}
	if len(all) == 0 {
		all = append(all, http.StatusOK)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// serve answers a request to an operation: who asks, what the query has, what is done, and
// the audit row of it.
func (s *Server) serve(op *Operation, w http.ResponseWriter, r *http.Request) error {
	c := &Call{W: w, R: r, op: op, server: s}
	if op.Watched {
		c.auth = tenant.NewAuthorization(func(ctx context.Context) error {
			again := &Call{R: r.WithContext(ctx), op: op, server: s}
			again.holder.Store(c.holder.Load())
			return again.identify(op.Scope)
		})
		ctx, stop := c.auth.Watch(r.Context())
		defer stop()
		c.R = r.WithContext(ctx)
	}
	defer c.letGo()
	err := c.audited(c.run)
	if err != nil && errors.Is(context.Cause(c.R.Context()), tenant.ErrKeyInvalid) {
		err = tenant.ErrKeyInvalid
	}
	if err != nil && op.Compat != nil {
		return &compatError{err, op.Compat.Refuse}
	}
	return err
}

// compatError is answered as another protocol has it.
type compatError struct {
	error
	refuse func(http.ResponseWriter, *http.Request, error)
}

func (e *compatError) Unwrap() error { return e.error }

// run does what the operation does.
func (c *Call) run() (err error) {
	switch c.op.Access {
	case ByScope:
		err = c.Authorize(c.op.Scope)
	case AnyKey:
		err = c.Authorize("")
	case Delegated, Public:
	}
	if err != nil {
		return err
	}
	if c.op.Access != Public || len(c.op.Params) > 0 {
		if c.Query, err = parseQuery(c.R, c.op.Params); err != nil {
			return err
		}
	}
	if c.op.Body == nil && (c.R.Method == http.MethodPost || c.R.Method == http.MethodPut) {
		if err := c.noBody(); err != nil {
			return err
		}
	}
	return c.once()
}

// wrap turns a handler's errors and panics into responses and counts them, those of the
// given statuses from zero.
func (s *Server) wrap(label string, serve handler, statuses ...int) http.Handler {
	count := s.metrics.route(label, statuses...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		out := &response{ResponseWriter: w, conn: http.NewResponseController(w)}
		if trace.On() {
			ctx, span := trace.StartKind(trace.Extract(r.Context(), r.Header), r.Method+" "+label, trace.Server, trace.String(trace.TraceID, traceOf(w)))
			r = r.WithContext(ctx)
			defer func() {
				span.Set(trace.Int("http.response.status_code", int64(out.status)))
				span.End()
			}()
		}
		s.metrics.inFlight.Inc()
		defer func() {
			s.metrics.inFlight.Dec()
			count(out.status, time.Since(started))
		}()
		defer func() {
			if p := recover(); p != nil {
				s.recovered(out, r, p)
			}
		}()
		if err := serve(out, r); err != nil {
			s.fail(out, r, err)
		}
	})
}

// statusGone is counted for a client that went away before its answer.
const statusGone = 499

// fail answers with err and logs what the caller may not see.
func (s *Server) fail(w *response, r *http.Request, err error) {
	begun, gone := w.status != 0, r.Context().Err() != nil && errors.Is(err, context.Canceled)
	if gone {
		err = &ProtocolError{statusGone, "client_closed_request", "the client went away before the answer"}
	}
	if f, ok := errors.AsType[*compatError](err); ok && !begun {
		f.refuse(w, r, f.error)
	} else if !begun {
		writeError(w, err)
	}
	level := slog.LevelDebug // the caller's mistake, or what a probe asks for
	switch f, ok := errors.AsType[*fault.Error](err); {
	case gone, unread(err):
	case begun:
		level = slog.LevelWarn
	case w.status == http.StatusInternalServerError:
		level = slog.LevelError
	case w.status > http.StatusInternalServerError && ok && f.Err != nil:
		level = slog.LevelWarn // the reason was kept from the caller
	}
	s.log.Log(r.Context(), level, "request not served", "trace_id", traceOf(w), "path", preview.Hide(r.URL.Path), "status", w.status, "client", s.client(r), "error", err)
	if begun {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
}

// recovered answers a request whose handler panicked with p.
func (s *Server) recovered(w *response, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // the server's own way of cutting a connection
	}
	s.log.ErrorContext(r.Context(), "handler panicked", "trace_id", traceOf(w), "path", preview.Hide(r.URL.Path), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	writeError(w, fault.New(fault.Internal, "panic"))
}

// authenticate finds the caller by its bearer token.
func (s *Server) authenticate(r *http.Request) (tenant.Principal, error) {
	if len(r.Header.Values("Authorization")) > 1 { // different readers could take different ones
		return tenant.Principal{}, fault.New(fault.Unauthorized, "more than one API key: send the Authorization header once")
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !ok || !strings.EqualFold(scheme, "bearer") || token == "" {
		return tenant.Principal{}, fault.New(fault.Unauthorized, "missing API key: send it as Authorization: Bearer %s…", tenant.KeyPrefix)
	}
	return s.find(r.Context(), token)
}
