package app

import (
	"context"
	"fmt"
	"net/url"

	"github.com/atoll-run/atoll/internal/agent/model/adapter"
	"github.com/atoll-run/atoll/internal/agent/model/modelfile"
	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

// modelsModule makes the catalog of models, and what reaches their providers.
type modelsModule struct {
	*process
	records *recordsModule
	tenants *tenantsModule

	*model.Catalog
	allow outbound.List // hosts of models
}

// Start implements module.Part.
func (m *modelsModule) Start(ctx context.Context, undo *module.Undo) error {
	allow, err := outbound.Parse(m.cfg.Settings.ModelAllow)
	if err != nil {
		return fmt.Errorf("model_allow: %w", err)
	}
	m.allow = allow
	// The models file must also be valid together with the stored settings. settingsModule reports
	// invalid stored settings.
	kept, err := m.records.db.Settings(ctx)
	if err != nil {
		return err
	}
	if v, ok := kept["model_allow"]; ok {
		_ = allow.Set(listOf(v))
	}
	rt := transport.New(allow)
	undo.Add(func(context.Context) error { rt.CloseIdleConnections(); return nil })
	models := model.CatalogConfig{
		Store: m.records.db.Models(), Tenant: m.tenants.Tenant, Plan: m.tenants.Plan,
		Check: func(ctx context.Context, base *url.URL) error { return transport.Check(ctx, allow, base) },
		Open:  func(r model.Record) (model.Model, error) { return adapter.Open(r, r.Through(rt), model.DefaultBounds) },
	}
	if path := m.cfg.Settings.ModelsFile; path != "" {
		if models.Declared, err = modelfile.Open(modelfile.Config{
			Path: path, Getenv: m.cfg.Getenv, Log: m.log,
			Check: func(base *url.URL) error { return transport.CheckOffline(allow, base) },
		}); err != nil {
			return fmt.Errorf("models_file: %w", err)
		}
	}
	m.Catalog = model.NewCatalog(models)
	return nil
}
