// Package vaults holds the use cases of vaults and their credentials. Every API calls the same Service.
package vaults

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// Service holds the vaults of all tenants.
type Service struct {
	Store vault.Store
	Max   int // vaults of a tenant; 0 for no limit
	// CheckURL rejects a URL that this server may not request. field is its path in the request.
	CheckURL func(ctx context.Context, field, url string) error
}

// Find returns a vault of a tenant.
func (s *Service) Find(ctx context.Context, t tenant.ID, id vault.ID) (*vault.Vault, error) {
	if !id.Valid() {
		return nil, vault.ErrNotFound
	}
	return s.Store.Get(ctx, t, id)
}

// Create creates an empty vault. edit sets its description.
func (s *Service) Create(ctx context.Context, p *tenant.Principal, edit func(*vault.About)) (*vault.Vault, error) {
	v := &vault.Vault{ID: vault.NewID(), Tenant: p.Tenant.ID}
	edit(&v.About)
	if err := v.About.Check(true); err != nil {
		return nil, err
	}
	return v, s.Store.Create(ctx, v, s.Max, event(p, string(v.ID), "created"))
}

// Change changes the description of a vault.
func (s *Service) Change(ctx context.Context, p *tenant.Principal, id vault.ID, edit func(*vault.About)) (*vault.Vault, error) {
	v, err := s.Find(ctx, p.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	edit(&v.About)
	if err := v.About.Check(true); err != nil {
		return nil, err
	}
	return s.Store.Update(ctx, v.Tenant, v.ID, v.About, event(p, string(v.ID), "changed"))
}

// Archive archives a vault with its credentials and deletes their secrets.
func (s *Service) Archive(ctx context.Context, p *tenant.Principal, id vault.ID) (*vault.Vault, error) {
	v, err := s.Find(ctx, p.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	return s.Store.Archive(ctx, v.Tenant, v.ID, event(p, string(v.ID), "archived"))
}

// Delete deletes a vault with its credentials.
func (s *Service) Delete(ctx context.Context, p *tenant.Principal, id vault.ID) error {
	v, err := s.Find(ctx, p.Tenant.ID, id)
	if err != nil {
		return err
	}
	return s.Store.Delete(ctx, v.Tenant, v.ID, event(p, string(v.ID), "deleted"))
}

// event records a change of a vault or a credential.
func event(p *tenant.Principal, what, now string) tenant.PolicyEvent {
	return p.Event("vault/"+what, "", now)
}
