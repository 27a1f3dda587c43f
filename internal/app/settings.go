package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// settingsEvery is how often a server reads the stored settings.
const settingsEvery = 2 * time.Second

// stored is a setting that an operator can change for all servers while they run.
type stored struct {
	name       string
	configured func(*config.Config) config.List
	check      func(list []string) error
	apply      func(s *Server, list []string) error
}

func checkAllow(list []string) error { _, err := outbound.Parse(list); return err }

var storable = []stored{
	{"cors_origins", func(c *config.Config) config.List { return c.CORSOrigins }, httpapi.CheckOrigins, func(s *Server, l []string) error { return s.http.SetOrigins(l) }},
	{"mcp_allow", func(c *config.Config) config.List { return c.MCPAllow }, checkAllow, func(s *Server, l []string) error { return s.allow.mcp.Set(l) }},
	{"model_allow", func(c *config.Config) config.List { return c.ModelAllow }, checkAllow, func(s *Server, l []string) error { return s.allow.models.Set(l) }},
	{"webhook_allow", func(c *config.Config) config.List { return c.WebhookAllow }, checkAllow, func(s *Server, l []string) error { return s.allow.webhooks.Set(l) }},
}

// StorableSettings are the names of the settings that Local.SetSetting takes.
func StorableSettings() []string {
	var out []string
	for _, s := range storable {
		out = append(out, s.name)
	}
	return out
}

func storableSetting(name string) (*stored, error) {
	i := slices.IndexFunc(storable, func(s stored) bool { return s.name == name })
	if i < 0 {
		return nil, fault.New(fault.Invalid, "the setting %q does not change while servers run; %s do. Set any other in the configuration file, and restart the server", name, strings.Join(StorableSettings(), ", "))
	}
	return &storable[i], nil
}

// openSettings applies the stored settings, and goes on to do so while the server runs.
func (s *Server) openSettings(ctx context.Context) error {
	applied := map[string]string{}
	for _, t := range storable {
		applied[t.name] = t.configured(s.cfg.Settings).String()
	}
	if err := s.applySettings(ctx, applied); err != nil {
		return err
	}
	loop, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(settingsEvery)
		defer tick.Stop()
		for {
			select {
			case <-loop.Done():
				return
			case <-tick.C:
			}
			if err := s.applySettings(loop, applied); err != nil && loop.Err() == nil {
				s.log.Warn("cannot read the stored settings", "error", err)
			}
		}
	}()
	s.later(func(context.Context) error { stop(); <-done; return nil })
	return nil
}

// applySettings applies what differs from what was applied before.
func (s *Server) applySettings(ctx context.Context, applied map[string]string) error {
	kept, err := s.db.Settings(ctx)
	if err != nil {
		return err
	}
	for _, t := range storable {
		value, from := t.configured(s.cfg.Settings).String(), "configuration"
		if v, ok := kept[t.name]; ok {
			value, from = v, "stored"
		}
		if value == applied[t.name] {
			continue
		}
		applied[t.name] = value // also if it is wrong: once is enough to say so
		if err := t.apply(s, listOf(value)); err != nil {
			s.log.Error("cannot apply a stored setting", "setting", t.name, "error", err)
			continue
		}
		s.log.Info("a setting changed", "setting", t.name, "value", value, "from", from)
	}
	return nil
}

func listOf(value string) []string {
	var l config.List
	_ = l.UnmarshalText([]byte(value)) // never fails
	return l
}

// StoredSettings are the settings that override those of every server's own configuration.
func (l Local) StoredSettings(ctx context.Context) (_ map[string]string, err error) {
	db, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Settings(ctx)
}

// SetSetting stores a setting for all servers of the installation. A nil value removes it, so that
// each server's own configuration applies again.
func (l Local) SetSetting(ctx context.Context, name string, value *string) (err error) {
	t, err := storableSetting(name)
	if err != nil {
		return err
	}
	event := tenant.PolicyEvent{Actor: l.Actor, Field: "setting/" + name}
	if value != nil {
		list := listOf(*value)
		if err := t.check(list); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		event.New = config.List(list).String()
	}
	db, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	operator, err := db.Tenants().Tenant(ctx, tenant.Operator)
	if err != nil {
		return err
	}
	event.Tenant = operator.ID
	if value == nil {
		return db.UnsetSetting(ctx, name, event)
	}
	return db.SetSetting(ctx, name, event.New, event)
}
