package anthropic

import (
	"errors"
	"maps"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	core "github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/vault"
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
		{Method: http.MethodDelete, Path: one, Scope: tenant.ScopeEnvironments, Serve: httpapi.Returns(d.Vaults.Remove)},
		{Method: http.MethodPost, Path: one + "/archive", Scope: tenant.ScopeEnvironments, Serve: httpapi.Returns(d.archiveVault)},
		{Method: http.MethodGet, Path: credentials, Scope: tenant.ScopeRead, Params: page, Serve: httpapi.Returns(d.listCredentials)},
		{Method: http.MethodPost, Path: credentials, Scope: tenant.ScopeEnvironments, Body: httpapi.JSON(CredentialFields{}), Serve: httpapi.Takes(d.createCredential)},
		{Method: http.MethodGet, Path: credential, Scope: tenant.ScopeRead, Serve: httpapi.Returns(d.credential)},
		{Method: http.MethodPost, Path: credential, Scope: tenant.ScopeEnvironments, Body: httpapi.JSON(CredentialFields{}), Serve: httpapi.Takes(d.changeCredential)},
		{Method: http.MethodDelete, Path: credential, Scope: tenant.ScopeEnvironments, Serve: httpapi.Returns(d.Vaults.RemoveCredential)},
		{Method: http.MethodPost, Path: credential + "/archive", Scope: tenant.ScopeEnvironments, Serve: httpapi.Returns(d.archiveCredential)},
	}
}

func vaultOf(v *core.Vault, err error) (out vault.Vault, _ error) {
	if err != nil {
		return out, err
	}
	return vault.Of(v), nil
}

func (d *Handlers) vault(c *httpapi.Call) (vault.Vault, error) { return vaultOf(d.Vaults.Find(c)) }
func (d *Handlers) archiveVault(c *httpapi.Call) (vault.Vault, error) {
	return vaultOf(d.Vaults.End(c))
}

func (d *Handlers) listVaults(c *httpapi.Call) (out Vaults, err error) {
	page, next, err := d.Vaults.Page(c)
	return Vaults{httpapi.Each(page, func(v core.Vault) vault.Vault { return vault.Of(&v) }), httpapi.OrNull(next)}, err
}

func (d *Handlers) createVault(c *httpapi.Call, in *VaultFields) (out vault.Vault, err error) {
	if in.DisplayName == nil {
		return out, httpapi.Invalid("display_name is required")
	}
	metadata, err := patched(nil, in.Metadata)
	if err != nil {
		return out, err
	}
	return vaultOf(d.Vaults.Make(c, &vault.NewVault{DisplayName: in.DisplayName, Metadata: metadata}))
}

func (d *Handlers) changeVault(c *httpapi.Call, in *VaultFields) (out vault.Vault, err error) {
	v, err := d.Vaults.Find(c)
	if err != nil {
		return out, err
	}
	metadata, err := patched(v.About.Metadata, in.Metadata)
	if err != nil {
		return out, err
	}
	return vaultOf(d.Vaults.Change(c, &vault.VaultChange{DisplayName: in.DisplayName, Metadata: &metadata}))
}

// patched are pairs after a patch, which removes those that are null.
func patched(now map[string]string, patch jsontext.Value) (map[string]wire.Text, error) {
	out := map[string]wire.Text{}
	for key, value := range now {
		out[key] = wire.Text(value)
	}
	if len(patch) == 0 || patch.Kind() == 'n' {
		return out, nil
	}
	var of struct {
		Metadata map[string]*string `json:"metadata"`
	}
	if err := only("metadata", patch, &of); err != nil {
		return nil, err
	}
	for key, value := range of.Metadata {
		if value != nil {
			out[key] = wire.Text(*value)
		}
	}
	maps.DeleteFunc(out, func(key string, _ wire.Text) bool {
		value, there := of.Metadata[key]
		return there && value == nil
	})
	return out, nil
}

