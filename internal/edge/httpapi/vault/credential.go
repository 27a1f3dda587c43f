package vault

import (
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// FindCredential returns the credential that the path names.
func (h *Handlers) FindCredential(c *httpapi.Call) (*vault.Credential, error) {
	v, err := h.Find(c)
	if err != nil {
		return nil, err
	}
	id := vault.CredentialID(c.Path("credential_id"))
	if !id.Valid() {
		return nil, vault.ErrNoCredential
	}
	return h.Store.Credential(c.Context(), v.Tenant, v.ID, id)
}

func name(c *vault.Credential) string { return string(c.Vault) + "/" + string(c.ID) }

// Add adds a credential to the vault that the path names.
func (h *Handlers) Add(c *httpapi.Call, in *NewCredential) (*vault.Credential, error) {
	v, err := h.Find(c)
	if err != nil {
		return nil, err
	}
	made := &vault.Credential{ID: vault.NewCredentialID(), Vault: v.ID, Tenant: v.Tenant, Kind: vault.Kind(*in.Auth.Type), About: vault.About{Metadata: texts(in.Metadata)}}
	if in.DisplayName != nil {
		made.About.Name = *in.DisplayName
	}
	secret, err := in.Auth.into(&made.Auth)
	if err == nil {
		err = made.Check(secret, true)
	}
	if err == nil && made.Auth.ServerURL != "" {
		err = h.CheckURL(c.Context(), "auth.mcp_server_url", made.Auth.ServerURL)
	}
	if err == nil && made.Auth.Refresh != nil {
		err = h.CheckURL(c.Context(), "auth.refresh.token_endpoint", made.Auth.Refresh.Endpoint)
	}
	if err != nil {
		return nil, err
	}
	return made, h.Store.Add(c.Context(), made, *secret, event(c, name(made), "created"))
}

// field is a field of auth that credentials of some types have.
type field struct {
	name     string
	given    bool
	required bool
	of       []vault.Kind
}

// check refuses fields that a type has not, or has to have.
func check(kind vault.Kind, fields []field) error {
	for _, f := range fields {
		switch has := slices.Contains(f.of, kind); {
		case f.given && !has:
			return httpapi.Invalid("auth.%s has no meaning with the type %s", f.name, kind)
		case has && f.required && !f.given:
			return httpapi.Invalid("auth.%s is required with the type %s", f.name, kind)
		}
	}
	return nil
}

var (
	ofBearer = []vault.Kind{vault.StaticBearer}
	ofOAuth  = []vault.Kind{vault.MCPOAuth}
	ofServer = []vault.Kind{vault.StaticBearer, vault.MCPOAuth}
	ofHost   = []vault.Kind{vault.HostSecret}
)

// into reads what a credential is for, and returns its secrets.
func (in *NewAuth) into(a *vault.Auth) (s *vault.Secret, err error) {
	if err := check(vault.Kind(*in.Type), []field{
		{"mcp_server_url", in.ServerURL != nil, true, ofServer},
		{"token", in.Token != nil, true, ofBearer},
		{"access_token", in.AccessToken != nil, true, ofOAuth}, {"expires_at", in.ExpiresAt != nil, false, ofOAuth}, {"refresh", in.Refresh != nil, false, ofOAuth},
		{"secret_name", in.SecretName != nil, true, ofHost}, {"secret_value", in.SecretValue != nil, true, ofHost}, {"hosts", in.Hosts != nil, true, ofHost},
	}); err != nil {
		return nil, err
	}
	s = &vault.Secret{}
	for _, text := range []*string{in.Token, in.AccessToken, in.SecretValue} {
		if text != nil {
			s.Value = *text
		}
	}
	if in.ServerURL != nil {
		a.ServerURL = *in.ServerURL
	}
	if in.SecretName != nil {
		a.Variable, a.Binding.Hosts = *in.SecretName, hosts(*in.Hosts)
	}
	if a.ExpiresAt, err = expiry(in.ExpiresAt, a.ExpiresAt); err != nil {
		return nil, err
	}
	if r := in.Refresh; r != nil {
		a.Refresh = &vault.Refresh{ClientID: *r.ClientID, Endpoint: *r.TokenEndpoint, EndpointAuth: vault.EndpointAuth(*r.EndpointAuth.Type)}
		s.RefreshToken = *r.RefreshToken
		for _, f := range []struct{ from, to *string }{{r.Resource, &a.Refresh.Resource}, {r.Scope, &a.Refresh.Scope}, {r.EndpointAuth.ClientSecret, &s.ClientSecret}} {
			if f.from != nil {
				*f.to = *f.from
			}
		}
	}
	return s, nil
}

func expiry(text *string, was time.Time) (time.Time, error) {
	if text == nil {
		return was, nil
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return was, httpapi.Invalid("auth.expires_at must be a time in RFC 3339")
	}
	return at.UTC().Truncate(time.Microsecond), nil
}

func hosts(in []wire.Text) []string {
	return httpapi.Each(in, func(h wire.Text) string { return string(h) })
}

// ChangeCredential changes the credential that the path names.
func (h *Handlers) ChangeCredential(c *httpapi.Call, in *CredentialChange) (*vault.Credential, error) {
	found, err := h.FindCredential(c)
	if err != nil {
		return nil, err
	}
	return h.Store.Change(c.Context(), found.Tenant, found.Vault, found.ID, func(to *vault.Credential, s *vault.Secret) error {
		to.About = said(to.About, in.DisplayName, in.Metadata)
		was := to.Auth.ExpiresAt
		if in.Auth != nil {
			if err := in.Auth.into(to, s); err != nil {
				return err
			}
		}
		return to.Check(s, !to.Auth.ExpiresAt.Equal(was))
	}, event(c, name(found), "changed"))
}

// into changes a credential and its secrets.
func (in *AuthChange) into(c *vault.Credential, s *vault.Secret) (err error) {
	if vault.Kind(*in.Type) != c.Kind {
		return httpapi.Invalid("auth.type must be %s, as it was: add another credential instead", c.Kind)
	}
	if err := check(c.Kind, []field{
		{"token", in.Token != nil, false, ofBearer},
		{"access_token", in.AccessToken != nil, false, ofOAuth}, {"expires_at", in.ExpiresAt != nil, false, ofOAuth}, {"refresh", in.Refresh != nil, false, ofOAuth},
		{"secret_value", in.SecretValue != nil, false, ofHost}, {"hosts", in.Hosts != nil, false, ofHost},
	}); err != nil {
		return err
	}
	for _, text := range []*string{in.Token, in.AccessToken, in.SecretValue} {
		if text != nil {
			s.Value = *text
		}
	}
	if in.Hosts != nil {
		c.Auth.Binding.Hosts = hosts(*in.Hosts)
	}
	if c.Auth.ExpiresAt, err = expiry(in.ExpiresAt, c.Auth.ExpiresAt); err != nil || in.Refresh == nil {
		return err
	}
	if c.Auth.Refresh == nil {
		return httpapi.Invalid("auth.refresh cannot be given to a credential that was made without it: add another credential instead")
	}
	changed := *c.Auth.Refresh
	c.Auth.Refresh = &changed
	return in.Refresh.into(&changed, s)
}

func (in *RefreshChange) into(r *vault.Refresh, s *vault.Secret) error {
	if in.RefreshToken != nil {
		s.RefreshToken = *in.RefreshToken
	}
	if in.Scope != nil {
		r.Scope = *in.Scope
	}
	if in.EndpointAuth == nil {
		return nil
	}
	if (r.EndpointAuth == vault.AuthNone) != (vault.EndpointAuth(*in.EndpointAuth.Type) == vault.AuthNone) {
		return httpapi.Invalid("auth.refresh.token_endpoint_auth.type must be %s, as it was", r.EndpointAuth)
	}
	if in.EndpointAuth.ClientSecret != nil {
		s.ClientSecret = *in.EndpointAuth.ClientSecret
	}
	return nil
}

// EndCredential archives the credential that the path names.
func (h *Handlers) EndCredential(c *httpapi.Call) (*vault.Credential, error) {
	found, err := h.FindCredential(c)
	if err != nil {
		return nil, err
	}
	return h.Store.ArchiveCredential(c.Context(), found.Tenant, found.Vault, found.ID, event(c, name(found), "archived"))
}

// CredentialPage returns a page of the credentials of the vault that the path names.
func (h *Handlers) CredentialPage(c *httpapi.Call) ([]vault.Credential, string, error) {
	f, err := filter(c)
	if err != nil {
		return nil, "", err
	}
	v, err := h.Find(c)
	if err != nil {
		return nil, "", err
	}
	return h.Store.Credentials(c.Context(), v.Tenant, v.ID, f)
}

// RemoveCredential deletes the credential that the path names.
func (h *Handlers) RemoveCredential(c *httpapi.Call) (out DeletedCredential, err error) {
	found, err := h.FindCredential(c)
	if err != nil {
		return out, err
	}
	return DeletedCredential{string(found.ID), "vault_credential_deleted"}, h.Store.DeleteCredential(c.Context(), found.Tenant, found.Vault, found.ID, event(c, name(found), "deleted"))
}

func (h *Handlers) createCredential(c *httpapi.Call, in *NewCredential) (Credential, error) {
	return shownCredential(h.Add(c, in))
}

func (h *Handlers) updateCredential(c *httpapi.Call, in *CredentialChange) (Credential, error) {
	return shownCredential(h.ChangeCredential(c, in))
}

func (h *Handlers) credential(c *httpapi.Call) (Credential, error) {
	return shownCredential(h.FindCredential(c))
}

func (h *Handlers) archiveCredential(c *httpapi.Call) (Credential, error) {
	return shownCredential(h.EndCredential(c))
}

func (h *Handlers) credentials(c *httpapi.Call) (out httpapi.Page[Credential], err error) {
	page, next, err := h.CredentialPage(c)
	return httpapi.Page[Credential]{Data: httpapi.Each(page, func(of vault.Credential) Credential { return CredentialOf(&of) }), NextPage: httpapi.OrNull(next)}, err
}
