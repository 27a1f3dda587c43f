package anthropic

import (
	"errors"
	"maps"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/vaults"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/vaultwire"
)

// environmentVariable is what this form calls a secret of hosts.
const environmentVariable = "environment_variable"

func (d *Handlers) vaults() []httpapi.Operation {
	if d.Vaults == nil {
		return nil
	}
	const all, one = "/v1/vaults", "/v1/vaults/{vault_id}"
	const credentials, credential = one + "/credentials", one + "/credentials/{credential_id}"
	page := append(httpapi.PageParams(20, 100), httpapi.Param{Name: "include_archived", Type: httpapi.Bool})
	return []httpapi.Operation{
		{Method: http.MethodGet, Path: all, Scope: tenant.ScopeRead, Params: page, Serve: httpapi.Returns(d.listVaults)},
		{Method: http.MethodPost, Path: all, Scope: tenant.ScopeEnvironments, Body: httpapi.JSON(VaultFields{}), Serve: httpapi.Takes(d.createVault)},
		{Method: http.MethodGet, Path: one, Scope: tenant.ScopeRead, Serve: httpapi.Returns(d.vault)},
		{Method: http.MethodPost, Path: one, Scope: tenant.ScopeEnvironments, Body: httpapi.JSON(VaultFields{}), Serve: httpapi.Takes(d.changeVault)},
		{Method: http.MethodDelete, Path: one, Scope: tenant.ScopeEnvironments, Serve: httpapi.Returns(d.deleteVault)},
		{Method: http.MethodPost, Path: one + "/archive", Scope: tenant.ScopeEnvironments, Serve: httpapi.Returns(d.archiveVault)},
		{Method: http.MethodGet, Path: credentials, Scope: tenant.ScopeRead, Params: page, Serve: httpapi.Returns(d.listCredentials)},
		{Method: http.MethodPost, Path: credentials, Scope: tenant.ScopeEnvironments, Body: httpapi.JSON(CredentialFields{}), Serve: httpapi.Takes(d.createCredential)},
		{Method: http.MethodGet, Path: credential, Scope: tenant.ScopeRead, Serve: httpapi.Returns(d.credential)},
		{Method: http.MethodPost, Path: credential, Scope: tenant.ScopeEnvironments, Body: httpapi.JSON(CredentialFields{}), Serve: httpapi.Takes(d.changeCredential)},
		{Method: http.MethodDelete, Path: credential, Scope: tenant.ScopeEnvironments, Serve: httpapi.Returns(d.deleteCredential)},
		{Method: http.MethodPost, Path: credential + "/archive", Scope: tenant.ScopeEnvironments, Serve: httpapi.Returns(d.archiveCredential)},
	}
}

func vaultID(c *httpapi.Call) vault.ID { return vault.ID(c.Path("vault_id")) }
func credentialID(c *httpapi.Call) vault.CredentialID {
	return vault.CredentialID(c.Path("credential_id"))
}

var shownVault = httpapi.Shown(vaultwire.Of)

func (d *Handlers) vault(c *httpapi.Call) (vaultwire.Vault, error) {
	return shownVault(d.Vaults.Find(c.Context(), c.Caller.Tenant.ID, vaultID(c)))
}

func (d *Handlers) archiveVault(c *httpapi.Call) (vaultwire.Vault, error) {
	return shownVault(d.Vaults.Archive(c.Context(), c.Caller, vaultID(c)))
}

func (d *Handlers) deleteVault(c *httpapi.Call) (Deleted, error) {
	return Deleted{c.Path("vault_id"), "vault_deleted"}, d.Vaults.Delete(c.Context(), c.Caller, vaultID(c))
}

func (d *Handlers) listVaults(c *httpapi.Call) (out httpapi.Page[vaultwire.Vault], err error) {
	f, err := vaultwire.Filter(c)
	if err != nil {
		return out, err
	}
	return httpapi.ShownPage(vaultwire.Of)(d.Vaults.Store.List(c.Context(), c.Caller.Tenant.ID, f))
}

func (d *Handlers) createVault(c *httpapi.Call, in *VaultFields) (out vaultwire.Vault, err error) {
	if in.DisplayName == nil {
		return out, httpapi.Invalid("display_name is required")
	}
	edit, err := edited(in.DisplayName, in.Metadata)
	if err != nil {
		return out, err
	}
	return shownVault(d.Vaults.Create(c.Context(), c.Caller, edit))
}

func (d *Handlers) changeVault(c *httpapi.Call, in *VaultFields) (out vaultwire.Vault, err error) {
	edit, err := edited(in.DisplayName, in.Metadata)
	if err != nil {
		return out, err
	}
	return shownVault(d.Vaults.Change(c.Context(), c.Caller, vaultID(c), edit))
}

// edited reads a change of a description. A patch of metadata removes pairs that are null.
func edited(name *string, patch jsontext.Value) (func(*vault.About), error) {
	var of struct {
		Metadata map[string]*string `json:"metadata"`
	}
	if len(patch) > 0 && patch.Kind() != 'n' {
		if err := only("metadata", patch, &of); err != nil {
			return nil, err
		}
	}
	return func(a *vault.About) {
		if name != nil {
			a.Name = *name
		}
		out := map[string]string{}
		maps.Copy(out, a.Metadata)
		for key, value := range of.Metadata {
			if delete(out, key); value != nil {
				out[key] = *value
			}
		}
		if a.Metadata = out; len(out) == 0 {
			a.Metadata = nil
		}
	}, nil
}

