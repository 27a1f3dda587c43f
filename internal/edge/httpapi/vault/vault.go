// Package vault serves vaults: credentials for sessions of agents, which can be written and
// not be read.
package vault

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/vaults"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/vaultwire"
)

// Handlers serve vaults: to keys with the scope read to see them, environments to change them.
type Handlers struct {
	Service *vaults.Service
}

// Operations are those of /v1/vaults.
func (h *Handlers) Operations() []httpapi.Operation {
	const all, one = "/v1/vaults", "/v1/vaults/{vault_id}"
	const credentials, credential = one + "/credentials", one + "/credentials/{credential_id}"
	id := []httpapi.Param{{Name: "vault_id", In: httpapi.InPath, Doc: "Id of a vault."}}
	which := append([]httpapi.Param{{Name: "credential_id", In: httpapi.InPath, Doc: "Id of a credential of the vault."}}, id...)
	page := append(httpapi.PageParams(20, 100), httpapi.Param{Name: "include_archived", Type: httpapi.Bool, Doc: "Includes archived ones."})
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the vault or credential does not exist, or belongs to another tenant.")
	archived := httpapi.Refusal(http.StatusConflict, "conflict: it is archived.")
	taken := httpapi.Refusal(http.StatusConflict, "conflict: the vault is archived, or has a credential for the same server or of the same secret_name.")
	full := httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: the tenant has the most vaults, or the vault the most credentials.")
	ops := []httpapi.Operation{
		{
			Method: http.MethodGet, Path: all, ID: "listVaults", Summary: "List the tenant's vaults, newest first", Description: "Archived ones are omitted unless `include_archived` says so.", Scope: tenant.ScopeRead, Params: page,
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[vaultwire.Vault]{}, "A page.")}, Serve: httpapi.Returns(h.list),
		},
		{
			Method: http.MethodPost, Path: all, ID: "createVault", Summary: "Make a vault", Description: "Above the server's `max_vaults` the answer is 429. Sessions name it in `vault_ids`.", Scope: tenant.ScopeEnvironments,
			Body:    httpapi.JSON(NewVault{DisplayName: new("Credentials of user 456"), Metadata: map[string]wire.Text{"user_id": "user_456"}}),
			Answers: []httpapi.Answer{httpapi.Created(vaultwire.Vault{}, "It is there, without credentials."), full}, Serve: httpapi.Takes(h.create),
		},
		{
			Method: http.MethodGet, Path: one, ID: "getVault", Summary: "Show a vault", Description: "Names and metadata; its credentials are listed below it.", Scope: tenant.ScopeRead, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(vaultwire.Vault{}, "The vault."), unknown}, Serve: httpapi.Returns(h.get),
		},
		{
			Method: http.MethodPatch, Path: one, ID: "updateVault", Summary: "Change the name and metadata of a vault", Description: "Omitted fields stay unchanged; `metadata` is replaced.", Scope: tenant.ScopeEnvironments, Params: id,
			Body:    httpapi.JSON(VaultChange{DisplayName: new("Credentials of user 457")}),
			Answers: []httpapi.Answer{httpapi.OK(vaultwire.Vault{}, "The vault."), unknown, archived}, Serve: httpapi.Takes(h.update),
		},
		{
			Method: http.MethodDelete, Path: one, ID: "deleteVault", Summary: "Delete a vault with its credentials", Description: "The secrets are removed from the database. `archive` keeps the record.", Scope: tenant.ScopeEnvironments, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(DeletedVault{}, "It is gone. Sessions that have it continue without it."), unknown}, Serve: httpapi.Returns(h.remove),
		},
		{
			Method: http.MethodPost, Path: one + "/archive", ID: "archiveVault", Summary: "Archive a vault with its credentials", Description: "It cannot be undone, since the secrets are removed.", Scope: tenant.ScopeEnvironments, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(vaultwire.Vault{}, "Its secrets are gone, and sessions continue without it. Again is no error."), unknown}, Serve: httpapi.Returns(h.archive),
		},
		{
			Method: http.MethodGet, Path: credentials, ID: "listVaultCredentials", Summary: "List the credentials of a vault, newest first", Description: "Archived ones are omitted unless `include_archived` says so.", Scope: tenant.ScopeRead, Params: append(page, id...),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[vaultwire.Credential]{}, "A page, without secrets."), unknown}, Serve: httpapi.Returns(h.credentials),
		},
		{
			Method: http.MethodPost, Path: credentials, ID: "createVaultCredential", Summary: "Add a credential to a vault", Description: "`auth.type` says what it is for; fields of another type return 400. A vault has at most 20 in use: above that the answer is 429. Secrets are stored encrypted and never shown.", Scope: tenant.ScopeEnvironments, Params: id,
			Body:    httpapi.JSON(NewCredential{Auth: &vaultwire.NewAuth{Type: new("static_bearer"), ServerURL: new("https://mcp.example.com/shop"), Token: new("a-token-of-the-shop")}}),
			Answers: []httpapi.Answer{httpapi.Created(vaultwire.Credential{}, "The credential, without its secrets."), unknown, taken, full}, Serve: httpapi.Takes(h.createCredential),
		},
		{
			Method: http.MethodGet, Path: credential, ID: "getVaultCredential", Summary: "Show a credential", Description: "Returns the purpose of the credential and when it expires.", Scope: tenant.ScopeRead, Params: which,
			Answers: []httpapi.Answer{httpapi.OK(vaultwire.Credential{}, "The credential, without its secrets."), unknown}, Serve: httpapi.Returns(h.credential),
		},
		{
			Method: http.MethodPatch, Path: credential, ID: "updateVaultCredential", Summary: "Give a credential other secrets, another name or metadata", Description: "Omitted fields stay unchanged. Type, server, name, `client_id`, `token_endpoint` and `resource` cannot be changed: add another credential.", Scope: tenant.ScopeEnvironments, Params: which,
			Body:    httpapi.JSON(CredentialChange{Auth: &vaultwire.AuthChange{Type: new("static_bearer"), Token: new("another-token-of-the-shop")}}),
			Answers: []httpapi.Answer{httpapi.OK(vaultwire.Credential{}, "It holds from the next call on."), unknown, archived}, Serve: httpapi.Takes(h.updateCredential),
		},
		{
			Method: http.MethodDelete, Path: credential, ID: "deleteVaultCredential", Summary: "Delete a credential", Description: "Its secrets are removed from the database, and it is sent no more from the next call on.", Scope: tenant.ScopeEnvironments, Params: which,
			Answers: []httpapi.Answer{httpapi.OK(DeletedCredential{}, "It is gone."), unknown}, Serve: httpapi.Returns(h.removeCredential),
		},
		{
			Method: http.MethodPost, Path: credential + "/archive", ID: "archiveVaultCredential", Summary: "Archive a credential", Description: "It cannot be undone, since the secrets are removed. Another credential for the same server or name may be added then.", Scope: tenant.ScopeEnvironments, Params: which,
			Answers: []httpapi.Answer{httpapi.OK(vaultwire.Credential{}, "Its secrets are gone, and it is used no more. Again is no error."), unknown}, Serve: httpapi.Returns(h.archiveCredential),
		},
	}
	for i := range ops {
		ops[i].Tag = "vaults"
	}
	return ops
}

