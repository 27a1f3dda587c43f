package vaults

import (
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// Auth is the auth of a new credential, or a change of it. Omitted fields are nil. Faults name fields
// by their paths in requests, such as "auth.token".
type Auth struct {
	Kind        vault.Kind
	ServerURL   *string // for an MCP server; cannot change
	Token       *string // of a StaticBearer
	AccessToken *string // of MCPOAuth
	ExpiresAt   *string // of AccessToken, in RFC 3339
	Refresh     *Refresh
	SecretName  *string // of a HostSecret; cannot change
	SecretValue *string
	Hosts       *[]string
}

// Refresh says how to refresh an access token. Only RefreshToken, Scope and the client's secret can
// change.
type Refresh struct {
	ClientID, RefreshToken, Endpoint, Resource, Scope *string

	EndpointAuth *EndpointAuth
}

// EndpointAuth says how the client authenticates at the token endpoint.
type EndpointAuth struct {
	Type         vault.EndpointAuth
	ClientSecret *string
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// check rejects fields that do not belong to the kind of credential, and missing fields of a new one.
func (a *Auth) check(fresh bool) error {
	bearer, oauth, host := []vault.Kind{vault.StaticBearer}, []vault.Kind{vault.MCPOAuth}, []vault.Kind{vault.HostSecret}
	for _, f := range []struct {
		name            string
		given, required bool
		kinds           []vault.Kind
	}{
		{"mcp_server_url", a.ServerURL != nil, true, slices.Concat(bearer, oauth)},
		{"token", a.Token != nil, true, bearer},
		{"access_token", a.AccessToken != nil, true, oauth}, {"expires_at", a.ExpiresAt != nil, false, oauth}, {"refresh", a.Refresh != nil, false, oauth},
		{"secret_name", a.SecretName != nil, true, host}, {"secret_value", a.SecretValue != nil, true, host}, {"hosts", a.Hosts != nil, true, host},
	} {
		switch has := slices.Contains(f.kinds, a.Kind); {
		case f.given && !has:
			return invalid("auth.%s has no meaning with the type %s", f.name, a.Kind)
		case fresh && has && f.required && !f.given:
			return invalid("auth.%s is required with the type %s", f.name, a.Kind)
		}
	}
	return nil
}

// apply sets the given fields of a credential and its secrets. fresh says that the credential is new.
func (a *Auth) apply(c *vault.Credential, s *vault.Secret, fresh bool) error {
	if a.Kind != c.Kind {
		return invalid("auth.type must be %s, as it was: add another credential instead", c.Kind)
	}
	if err := a.check(fresh); err != nil {
		return err
	}
	set(&s.Value, a.Token)
	set(&s.Value, a.AccessToken)
	set(&s.Value, a.SecretValue)
	set(&c.Auth.ServerURL, a.ServerURL)
	set(&c.Auth.Variable, a.SecretName)
	set(&c.Auth.Binding.Hosts, a.Hosts)
	if a.ExpiresAt != nil {
		at, err := time.Parse(time.RFC3339, *a.ExpiresAt)
		if err != nil {
			return invalid("auth.expires_at must be a time in RFC 3339")
		}
		c.Auth.ExpiresAt = at.UTC().Truncate(time.Microsecond)
	}
	if a.Refresh == nil {
		return nil
	}
	return a.Refresh.apply(c, s, fresh)
}

func (r *Refresh) apply(c *vault.Credential, s *vault.Secret, fresh bool) error {
	var to vault.Refresh
	switch {
	case fresh:
	case c.Auth.Refresh == nil:
		return invalid("auth.refresh cannot be given to a credential that was made without it: add another credential instead")
	default:
		to = *c.Auth.Refresh
	}
	set(&to.ClientID, r.ClientID)
	set(&to.Endpoint, r.Endpoint)
	set(&to.Resource, r.Resource)
	set(&to.Scope, r.Scope)
	set(&s.RefreshToken, r.RefreshToken)
	if e := r.EndpointAuth; e != nil {
		if fresh {
			to.EndpointAuth = e.Type
		}
		if (to.EndpointAuth == vault.AuthNone) != (e.Type == vault.AuthNone) {
			return invalid("auth.refresh.token_endpoint_auth.type must be %s, as it was", to.EndpointAuth)
		}
		set(&s.ClientSecret, e.ClientSecret)
	}
	c.Auth.Refresh = &to
	return nil
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
