package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/infra/store"
)

// settingsEvery is how often a server reads the stored settings.
const settingsEvery = 2 * time.Second

// stored is a setting that an operator can change for all servers while they run.
type stored struct {
	name       string
	configured func(m *settingsModule) value
	parse      func(given string) (value, error)
	apply      func(m *settingsModule, v value) error // nil if another module applies it
	file       bool                                   // the setting names a file, whose content Atoll stores
	note       string                                 // for the operator: which sandboxes a change reaches only later
}

// value is the value of a setting. Different values have different texts.
type value struct {
	text    string
	content []byte // of the file, where the setting names one
}

var storable = []stored{
	storedList("cors_origins", func(c *config.Config) config.List { return c.CORSOrigins }, httpapi.CheckOrigins, func(m *settingsModule, l []string) error { return m.http.SetOrigins(l) }),
	storedList("mcp_allow", func(c *config.Config) config.List { return c.MCPAllow }, checkAllow, func(m *settingsModule, l []string) error { return m.remotes.allow.Set(l) }),
	storedList("model_allow", func(c *config.Config) config.List { return c.ModelAllow }, checkAllow, func(m *settingsModule, l []string) error { return m.models.allow.Set(l) }),
	{
		name: sandboxCA, file: true, parse: readBundle,
		configured: func(m *settingsModule) value { return value{m.cfg.Settings.SandboxCA, m.cfg.Platform.CA} },
		note:       "New sandboxes use the change. Running and sleeping named sandboxes keep their certificates until you restart them: 'atoll sandbox restart NAME'",
	},
	storedList("webhook_allow", func(c *config.Config) config.List { return c.WebhookAllow }, checkAllow, func(m *settingsModule, l []string) error { return m.webhooks.Allowed().Set(l) }),
	{
		name: "webhook_ca", file: true, parse: readBundle,
		configured: func(m *settingsModule) value { return value{m.cfg.Settings.WebhookCA, m.webhooks.configuredCA} },
		apply: func(m *settingsModule, v value) error {
			authorities, err := withSystem(v.content)
			if err == nil {
				m.webhooks.SetRootCAs(authorities)
			}
			return err
		},
	},
}

// sandboxCA is the setting of the certificates that sandboxes trust.
const sandboxCA = "sandbox_ca_bundle"

// storedList is a stored setting that is a list.
func storedList(name string, configured func(*config.Config) config.List, check func(list []string) error, apply func(m *settingsModule, list []string) error) stored {
	return stored{
		name:       name,
		configured: func(m *settingsModule) value { return value{text: configured(m.cfg.Settings).String()} },
		parse: func(given string) (value, error) {
			list := listOf(given)
			return value{text: config.List(list).String()}, check(list)
		},
		apply: func(m *settingsModule, v value) error { return apply(m, listOf(v.text)) },
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

// settingsModule applies the stored settings, and keeps applying changes while the server runs.
type settingsModule struct {
	*process
	records  *recordsModule
	webhooks *webhooksModule
	models   *modelsModule
	remotes  *remotesModule
	http     *httpModule

	done, failed map[string]string // by name of a setting: the value in use, and a value that failed
}

// Start implements module.Part.
func (m *settingsModule) Start(ctx context.Context, undo *module.Undo) error {
	m.done, m.failed = map[string]string{}, map[string]string{}
	for _, t := range storable {
		m.done[t.name] = t.configured(m).text
	}
	if err := m.apply(ctx); err != nil {
		return err
	}
	loop, loops := startLoops(ctx, undo)
	loops.Go(func() {
		repeatSettings(loop, m.apply, func(err error) { m.log.Warn("cannot read the stored settings", "error", err) })
	})
	return nil
}

// repeatSettings calls apply every settingsEvery until ctx ends, and failed with its errors.
func repeatSettings(ctx context.Context, apply func(context.Context) error, failed func(error)) {
	tick := time.NewTicker(settingsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := apply(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}

// apply applies the settings that have changed since the last call.
func (m *settingsModule) apply(ctx context.Context) error {
	kept, err := m.records.db.Settings(ctx)
	if err != nil {
		return err
	}
	for i := range storable {
		t := &storable[i]
		if t.apply == nil {
			continue
		}
		v, from := t.configured(m), "configuration"
		if text, ok := kept[t.name]; ok {
			v, from = value{text: text}, "stored"
		}
		if v.text == m.done[t.name] {
			continue
		}
		var err error
		if from == "stored" {
			v, err = storedValue(ctx, m.records.db, t, v.text)
		}
		if err == nil {
			err = t.apply(m, v)
		}
		if err != nil {
			// The loop retries, for example until the disk has room again. Log the failure only once.
			if known, ok := m.failed[t.name]; !ok || known != v.text {
				m.log.Error("cannot apply a stored setting", "setting", t.name, "error", err)
			}
			m.failed[t.name] = v.text
			continue
		}
		delete(m.failed, t.name)
		m.done[t.name] = v.text
		m.log.Info("a setting changed", "setting", t.name, "value", v.text, "from", from)
	}
	return nil
}

// storedValue returns the value of a stored setting whose text is known.
func storedValue(ctx context.Context, db *store.DB, t *stored, text string) (v value, err error) {
	v.text = text
	if t.file && text != "" {
		v.content, err = db.SettingContent(ctx, t.name)
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
