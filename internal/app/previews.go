package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/clientip"
	previewproxy "github.com/atoll-run/atoll/internal/edge/preview"
)

// openPreviews opens the way from browsers to servers in sandboxes.
func (s *Server) openPreviews(context.Context) error {
	cfg := s.cfg.Settings
	base, err := s.localPreviews(cfg.Listen)
	if cfg.PreviewURL != "" {
		base, err = preview.ParseBase(cfg.PreviewURL)
	}
	if err != nil {
		return err
	}
	proxies, err := s.proxies()
	if err != nil {
		return err
	}
	s.previews = preview.New(s.db.Previews(), s.box, base)
	s.visits = previewproxy.NewHandler(previewproxy.Config{
		Previews: s.previews, Sandboxes: reached{s.directory}, Log: s.log, Admit: s.admit,
		Client: func(r *http.Request) string { return proxies.Client(r).String() },
		Key: func(token string) bool {
			return tenant.IsSecret(token) || s.cfg.DevKey != "" && token == s.cfg.DevKey
		},
	})
	s.later(func(context.Context) error { s.visits.Close(); return nil })
	return nil
}

// localPreviews are previews for browsers on this machine.
func (s *Server) localPreviews(listen string) (preview.Base, error) {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return preview.Base{}, err
	}
	if port == "0" {
		port = "8080" // until it is known
	}
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	return preview.ParseBase(fmt.Sprintf("%s://*.localhost:%s", scheme, port))
}

// proxies are those whose headers say where requests come from.
func (s *Server) proxies() (*clientip.Proxies, error) {
	cfg := s.cfg.Settings
	proxies, err := clientip.New(clientip.Config{Trusted: cfg.TrustedProxies, Standard: cfg.ProxyHeader == "forwarded"})
	if err != nil {
		return nil, fmt.Errorf("trusted_proxies: %w", err)
	}
	return proxies, nil
}

// admit refuses a request to a port of a sandbox that E2B's clients have the host of.
func (s *Server) admit(r *http.Request, use previewproxy.Use) error {
	api, to := s.e2b.Load(), use.(visited)
	if api == nil {
		return fault.New(fault.NotFound, "E2B's protocol is off")
	}
	return api.Admit(r, to.Sandbox())
}

// reached are the named sandboxes, as those find them who were given a preview.
type reached struct{ node sandbox.Node }

func (r reached) Reach(ctx context.Context, id runtime.ID) (previewproxy.Use, error) {
	h, err := r.node.Reach(ctx, id)
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
		err = errors.Join(previewproxy.ErrRefused, err)
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
