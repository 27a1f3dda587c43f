package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/engine"
	"github.com/atoll-run/atoll/internal/execution"
	"github.com/atoll-run/atoll/internal/image"
)

// running is an engine with what has to be let go of after it.
type running struct {
	execution.Executor
	ready func(context.Context) error // says why executions cannot run now
	close func() error                // ends what belongs to this process
}

// openEngine builds the engine that cfg asks for. A command's engine is named
// engine.NewName, so that it lives beside the server of the same data folder.
func openEngine(ctx context.Context, cfg *config.Config, name string, log *slog.Logger, reg prometheus.Registerer) (_ *running, err error) {
	store, err := openImages(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Image == image.HostName {
		if err := refreshHost(ctx, cfg, log, store); err != nil {
			return nil, err
		}
	}
	img, release, err := store.Use(cfg.Image)
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, engine.Config{
		Platform: platform(cfg, name, log), Image: img, Limits: cfg.Limits(), Env: cfg.EnvVars, PoolSize: cfg.PoolSize,
		Concurrency: cfg.MaxConcurrent, Queue: cfg.MaxQueue, MaxOutput: int64(cfg.MaxOutput), Registry: reg,
		Detach: name == engine.Server && cfg.OnExit == "detach",
	})
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return &running{Executor: e, ready: e.Ready, close: func() error {
		return errors.Join(e.Close(), release())
	}}, nil
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
		Runsc: runscPath(cfg), Guest: guestPath(cfg), State: filepath.Join(cfg.DataDir, "state"), Name: name, Log: log,
	}
	if cfg.Runtime == "oci" {
		p.OCI = cfg.OCIRuntime
	}
	return p
}

// runscPath and guestPath find the binaries that the configuration does not
// name, beside this one.
func runscPath(cfg *config.Config) string { return sibling(cfg.Runsc, "atoll-runsc") }
func guestPath(cfg *config.Config) string { return sibling(cfg.Guest, "atoll-guest") }

func sibling(configured, name string) string {
	if configured != "" {
		return configured
	}
	self, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(self), name)
}
