package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// TestDeclaredModelsByStoredSetting checks that a server starts whose file of models needs a stored
// model_allow.
func TestDeclaredModelsByStoredSetting(t *testing.T) {
	db, ctx := storetest.SQLite(t), t.Context()
	setup := tenant.Setup{Store: db.Tenants(), Environment: tenant.Environment{Image: "default", Limits: runtime.DefaultLimits()}}
	if err := setup.Run(ctx); err != nil {
		t.Fatal(err)
	}
	operator, err := db.Tenants().Tenant(ctx, tenant.Operator)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "models.yaml")
	if err := os.WriteFile(file, []byte("models:\n  - {name: a, provider: openai, base_url: http://10.0.0.7:8000/v1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() error {
		models := &modelsModule{
			process: &process{log: slog.New(slog.DiscardHandler), cfg: Config{Settings: &config.Config{ModelsFile: file}, Getenv: os.Getenv}},
			records: &recordsModule{db: db}, tenants: &tenantsModule{},
		}
		g, err := module.New([]module.Module{{Name: "models", Part: models}})
		if err != nil {
			t.Fatal(err)
		}
		err = g.Start(ctx)
		if stopped := g.Stop(ctx); stopped != nil {
			t.Error(stopped)
		}
		return err
	}
	if open() == nil {
		t.Error("a private address is open without a setting")
	}
	if err := db.SetSetting(ctx, "model_allow", "10.0.0.7", nil, tenant.PolicyEvent{Tenant: operator.ID, Actor: "host:t", Field: "setting/model_allow", New: "10.0.0.7"}); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Error(err)
	}
}
