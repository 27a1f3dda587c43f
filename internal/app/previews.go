package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	previewproxy "github.com/atoll-run/atoll/internal/edge/preview"
	"github.com/atoll-run/atoll/internal/infra/clientip"
	"github.com/atoll-run/atoll/internal/infra/forward"
)

// previewsModule opens the way from browsers to servers in sandboxes.
type previewsModule struct {
	*process
	tls       *tlsModule
	records   *recordsModule
	directory *directoryModule

	*preview.Previews
	proxy *previewproxy.Handler

	admit func(r *http.Request, to *sandbox.Sandbox) error // refuses requests to hosts of E2B's clients; set by the table
}

// Start implements module.Part.
func (m *previewsModule) Start(_ context.Context, undo *module.Undo) error {
	cfg := m.cfg.Settings
	base, err := m.local(cfg.Listen)
	if cfg.PreviewURL != "" {
		base, err = preview.ParseBase(cfg.PreviewURL)
	}
	if err != nil {
		return err
	}
	proxies, err := m.proxies()
	if err != nil {
		return err
	}
	m.Previews = preview.New(m.records.db.Previews(), m.records.box, base)
	m.proxy = previewproxy.NewHandler(previewproxy.Config{
		Previews: m.Previews, Sandboxes: reached{m.directory.Directory}, Log: m.log,
		Admit: func(r *http.Request, use preview.Use) error { return m.admit(r, use.(visited).Sandbox()) },
		Forwarder: forward.New(forward.Config{
			Client: func(r *http.Request) string { return proxies.Client(r).String() },
			Scheme: func() string { return m.Base().Scheme() },
			Key: func(token string) bool {
				return tenant.IsSecret(token) || m.cfg.DevKey != "" && token == m.cfg.DevKey
			},
			Log: m.log,
		}),
	})
	undo.Add(func(context.Context) error { m.proxy.Close(); return nil })
	return nil
}

// listening tells previews the server's address, unless the settings name another one.
func (m *previewsModule) listening(address string) error {
	if m.cfg.Settings.PreviewURL != "" {
		return nil
	}
	base, err := m.local(address)
	if err == nil {
		m.SetBase(base)
	}
	return err
}

// local are previews for browsers on this machine.
func (m *previewsModule) local(listen string) (preview.Base, error) {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return preview.Base{}, err
	}
	if port == "0" {
		port = "8080" // until it is known
	}
	scheme := "http"
	if m.tls.files != nil {
		scheme = "https"
	}
	return preview.ParseBase(fmt.Sprintf("%s://*.localhost:%s", scheme, port))
}

// proxies are those whose headers say where requests come from.
func (p *process) proxies() (*clientip.Proxies, error) {
	cfg := p.cfg.Settings
	proxies, err := clientip.New(clientip.Config{Trusted: cfg.TrustedProxies, Standard: cfg.ProxyHeader == "forwarded"})
	if err != nil {
		return nil, fmt.Errorf("trusted_proxies: %w", err)
	}
	return proxies, nil
}

// reached are the named sandboxes, as those find them who were given a preview.
type reached struct{ directory sandbox.Directory }

func (r reached) Reach(ctx context.Context, id runtime.ID) (preview.Use, error) {
	h, err := r.directory.Reach(ctx, id)
	if err != nil {
		return nil, err
	}
	return visited{h}, nil
}

type visited struct{ sandbox.Handle }

func (v visited) Listening(ctx context.Context) ([]netip.AddrPort, error) {
	return v.Guest().Listening(ctx)
}

func (v visited) Carried(bytes int64) { v.CountBytes(bytes) }

func (v visited) Connect(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error) {
	conn, err := v.Guest().Connect(ctx, port, wait)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		err = errors.Join(preview.ErrRefused, err)
	}
	return conn, err
}

// exposed gives URLs to the ports of sandboxes; it is the tools.Previews.
type exposed struct{ previews *preview.Previews }

func (e exposed) Expose(ctx context.Context, _ *tenant.Principal, sb *sandbox.Sandbox, port uint16) (string, error) {
	p, err := e.previews.Open(ctx, sb.ID, port)
	if err != nil {
		return "", err
	}
	return p.URL, nil
}
