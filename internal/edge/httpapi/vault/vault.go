// Package vault serves vaults: credentials for sessions of agents, which can be written and
// not be read.
package vault

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve vaults: to keys with the scope read to see them, environments to change them.
type Handlers struct {
	Store vault.Store
	Max   int // of a tenant; 0 for any number
	// CheckURL says why a URL, which field has, may not be asked by this server.
	CheckURL func(ctx context.Context, field, url string) error
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
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Vault]{}, "A page.")}, Serve: httpapi.Returns(h.list),
		},
		{
			Method: http.MethodPost, Path: all, ID: "createVault", Summary: "Make a vault", Description: "Above the server's `max_vaults` the answer is 429. Sessions name it in `vault_ids`.", Scope: tenant.ScopeEnvironments,
			Body:    httpapi.JSON(NewVault{DisplayName: new("Credentials of user 456"), Metadata: map[string]wire.Text{"user_id": "user_456"}}),
			Answers: []httpapi.Answer{httpapi.Created(Vault{}, "It is there, without credentials."), full}, Serve: httpapi.Takes(h.create),
		},
		{
			Method: http.MethodGet, Path: one, ID: "getVault", Summary: "Show a vault", Description: "Names and metadata; its credentials are listed below it.", Scope: tenant.ScopeRead, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(Vault{}, "The vault."), unknown}, Serve: httpapi.Returns(h.get),
		},
		{
			Method: http.MethodPatch, Path: one, ID: "updateVault", Summary: "Change the name and metadata of a vault", Description: "Omitted fields stay unchanged; `metadata` is replaced.", Scope: tenant.ScopeEnvironments, Params: id,
			Body:    httpapi.JSON(VaultChange{DisplayName: new("Credentials of user 457")}),
			Answers: []httpapi.Answer{httpapi.OK(Vault{}, "The vault."), unknown, archived}, Serve: httpapi.Takes(h.update),
		},
		{
			Method: http.MethodDelete, Path: one, ID: "deleteVault", Summary: "Delete a vault with its credentials", Description: "The secrets are removed from the database. `archive` keeps the record.", Scope: tenant.ScopeEnvironments, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(DeletedVault{}, "It is gone. Sessions that have it continue without it."), unknown}, Serve: httpapi.Returns(h.Remove),
		},
		{
			Method: http.MethodPost, Path: one + "/archive", ID: "archiveVault", Summary: "Archive a vault with its credentials", Description: "It cannot be undone, since the secrets are removed.", Scope: tenant.ScopeEnvironments, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(Vault{}, "Its secrets are gone, and sessions continue without it. Again is no error."), unknown}, Serve: httpapi.Returns(h.archive),
		},
		{
			Method: http.MethodGet, Path: credentials, ID: "listVaultCredentials", Summary: "List the credentials of a vault, newest first", Description: "Archived ones are omitted unless `include_archived` says so.", Scope: tenant.ScopeRead, Params: append(page, id...),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Credential]{}, "A page, without secrets."), unknown}, Serve: httpapi.Returns(h.credentials),
		},
		{
			Method: http.MethodPost, Path: credentials, ID: "createVaultCredential", Summary: "Add a credential to a vault", Description: "`auth.type` says what it is for; fields of another type return 400. A vault has at most 20 in use: above that the answer is 429. Secrets are stored encrypted and never shown.", Scope: tenant.ScopeEnvironments, Params: id,
			Body:    httpapi.JSON(NewCredential{Auth: &NewAuth{Type: new("static_bearer"), ServerURL: new("https://mcp.example.com/shop"), Token: new("a-token-of-the-shop")}}),
			Answers: []httpapi.Answer{httpapi.Created(Credential{}, "The credential, without its secrets."), unknown, taken, full}, Serve: httpapi.Takes(h.createCredential),
		},
		{
			Method: http.MethodGet, Path: credential, ID: "getVaultCredential", Summary: "Show a credential", Description: "Returns the purpose of the credential and when it expires.", Scope: tenant.ScopeRead, Params: which,
			Answers: []httpapi.Answer{httpapi.OK(Credential{}, "The credential, without its secrets."), unknown}, Serve: httpapi.Returns(h.credential),
		},
		{
			Method: http.MethodPatch, Path: credential, ID: "updateVaultCredential", Summary: "Give a credential other secrets, another name or metadata", Description: "Omitted fields stay unchanged. Type, server, name, `client_id`, `token_endpoint` and `resource` cannot be changed: add another credential.", Scope: tenant.ScopeEnvironments, Params: which,
			Body:    httpapi.JSON(CredentialChange{Auth: &AuthChange{Type: new("static_bearer"), Token: new("another-token-of-the-shop")}}),
			Answers: []httpapi.Answer{httpapi.OK(Credential{}, "It holds from the next call on."), unknown, archived}, Serve: httpapi.Takes(h.updateCredential),
		},
		{
			Method: http.MethodDelete, Path: credential, ID: "deleteVaultCredential", Summary: "Delete a credential", Description: "Its secrets are removed from the database, and it is sent no more from the next call on.", Scope: tenant.ScopeEnvironments, Params: which,
			Answers: []httpapi.Answer{httpapi.OK(DeletedCredential{}, "It is gone."), unknown}, Serve: httpapi.Returns(h.RemoveCredential),
		},
		{
			Method: http.MethodPost, Path: credential + "/archive", ID: "archiveVaultCredential", Summary: "Archive a credential", Description: "It cannot be undone, since the secrets are removed. Another credential for the same server or name may be added then.", Scope: tenant.ScopeEnvironments, Params: which,
			Answers: []httpapi.Answer{httpapi.OK(Credential{}, "Its secrets are gone, and it is used no more. Again is no error."), unknown}, Serve: httpapi.Returns(h.archiveCredential),
		},
	}
	for i := range ops {
		ops[i].Tag = "vaults"
	}
	return ops
}

