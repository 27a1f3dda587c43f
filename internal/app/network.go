package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/egress"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/packages"
)

// networkMemory is the part of the machine's memory that the buffers of all sandboxes'
// connections may take: one in so many.
const networkMemory = 8

// networkTenants is the part of that which the sandboxes of one tenant may take.
const networkTenants = 2

// network is what the settings say of sandboxes with a network.
func (m *engineModule) network(undo *module.Undo) (engine.Network, error) {
	cfg := m.cfg.Settings
	buffers := config.ThisMachine().Memory / networkMemory
	n := engine.Network{Egress: egress.Config{
		Log: m.log, Services: map[uint16]egress.Service{}, Budget: &egress.Budget{Bytes: buffers, TenantBytes: buffers / networkTenants},
	}, Env: map[string]string{}, Files: map[string][]byte{}}
	for _, text := range cfg.NetworkAllow {
		o, err := rules.ParseOpening(text)
		if err != nil {
			return n, fault.New(fault.Invalid, "network_allow: %v", err)
		}
		n.Egress.Open = append(n.Egress.Open, o)
	}
	m.bindSecrets(&n.Egress)
	allowed, err := packages.ParseList(cfg.Packages)
	if err != nil {
		return n, fault.New(fault.Invalid, "packages: %v", err)
	}
	allow, err := outbound.Parse(cfg.MirrorAllow)
	if err != nil {
		return n, fault.New(fault.Invalid, "mirror_allow: %v", err)
	}
	m.allowed, m.mirrors = allowed, map[packages.Kind]bool{}
	m.mirrorTrouble = &packages.Trouble{}
	for _, of := range []struct {
		setting, url string
		kind         packages.Kind
		port         uint16
	}{{"pip_index", cfg.PipIndex, packages.Pip, pipPort}, {"npm_registry", cfg.NPMRegistry, packages.NPM, npmPort}, {"apt_archive", cfg.AptArchive, packages.Apt, aptPort}} {
		if of.url == "" {
			continue
		}
		base := fmt.Sprintf("http://%s:%d", egress.Gateway, of.port)
		mirror, err := packages.New(packages.Config{
			Kind: of.kind, Upstream: of.url, Base: base, Allowed: allowed, Allow: allow, Trouble: m.mirrorTrouble, Log: m.log,
			Security: cmp.Or(cfg.AptSecurity, strings.TrimSuffix(cfg.AptArchive, "/")+"-security"), Hosts: tenant.PresetHosts("debian"),
		})
		if err != nil {
			return n, fault.New(fault.Invalid, "%s: %v", of.setting, err)
		}
		undo.Add(func(context.Context) error { return mirror.Close() })
		n.Egress.Services[of.port], m.mirrors[of.kind] = mirror, true
		maps.Copy(n.Env, mirror.Variables())
		maps.Copy(n.Files, mirror.Files())
	}
	return n, nil
}

// bindSecrets lets secrets be bound to hosts. Without the authority that this
// takes, executions with such secrets are refused, and all others go on.
func (m *engineModule) bindSecrets(c *egress.Config) {
	var err error
	if c.Authority, err = egress.OpenAuthority(m.path("authority.pem")); err != nil {
		m.log.Error("cannot bind secrets to hosts; rejecting executions that need it", "error", err)
	}
}

// The ports of the gateway's address that package mirrors answer on.
const (
	pipPort = 3141
	npmPort = 4873
	aptPort = 3142
)
