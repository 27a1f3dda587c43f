// Package gatewaytest runs a gateway for tests: over a real store, a real bus
// and real blobs, with an executor whose programs are Go functions.
package gatewaytest

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// MaxOutput is how much of each stream answers show.
const MaxOutput = 1 << 20

// World is everything around a gateway.
type World struct {
	*gateway.Gateway
	DB       *store.DB
	Bus      *bus.Bus
	Blobs    *blob.Store
	Executor *Executor
	Metrics  *prometheus.Registry
}

// Option changes the gateway that a World has.
type Option func(*gateway.Config)

// Open makes a World. Its gateway records what ends until the test does.
func Open(t testing.TB, options ...Option) *World {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	db := storetest.SQLite(t, func(c *store.Config) { c.Log = log })
	b, err := bus.Open(context.Background(), bus.Config{Dir: filepath.Join(dir, "bus"), Name: "test", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := blob.Open(context.Background(), "file://"+filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	w := &World{DB: db, Bus: b, Blobs: blobs, Metrics: prometheus.NewRegistry()}
	w.Executor = serve(t, b, w.Blobs)
	cfg := gateway.Config{
		Store: db.Executions(), Runner: b.Runner(), Log: b.Log(), Starts: b.Starts(),
		Await:   func(traceID string) gateway.Waiter { return b.Await(traceID) },
		Outputs: w.Blobs, Trail: db.Audit(), Prices: usage.DefaultPrices(), Rules: []string{"bearer", "jwt"},
		MaxTimeout: time.Hour, MaxOutput: MaxOutput, Keep: 30 * 24 * time.Hour, Logger: log, Metrics: w.Metrics,
	}
	for _, change := range options {
		change(&cfg)
	}
	if w.Gateway, err = gateway.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Results(ctx, w.Conclude) }()
	t.Cleanup(func() {
		w.Executor.close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("results: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("close the bus: %v", err)
		}
		if err := blobs.Close(); err != nil {
			t.Errorf("close the blobs: %v", err)
		}
	})
	return w
}

// Principal makes a tenant on a plan, with an environment and a key that has
// every scope but admin, and returns the key's holder.
func (w *World) Principal(t testing.TB, name, plan string, change ...func(*tenant.Principal)) *tenant.Principal {
	t.Helper()
	ctx := context.Background()
	tenants := w.DB.Tenants()
	p, err := tenants.Plan(ctx, plan)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	limits := runtime.DefaultLimits()
	who := &tenant.Principal{
		Tenant:      tenant.Tenant{ID: tenant.NewID("ten"), Name: name, Plan: plan, Tier: tenant.Standard, AuditDays: 30, CreatedAt: now},
		Plan:        p,
		Environment: tenant.Environment{ID: tenant.NewID("env"), Name: "default", Image: "default", Limits: limits, CreatedAt: now},
		Key:         tenant.Key{ID: tenant.NewID("key"), Name: "test", Hash: tenant.HashKey(Token(name)), Hint: "test", Scopes: tenant.DefaultScopes, CreatedAt: now},
	}
	for _, f := range change {
		f(who)
	}
	who.Environment.Tenant, who.Key.Tenant, who.Key.Environment = who.Tenant.ID, who.Tenant.ID, who.Environment.ID
	for _, err := range []error{
		tenants.CreateTenant(ctx, who.Tenant), tenants.CreateEnvironment(ctx, who.Environment), tenants.CreateKey(ctx, who.Key),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return who
}

// Token is the key that Principal gives to the tenant of that name.
func Token(name string) string { return tenant.KeyPrefix + name }

// Authenticate finds the caller as a server does.
func (w *World) Authenticate(ctx context.Context, token string) (tenant.Principal, error) {
	p, _, err := w.DB.Tenants().Principal(ctx, tenant.HashKey(token))
	if fault.KindOf(err) == fault.NotFound {
		err = fault.New(fault.Unauthorized, "invalid API key")
	}
	return p, err
}

// Holder finds who has a key as a server does.
func (w *World) Holder(ctx context.Context, tenantID, keyID string) (tenant.Principal, error) {
	return tenant.NewAuthority(w.DB.Tenants()).Holder(ctx, tenantID, keyID)
}

// Request is one that asks the Executor for a program.
func Request(code string) execution.Request {
	return execution.Request{TraceID: execution.NewTraceID(), Code: code, Language: execution.Python, Timeout: time.Minute}
}
