package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/infra/tlscert"
)

// tlsModule reads the server's certificate.
type tlsModule struct {
	*process

	files *tlscert.Files // nil without TLS
}

// Start implements module.Part.
func (m *tlsModule) Start(context.Context, *module.Undo) (err error) {
	cfg := m.cfg.Settings
	if cfg.TLSCert == "" {
		return nil
	}
	if m.files, err = tlscert.Open(tlscert.Config{Cert: cfg.TLSCert, Key: cfg.TLSKey, Log: m.log}); err != nil {
		return err
	}
	return m.cfg.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "atoll_tls_certificate_expiry_seconds", Help: "When the certificate that is served expires, in Unix seconds.",
	}, func() float64 { return float64(m.files.Expires().Unix()) }))
}
