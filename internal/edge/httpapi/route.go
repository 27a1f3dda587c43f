package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// handler answers a request or says why not. The connection of one that fails
// in the middle of its answer is cut.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one path of the API. A path that exists with another method is
// answered with 405.
type route struct {
	methods []string
	path    string
	serve   handler
}

// routes builds the handler for every path. metrics serves /metrics.
func (s *Server) routes(metrics http.Handler) http.Handler {
	get := []string{http.MethodGet, http.MethodHead}
	table := []route{
		{[]string{http.MethodPost}, "/v1/sandbox/execute", s.postExecute},
		{get, "/healthz", s.getHealth},
		{get, "/readyz", s.getReady},
		{get, "/metrics", func(w http.ResponseWriter, r *http.Request) error { metrics.ServeHTTP(w, r); return nil }},
		{get, "/openapi.json", getOpenAPI},
		{get, "/{$}", func(w http.ResponseWriter, r *http.Request) error {
			http.Redirect(w, r, "/docs", http.StatusTemporaryRedirect)
			return nil
		}},
	}
	table = append(table, docsRoutes(get)...)
	if s.admin != nil {
		table = append(table, adminRoutes(s.admin, s.authenticate)...)
		table = append(table, s.environmentRoutes()...)
	}
	if s.executeCode != nil {
		table = append(table, route{[]string{http.MethodPost}, executeCodePath, s.postExecuteCode}, route{[]string{http.MethodDelete}, turnPath, s.deleteTurn})
	}
	if s.tools != nil {
		table = append(table, route{get, toolsPath, s.listTools}, route{[]string{http.MethodPost}, sessionToolPath, s.postTool})
	}
	if s.mcp != nil {
		table = append(table, route{[]string{http.MethodPost, http.MethodGet, http.MethodDelete}, mcpPath, s.serveMCP})
	}
	if s.sandboxes != nil {
		table = append(table, s.sandboxRoutes()...)
		table = append(table, s.contextRoutes()...)
		table = append(table, s.snapshotRoutes()...)
	}
	if s.ports != nil {
		table = append(table, s.previewRoutes()...)
	}
	table = append(table, s.executionRoutes()...)
	if s.folders != nil {
		table = append(table, route{[]string{http.MethodPost}, filesListPath, s.postFilesList})
	}
	if s.threads != nil {
		table = append(table, s.threadRoutes()...)
	}

	mux := http.NewServeMux()
	for _, rt := range table {
		mux.Handle(rt.path, s.wrap(rt.path, func(w http.ResponseWriter, r *http.Request) error {
			if !slices.Contains(rt.methods, r.Method) {
				allow := strings.Join(rt.methods, ", ")
				w.Header().Set("Allow", allow)
				return &protocolError{http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("%s answers to %s", r.URL.Path, allow)}
			}
			return rt.serve(w, r)
		}))
	}
	nothing := s.wrap("other", func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.NotFound, "there is nothing at this path; /docs lists what there is")
	})
	mux.Handle("/", nothing)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(traceHeader, execution.NewTraceID()) // here, so that the mux's own answers have it too
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !strings.HasPrefix(r.URL.Path, "/") { // CONNECT, which the mux refuses in its own words
			nothing.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// wrap turns a handler's errors and panics into responses and counts them.
func (s *Server) wrap(label string, serve handler) http.Handler {
	count := s.metrics.route(label)
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

// statusGone is for those whose clients went away before their answer.
const statusGone = 499

// fail answers with err and logs what the caller may not see.
func (s *Server) fail(w *response, r *http.Request, err error) {
	begun, gone := w.status != 0, r.Context().Err() != nil && errors.Is(err, context.Canceled)
	if gone {
		err = &protocolError{statusGone, "client_closed_request", "the client went away before the answer"}
	}
	if !begun {
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
		level = slog.LevelWarn // we could not, and the reason was kept from the caller
	}
	s.log.Log(r.Context(), level, "request not served", "trace_id", traceOf(w), "path", r.URL.Path, "status", w.status, "client", s.client(r), "error", err)
	if begun {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
}

// unread reports whether an answer broke off because its client has closed the
// connection.
func unread(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "write" && op.Net == "tcp" && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// recovered answers a request whose handler panicked with p.
func (s *Server) recovered(w *response, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // the server's own way of cutting a connection
	}
	s.log.ErrorContext(r.Context(), "handler panicked", "trace_id", traceOf(w), "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	writeError(w, fault.New(fault.Internal, "panic"))
}

// patience is how long a client may leave a piece of its answer unread before
// the connection is cut.
const patience = time.Minute

// response remembers what was answered, and does not wait forever for a client
// that does not read.
type response struct {
	http.ResponseWriter
	conn   *http.ResponseController
	status int // 0 until the headers are written
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	// The server's own writer has deadlines; those of tests need none.
	_ = w.conn.SetWriteDeadline(time.Now().Add(patience))
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the server's own writer.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

const traceHeader = "X-Trace-Id"

// traceOf returns the trace id that the request was given.
func traceOf(w http.ResponseWriter) string { return w.Header().Get(traceHeader) }

// authenticate finds the caller by its bearer token.
func (s *Server) authenticate(r *http.Request) (tenant.Principal, error) {
	if len(r.Header.Values("Authorization")) > 1 { // which of them counts would depend on who reads
		return tenant.Principal{}, fault.New(fault.Unauthorized, "more than one API key: send the Authorization header once")
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !ok || !strings.EqualFold(scheme, "bearer") || token == "" {
		return tenant.Principal{}, fault.New(fault.Unauthorized, "missing API key: send it as Authorization: Bearer %s…", tenant.KeyPrefix)
	}
	return s.auth.Authenticate(r.Context(), token)
}

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// authorize finds the caller, whose key must have a scope.
func (s *Server) authorize(r *http.Request, scope tenant.Scope) (*tenant.Principal, error) {
	caller, err := s.authenticate(r)
	if err != nil {
		return nil, err
	}
	if !caller.May(scope) {
		return nil, fault.New(fault.Forbidden, "this key lacks the scope %q", scope)
	}
	return &caller, nil
}

func (s *Server) getReady(w http.ResponseWriter, r *http.Request) error {
	if s.isDraining() {
		return fault.New(fault.Unavailable, "%s", errShutdown)
	}
	if err := s.ready(r.Context()); err != nil {
		if _, ok := errors.AsType[*fault.Error](err); ok {
			return err
		}
		return fault.Wrap(fault.Unavailable, err, "not ready") // probes come from anybody
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
