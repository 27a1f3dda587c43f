// Package httpapi is Atoll's HTTP interface: HTTP in, domain calls, HTTP out.
//
// Everything that is answered is an Operation of one table, from which the OpenAPI
// document is made, too. The operations and their wire types are in packages below this
// one, one for each resource; package routes joins them. This package serves them: it
// finds the caller, checks the query, reads the body, leaves the audit row and renders
// errors. Endpoints call the domain, whose rules they do not repeat.
//
// Every answer has an X-Trace-Id header, and every refusal or failure the same envelope,
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
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/control/connections"
	"github.com/atoll-run/atoll/internal/control/repeats"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/idempotency"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Authenticator finds out who calls. It fails with an Unauthorized fault.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (tenant.Principal, error)
}

// Previews serves hosts that are not the API's.
type Previews interface {
	http.Handler
	Host(host string) bool // whether a host is one of them
}

// Config is what a Server is made of. Operations, Auth, Metrics and Log are required.
type Config struct {
	Operations []Operation
	Auth       Authenticator
	Tokens     TokenAuthenticator   // nil for none
	CORS       []string             // origins whose pages may call, or AnyOrigin; none by default
	Repeats    idempotency.Store    // of requests with an Idempotency-Key; nil to know none
	Record     sandboxes.Recorder   // of audit rows; required with operations that leave some
	Metrics    *prometheus.Registry // the server adds its own figures and serves all of it
	Log        *slog.Logger
	Grace      time.Duration // how long a shutdown waits for running executions

	// CompatPath is the path by which a request is served whose headers ask for another form of what
	// its own path has, "" for others; nil for none.
	CompatPath func(*http.Request) string

	Previews Previews // nil for none
	// Services is the request that one to a host of a sandbox's services of another
	// protocol stands for, nil for all others. nil where there are no such hosts.
	Services func(*http.Request) *http.Request
	// Client returns a client's address, for the log; nil means the connection's.
	Client func(*http.Request) string
	// Ready returns why requests cannot be served; every client is told a fault. nil means
	// always ready.
	Ready func(context.Context) error
	// Room refuses content of a size while the disk has no room for it; nil for no bound.
	Room func(bytes int64) error
	// MaxConnections is how many connections may be open at a time; 0 for any number. Above
	// it one without a key is closed for each new one.
	MaxConnections int
	// Servers returns how many servers of the installation divide the rates of plans; nil means one.
	Servers func() int
	// Streams are the limits of open streams.
	Streams connections.StreamLimits
	// Drain is called when a shutdown begins.
	Drain []func()
	// Expire is called when a shutdown's grace is over; it returns when the executions
	// are ended that end with this process. Requests that wait for them are still
	// answered. nil if there are none.
	Expire func()
}

// Server answers HTTP. Make one with New and run it with Serve.
type Server struct {
	auth     Authenticator
	tokens   TokenAuthenticator
	repeats  *repeats.Service
	record   sandboxes.Recorder
	log      *slog.Logger
	metrics  *metrics
	grace    time.Duration
	previews Previews
	services func(*http.Request) *http.Request
	client   func(*http.Request) string
	ready    func(context.Context) error
	room     func(bytes int64) error
	rates    *ratelimit.Limiter
	streams  *connections.Streams
	decoding connections.Bodies
	maxConns int

	drain  []func()
	expire func()

	handler  http.Handler
	origins  atomic.Pointer[[]string] // whose pages may call
	stranger http.Handler             // refuses the pages of previews

	// life ends when a shutdown waits no longer, and with it every request that waits for
	// an execution; the execution does not.
	life context.Context
	end  context.CancelCauseFunc

	draining atomic.Bool // no new executions
}

// ErrShutdown ends the requests that a shutdown did not wait for.
var ErrShutdown = errors.New("the server is shutting down")