// event notes a change of a vault, or of a credential of it, by their ids.
func event(c *httpapi.Call, what, now string) tenant.PolicyEvent {
	return tenant.PolicyEvent{Tenant: c.Caller.Tenant.ID, Actor: c.Caller.Key.ID, Field: "vault/" + what, New: now, CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
}

// Find returns the vault that the path names.
func (h *Handlers) Find(c *httpapi.Call) (*vault.Vault, error) {
	id := vault.ID(c.Path("vault_id"))
	if !id.Valid() {
		return nil, vault.ErrNotFound
	}
	return h.Store.Get(c.Context(), c.Caller.Tenant.ID, id)
}

// Make makes a vault.
func (h *Handlers) Make(c *httpapi.Call, in *NewVault) (*vault.Vault, error) {
	v := &vault.Vault{ID: vault.NewID(), Tenant: c.Caller.Tenant.ID, About: vault.About{Name: *in.DisplayName, Metadata: texts(in.Metadata)}}
	if err := v.About.Check(true); err != nil {
		return nil, err
	}
	return v, h.Store.Create(c.Context(), v, h.Max, event(c, string(v.ID), "created"))
}

// Change changes what is said of the vault that the path names.
func (h *Handlers) Change(c *httpapi.Call, in *VaultChange) (*vault.Vault, error) {
	v, err := h.Find(c)
	if err != nil {
		return nil, err
	}
	about := said(v.About, in.DisplayName, in.Metadata)
	if err := about.Check(true); err != nil {
		return nil, err
	}
	return h.Store.Update(c.Context(), v.Tenant, v.ID, about, event(c, string(v.ID), "changed"))
}

// said is what is said of a vault or a credential after a change.
func said(a vault.About, name *string, metadata *map[string]wire.Text) vault.About {
	if name != nil {
		a.Name = *name
	}
	if metadata != nil {
		a.Metadata = texts(*metadata)
	}
	return a
}

// End archives the vault that the path names.
func (h *Handlers) End(c *httpapi.Call) (*vault.Vault, error) {
	v, err := h.Find(c)
	if err != nil {
		return nil, err
	}
	return h.Store.Archive(c.Context(), v.Tenant, v.ID, event(c, string(v.ID), "archived"))
}

// Page returns a page of vaults, and where the next one begins.
func (h *Handlers) Page(c *httpapi.Call) ([]vault.Vault, string, error) {
	f, err := filter(c)
	if err != nil {
		return nil, "", err
	}
	return h.Store.List(c.Context(), c.Caller.Tenant.ID, f)
}

func filter(c *httpapi.Call) (vault.Filter, error) {
	cursor, err := c.Cursor()
	return vault.Filter{Page: vault.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Archived: c.Bool("include_archived")}, err
}

func (h *Handlers) create(c *httpapi.Call, in *NewVault) (Vault, error) { return shown(h.Make(c, in)) }
func (h *Handlers) get(c *httpapi.Call) (Vault, error)                  { return shown(h.Find(c)) }
func (h *Handlers) archive(c *httpapi.Call) (Vault, error)              { return shown(h.End(c)) }

func (h *Handlers) update(c *httpapi.Call, in *VaultChange) (Vault, error) {
	return shown(h.Change(c, in))
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Vault], err error) {
	page, next, err := h.Page(c)
	return httpapi.Page[Vault]{Data: httpapi.Each(page, func(v vault.Vault) Vault { return Of(&v) }), NextPage: httpapi.OrNull(next)}, err
}

// Remove deletes the vault that the path names.
func (h *Handlers) Remove(c *httpapi.Call) (out DeletedVault, err error) {
	v, err := h.Find(c)
	if err != nil {
		return out, err
	}
	return DeletedVault{string(v.ID), "vault_deleted"}, h.Store.Delete(c.Context(), v.Tenant, v.ID, event(c, string(v.ID), "deleted"))
}
