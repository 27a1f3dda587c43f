package model

import (
	"context"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

var (
	// ErrNotFound is returned if the caller may use no such model.
	ErrNotFound = fault.New(fault.NotFound, "model not found")
	// ErrNoKey is returned if the tenant has no such key of its own.
	ErrNoKey = fault.New(fault.NotFound, "key not found")
	// ErrNoOwnKey rejects deleting a key that the tenant does not have.
	ErrNoOwnKey = fault.New(fault.NotFound, "key of the tenant's own not found")
)

// declared returns the models defined outside the Store.
func (c *Catalog) declared() []Record {
	if c.cfg.Declared == nil {
		return nil
	}
	return c.cfg.Declared.Models()
}

// declaredAs returns the declared model with an id or name, or nil.
func (c *Catalog) declaredAs(idOrName string) *Record {
	for _, r := range c.declared() {
		if r.Name == idOrName || r.ID == idOrName {
			return &r
		}
	}
	return nil
}

// undeclared rejects changes to a declared model.
func (c *Catalog) undeclared(idOrName string) error {
	if r := c.declaredAs(idOrName); r != nil {
		return fault.New(fault.Conflict, "the model %s is defined in %s: change it there", r.Name, r.Source)
	}
	return nil
}

// stored returns a model that callers can change.
func (c *Catalog) stored(ctx context.Context, idOrName string) (Record, error) {
	if err := c.undeclared(idOrName); err != nil {
		return Record{}, err
	}
	return c.cfg.Store.Model(ctx, idOrName)
}

// Model returns a model by id or name. Declared models take precedence over stored ones.
func (c *Catalog) Model(ctx context.Context, idOrName string) (Record, error) {
	if r := c.declaredAs(idOrName); r != nil {
		return *r, nil
	}
	r, err := c.cfg.Store.Model(ctx, idOrName)
	r.Overridden = err == nil && c.declaredAs(r.Name) != nil
	return r, err
}

// Models returns every model: the declared ones in their order, then those of the Store.
func (c *Catalog) Models(ctx context.Context) ([]Record, error) {
	stored, err := c.cfg.Store.Models(ctx)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(c.declared())
	names := make(map[string]bool, len(out))
	for i := range out {
		names[out[i].Name] = true
	}
	for _, r := range stored {
		r.Overridden = names[r.Name]
		out = append(out, r)
	}
	return out, nil
}

// Of returns the models that a tenant may use.
func (c *Catalog) Of(ctx context.Context, id tenant.ID) ([]Record, error) {
	all, err := c.Models(ctx)
	if err != nil {
		return nil, err
	}
	t := c.tenant(ctx, id)
	var out []Record
	for _, r := range all {
		serves, err := r.serves(id, t)
		if err != nil {
			return nil, err
		}
		if serves {
			out = append(out, r)
		}
	}
	return out, nil
}

// Find returns a model, by id or name, as the tenant's requests use it. If the tenant has its own
// key, the record carries that key and zero prices.
func (c *Catalog) Find(ctx context.Context, id tenant.ID, idOrName string) (Record, error) {
	r, err := c.Show(ctx, id, idOrName)
	if err != nil {
		return Record{}, err
	}
	return c.own(ctx, id, r)
}

// Show returns a model that a tenant may use, by id or name. It returns a NotFound fault for other
// models.
func (c *Catalog) Show(ctx context.Context, id tenant.ID, idOrName string) (Record, error) {
	r, err := c.Model(ctx, idOrName)
	if err != nil {
		return Record{}, err
	}
	serves, err := r.serves(id, c.tenant(ctx, id))
	if err == nil && !serves {
		err = ErrNotFound
	}
	if err != nil {
		return Record{}, err
	}
	return r, nil
}

// tenant returns a function that looks up a tenant on first use.
func (c *Catalog) tenant(ctx context.Context, id tenant.ID) func() (tenant.Tenant, error) {
	return sync.OnceValues(func() (tenant.Tenant, error) { return c.cfg.Tenant(ctx, id) })
}

// serves reports whether a tenant may use the model; t finds the tenant.
func (r *Record) serves(id tenant.ID, t func() (tenant.Tenant, error)) (bool, error) {
	switch {
	case r.Overridden:
		return false, nil
	case r.AllTenants || slices.Contains(r.Tenants, id):
		return true, nil
	case len(r.Plans) == 0 && (r.Source == "" || len(r.Tenants) == 0):
		return false, nil
	}
	found, err := t()
	if err != nil {
		return false, err
	}
	named := r.Source != "" && slices.Contains(r.Tenants, found.Name) // a file has names, too
	return named || slices.Contains(r.Plans, found.Plan), nil
}
