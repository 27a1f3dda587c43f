package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// probesModule answers probes and Prometheus in a server without a gateway.
type probesModule struct {
	*process
	readiness *readiness

	*httpapi.Server
}

// Start implements module.Part.
func (m *probesModule) Start(context.Context, *module.Undo) (err error) {
	m.Server, err = httpapi.New(httpapi.Config{Metrics: m.cfg.Registry, Log: m.log, Ready: m.readiness.check, MaxConnections: maxConnections()})
	return err
}
