// Package modeltest is the suite that every implementation of model.Store passes.
package modeltest

import (
	"context"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/check"
)

// Opened is a store under test, and one that has the events of the tenant Operator.
type Opened struct {
	Store    model.Store
	Events   func(ctx context.Context, id tenant.ID) ([]tenant.PolicyEvent, error)
	Tenants  Tenants
	Operator tenant.ID
	Other    tenant.ID // another tenant
}

// Tenants finds tenants and plans.
type Tenants interface {
	Tenant(ctx context.Context, idOrName string) (tenant.Tenant, error)
	Plan(ctx context.Context, name string) (tenant.Plan, error)
}

// Store runs the suite on fresh stores.
func Store(t *testing.T, open func(t *testing.T) Opened) {
	t.Run("records", func(t *testing.T) { records(t, open(t)) })
	t.Run("own keys", func(t *testing.T) { ownKeys(t, open(t)) })
	t.Run("catalog", func(t *testing.T) { catalog(t, open(t)) })
}

// ownKeys are of two tenants, the operator and one more.
func ownKeys(t *testing.T, o Opened) {
	ctx, s := t.Context(), o.Store
	now := time.Now().UTC().Truncate(time.Microsecond)
	r := model.Record{ID: tenant.NewID("mdl"), Name: "m", Provider: "openai", Upstream: "m", BaseURL: "https://provider.example", Plans: []string{"pro", "free"}, CreatedAt: now, UpdatedAt: now}
	must(t, s.CreateModel(ctx, r))
	got, err := s.Model(ctx, r.ID)
	must(t, err)
	same(t, got, r)

	of := func(id tenant.ID, m, key string) model.OwnKey {
		return model.OwnKey{ID: tenant.NewID("mky"), Tenant: id, Model: m, BaseURL: r.BaseURL, Key: key, CreatedAt: now}
	}
	a, declared, b := of(o.Operator, r.ID, "sk-a"), of(o.Operator, "mdl_declared", "sk-d"), of(o.Other, r.ID, "sk-b")
	event := tenant.PolicyEvent{Tenant: o.Operator, Actor: "key_1", Field: "model/m/own_key", New: "given", CreatedAt: now}
	must(t, s.SetOwnKey(ctx, of(o.Operator, r.ID, "sk-former")))
	for _, k := range []model.OwnKey{a, declared, b} {
		must(t, s.SetOwnKey(ctx, k, event))
	}
	is := func(id tenant.ID, want ...model.OwnKey) {
		t.Helper()
		all, err := s.OwnKeys(ctx, id)
		must(t, err)
		same(t, all, want)
		for _, k := range want {
			got, err := s.OwnKey(ctx, id, k.Model)
			must(t, err)
			same(t, got, k)
		}
	}
	is(o.Operator, a, declared)
	is(o.Other, b)
	_, err = s.OwnKey(ctx, o.Other, declared.Model)
	kind(t, "another tenant's key", err, fault.NotFound)
	kind(t, "a deletion of another tenant's key", s.DeleteOwnKey(ctx, o.Other, declared.Model, event), fault.NotFound)
	must(t, s.DeleteOwnKey(ctx, o.Operator, declared.Model, event))
	is(o.Operator, a)
	must(t, s.DeleteModel(ctx, r.ID))
	is(o.Operator)
	is(o.Other)
	events, err := o.Events(ctx, o.Operator)
	must(t, err)
	if len(events) != 4 {
		t.Errorf("the events are %+v", events)
	}
}

func records(t *testing.T, o Opened) {
	ctx, s := t.Context(), o.Store
	now := time.Now().UTC().Truncate(time.Microsecond)
	event := func(field string) tenant.PolicyEvent {
		return tenant.PolicyEvent{Tenant: o.Operator, Actor: "key_1", Field: field, New: "x", CreatedAt: now}
	}
	full := model.Record{
		ID: tenant.NewID("mdl"), Name: "acme/large", Provider: "openai", Upstream: "large-1", BaseURL: "https://provider.example/v1", Key: "sk-secret-ü",
		Spec: model.Spec{
			Prices: model.Prices{Input: 2_500_000, Output: model.MaxPrice, CacheRead: 1, CacheWrite: 3}, Context: model.MaxContext, MaxOutput: 7,
			Capabilities: []model.Capability{model.Vision, model.Tools},
		},
		Tenants: []tenant.ID{"ten_1", "ten_2"}, CreatedAt: now, UpdatedAt: now,
	}
	least := model.Record{ID: tenant.NewID("mdl"), Name: "small", Provider: "openai-chat", Upstream: "s", BaseURL: "http://127.0.0.1:1", AllTenants: true, CreatedAt: now, UpdatedAt: now}
	for _, r := range []model.Record{full, least} {
		must(t, s.CreateModel(ctx, r, event("model/"+r.Name)))
	}
	for _, name := range []string{full.ID, full.Name} {
		got, err := s.Model(ctx, name)
		must(t, err)
		same(t, got, full)
	}
	again := full
	again.ID = tenant.NewID("mdl")
	kind(t, "a name that is taken", s.CreateModel(ctx, again, event("never")), fault.Conflict)
	_, err := s.Model(ctx, "none")
	kind(t, "no model", err, fault.NotFound)

	full.Upstream, full.BaseURL, full.Key, full.Spec, full.AllTenants, full.Tenants, full.UpdatedAt = "large-2", "https://other.example", "", model.Spec{}, true, nil, now.Add(time.Second)
	must(t, s.UpdateModel(ctx, full, event("model/changed")))
	all, err := s.Models(ctx)
	must(t, err)
	same(t, all, []model.Record{full, least})
	unknown := full
	unknown.ID = tenant.NewID("mdl")
	kind(t, "a change of none", s.UpdateModel(ctx, unknown, event("never")), fault.NotFound)

	must(t, s.DeleteModel(ctx, full.ID, event("model/gone")))
	kind(t, "one that is gone", s.DeleteModel(ctx, full.ID, event("never")), fault.NotFound)
	all, err = s.Models(ctx)
	must(t, err)
	same(t, all, []model.Record{least})

	events, err := o.Events(ctx, o.Operator)
	must(t, err)
	var fields []string
	for _, e := range events {
		fields = append(fields, e.Field)
	}
	same(t, fields, []string{"model/acme/large", "model/small", "model/changed", "model/gone"})
}

var (
	must = check.Must
	kind = check.Kind
	same = check.Same
)