func credentialOf(c *core.Credential, err error) (out Credential, _ error) {
	if err != nil {
		return out, renamed(err)
	}
	of := vault.CredentialOf(c)
	out = Credential{of.ID, of.Type, of.VaultID, of.DisplayName, of.Auth, of.Metadata, of.CreatedAt, of.UpdatedAt, of.ArchivedAt}
	if c.Kind == core.HostSecret {
		out.Auth = VariableAuth{environmentVariable, c.Auth.Variable, LimitedHosts{"limited", c.Auth.Binding.Hosts}, SecretLocations{Header: true}}
	}
	return out, nil
}

// renamed is an error by the names of this form.
func renamed(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && strings.Contains(f.Msg, "auth.hosts") {
		return fault.Wrap(f.Kind, f.Err, strings.ReplaceAll(f.Msg, "auth.hosts", "auth.networking.allowed_hosts"))
	}
	return err
}

func (d *Handlers) credential(c *httpapi.Call) (Credential, error) {
	return credentialOf(d.Vaults.FindCredential(c))
}

func (d *Handlers) archiveCredential(c *httpapi.Call) (Credential, error) {
	return credentialOf(d.Vaults.EndCredential(c))
}

func (d *Handlers) listCredentials(c *httpapi.Call) (out Credentials, err error) {
	page, next, err := d.Vaults.CredentialPage(c)
	out.Data, out.NextPage = []Credential{}, httpapi.OrNull(next)
	for i := range page {
		of, _ := credentialOf(&page[i], nil)
		out.Data = append(out.Data, of)
	}
	return out, err
}

func (d *Handlers) createCredential(c *httpapi.Call, in *CredentialFields) (out Credential, err error) {
	if in.auth() == nil {
		return out, httpapi.Invalid("auth is required")
	}
	made := &vault.NewCredential{DisplayName: in.DisplayName}
	if made.Metadata, err = patched(nil, in.Metadata); err != nil {
		return out, err
	}
	var of struct {
		Auth *vault.NewAuth `json:"auth" required:"true"`
	}
	v, err := in.variable(true)
	switch {
	case err != nil:
		return out, err
	case v != nil:
		of.Auth = &vault.NewAuth{Type: new(string(core.HostSecret)), SecretName: v.Name, SecretValue: v.Value, Hosts: v.hosts()}
	default:
		if err := only("auth", in.auth(), &of); err != nil {
			return out, err
		}
	}
	made.Auth = of.Auth
	return credentialOf(d.Vaults.Add(c, made))
}

func (d *Handlers) changeCredential(c *httpapi.Call, in *CredentialFields) (out Credential, err error) {
	found, err := d.Vaults.FindCredential(c)
	if err != nil {
		return out, err
	}
	metadata, err := patched(found.About.Metadata, in.Metadata)
	if err != nil {
		return out, err
	}
	change := &vault.CredentialChange{DisplayName: in.DisplayName, Metadata: &metadata}
	if in.auth() != nil {
		var of struct {
			Auth *vault.AuthChange `json:"auth" required:"true"`
		}
		v, err := in.variable(false)
		switch {
		case err != nil:
			return out, err
		case v != nil && v.Name != nil:
			return out, httpapi.Invalid("auth.secret_name cannot be changed: leave it out")
		case v != nil:
			of.Auth = &vault.AuthChange{Type: new(string(core.HostSecret)), SecretValue: v.Value, Hosts: v.hosts()}
		default:
			if err := only("auth", in.auth(), &of); err != nil {
				return out, err
			}
		}
		change.Auth = of.Auth
	}
	return credentialOf(d.Vaults.ChangeCredential(c, change))
}

// auth is the auth of a body; nil for none.
func (in *CredentialFields) auth() jsontext.Value {
	if len(in.Auth) == 0 || in.Auth.Kind() == 'n' {
		return nil
	}
	return in.Auth
}

// variable reads auth if it is of a secret of hosts; nil otherwise.
func (in *CredentialFields) variable(fresh bool) (*VariableFields, error) {
	var kind struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(in.Auth, &kind) // its reader says what is wrong
	switch kind.Type {
	case string(core.HostSecret):
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

func (v *VariableFields) hosts() *[]wire.Text {
	if v.Networking == nil {
		return nil
	}
	return new(httpapi.Each(*v.Networking.AllowedHosts, func(h string) wire.Text { return wire.Text(h) }))
}
