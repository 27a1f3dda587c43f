package vault

import (
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func texts(in map[string]wire.Text) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for key, value := range in {
		out[key] = string(value)
	}
	return out
}

func shown(v *vault.Vault, err error) (Vault, error) {
	if err != nil {
		return Vault{}, err
	}
	return Of(v), nil
}

// Of is a vault as it is shown.
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

func shownCredential(c *vault.Credential, err error) (Credential, error) {
	if err != nil {
		return Credential{}, err
	}
	return CredentialOf(c), nil
}

// CredentialOf is a credential as it is shown.
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
