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
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Authenticator finds out who calls. It fails with an Unauthorized fault.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (tenant.Principal, error)
	// Holder finds out who has a key of a tenant by the key's id, as long as it is
	// valid.
	Holder(ctx context.Context, tenantID, keyID string) (tenant.Principal, error)
}

// UsageReader reads the ledger of what tenants have used.
type UsageReader interface {
	Summary(ctx context.Context, tenantID string, since, before time.Time) ([]usage.Day, error)
	Month(ctx context.Context, tenantID string) (credits float64, err error)
}

// Config is what a Server is made of. All but the functions and Grace are
// required.
type Config struct {
	Gateway *gateway.Gateway
	Auth    Authenticator
	Usage   UsageReader
	Metrics *prometheus.Registry // the server adds its own figures and serves all of it
	Log     *slog.Logger
	Grace   time.Duration // how long a shutdown waits for running executions
	Admin   *Admin        // what is under /v1/admin; nil for nothing there

	ExecuteCode *tools.ExecuteCode // the agent tool; nil for none
	MCP         MCP                // what is at /mcp; nil for nothing there
	Tools       *tools.Set         // the tools of sessions; nil for none
	Sandboxes   Sandboxes          // nil for none
	Ports       OpenPorts          // previews of Sandboxes; nil for none

	Previews Previews        // what is not the API; nil for none
	Folders  Folders         // of connections; nil for none
	Threads  *thread.Catalog // nil for none
	Signer   Signer          // of URLs; with Threads

	CheckURL func(ctx context.Context, url string) error // refuses webhook URLs; without it every one is refused
	Client   func(*http.Request) string                  // a client's address, for the log; nil means the connection's
	Ready    func(context.Context) error                 // says why requests cannot be served, to anybody by a fault; nil means always ready
	// Expire is called when a shutdown's grace is over; it returns when the
	// executions are ended that end with this process. Those who wait for them
	// are still answered. nil if there are none.
	Expire func()
}

// Server answers HTTP. Make one with New and run it with Serve.
type Server struct {
	gateway  *gateway.Gateway
	auth     Authenticator
	usage    UsageReader
	checkURL func(context.Context, string) error
	client   func(*http.Request) string
	ready    func(context.Context) error
	expire   func()
	log      *slog.Logger
	metrics  *metrics
	handler  http.Handler
	stranger http.Handler // refuses the pages of previews
	grace    time.Duration
	admin    *Admin

	executeCode *tools.ExecuteCode
	mcp         MCP
	tools       *tools.Set
	sandboxes   Sandboxes
	ports       OpenPorts

	previews Previews
	folders  Folders
	threads  *thread.Catalog
	signer   Signer

	startPatience time.Duration

	// life ends when a shutdown has no patience left, and with it every request
	// that waits for an execution; the execution does not.
	life context.Context
	end  context.CancelCauseFunc

	draining atomic.Bool // no new runs
}

// errShutdown ends the requests that a shutdown did not wait for.
var errShutdown = errors.New("the server is shutting down")

// New returns a Server; nothing listens yet.
func New(cfg Config) (*Server, error) {
	s := &Server{
		gateway:  cfg.Gateway,
		auth:     cfg.Auth,
		usage:    cfg.Usage,
		checkURL: cfg.CheckURL,
		client:   cfg.Client,
		ready:    cfg.Ready,
		expire:   cfg.Expire,
		log:      cfg.Log,
		grace:    cfg.Grace,
		admin:    cfg.Admin,

		executeCode: cfg.ExecuteCode,
		mcp:         cfg.MCP,
		tools:       cfg.Tools,
		sandboxes:   cfg.Sandboxes,
		ports:       cfg.Ports,
		previews:    cfg.Previews,
		folders:     cfg.Folders,

		threads: cfg.Threads,
		signer:  cfg.Signer,

		startPatience: startPatience,
	}
	if s.checkURL == nil {
		s.checkURL = func(context.Context, string) error { return invalid("webhook_url is not available on this server") }
	}
	if s.client == nil {
		s.client = func(r *http.Request) string { return r.RemoteAddr }
	}
	if s.ready == nil {
		s.ready = func(context.Context) error { return nil }
	}
	var err error
	if s.metrics, err = newMetrics(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.stranger = s.wrap("preview", func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.Forbidden, "pages of previews cannot call the API")
	})
	s.handler = s.routes(promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn)}))
	return s, nil
}

// Previews serves hosts that are not the API's.
type Previews interface {
	http.Handler
	Host(host string) bool // whether a host is one of them
	Drain()                // a shutdown has begun
}

// ServeHTTP answers one request: the API's hosts have nothing of previews, and
// those of previews nothing of the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.previews == nil {
		s.handler.ServeHTTP(w, r)
		return
	}
	_, origin, _ := strings.Cut(r.Header.Get("Origin"), "://")
	switch {
	case s.previews.Host(r.Host):
		s.previews.ServeHTTP(w, r)
	case s.previews.Host(origin): // it is a page that calls, not who looks at it
		s.stranger.ServeHTTP(w, r)
	default:
		s.handler.ServeHTTP(w, r)
	}
}

// expireWait is how long an execution that Expire ended has to be answered.
const expireWait = 2 * time.Second

// Serve answers on ln until ctx ends, then shuts down: no new executions,
// requests that wait for running ones get the grace period, what is left is cut.
// It closes ln and returns nil after a shutdown, however impatient.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	var spare unused
	srv := &http.Server{
		Handler:           s,
		Protocols:         protocols(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ConnState:         spare.track,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if s.mcp != nil {
		srv.RegisterOnShutdown(s.mcp.Drain)
	}
	if s.previews != nil {
		srv.RegisterOnShutdown(s.previews.Drain)
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		s.end(errShutdown)
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}

	s.log.Info("shutting down", "grace", s.grace.String())
	s.draining.Store(true)
	answered, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	cut := time.AfterFunc(s.grace, func() { s.cut(answered) })
	defer cut.Stop()
	defer time.AfterFunc(unusedWait, spare.close).Stop()
	// Beyond the grace period, requests that are cut need a moment to be answered.
	wait, stop := context.WithTimeout(answered, s.grace+30*time.Second)
	defer stop()
	if err := srv.Shutdown(wait); err != nil {
		s.log.Warn("connections were cut", "error", err)
		_ = srv.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		s.log.Warn("listening ended by itself", "error", err)
	}
	s.end(errShutdown)
	return nil
}

// protocols are HTTP/1.1 and HTTP/2, the latter without TLS too, for who knows.
func protocols() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// cut ends the requests that are left, once the executions are answered that
// end with this process.
func (s *Server) cut(answered context.Context) {
	if s.expire != nil {
		s.expire()
		select {
		case <-answered.Done():
		case <-time.After(expireWait):
		}
	}
	s.end(errShutdown)
}

func (s *Server) isDraining() bool { return s.draining.Load() }

// living returns ctx as long as the server has patience. Cancel it when the
// request is answered.
func (s *Server) living(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(s.life, func() { cancel(errShutdown) })
	return ctx, func() { unhook(); cancel(nil) }
}
