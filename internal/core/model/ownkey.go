package model

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// OwnKey is a tenant's own key for a model. Requests use it instead of the operator's key and cost
// nothing here, because the provider bills the tenant.
type OwnKey struct {
	ID        string // "mky_" and 16 hexadecimal digits
	Tenant    tenant.ID
	Model     string // id
	BaseURL   string // the model's base URL when the key was set; Atoll sends the key to no other server
	Key       string // stored encrypted, never returned
	CreatedAt time.Time
}

// OwnKeyState is an OwnKey with the model's current state.
type OwnKeyState struct {
	OwnKey
	Name  string // of the model; its id if the model was deleted
	InUse bool   // false if the model's base URL changed or the tenant lost access to the model
}

// SetOwnKey sets or replaces a tenant's key for a model that it may use. actor is the id of the key
// that makes the change.
func (c *Catalog) SetOwnKey(ctx context.Context, actor string, id tenant.ID, idOrName, key string) (OwnKeyState, error) {
	if key == "" {
		return OwnKeyState{}, invalid("key must not be empty")
	}
	if err := checkKey(key); err != nil {
		return OwnKeyState{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.Show(ctx, id, idOrName)
	if err != nil {
		return OwnKeyState{}, err
	}
	if err := c.set.take(id); err != nil {
		return OwnKeyState{}, err
	}
	k := OwnKey{ID: tenant.NewID("mky"), Tenant: id, Model: r.ID, BaseURL: r.BaseURL, Key: key, CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
	return OwnKeyState{k, r.Name, true}, c.cfg.Store.SetOwnKey(ctx, k, ownKeyEvent(actor, id, r.Name, "given"))
}

// OwnKeys returns a tenant's own keys, oldest first.
func (c *Catalog) OwnKeys(ctx context.Context, id tenant.ID) ([]OwnKeyState, error) {
	keys, err := c.cfg.Store.OwnKeys(ctx, id)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	all, err := c.Models(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]OwnKeyState, len(keys))
	t := c.tenant(ctx, id)
	for i, k := range keys {
		out[i] = OwnKeyState{OwnKey: k, Name: k.Model}
		at := slices.IndexFunc(all, func(r Record) bool { return r.ID == k.Model })
		if at < 0 {
			continue
		}
		serves, err := all[at].serves(id, t)
		if err != nil {
			return nil, err
		}
		out[i].Name, out[i].InUse = all[at].Name, serves && all[at].BaseURL == k.BaseURL
	}
	return out, nil
}

// RemoveOwnKey deletes a tenant's own key for a model, by the model's id or name.
func (c *Catalog) RemoveOwnKey(ctx context.Context, actor string, id tenant.ID, idOrName string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys, err := c.OwnKeys(ctx, id)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Name == idOrName || k.Model == idOrName {
			return c.cfg.Store.DeleteOwnKey(ctx, id, k.Model, ownKeyEvent(actor, id, k.Name, "none"))
		}
	}
	return fault.New(fault.NotFound, "the tenant has not set a key for the model %.80q", idOrName)
}

func ownKeyEvent(actor string, id tenant.ID, name, now string) tenant.PolicyEvent {
	return tenant.PolicyEvent{Tenant: id, Actor: actor, Field: "model/" + name + "/own_key", New: now, CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
}

// own gives a record the tenant's own key, if it has one.
func (c *Catalog) own(ctx context.Context, id tenant.ID, r Record) (Record, error) {
	k, err := c.cfg.Store.OwnKey(ctx, id, r.ID)
	switch {
	case err != nil && fault.KindOf(err) == fault.NotFound:
		return r, nil
	case err != nil:
		return Record{}, err
	case k.BaseURL != r.BaseURL: // neither is the key sent elsewhere, nor the operator billed unasked
		return Record{}, fault.New(fault.Conflict, "the model %s has moved to another server, and the tenant's own key is for the previous one: set the key again, or remove it", r.Name)
	}
	r.Key, r.OwnKey, r.Prices = k.Key, k.ID, Prices{}
	return r, nil
}