func credentialOf(c *vault.Credential) Credential {
	of := vaultwire.CredentialOf(c)
	out := Credential{of.ID, of.Type, of.VaultID, of.DisplayName, of.Auth, of.Metadata, of.CreatedAt, of.UpdatedAt, of.ArchivedAt}
	if c.Kind == vault.HostSecret {
		out.Auth = VariableAuth{environmentVariable, c.Auth.Variable, LimitedHosts{"limited", c.Auth.Binding.Hosts}, SecretLocations{Header: true}}
	}
	return out
}

// shownCredential shows a credential. Errors have the names of this form.
func shownCredential(c *vault.Credential, err error) (Credential, error) {
	if f, ok := errors.AsType[*fault.Error](err); ok && strings.Contains(f.Msg, "auth.hosts") {
		err = fault.Wrap(f.Kind, f.Err, strings.ReplaceAll(f.Msg, "auth.hosts", "auth.networking.allowed_hosts"))
	}
	return httpapi.Shown(credentialOf)(c, err)
}

func (d *Handlers) credential(c *httpapi.Call) (Credential, error) {
	return shownCredential(d.Vaults.Credential(c.Context(), c.Caller.Tenant.ID, vaultID(c), credentialID(c)))
}

func (d *Handlers) archiveCredential(c *httpapi.Call) (Credential, error) {
	return shownCredential(d.Vaults.ArchiveCredential(c.Context(), c.Caller, vaultID(c), credentialID(c)))
}

func (d *Handlers) deleteCredential(c *httpapi.Call) (Deleted, error) {
	return Deleted{c.Path("credential_id"), "vault_credential_deleted"}, d.Vaults.DeleteCredential(c.Context(), c.Caller, vaultID(c), credentialID(c))
}

func (d *Handlers) listCredentials(c *httpapi.Call) (out httpapi.Page[Credential], err error) {
	f, err := vaultwire.Filter(c)
	if err != nil {
		return out, err
	}
	return httpapi.ShownPage(credentialOf)(d.Vaults.Credentials(c.Context(), c.Caller.Tenant.ID, vaultID(c), f))
}

func (d *Handlers) createCredential(c *httpapi.Call, in *CredentialFields) (out Credential, err error) {
	if !in.hasAuth() {
		return out, httpapi.Invalid("auth is required")
	}
	edit, err := edited(in.DisplayName, in.Metadata)
	if err != nil {
		return out, err
	}
	auth, err := readAuth[*vaultwire.NewAuth](in, true)
	if err != nil {
		return out, err
	}
	return shownCredential(d.Vaults.Add(c.Context(), c.Caller, vaultID(c), edit, auth))
}

func (d *Handlers) changeCredential(c *httpapi.Call, in *CredentialFields) (out Credential, err error) {
	edit, err := edited(in.DisplayName, in.Metadata)
	if err != nil {
		return out, err
	}
	var auth *vaults.Auth
	if in.hasAuth() {
		if auth, err = readAuth[*vaultwire.AuthChange](in, false); err != nil {
			return out, err
		}
	}
	return shownCredential(d.Vaults.ChangeCredential(c.Context(), c.Caller, vaultID(c), credentialID(c), edit, auth))
}

func (in *CredentialFields) hasAuth() bool { return len(in.Auth) > 0 && in.Auth.Kind() != 'n' }

// readAuth reads the auth of a credential: a secret of hosts, or one in the native form N. fresh says
// that the credential is new.
func readAuth[N interface{ Auth() *vaults.Auth }](in *CredentialFields, fresh bool) (*vaults.Auth, error) {
	v, err := in.variable(fresh)
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		var of struct {
			Auth N `json:"auth" required:"true"`
		}
		if err := only("auth", in.Auth, &of); err != nil {
			return nil, err
		}
		return of.Auth.Auth(), nil
	case !fresh && v.Name != nil:
		return nil, httpapi.Invalid("auth.secret_name cannot be changed: leave it out")
	}
	out := &vaults.Auth{Kind: vault.HostSecret, SecretName: v.Name, SecretValue: v.Value}
	if v.Networking != nil {
		out.Hosts = v.Networking.AllowedHosts
	}
	return out, nil
}

// variable reads auth if it is of a secret of hosts; nil otherwise.
func (in *CredentialFields) variable(fresh bool) (*VariableFields, error) {
	var kind struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(in.Auth, &kind) // its reader says what is wrong
	switch kind.Type {
	case string(vault.HostSecret):
		return nil, httpapi.Invalid("auth.type must be static_bearer, mcp_oauth or %s", environmentVariable)
	case environmentVariable:
	default:
		return nil, nil
	}
	var of struct {
		Auth *VariableFields `json:"auth" required:"true"`
	}
	if err := only("auth", in.Auth, &of); err != nil {
		return nil, err
	}
	v := of.Auth
	if fresh && v.Networking == nil {
		return nil, httpapi.Invalid("auth.networking is required with the type %s", environmentVariable)
	}
	if n := v.Networking; n != nil && (*n.Type != "limited" || n.AllowedHosts == nil) {
		return nil, httpapi.Invalid("auth.networking must be limited, with allowed_hosts: a secret that any host is sent is not supported by this version")
	}
	if l := v.Location; l != nil {
		if l.Body != nil && *l.Body {
			return nil, httpapi.Invalid("auth.injection_location.body is not supported by this version: secrets are put into headers and queries")
		}
		if l.Header != nil && !*l.Header {
			return nil, httpapi.Invalid("auth.injection_location.header must be true: secrets are put into headers and queries")
		}
	}
	return v, nil
}
