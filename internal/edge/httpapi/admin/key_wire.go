package admin

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Key is an API key as the admin API shows it.
type Key struct {
	ID            string              `json:"id" doc:"key_ and 16 hexadecimal digits."`
	Tenant        string              `json:"tenant" doc:"The tenant's id."`
	Environment   *string             `json:"environment" doc:"Id of the environment that its executions run in; null for a key that only administers."`
	Name          string              `json:"name"`
	Hint          string              `json:"hint" doc:"The key's last four characters."`
	Scopes        []string            `json:"scopes" doc:"Scopes: the operations that the key may call."`
	WebhookURL    *string             `json:"webhook_url" doc:"URL that Atoll notifies about asynchronous executions; null for none."`
	WebhookSigned bool                `json:"webhook_signed" doc:"Whether it has a secret that signs webhooks."`
	EnvVars       map[string]string   `json:"env_vars" doc:"Variables of its executions, over those of the environment."`
	Secrets       []string            `json:"secrets" doc:"Names of the secret ones. Their values are never shown."`
	SecretHosts   map[string][]string `json:"secret_hosts" doc:"Of secrets that programs do not get, the hosts whose requests they are put into."`
	CreatedAt     time.Time           `json:"created_at"`
	ExpiresAt     *time.Time          `json:"expires_at" doc:"null for never."`
	RevokedAt     *time.Time          `json:"revoked_at" doc:"When it was revoked; null while it is valid."`
	Key           string              `json:"key,omitzero" doc:"The key itself: only in the answer that made it."`
}

// KeyChange is what PATCH can change of a key; omitted fields stay unchanged.
type KeyChange struct {
	Name          *string   `json:"name,omitzero" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"`
	Scopes        *[]string `json:"scopes,omitzero" doc:"Of execute, read, tools, sandboxes, environments, admin. Replaces the list. admin is only for keys of the tenant operator."`
	ExpiresAt     *string   `json:"expires_at,omitzero" doc:"A time in RFC 3339, or never."`
	WebhookURL    *string   `json:"webhook_url,omitzero" maxLength:"2048" doc:"HTTPS only; empty for nowhere."`
	WebhookSecret *string   `json:"webhook_secret,omitzero" maxLength:"256" doc:"At least 16 printable characters; empty for unsigned webhooks. Never shown."`

	EnvVars map[string]wire.Text `json:"env_vars,omitzero" nullable:"true" doc:"Variables to set; others stay. They win over those of the environment; the request's own win over them. Rules as in an execution's env_vars."`
	Secrets map[string]wire.Text `json:"secrets,omitzero" nullable:"true" doc:"Secret variables to set; others stay. At least 8 characters each. They are stored encrypted, kept out of output and never shown."`
	Unset   []wire.Text          `json:"unset,omitzero" nullable:"true" doc:"Names of variables and secrets to take away."`

	SecretHosts map[string][]wire.Text `json:"secret_hosts,omitzero" nullable:"true" doc:"Binds secrets to hosts; others stay as they are. The program gets a placeholder, which the network replaces in requests by HTTPS to these hosts alone. Names such as api.example.com, or *.example.com for all below one; an empty list has programs get the secret itself."`
}

// NewKey is the body that makes a key.
type NewKey struct {
	Name          *string       `json:"name" required:"true" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"A name for the key, 1 to 64 letters, digits, dots, underscores and hyphens."`
	Environment   *string       `json:"environment,omitzero" doc:"Id or name of the environment that its executions run in. Required, unless the key only administers."`
	ExpiresIn     *wire.Seconds `json:"expires_in,omitzero" minimum:"1" doc:"Seconds until it expires; instead of expires_at."`
	Scopes        *[]string     `json:"scopes,omitzero" doc:"Of execute, read, tools, sandboxes, environments, admin; execute, read, sandboxes and tools if omitted. admin is only for keys of the tenant operator."`
	ExpiresAt     *string       `json:"expires_at,omitzero" doc:"A time in RFC 3339, or never, which is the default."`
	WebhookURL    *string       `json:"webhook_url,omitzero" maxLength:"2048" doc:"HTTPS only."`
	WebhookSecret *string       `json:"webhook_secret,omitzero" maxLength:"256" doc:"At least 16 printable characters. Never shown."`

	EnvVars map[string]wire.Text `json:"env_vars,omitzero" nullable:"true" doc:"Variables of its executions, over those of the environment. Rules as in an execution's env_vars."`
	Secrets map[string]wire.Text `json:"secrets,omitzero" nullable:"true" doc:"Secret variables. At least 8 characters each. They are stored encrypted, kept out of output and never shown."`

	SecretHosts map[string][]wire.Text `json:"secret_hosts,omitzero" nullable:"true" doc:"Binds secrets to hosts: the program gets a placeholder, which the network replaces in requests by HTTPS to these hosts alone. Names such as api.example.com, or *.example.com for all below one."`
}

func (c KeyChange) domain() (tenant.KeyChange, error) {
	out := tenant.KeyChange{Name: c.Name, WebhookURL: c.WebhookURL, WebhookSecret: c.WebhookSecret, Variables: variablesChange(c.EnvVars, c.Secrets, c.Unset, c.SecretHosts)}
	if c.Scopes != nil {
		scopes := make([]tenant.Scope, len(*c.Scopes))
		for i, s := range *c.Scopes {
			scopes[i] = tenant.Scope(s)
		}
		out.Scopes = &scopes
	}
	if c.ExpiresAt != nil {
		out.ExpiresAt = &time.Time{}
		if *c.ExpiresAt != "never" {
			at, err := parseTime("expires_at", *c.ExpiresAt)
			if err != nil {
				return out, err
			}
			out.ExpiresAt = &at
		}
	}
	return out, nil
}

// maxExpiry is the longest expires_in: a century.
const maxExpiry = 100 * 365 * 24 * 60 * 60

func (n NewKey) domain() (tenant.KeyChange, error) {
	out, err := KeyChange{Scopes: n.Scopes, ExpiresAt: n.ExpiresAt, WebhookURL: n.WebhookURL, WebhookSecret: n.WebhookSecret, EnvVars: n.EnvVars, Secrets: n.Secrets, SecretHosts: n.SecretHosts}.domain()
	if err != nil || n.ExpiresIn == nil {
		return out, err
	}
	switch in := *n.ExpiresIn; {
	case n.ExpiresAt != nil:
		return out, httpapi.Invalid("expires_in and expires_at say the same thing; give one of them")
	case in < 1 || in > maxExpiry:
		return out, httpapi.Invalid("expires_in must be 1 to %d seconds", maxExpiry)
	default:
		at := time.Now().Add(time.Duration(in) * time.Second)
		out.ExpiresAt = &at
	}
	return out, nil
}

func keyOf(k tenant.Key) Key {
	out := Key{
		ID: k.ID, Tenant: k.Tenant, Environment: httpapi.OrNull(k.Environment), Name: k.Name, Hint: k.Hint, Scopes: []string{},
		WebhookURL: httpapi.OrNull(k.WebhookURL), WebhookSigned: k.WebhookSecret != "",
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt,
	}
	out.EnvVars, out.Secrets = variablesWire(k.Env, k.Secrets)
	out.SecretHosts = hostsWire(k.Bound)
	for _, s := range k.Scopes {
		out.Scopes = append(out.Scopes, string(s))
	}
	return out
}
