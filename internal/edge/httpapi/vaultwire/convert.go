package vaultwire

import (
	"github.com/atoll-run/atoll/internal/agent/vaults"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Auth returns the auth for the service of vaults.
func (in *NewAuth) Auth() *vaults.Auth {
	out := &vaults.Auth{
		Kind: vault.Kind(*in.Type), ServerURL: in.ServerURL, Token: in.Token, AccessToken: in.AccessToken, ExpiresAt: in.ExpiresAt,
		SecretName: in.SecretName, SecretValue: in.SecretValue, Hosts: hosts(in.Hosts),
	}
	if r := in.Refresh; r != nil {
		out.Refresh = &vaults.Refresh{
			ClientID: r.ClientID, RefreshToken: r.RefreshToken, Endpoint: r.TokenEndpoint, Resource: r.Resource, Scope: r.Scope, EndpointAuth: r.EndpointAuth.auth(),
		}
	}
	return out
}

// Auth returns the change for the service of vaults; nil for none.
func (in *AuthChange) Auth() *vaults.Auth {
	if in == nil {
		return nil
	}
	out := &vaults.Auth{Kind: vault.Kind(*in.Type), Token: in.Token, AccessToken: in.AccessToken, ExpiresAt: in.ExpiresAt, SecretValue: in.SecretValue, Hosts: hosts(in.Hosts)}
	if r := in.Refresh; r != nil {
		out.Refresh = &vaults.Refresh{RefreshToken: r.RefreshToken, Scope: r.Scope, EndpointAuth: r.EndpointAuth.auth()}
	}
	return out
}

func (in *NewEndpointAuth) auth() *vaults.EndpointAuth {
	if in == nil {
		return nil
	}
	return &vaults.EndpointAuth{Type: vault.EndpointAuth(*in.Type), ClientSecret: in.ClientSecret}
}

func hosts(in *[]wire.Text) *[]string {
	if in == nil {
		return nil
	}
	return new(httpapi.Each(*in, func(h wire.Text) string { return string(h) }))
}

// Of returns a vault as the APIs show it.
func Of(v *vault.Vault) Vault {
	out := Vault{ID: string(v.ID), Type: "vault", DisplayName: v.About.Name, Metadata: metadata(v.About), CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt}
	if v.Archived() {
		out.ArchivedAt = &v.ArchivedAt
	}
	return out
}

func metadata(a vault.About) map[string]string {
	if a.Metadata == nil {
		return map[string]string{}
	}
	return a.Metadata
}

// CredentialOf returns a credential as the APIs show it.
func CredentialOf(c *vault.Credential) Credential {
	out := Credential{
		ID: string(c.ID), Type: "vault_credential", VaultID: string(c.Vault), DisplayName: httpapi.OrNull(c.About.Name), Metadata: metadata(c.About), CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
		Auth: CredentialAuth{Type: string(c.Kind), ServerURL: httpapi.OrNull(c.Auth.ServerURL), SecretName: httpapi.OrNull(c.Auth.Variable), Hosts: c.Auth.Binding.Hosts},
	}
	if !c.Auth.ExpiresAt.IsZero() {
		out.Auth.ExpiresAt = &c.Auth.ExpiresAt
	}
	if r := c.Auth.Refresh; r != nil {
		out.Auth.Refresh = &CredentialRefresh{r.ClientID, r.Endpoint, EndpointAuth{string(r.EndpointAuth)}, httpapi.OrNull(r.Resource), httpapi.OrNull(r.Scope)}
	}
	if c.Archived() {
		out.ArchivedAt = &c.ArchivedAt
	}
	return out
}

// Filter reads the filter of a list of vaults or credentials.
func Filter(c *httpapi.Call) (vault.Filter, error) {
	cursor, err := c.Cursor()
	return vault.Filter{Page: vault.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Archived: c.Bool("include_archived")}, err
}
