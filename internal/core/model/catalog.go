package model

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// CatalogConfig is what a Catalog is made of. All of it is required but what says otherwise.
type CatalogConfig struct {
	Store Store
	// Check says why a base URL may not be connected to.
	Check func(ctx context.Context, base *url.URL) error
	// Open returns what asks the model of a record.
	Open func(r Record) (Model, error)
	// Tenant finds a tenant by its id or name.
	Tenant func(ctx context.Context, idOrName string) (tenant.Tenant, error)
	// Plan finds a plan by its name.
	Plan func(ctx context.Context, name string) (tenant.Plan, error)
	// Declared are models that the operator declares outside of the Store; nil for none.
	Declared interface{ Models() []Record }
}

// Catalog is the models of an installation. It holds the rules that a Store does not know;
// every refusal of a change is a *fault.Error. Each change is noted as a PolicyEvent of the
// tenant Operator.
type Catalog struct {
	cfg CatalogConfig
	mu  sync.Mutex // makes what is read, checked and written one step within this process
	set ownChanges // guarded by mu
}

// NewCatalog returns a Catalog.
func NewCatalog(cfg CatalogConfig) *Catalog { return &Catalog{cfg: cfg} }

// Change says what to change of a model; nil leaves a thing as it is.
type Change struct {
	Upstream, BaseURL, Key *string
	Prices                 *Prices
	Context, MaxOutput     *int
	Capabilities           *[]Capability
	// Either that all tenants may use it, or those that may, by their ids or names, and the
	// plans whose tenants may.
	AllTenants     *bool
	Tenants, Plans *[]string
}