// New returns a Server; nothing listens yet. It fails if the table contradicts itself.
func New(cfg Config) (*Server, error) {
	s := &Server{
		auth: cfg.Auth, tokens: cfg.Tokens, record: cfg.Record, log: cfg.Log, grace: cfg.Grace, previews: cfg.Previews, services: cfg.Services,
		client: cfg.Client, ready: cfg.Ready, room: cfg.Room, rates: ratelimit.New(cfg.Servers), maxConns: cfg.MaxConnections, streams: connections.NewStreams(cfg.MaxConnections, cfg.Streams), decoding: connections.NewBodies(debug.SetMemoryLimit(-1), MaxBody), drain: cfg.Drain, expire: cfg.Expire,
	}
	if cfg.Repeats != nil {
		s.repeats = &repeats.Service{Store: cfg.Repeats, Log: cfg.Log}
	}
	if s.client == nil {
		s.client = func(r *http.Request) string { return r.RemoteAddr }
	}
	if s.ready == nil {
		s.ready = func(context.Context) error { return nil }
	}
	var err error
	if s.metrics, err = newMetrics(cfg.Metrics, cfg.Log); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.stranger = s.wrap("preview", func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.Forbidden, "pages of previews cannot call the API")
	}, http.StatusForbidden)
	if s.handler, err = s.route(append(s.Probes(), cfg.Operations...)); err != nil {
		return nil, fmt.Errorf("table of operations: %w", err)
	}
	if err := s.SetOrigins(cfg.CORS); err != nil {
		return nil, fmt.Errorf("cors_origins: %w", err)
	}
	s.handler = crossOrigin(func() []string { return *s.origins.Load() }, s.handler)
	if cfg.CompatPath != nil {
		s.handler = rerouted(cfg.CompatPath, s.handler)
	}
	return s, nil
}

// rerouted serves requests under the path that compat returns, if any.
func rerouted(compat func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := compat(r); path != "" {
			added := strings.TrimSuffix(path, r.URL.Path)
			to, at := *r, *r.URL
			if at.Path = path; at.RawPath != "" {
				at.RawPath = added + at.RawPath
			}
			to.URL, r = &at, &to
		}
		next.ServeHTTP(w, r)
	})
}

// ServeHTTP answers one request: the API's hosts serve nothing of previews, and those of
// previews nothing of the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.previews == nil {
		s.handler.ServeHTTP(w, r)
		return
	}
	_, origin, _ := strings.Cut(r.Header.Get("Origin"), "://")
	ofPreview := s.previews.Host(r.Host)
	if ofPreview && s.services != nil {
		if in := s.services(r); in != nil {
			r, ofPreview = in, false
		}
	}
	switch {
	case ofPreview:
		s.previews.ServeHTTP(w, r)
	case s.previews.Host(origin): // a page of a preview calls, and not the person who looks at it
		s.stranger.ServeHTTP(w, r)
	default:
		s.handler.ServeHTTP(w, r)
	}
}

// API returns what answers the requests of the API alone, whatever host they name.
func (s *Server) API() http.Handler { return s.handler }

// unusedWait is how long a connection has at a shutdown to bring its first request.
const unusedWait = 250 * time.Millisecond

// expireWait is how long an execution that Expire ended has to be answered.
const expireWait = 5 * time.Second

// Serve answers on ln until ctx ends, then shuts down: it begins no new executions, gives
// requests that wait for running ones the grace period, and cuts what is left. It closes
// ln, and returns nil after a shutdown.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	open := connections.Connections{Max: s.maxConns, Closed: s.metrics.connsClosed}
	srv := &http.Server{
		Handler:           s,
		Protocols:         protocols(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ConnState:         open.Track,
		ConnContext:       open.Context,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	for _, f := range s.drain {
		srv.RegisterOnShutdown(f)
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		s.end(ErrShutdown)
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}

	s.log.Info("shutting down", "grace", s.grace.String())
	s.draining.Store(true)
	answered, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	cut := time.AfterFunc(s.grace, func() { s.cut(answered) })
	defer cut.Stop()
	defer time.AfterFunc(unusedWait, open.CloseUnused).Stop()
	// Beyond the grace period, requests that are cut need a moment to be answered.
	wait, stop := context.WithTimeout(answered, s.grace+30*time.Second)
	defer stop()
	if err := srv.Shutdown(wait); err != nil {
		s.log.Warn("closed connections that did not end in time", "error", err)
		_ = srv.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		s.log.Warn("the listener stopped unexpectedly", "error", err)
	}
	s.end(ErrShutdown)
	return nil
}

// protocols are HTTP/1.1 and HTTP/2, the latter without TLS, too, for clients that know
// beforehand that the server speaks it.
func protocols() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// cut ends the requests that are left, after the executions that end with this process
// are answered.
func (s *Server) cut(answered context.Context) {
	if s.expire != nil {
		s.expire()
		select {
		case <-answered.Done():
		case <-time.After(expireWait):
		}
	}
	s.end(ErrShutdown)
}

// Draining is an error while the server shuts down.
func (s *Server) Draining() error {
	if s.isDraining() {
		return fault.New(fault.Unavailable, "%s", ErrShutdown)
	}
	return nil
}

func (s *Server) isDraining() bool { return s.draining.Load() }
