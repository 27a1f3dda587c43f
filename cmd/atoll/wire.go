package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/execution"
	"github.com/atoll-run/atoll/internal/image"
)

// engine runs executions: a runtime, a pool of its sandboxes, and the service
// over them.
type engine struct {
	execution.Executor
	ready func(context.Context) error // says why executions cannot run now
	close func(context.Context) error // ends what belongs to this process
}

// openEngine builds the engine that cfg asks for.
func openEngine(_ context.Context, _ *config.Config, _ *slog.Logger, _ prometheus.Registerer) (*engine, error) {
	return nil, errors.New("no runtime is wired")
}

// openProbe returns what runs an image's interpreters to learn their versions,
// in a sandbox; nil where none can be made.
func openProbe(context.Context, *config.Config, *slog.Logger) (probe image.Probe, done func(), err error) {
	return nil, func() {}, nil
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