// Create makes a model. actor is the id of the key that does. Where nothing is said, the
// upstream name is the name, the base URL the provider's own, the capabilities
// DefaultCapabilities, and every tenant may use it.
func (c *Catalog) Create(ctx context.Context, actor, name string, p Provider, change Change) (Record, error) {
	if err := CheckName(name); err != nil {
		return Record{}, err
	}
	if err := c.undeclared(name); err != nil {
		return Record{}, err
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	r := Record{
		ID: tenant.NewID("mdl"), Name: name, Provider: p, Upstream: name, BaseURL: p.DefaultURL(),
		Spec: Spec{Capabilities: DefaultCapabilities}, AllTenants: true, CreatedAt: now, UpdatedAt: now,
	}
	if err := c.apply(ctx, &r, change); err != nil {
		return Record{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	events, err := c.events(ctx, actor, nil, &r, change.Key != nil)
	if err != nil {
		return Record{}, err
	}
	if err := c.cfg.Store.CreateModel(ctx, r, events...); err != nil {
		return Record{}, err
	}
	return c.cfg.Store.Model(ctx, r.ID)
}

// Update changes a model, from its next request on.
func (c *Catalog) Update(ctx context.Context, actor, idOrName string, change Change) (Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, err := c.stored(ctx, idOrName)
	if err != nil {
		return Record{}, err
	}
	r := old
	// A key is not sent to another server than the one it was given for.
	if change.BaseURL != nil && *change.BaseURL != old.BaseURL && old.Key != "" && change.Key == nil {
		return Record{}, invalid("key is required when base_url changes, because the stored key belongs to the previous server; use \"\" for no key")
	}
	if err := c.apply(ctx, &r, change); err != nil {
		return Record{}, err
	}
	r.UpdatedAt = time.Now().UTC().Truncate(time.Microsecond)
	events, err := c.events(ctx, actor, &old, &r, change.Key != nil)
	if err != nil {
		return Record{}, err
	}
	if err := c.cfg.Store.UpdateModel(ctx, r, events...); err != nil {
		return Record{}, err
	}
	return c.Model(ctx, r.ID)
}

// Delete removes a model.
func (c *Catalog) Delete(ctx context.Context, actor, idOrName string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.stored(ctx, idOrName)
	if err != nil {
		return err
	}
	events, err := c.events(ctx, actor, &r, nil, false)
	if err != nil {
		return err
	}
	return c.cfg.Store.DeleteModel(ctx, r.ID, events...)
}

// apply changes a record and checks all of it.
func (c *Catalog) apply(ctx context.Context, r *Record, change Change) error {
	set(&r.Upstream, change.Upstream)
	set(&r.BaseURL, change.BaseURL)
	set(&r.Key, change.Key)
	set(&r.Prices, change.Prices)
	set(&r.Context, change.Context)
	set(&r.MaxOutput, change.MaxOutput)
	set(&r.AllTenants, change.AllTenants)
	if change.Capabilities != nil {
		var err error
		if r.Capabilities, err = CapabilitiesOf(*change.Capabilities); err != nil {
			return err
		}
	}
	if change.Tenants != nil || change.Plans != nil {
		if change.AllTenants != nil && *change.AllTenants {
			return invalid("pass either all_tenants, or tenants and plans")
		}
		r.AllTenants = false
	}
	if change.Plans != nil {
		if len(*change.Plans) > MaxPlans {
			return invalid("plans must have at most %d entries", MaxPlans)
		}
		r.Plans = nil
		for _, name := range *change.Plans {
			if _, err := c.cfg.Plan(ctx, name); err != nil {
				if fault.KindOf(err) == fault.NotFound {
					return fault.Wrap(fault.Invalid, err, fmt.Sprintf("plans: there is no plan %q", name))
				}
				return err
			}
			if !slices.Contains(r.Plans, name) {
				r.Plans = append(r.Plans, name)
			}
		}
	}
	if change.Tenants != nil {
		if len(*change.Tenants) > MaxTenants {
			return invalid("tenants must have at most %d entries", MaxTenants)
		}
		r.Tenants = nil
		for _, name := range *change.Tenants {
			t, err := c.cfg.Tenant(ctx, name)
			if err != nil {
				if fault.KindOf(err) == fault.NotFound {
					return fault.Wrap(fault.Invalid, err, fmt.Sprintf("tenants: there is no tenant %q", name))
				}
				return err
			}
			if !slices.Contains(r.Tenants, t.ID) {
				r.Tenants = append(r.Tenants, t.ID)
			}
		}
	}
	if r.AllTenants {
		r.Tenants, r.Plans = nil, nil
	}
	base, err := r.Validate()
	if err != nil {
		return err
	}
	if id := r.only(); id != "" {
		ctx = outbound.For(ctx, id)
	}
	return c.cfg.Check(ctx, base)
}

// events tells the differences of two records; nil is none. Of a key it tells only that
// another one was given.
func (c *Catalog) events(ctx context.Context, actor string, old, now *Record, key bool) ([]tenant.PolicyEvent, error) {
	operator, err := c.cfg.Tenant(ctx, tenant.Operator)
	if err != nil {
		return nil, err
	}
	either := old
	if now != nil {
		either = now
	}
	var out []tenant.PolicyEvent
	add := func(field, before, after string) {
		if before != after {
			out = append(out, tenant.PolicyEvent{
				Tenant: operator.ID, Actor: actor, Field: "model/" + either.Name + "/" + field, Old: before, New: after, CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
			})
		}
	}
	before, after := old.policy(), now.policy()
	for i, field := range policyFields {
		add(field, before[i], after[i])
	}
	if key && now != nil {
		given := "given"
		if now.Key == "" {
			given = "none"
		}
		add("key", "", given)
	}
	return out, nil
}

var policyFields = []string{"provider", "upstream", "base_url", "price_input", "price_output", "price_cache_read", "price_cache_write", "context", "max_output", "capabilities", "tenants"}

// policy is what events tell of a record, in the order of policyFields; nothing of nil.
func (r *Record) policy() []string {
	if r == nil {
		return make([]string, len(policyFields))
	}
	tenants := "all"
	if !r.AllTenants {
		tenants = "only " + join(r.Tenants)
		if len(r.Plans) > 0 {
			tenants += " and of the plans " + join(r.Plans)
		}
	}
	return []string{
		string(r.Provider), r.Upstream, r.BaseURL, r.Prices.Input.String(), r.Prices.Output.String(), r.Prices.CacheRead.String(), r.Prices.CacheWrite.String(),
		fmt.Sprint(r.Context), fmt.Sprint(r.MaxOutput), join(r.Capabilities), tenants,
	}
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

func join[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return strings.Join(out, ", ")
}
