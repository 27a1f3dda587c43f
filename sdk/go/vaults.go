package atoll

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

const vaultsPath = "/v1/vaults"

func archivedToo(archived bool) url.Values {
	return url.Values{"include_archived": {strconv.FormatBool(archived)}, "limit": {"100"}}
}

// Vaults returns vaults, newest first. archived adds those
// that are archived.
func (c *Client) Vaults(archived bool) *Pager[Vault] {
	return &Pager[Vault]{c: c, path: vaultsPath, query: archivedToo(archived)}
}

// Vault returns a vault.
func (c *Client) Vault(ctx context.Context, id string) (Vault, error) {
	return call[Vault](ctx, c, http.MethodGet, under(vaultsPath, id), nil, nil)
}

// CreateVault creates a vault.
func (c *Client) CreateVault(ctx context.Context, in NewVault) (Vault, error) {
	return create[Vault](ctx, c, vaultsPath, nil, in)
}

// ChangeVault changes what is said of a vault.
func (c *Client) ChangeVault(ctx context.Context, id string, in VaultChange) (Vault, error) {
	return call[Vault](ctx, c, http.MethodPatch, under(vaultsPath, id), nil, in)
}

// ArchiveVault archives a vault with its credentials. Repeating the call is not an error.
func (c *Client) ArchiveVault(ctx context.Context, id string) (Vault, error) {
	return call[Vault](ctx, c, http.MethodPost, under(vaultsPath, id, "archive"), nil, nil)
}

// DeleteVault deletes a vault with its credentials.
func (c *Client) DeleteVault(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(vaultsPath, id), nil)
}

// VaultCredentials returns the credentials of a vault, newest first, without their secrets. archived adds those that are archived.
func (c *Client) VaultCredentials(vault string, archived bool) *Pager[Credential] {
	return &Pager[Credential]{c: c, path: under(vaultsPath, vault, "credentials"), query: archivedToo(archived)}
}

// VaultCredential returns a credential, without its secrets.
func (c *Client) VaultCredential(ctx context.Context, vault, id string) (Credential, error) {
	return call[Credential](ctx, c, http.MethodGet, under(vaultsPath, vault, "credentials", id), nil, nil)
}

// AddVaultCredential adds a credential to a vault.
func (c *Client) AddVaultCredential(ctx context.Context, vault string, in NewCredential) (Credential, error) {
	return create[Credential](ctx, c, under(vaultsPath, vault, "credentials"), nil, in)
}

// ChangeVaultCredential changes the secrets, name or metadata of a credential.
func (c *Client) ChangeVaultCredential(ctx context.Context, vault, id string, in CredentialChange) (Credential, error) {
	return call[Credential](ctx, c, http.MethodPatch, under(vaultsPath, vault, "credentials", id), nil, in)
}

// ArchiveVaultCredential archives a credential. Repeating the call is not an error.
func (c *Client) ArchiveVaultCredential(ctx context.Context, vault, id string) (Credential, error) {
	return call[Credential](ctx, c, http.MethodPost, under(vaultsPath, vault, "credentials", id, "archive"), nil, nil)
}

// DeleteVaultCredential deletes a credential.
func (c *Client) DeleteVaultCredential(ctx context.Context, vault, id string) error {
	return c.do(ctx, http.MethodDelete, under(vaultsPath, vault, "credentials", id), nil)
}
