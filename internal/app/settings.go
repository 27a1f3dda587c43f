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
	configured func(s *Server) value
	parse      func(given string) (value, error)
	apply      func(s *Server, v value) error
	file       bool   // the setting names a file, whose content Atoll stores
	note       string // for the operator: which sandboxes a change reaches only later
}

// value is the value of a setting. Different values have different texts.
type value struct {
	text    string
	content []byte // of the file, where the setting names one
}

var storable = []stored{
	storedList("cors_origins", func(c *config.Config) config.List { return c.CORSOrigins }, httpapi.CheckOrigins, func(s *Server, l []string) error { return s.http.SetOrigins(l) }),
	storedList("mcp_allow", func(c *config.Config) config.List { return c.MCPAllow }, checkAllow, func(s *Server, l []string) error { return s.allow.mcp.Set(l) }),
	storedList("model_allow", func(c *config.Config) config.List { return c.ModelAllow }, checkAllow, func(s *Server, l []string) error { return s.allow.models.Set(l) }),
	{
		name: sandboxCA, file: true, parse: readBundle,
		configured: func(s *Server) value { return value{s.cfg.Settings.SandboxCA, s.configuredCA} },
		apply:      func(s *Server, v value) error { return s.engine.SetCA(v.content) },
		note:       "New sandboxes use the change. Running and sleeping named sandboxes keep their certificates until you restart them: 'atoll sandbox restart NAME'",
	},
	storedList("webhook_allow", func(c *config.Config) config.List { return c.WebhookAllow }, checkAllow, func(s *Server, l []string) error { return s.allow.webhooks.Set(l) }),
	{
		name: "webhook_ca", file: true, parse: readBundle,
		configured: func(s *Server) value { return value{s.cfg.Settings.WebhookCA, s.configuredWebhookCA} },
		apply: func(s *Server, v value) error {
			authorities, err := withSystem(v.content)
			if err == nil {
				s.webhooks.SetRootCAs(authorities)
			}
			return err
		},
	},
}

// sandboxCA is the setting of the certificates that sandboxes trust.
const sandboxCA = "sandbox_ca_bundle"

// storedList is a stored setting that is a list.
func storedList(name string, configured func(*config.Config) config.List, check func(list []string) error, apply func(s *Server, list []string) error) stored {
	return stored{
		name:       name,
		configured: func(s *Server) value { return value{text: configured(s.cfg.Settings).String()} },
		parse: func(given string) (value, error) {
			list := listOf(given)
			return value{text: config.List(list).String()}, check(list)
		},
		apply: func(s *Server, v value) error { return apply(s, listOf(v.text)) },
	}
}

func checkAllow(list []string) error { _, err := outbound.Parse(list); return err }

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
		return nil, fault.New(fault.Invalid, "the setting %q cannot change while servers run; only %s can. Set it in the configuration file, and restart the server", name, strings.Join(StorableSettings(), ", "))
	}
	return &storable[i], nil
}

// applied is what the server applied of each stored setting, and what it failed to apply, by name.
type applied struct{ done, failed map[string]string }

// firstSettings notes the settings that the server starts with. Sandboxes are made long before the
// other stored settings are applied, so their stored certificates replace the configured ones here.
func (s *Server) firstSettings(ctx context.Context) error {
	s.configuredCA = s.cfg.Platform.CA
	s.applied = applied{map[string]string{}, map[string]string{}}
	for _, t := range storable {
		s.applied.done[t.name] = t.configured(s).text
	}
	kept, err := s.db.Settings(ctx)
	if err != nil {
		return err
	}
	text, ok := kept[sandboxCA]
	if !ok {
		return nil
	}
	t, err := storableSetting(sandboxCA)
	if err != nil {
		return err
	}
	v, err := s.storedValue(ctx, t, text)
	if err != nil {
		s.log.Error("cannot read a stored setting, and the configured one applies", "setting", sandboxCA, "error", err)
		return nil // applySettings tries again
	}
	s.cfg.Platform.CA, s.applied.done[sandboxCA] = v.content, text
	return nil
}

// openSettings applies the stored settings, and keeps applying changes while the server runs.
func (s *Server) openSettings(ctx context.Context) error {
	if err := s.applySettings(ctx); err != nil {
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
			if err := s.applySettings(loop); err != nil && loop.Err() == nil {
				s.log.Warn("cannot read the stored settings", "error", err)
			}
		}
	}()
	s.later(func(context.Context) error { stop(); <-done; return nil })
	return nil
}

// applySettings applies what differs from what was applied before.
func (s *Server) applySettings(ctx context.Context) error {
	kept, err := s.db.Settings(ctx)
	if err != nil {
		return err
	}
	for i := range storable {
		t := &storable[i]
		v, from := t.configured(s), "configuration"
		if text, ok := kept[t.name]; ok {
			v, from = value{text: text}, "stored"
		}
		if v.text == s.applied.done[t.name] {
			continue
		}
		var err error
		if from == "stored" {
			v, err = s.storedValue(ctx, t, v.text)
		}
		if err == nil {
			err = t.apply(s, v)
		}
		if err != nil {
			// The loop retries, for example until the disk has room again. Log the failure only once.
			if known, ok := s.applied.failed[t.name]; !ok || known != v.text {
				s.log.Error("cannot apply a stored setting", "setting", t.name, "error", err)
			}
			s.applied.failed[t.name] = v.text
			continue
		}
		delete(s.applied.failed, t.name)
		s.applied.done[t.name] = v.text
		s.log.Info("a setting changed", "setting", t.name, "value", v.text, "from", from)
	}
	return nil
}

// storedValue returns the value of a stored setting whose text is known.
func (s *Server) storedValue(ctx context.Context, t *stored, text string) (v value, err error) {
	v.text = text
	if t.file && text != "" {
		v.content, err = s.db.SettingContent(ctx, t.name)
	}
	return v, err
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
// each server's own configuration applies again. note says what the change does not reach at once.
func (l Local) SetSetting(ctx context.Context, name string, given *string) (note string, err error) {
	t, err := storableSetting(name)
	if err != nil {
		return "", err
	}
	event := tenant.PolicyEvent{Actor: l.Actor, Field: "setting/" + name}
	var v value
	if given != nil {
		if v, err = t.parse(*given); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		event.New = v.text
	}
	db, err := l.open(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	operator, err := db.Tenants().Tenant(ctx, tenant.Operator)
	if err != nil {
		return "", err
	}
	event.Tenant = operator.ID
	if given == nil {
		return t.note, db.UnsetSetting(ctx, name, event)
	}
	return t.note, db.SetSetting(ctx, name, v.text, v.content, event)
}
