package vaults

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// Credential returns a credential of a vault.
func (s *Service) Credential(ctx context.Context, t tenant.ID, of vault.ID, id vault.CredentialID) (*vault.Credential, error) {
	v, err := s.Find(ctx, t, of)
	if err != nil {
		return nil, err
	}
	if !id.Valid() {
		return nil, vault.ErrNoCredential
	}
	return s.Store.Credential(ctx, v.Tenant, v.ID, id)
}

// Credentials returns a page of the credentials of a vault, newest first.
func (s *Service) Credentials(ctx context.Context, t tenant.ID, of vault.ID, f vault.Filter) (page []vault.Credential, next string, err error) {
	v, err := s.Find(ctx, t, of)
	if err != nil {
		return nil, "", err
	}
	return s.Store.Credentials(ctx, v.Tenant, v.ID, f)
}

// Add adds a credential to a vault. edit sets its description.
func (s *Service) Add(ctx context.Context, p *tenant.Principal, to vault.ID, edit func(*vault.About), auth *Auth) (*vault.Credential, error) {
	v, err := s.Find(ctx, p.Tenant.ID, to)
	if err != nil {
		return nil, err
	}
	c := &vault.Credential{ID: vault.NewCredentialID(), Vault: v.ID, Tenant: v.Tenant, Kind: auth.Kind}
	edit(&c.About)
	var secret vault.Secret
	err = auth.apply(c, &secret, true)
	if err == nil {
		err = c.Check(&secret, true)
	}
	if err == nil && c.Auth.ServerURL != "" {
		err = s.CheckURL(ctx, "auth.mcp_server_url", c.Auth.ServerURL)
	}
	if err == nil && c.Auth.Refresh != nil {
		err = s.CheckURL(ctx, "auth.refresh.token_endpoint", c.Auth.Refresh.Endpoint)
	}
	if err != nil {
		return nil, err
	}
	return c, s.Store.Add(ctx, c, secret, event(p, name(c), "created"))
}

// ChangeCredential changes the description of a credential and, unless auth is nil, its secrets.
func (s *Service) ChangeCredential(ctx context.Context, p *tenant.Principal, of vault.ID, id vault.CredentialID, edit func(*vault.About), auth *Auth) (*vault.Credential, error) {
	found, err := s.Credential(ctx, p.Tenant.ID, of, id)
	if err != nil {
		return nil, err
	}
	return s.Store.Change(ctx, found.Tenant, found.Vault, found.ID, func(c *vault.Credential, secret *vault.Secret) error {
		edit(&c.About)
		was := c.Auth.ExpiresAt
		if auth != nil {
			if err := auth.apply(c, secret, false); err != nil {
				return err
			}
		}
		return c.Check(secret, !c.Auth.ExpiresAt.Equal(was))
	}, event(p, name(found), "changed"))
}

// ArchiveCredential archives a credential and deletes its secrets.
func (s *Service) ArchiveCredential(ctx context.Context, p *tenant.Principal, of vault.ID, id vault.CredentialID) (*vault.Credential, error) {
	c, err := s.Credential(ctx, p.Tenant.ID, of, id)
	if err != nil {
		return nil, err
	}
	return s.Store.ArchiveCredential(ctx, c.Tenant, c.Vault, c.ID, event(p, name(c), "archived"))
}

// DeleteCredential deletes a credential.
func (s *Service) DeleteCredential(ctx context.Context, p *tenant.Principal, of vault.ID, id vault.CredentialID) error {
	c, err := s.Credential(ctx, p.Tenant.ID, of, id)
	if err != nil {
		return err
	}
	return s.Store.DeleteCredential(ctx, c.Tenant, c.Vault, c.ID, event(p, name(c), "deleted"))
}

func name(c *vault.Credential) string { return string(c.Vault) + "/" + string(c.ID) }