var (
	shown           = httpapi.Shown(vaultwire.Of)
	shownCredential = httpapi.Shown(vaultwire.CredentialOf)
)

func vaultID(c *httpapi.Call) vault.ID { return vault.ID(c.Path("vault_id")) }
func credentialID(c *httpapi.Call) vault.CredentialID {
	return vault.CredentialID(c.Path("credential_id"))
}

func (h *Handlers) create(c *httpapi.Call, in *NewVault) (vaultwire.Vault, error) {
	return shown(h.Service.Create(c.Context(), c.Caller, edit(in.DisplayName, &in.Metadata)))
}

func (h *Handlers) get(c *httpapi.Call) (vaultwire.Vault, error) {
	return shown(h.Service.Find(c.Context(), c.Caller.Tenant.ID, vaultID(c)))
}

func (h *Handlers) update(c *httpapi.Call, in *VaultChange) (vaultwire.Vault, error) {
	return shown(h.Service.Change(c.Context(), c.Caller, vaultID(c), edit(in.DisplayName, in.Metadata)))
}

func (h *Handlers) archive(c *httpapi.Call) (vaultwire.Vault, error) {
	return shown(h.Service.Archive(c.Context(), c.Caller, vaultID(c)))
}

func (h *Handlers) remove(c *httpapi.Call) (DeletedVault, error) {
	return DeletedVault{c.Path("vault_id"), "vault_deleted"}, h.Service.Delete(c.Context(), c.Caller, vaultID(c))
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[vaultwire.Vault], err error) {
	f, err := vaultwire.Filter(c)
	if err != nil {
		return out, err
	}
	return httpapi.ShownPage(vaultwire.Of)(h.Service.Store.List(c.Context(), c.Caller.Tenant.ID, f))
}

func (h *Handlers) createCredential(c *httpapi.Call, in *NewCredential) (vaultwire.Credential, error) {
	return shownCredential(h.Service.Add(c.Context(), c.Caller, vaultID(c), edit(in.DisplayName, &in.Metadata), in.Auth.Auth()))
}

func (h *Handlers) updateCredential(c *httpapi.Call, in *CredentialChange) (vaultwire.Credential, error) {
	return shownCredential(h.Service.ChangeCredential(c.Context(), c.Caller, vaultID(c), credentialID(c), edit(in.DisplayName, in.Metadata), in.Auth.Auth()))
}

func (h *Handlers) credential(c *httpapi.Call) (vaultwire.Credential, error) {
	return shownCredential(h.Service.Credential(c.Context(), c.Caller.Tenant.ID, vaultID(c), credentialID(c)))
}

func (h *Handlers) archiveCredential(c *httpapi.Call) (vaultwire.Credential, error) {
	return shownCredential(h.Service.ArchiveCredential(c.Context(), c.Caller, vaultID(c), credentialID(c)))
}

func (h *Handlers) removeCredential(c *httpapi.Call) (DeletedCredential, error) {
	return DeletedCredential{c.Path("credential_id"), "vault_credential_deleted"}, h.Service.DeleteCredential(c.Context(), c.Caller, vaultID(c), credentialID(c))
}

func (h *Handlers) credentials(c *httpapi.Call) (out httpapi.Page[vaultwire.Credential], err error) {
	f, err := vaultwire.Filter(c)
	if err != nil {
		return out, err
	}
	return httpapi.ShownPage(vaultwire.CredentialOf)(h.Service.Credentials(c.Context(), c.Caller.Tenant.ID, vaultID(c), f))
}
