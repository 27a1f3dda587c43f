package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	stdlog "log"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/localserver"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/image"
)

func (a *cli) serveCommand() *cobra.Command {
	var s *settings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start the server",
		Long: `Start the server and run until SIGINT or SIGTERM. The server then waits for running
executions (shutdown_grace).

The development key is dev_key, or the one that the first start creates in the
file dev-key in data_dir. GET /readyz returns 200 when the server can run code;
/docs is the API's documentation.

The first start creates an admin key, shows it, and stores it in data_dir. If the
default image is missing, the server imports or builds it first.

A server does everything unless you set --role. Servers of the role gateway answer
clients; servers of the role executor run their sandboxes.

Exit codes: 0 after a shutdown, 1 when the server failed, 2 when a retry cannot
help: a wrong setting, a wrong key for the secrets in the database, or a missing
image that cannot be built here.`,
		Example: `  atoll serve
  ATOLL_POOL_SIZE=8 atoll serve --listen 127.0.0.1:9000
  atoll serve --config /etc/atoll.yaml --on-exit destroy
  atoll serve --config /etc/gateway.yaml --role gateway`,
		Args: cobra.NoArgs,
		RunE: failing(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			cfg, log, err := a.load(s)
			if err != nil {
				return err
			}
			// net/http says by itself there what servers in sandboxes send unasked.
			stdlog.SetOutput(io.Discard)
			return a.serve(ctx, cfg, log, nil)
		}),
	}
	s = addSettings(cmd, "Server", "Executions", "Environment", "Runtime")
	s.starts = true
	a.makesSandboxes(cmd, s, nil)
	return cmd
}

// gcPercent has the garbage of streams collected half as often as Go does by default. What
// is alive in a server is small beside what its sandboxes take.
const gcPercent = 200

// serve runs the server until ctx ends. When it listens and can run code,
// onReady is called once, in a goroutine of its own whose context ends with the
// server's; its error ends the server.
func (a *cli) serve(ctx context.Context, cfg *config.Config, log *slog.Logger, onReady func(context.Context, endpoint) error) (err error) {
	if err := app.CheckVolumes(ctx, cfg.Volumes); err != nil {
		return &exit{exitUsage, err}
	}
	if cfg.Executor() {
		if err := a.firstImage(ctx, cfg, log); err != nil {
			return err
		}
	}
	if err := openDataFolder(cfg.DataDir, log); err != nil {
		return err
	}
	key := ""
	if cfg.Gateway() {
		if key, err = devKey(cfg); err != nil {
			return err
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// Listen first: a port that is taken is known before sandboxes are made.
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return err
	}
	defer ln.Close() // Serve has closed it already, unless it was never reached

	if exposed(cfg) {
		log.Warn(plainHTTP, "listen", cfg.Listen)
	}
	var images *image.Store
	if cfg.Executor() {
		if images, err = readyImages(ctx, cfg, log); err != nil {
			return err
		}
	}
	tcp, _ := ln.(*net.TCPListener) // of the network "tcp" it is one
	srv, err := a.openServer(ctx, cfg, images, platform(cfg, engine.Server, log), key, tcp, log)
	if errors.Is(err, store.ErrOtherKey) {
		return &exit{exitUsage, err} // another try will not help
	}
	if err != nil {
		return err
	}
	if srv.AdminKey != "" {
		a.showAdminKey(cfg, srv.AdminKey, "This installation's admin key")
		log.Info("made an admin key", "file", adminKeyPath(cfg))
	}

	url := "http://" + ln.Addr().String()
	if cfg.TLSCert != "" {
		url = "https://" + ln.Addr().String()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := whenReady(ctx, srv.Ready, func() error {
			if cfg.Gateway() {
				log.Info("ready", "role", cfg.Role, "docs", url+"/docs")
			} else {
				log.Info("ready", "role", cfg.Role)
			}
			if onReady == nil {
				return nil
			}
			return onReady(ctx, endpoint{url: url, key: key})
		}); err != nil {
			stop(err)
		}
	}()
	if err := localserver.Remember(a.getenv, cfg.DataDir); err != nil {
		log.Warn("commands without --data-dir will not find this server", "error", err)
	}
	err = srv.Serve(ctx, ln)
	stop(nil)
	<-done
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// exposed reports whether other machines reach the server without TLS.
func exposed(cfg *config.Config) bool { return !cfg.Loopback && cfg.TLSCert == "" }

// plainHTTP is the warning of a server without TLS that other machines reach.
const plainHTTP = "serving plain HTTP beyond loopback: anyone on the path reads keys, code and output. Set tls_cert and tls_key, or listen on loopback behind a proxy that terminates TLS"

// whenReady calls f once ready has no objection.
func whenReady(ctx context.Context, ready func(context.Context) error, f func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ready(ctx) != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return f()
}

// devKey returns the configured key, or the one kept in the data folder, which
// it makes when there is none. A server that others can reach has none.
func devKey(cfg *config.Config) (string, error) {
	if cfg.DevKey != "" || !cfg.Loopback {
		return cfg.DevKey, nil
	}
	path := filepath.Join(cfg.DataDir, devKeyFile)
	kept, err := os.ReadFile(path)
	if key := strings.TrimSpace(string(kept)); err == nil && key != "" {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the development key: %w", err)
	}
	key := tenant.NewKey()
	if err := writeKey(path, key, true); err != nil {
		return "", fmt.Errorf("store the development key: %w", err)
	}
	return key, nil
}
