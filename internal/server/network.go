package server

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/egress/rules"
	"github.com/atoll-run/atoll/internal/engine"
	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/packages"
)

// network is what the settings say of sandboxes with a network.
func (s *Server) network() (engine.Network, error) {
	cfg := s.cfg.Settings
	n := engine.Network{Egress: egress.Config{Log: s.log, Services: map[uint16]egress.Service{}}, Env: map[string]string{}}
	for _, text := range cfg.NetworkAllow {
		o, err := rules.ParseOpening(text)
		if err != nil {
			return n, fault.New(fault.Invalid, "network_allow: %v", err)
		}
		n.Egress.Open = append(n.Egress.Open, o)
	}
	if len(s.cfg.Platform.CA) > 0 {
		for name, path := range guest.TrustVariables() {
			n.Env[name] = path
		}
	}
	allowed, err := packages.ParseList(cfg.Packages)
	if err != nil {
		return n, fault.New(fault.Invalid, "packages: %v", err)
	}
	for _, m := range []struct {
		setting, url string
		kind         packages.Kind
		port         uint16
	}{{"pip_index", cfg.PipIndex, packages.Pip, pipPort}, {"npm_registry", cfg.NPMRegistry, packages.NPM, npmPort}} {
		if m.url == "" {
			continue
		}
		base := fmt.Sprintf("http://%s:%d", egress.Gateway, m.port)
		mirror, err := packages.New(packages.Config{Kind: m.kind, Upstream: m.url, Base: base, Allowed: allowed, Log: s.log})
		if err != nil {
			return n, fault.New(fault.Invalid, "%s: %v", m.setting, err)
		}
		s.later(func(context.Context) error { return mirror.Close() })
		n.Egress.Services[m.port] = mirror
		for name, value := range mirror.Variables() {
			n.Env[name] = value
		}
	}
	return n, nil
}

// The ports of the gateway's address that package mirrors answer on.
const (
	pipPort = 3141
	npmPort = 4873
)
