// Package httpapi is Atoll's HTTP interface: HTTP in, domain calls, HTTP out.
//
// Handlers decode, call and encode; rules stay in the domain. Every response
// has an X-Trace-Id header, and every refusal or failure the same envelope,
// {"error": code, "message": text}.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/atoll-run/atoll/internal/execution"
	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/tenant"
)

// Authenticator finds out who calls. It fails with an Unauthorized fault.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (tenant.Principal, error)
}

// Config is what a Server is made of. All but Ready and Grace are required.
type Config struct {
	Executor execution.Executor
	Auth     Authenticator
	Ready    func(context.Context) error // says why requests cannot be served; nil means always ready
	Metrics  *prometheus.Registry        // the server adds its own figures and serves all of it
	Log      *slog.Logger
	Grace    time.Duration // how long a shutdown waits for running executions
}

// Server answers HTTP. Make one with New and run it with Serve.
type Server struct {
	executor execution.Executor
	auth     Authenticator
	ready    func(context.Context) error
	log      *slog.Logger
	metrics  *metrics
	handler  http.Handler
	grace    time.Duration

	// life ends when a shutdown has no patience left; runs outlive their
	// requests but not it.
	life context.Context
	end  context.CancelCauseFunc

	mu       sync.Mutex
	draining bool           // guarded by mu: no new runs
	runs     sync.WaitGroup // Add under mu while not draining
}

// errShutdown ends the runs that a shutdown did not wait for.
var errShutdown = errors.New("the server is shutting down")

// New returns a Server; nothing listens yet.
func New(cfg Config) (*Server, error) {
	s := &Server{
		executor: cfg.Executor,
		auth:     cfg.Auth,
		ready:    cfg.Ready,
		log:      cfg.Log,
		grace:    cfg.Grace,
	}
	if s.ready == nil {
		s.ready = func(context.Context) error { return nil }
	}
	var err error
	if s.metrics, err = newMetrics(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.handler = s.routes(promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn)}))
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers on ln until ctx ends, then shuts down: no new requests, running
// executions get the grace period, what is left is cancelled. It closes ln and
// returns nil after a shutdown, however impatient.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		s.end(errShutdown)
		s.runs.Wait()
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}

	s.log.Info("shutting down", "grace", s.grace.String())
	s.drain()
	cut := time.AfterFunc(s.grace, func() { s.end(errShutdown) })
	defer cut.Stop()
	// Beyond the grace period, cancelled runs need a moment to be answered.
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace+10*time.Second)
	defer cancel()
	if err := srv.Shutdown(wait); err != nil {
		s.log.Warn("connections were cut", "error", err)
		_ = srv.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		s.log.Warn("listening ended by itself", "error", err)
	}
	s.runs.Wait() // those whose clients went away
	s.end(errShutdown)
	return nil
}

// drain refuses new runs from now on.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
}

// execute runs req to its end, whatever becomes of the client: only the
// server's own end cuts it short.
// A panic becomes an error, so that it ends this run alone.
func (s *Server) execute(ctx context.Context, req execution.Request, sink execution.Sink) (e *execution.Execution, err error) {
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "%s", errShutdown)
	}
	s.runs.Add(1)
	s.mu.Unlock()
	defer s.runs.Done()
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("execution panicked", "trace_id", req.TraceID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			e, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()

	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errShutdown) })()

	e, err = s.executor.Execute(ctx, req, sink)
	switch {
	case err != nil && s.life.Err() != nil:
		return nil, fault.Wrap(fault.Unavailable, err, errShutdown.Error())
	case err == nil && e.Status == execution.Cancelled && e.Error == "":
		e.Error = "cancelled: " + errShutdown.Error() // nobody else can cancel yet
	}
	return e, err
}
