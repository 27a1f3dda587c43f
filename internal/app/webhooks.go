package app

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/webhook"
)

// webhooksModule makes what delivers webhooks.
type webhooksModule struct {
	*process
	blobs *blobsModule

	*webhook.Client
	configuredCA []byte // bundle of webhook_ca as this server is configured
}

// Start implements module.Part.
func (m *webhooksModule) Start(_ context.Context, undo *module.Undo) (err error) {
	cfg := m.cfg.Settings
	if cfg.WebhookCA != "" {
		if m.configuredCA, err = os.ReadFile(cfg.WebhookCA); err != nil {
			return fmt.Errorf("webhook_ca: %w", err)
		}
	}
	authorities, err := withSystem(m.configuredCA)
	if err != nil {
		return fmt.Errorf("webhook_ca: %s: %w", cfg.WebhookCA, err)
	}
	m.Client, err = webhook.New(webhook.Config{
		Version: m.cfg.Version, MaxOutput: int64(cfg.MaxOutput), RootCAs: authorities, Allow: cfg.WebhookAllow,
		Open: func(ctx context.Context, name string) (io.ReadCloser, error) { return m.blobs.Open(ctx, name, 0, -1) },
	})
	if err != nil {
		return fmt.Errorf("webhook_allow: %w", err)
	}
	undo.Add(func(context.Context) error { m.Close(); return nil })
	return nil
}

// withSystem returns the machine's authorities with those of a bundle. It returns nil, which stands for
// the machine's, for a nil bundle.
func withSystem(bundle []byte) (*x509.CertPool, error) {
	if bundle == nil {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err == nil && !pool.AppendCertsFromPEM(bundle) {
		err = errors.New("it has no certificate")
	}
	return pool, err
}
