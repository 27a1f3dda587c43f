package main

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/image"
)

// running is an engine with what has to be let go of after it.
type running struct {
	*executor.Local
	ready func(context.Context) error // says why executions cannot run now
	close func() error                // ends what belongs to this process
}

// openEngine builds what a command runs one execution with, beside the server
// of the same data folder if there is one.
func openEngine(ctx context.Context, cfg *config.Config, log *slog.Logger) (_ *running, err error) {
	images, err := readyImages(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	switch _, err := images.Get(cfg.Image); {
	case err == nil:
	case fault.KindOf(err) == fault.NotFound:
		return nil, noImage(cfg, "run the program on a server with --base-url")
	default:
		return nil, notHere(cfg, images, err)
	}
	reg := prometheus.NewRegistry()
	pool := cfg.Pool(config.ThisMachine())
	e, err := engine.Open(ctx, engine.Config{
		Platform: platform(cfg, engine.NewName(), log), Images: images, Image: cfg.Image, Limits: cfg.Limits(), Env: cfg.EnvVars,
		PoolSize: pool.Others, PoolDefault: pool.Default, PoolMemory: pool.Memory, Registry: reg,
	})
	if err != nil {
		return nil, err
	}
	x, err := executor.New(executor.Config{Sandboxes: e, Concurrency: 1, Log: log, Registry: reg})
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	local := &executor.Local{Executor: x, Job: execution.Job{
		Image: cfg.Image, Limits: cfg.Limits(), BaseEnv: cfg.EnvVars, MaxOutput: int64(cfg.MaxOutput),
	}}
	return &running{Local: local, ready: e.Ready, close: func() error {
		return errors.Join(x.Close(context.Background()), e.Close())
	}}, nil
}

// openServer builds the server that cfg asks for; key is the development key. Until it is open,
// ln answers that it is starting.
func (a *cli) openServer(ctx context.Context, cfg *config.Config, images *image.Store, p engine.Platform, key string, ln *net.TCPListener, log *slog.Logger) (_ *app.Server, err error) {
	if p.CA, err = sandboxCA(cfg); err != nil {
		return nil, err
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return app.Open(ctx, app.Config{
		Settings: cfg, DevKey: key, Version: version(), Platform: p, Images: images, Log: log, Registry: reg, Getenv: a.getenv, Listener: ln, Prebuilt: installed,
		KeepAdminKey: func(key string) (func() error, error) { return keepAdminKey(cfg, key) },
	})
}

// readyImages opens the image store. The host image, if that is wanted, is made
// or brought up to date; a missing default image is imported if it was prebuilt.
func readyImages(ctx context.Context, cfg *config.Config, log *slog.Logger) (*image.Store, error) {
	images, err := openImages(cfg)
	if err == nil && cfg.Image == image.HostName {
		err = refreshHost(ctx, cfg, log, images)
	}
	if err == nil {
		err = importPrebuilt(ctx, cfg, images, nil, log)
	}
	return images, err
}

// refreshHost makes the host image, or makes it anew when this machine has
// changed since.
func refreshHost(ctx context.Context, cfg *config.Config, log *slog.Logger, store *image.Store) (err error) {
	probe, closeProbe, err := openProbe(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeProbe()) }()
	_, err = store.Host(ctx, probe)
	return err
}

// openProbe returns what runs an image's interpreters to learn their versions,
// in a sandbox.
func openProbe(ctx context.Context, cfg *config.Config, log *slog.Logger) (probe image.Probe, done func() error, err error) {
	return engine.OpenProbe(ctx, platform(cfg, engine.NewName(), log), cfg.Limits())
}

func platform(cfg *config.Config, name string, log *slog.Logger) engine.Platform {
	p := engine.Platform{
		Runsc: runscPath(cfg), Guest: guestPath(cfg), State: cfg.StateDir, Disk: filepath.Join(cfg.DataDir, "state"), Name: name, Log: log,
	}
	if cfg.Runtime == "oci" {
		p.OCI = cfg.OCIRuntime
	}
	return p
}

// sandboxCA reads the certificates that sandboxes are to trust.
func sandboxCA(cfg *config.Config) ([]byte, error) {
	if cfg.SandboxCA == "" {
		return nil, nil
	}
	data, err := os.ReadFile(cfg.SandboxCA)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "sandbox_ca_bundle: the file cannot be read")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		return nil, fault.New(fault.Invalid, "sandbox_ca_bundle: %s holds no certificate in PEM form", cfg.SandboxCA)
	}
	return data, nil
}

// runscPath and guestPath are the configured binaries, or those that were
// installed with this one.
func runscPath(cfg *config.Config) string { return helper(cfg.Runsc, "atoll-runsc") }
func guestPath(cfg *config.Config) string { return helper(cfg.Guest, "atoll-guest") }

// libexec is where 'make install' puts what only this program runs, relative to
// the folder of this program.
const libexec = "../libexec/atoll"

// helper returns the path of a binary that this one starts: the configured one,
// else the one beside this program, else the one in libexec.
func helper(configured, name string) string {
	if configured != "" {
		return configured
	}
	self, err := os.Executable()
	if err != nil {
		return name
	}
	dir := filepath.Dir(self)
	beside := filepath.Join(dir, name)
	installed := filepath.Join(dir, libexec, name)
	if _, err := os.Stat(beside); err != nil {
		if _, err := os.Stat(installed); err == nil {
			return installed
		}
	}
	return beside
}
