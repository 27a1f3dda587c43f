// Package app builds a server from its modules. Each module is in a file with its name, and points to
// the modules that it needs. The table in table.go lists all modules with the roles that contain them.
// Modules start in the order of their dependencies and stop in reverse order, also when Open fails in
// the middle.
package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/localserver"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/image"
)

// Config is what a Server is made of. All of it is required unless a field says otherwise.
type Config struct {
	Settings *config.Config
	DevKey   string // of the tenant dev; "" for none
	Version  string
	Platform engine.Platform
	Images   *image.Store
	Log      *slog.Logger
	Registry *prometheus.Registry
	// Listener is what Serve will get. Open answers on it that the server is starting; nil for
	// no answers until then.
	Listener *net.TCPListener
	Getenv   func(string) string // OpenTelemetry's own settings, and keys of declared models

	// Prebuilt returns the archive of an image that was installed with this program; "" if there is
	// none. May be nil.
	Prebuilt func(name string) string

	// KeepAdminKey gets the admin key of a first start before the records do; may be nil.
	KeepAdminKey tenant.KeepKey
}

// Server is an open server that does not serve yet.
type Server struct {
	*process

	modules  *module.Group
	tls      *tlsModule
	starting *startingModule
	previews *previewsModule
	front    front
	adminKey *adminKeyModule
	ready    *readiness

	announced bool // whether the data folder may have a record of the address

	// AdminKey is the key that administers, if this start made it: nothing shows it
	// again.
	AdminKey string
}

// front answers HTTP until ctx ends.
type front interface {
	Serve(ctx context.Context, ln net.Listener) error
	Draining() error // while it shuts down
}

// Open starts everything but the HTTP interface. What an earlier process left
// running goes on.
func Open(ctx context.Context, cfg Config) (*Server, error) {
	cfg.Log.Info("memory limit of the server", "bytes", limitMemory(os.Getenv, config.ThisMachine()))
	s := &Server{process: &process{cfg: cfg, log: cfg.Log}}
	var err error
	if s.modules, err = module.New(s.table()); err != nil {
		return nil, err
	}
	if err := s.modules.Start(ctx); err != nil {
		return nil, err
	}
	if s.adminKey != nil {
		s.AdminKey = s.adminKey.key
	}
	return s, nil
}

// Ready reports what keeps executions from running now. The error is for any client.
func (s *Server) Ready(ctx context.Context) error { return s.ready.check(ctx) }

// Serve answers on ln until ctx ends, and then closes the server: running
// executions get the grace period of the settings.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	deadline := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { deadline <- time.Now().Add(s.cfg.Settings.ShutdownGrace) })
	if err := s.takeListener(ctx, ln.Addr().String()); err != nil {
		return errors.Join(err, ln.Close(), s.Close(context.WithoutCancel(ctx)))
	}
	// A reader of this line may run a command, which looks for the record.
	s.log.Info("listening", "address", ln.Addr().String(), "version", s.cfg.Version)
	if s.tls.files != nil {
		ln = s.tls.files.Listen(ln)
	}
	err := s.front.Serve(ctx, ln)
	closing := context.WithoutCancel(ctx)
	if ctx.Err() != nil {
		until, cancel := context.WithDeadline(closing, <-deadline)
		defer cancel()
		closing = until
	}
	return errors.Join(err, s.Close(closing))
}

// takeListener prepares to serve on an address: answers that the server starts end, and the address is
// recorded for the commands of this machine.
func (s *Server) takeListener(ctx context.Context, address string) error {
	if s.previews != nil {
		if err := s.previews.listening(address); err != nil {
			return err
		}
	}
	if err := s.starting.stop(ctx); err != nil {
		return err
	}
	s.announced = true
	return localserver.Write(s.cfg.Settings.DataDir, localserver.Record{
		URL: localserver.URL(address, s.tls.files != nil), PID: os.Getpid(), Version: s.cfg.Version,
	})
}

// Close ends what Open began. Executions that run may go on until ctx ends;
// then they end, or are let go of for the next process.
func (s *Server) Close(ctx context.Context) error {
	var err error
	if s.announced {
		s.announced, err = false, localserver.Remove(s.cfg.Settings.DataDir)
	}
	return errors.Join(err, s.modules.Stop(ctx))
}
