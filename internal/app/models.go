package app

import (
	"context"
	"fmt"
	"net/url"

	"github.com/atoll-run/atoll/internal/agent/model/adapter"
	"github.com/atoll-run/atoll/internal/agent/model/modelfile"
	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/egress"
)

// openModels makes the catalog of models, and what reaches their providers.
func (s *Server) openModels(ctx context.Context) error {
	cfg := s.cfg.Settings
	s.tenants = tenant.NewAdmin(tenant.AdminConfig{
		Store: s.db.Tenants(), Authority: s.authority, Limits: cfg.Limits(), Image: cfg.Image, Templates: cfg.BaseTemplates,
		CheckImage: s.checkImage, CheckNetwork: egress.ValidatePolicy, CheckWebhook: s.webhooks.CheckURL, CheckSecret: webhook.CheckSecret,
		Reach: s.reach, Packages: s.installer(), Deleted: s.tenantDeleted,
	})
	allow, err := outbound.Parse(cfg.ModelAllow)
	if err != nil {
		return fmt.Errorf("model_allow: %w", err)
	}
	s.allow.models = allow
	// The models file must also be valid together with the stored settings. openSettings reports
	// invalid stored settings.
	kept, err := s.db.Settings(ctx)
	if err != nil {
		return err
	}
	if v, ok := kept["model_allow"]; ok {
		_ = allow.Set(listOf(v))
	}
	rt := transport.New(allow)
	s.later(func(context.Context) error { rt.CloseIdleConnections(); return nil })
	models := model.CatalogConfig{
		Store: s.db.Models(), Tenant: s.tenants.Tenant, Plan: s.tenants.Plan,
		Check: func(ctx context.Context, base *url.URL) error { return transport.Check(ctx, allow, base) },
		Open:  func(r model.Record) (model.Model, error) { return adapter.Open(r, r.Through(rt), model.DefaultBounds) },
	}
	if path := s.cfg.Settings.ModelsFile; path != "" {
		if models.Declared, err = modelfile.Open(modelfile.Config{
			Path: path, Getenv: s.cfg.Getenv, Log: s.log,
			Check: func(base *url.URL) error { return transport.CheckOffline(allow, base) },
		}); err != nil {
			return fmt.Errorf("models_file: %w", err)
		}
	}
	s.models = model.NewCatalog(models)
	return nil
}
