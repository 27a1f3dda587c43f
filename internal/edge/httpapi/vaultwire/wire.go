// Package vaultwire is the JSON of vaults and credentials that the native and the Anthropic-compatible
// API share.
package vaultwire

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/wire"
)

// Vault is a group of credentials, such as those of one user of yours.
type Vault struct {
	ID          string            `json:"id" doc:"vlt_ and 32 hexadecimal digits."`
	Type        string            `json:"type" enum:"vault"`
	DisplayName string            `json:"display_name"`
	Metadata    map[string]string `json:"metadata"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	ArchivedAt  *time.Time        `json:"archived_at"`
}

// NewAuth is what a credential is for, with its secrets, which are never shown.
type NewAuth struct {
	Type        *string      `json:"type" required:"true" enum:"static_bearer,mcp_oauth,host_secret"`
	ServerURL   *string      `json:"mcp_server_url,omitzero" doc:"Of static_bearer and mcp_oauth: the MCP server that the token is for."`
	Token       *string      `json:"token,omitzero" doc:"Of static_bearer."`
	AccessToken *string      `json:"access_token,omitzero" doc:"Of mcp_oauth."`
	ExpiresAt   *string      `json:"expires_at,omitzero" format:"date-time" doc:"Of mcp_oauth: when access_token expires, in RFC 3339."`
	Refresh     *NewRefresh  `json:"refresh,omitzero" doc:"Of mcp_oauth: how another access token is had."`
	SecretName  *string      `json:"secret_name,omitzero" doc:"Of host_secret: the variable of programs, which holds a placeholder."`
	SecretValue *string      `json:"secret_value,omitzero" doc:"Of host_secret: the value that Atoll sends to the hosts."`
	Hosts       *[]wire.Text `json:"hosts,omitzero" doc:"Of host_secret: names of hosts, and *.example.com for all below one."`
}

// NewRefresh says how an access token is refreshed.
type NewRefresh struct {
	ClientID      *string          `json:"client_id" required:"true" doc:"The client that the token endpoint knows."`
	RefreshToken  *string          `json:"refresh_token" required:"true" doc:"Refresh token, which the token endpoint exchanges for access tokens; never shown."`
	TokenEndpoint *string          `json:"token_endpoint" required:"true" doc:"The URL that gives access tokens."`
	EndpointAuth  *NewEndpointAuth `json:"token_endpoint_auth" required:"true" doc:"How the client shows the token endpoint who it is."`
	Resource      *string          `json:"resource,omitzero" doc:"The resource that the token is for, if the endpoint wants one."`
	Scope         *string          `json:"scope,omitzero" doc:"Scope to request for the token, if the endpoint requires one."`
}

// NewEndpointAuth says how the client shows who it is.
type NewEndpointAuth struct {
	Type         *string `json:"type" required:"true" enum:"none,client_secret_basic,client_secret_post"`
	ClientSecret *string `json:"client_secret,omitzero" doc:"Of client_secret_basic and client_secret_post: the client's secret, which is never shown."`
}

// AuthChange changes the secrets of a credential, but not its purpose.
type AuthChange struct {
	Type        *string        `json:"type" required:"true" enum:"static_bearer,mcp_oauth,host_secret" doc:"Type of the credential."`
	Token       *string        `json:"token,omitzero" doc:"Of static_bearer: another token. If omitted, it stays."`
	AccessToken *string        `json:"access_token,omitzero" doc:"Of mcp_oauth: another access token. If omitted, it stays."`
	ExpiresAt   *string        `json:"expires_at,omitzero" format:"date-time" doc:"Of mcp_oauth: when access_token expires, in RFC 3339."`
	Refresh     *RefreshChange `json:"refresh,omitzero" doc:"Of mcp_oauth: how another access token is had."`
	SecretValue *string        `json:"secret_value,omitzero" doc:"Of host_secret: another value. If omitted, it stays."`
	Hosts       *[]wire.Text   `json:"hosts,omitzero" doc:"Replaces them."`
}

// RefreshChange changes how an access token is refreshed.
type RefreshChange struct {
	RefreshToken *string          `json:"refresh_token,omitzero" doc:"Refresh token, which the token endpoint exchanges for access tokens; never shown."`
	Scope        *string          `json:"scope,omitzero" doc:"Empty for none."`
	EndpointAuth *NewEndpointAuth `json:"token_endpoint_auth,omitzero" doc:"Another client_secret. The type stays what it is."`
}

// Credential is a credential, without its secrets.
type Credential struct {
	ID          string            `json:"id" doc:"vcrd_ and 32 hexadecimal digits."`
	Type        string            `json:"type" enum:"vault_credential"`
	VaultID     string            `json:"vault_id" doc:"The vault that it is in."`
	DisplayName *string           `json:"display_name"`
	Auth        CredentialAuth    `json:"auth" doc:"Purpose of the credential, with its type."`
	Metadata    map[string]string `json:"metadata"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	ArchivedAt  *time.Time        `json:"archived_at"`
}

// CredentialAuth is what a credential is for.
type CredentialAuth struct {
	Type       string             `json:"type" enum:"static_bearer,mcp_oauth,host_secret"`
	ServerURL  *string            `json:"mcp_server_url,omitzero" doc:"Of static_bearer and mcp_oauth: the MCP server that the token is for."`
	ExpiresAt  *time.Time         `json:"expires_at,omitzero" doc:"Of mcp_oauth: when the access token expires; null where that is not known."`
	Refresh    *CredentialRefresh `json:"refresh,omitzero" doc:"Of mcp_oauth: how another access token is had."`
	SecretName *string            `json:"secret_name,omitzero" doc:"Of host_secret: the variable of programs, which holds a placeholder."`
	Hosts      []string           `json:"hosts,omitzero" doc:"Of host_secret: the hosts that the secret is sent to."`
}

// CredentialRefresh says how an access token is refreshed.
type CredentialRefresh struct {
	ClientID      string       `json:"client_id" doc:"The client that the token endpoint knows."`
	TokenEndpoint string       `json:"token_endpoint" doc:"The URL that gives access tokens."`
	EndpointAuth  EndpointAuth `json:"token_endpoint_auth" doc:"How the client shows the token endpoint who it is."`
	Resource      *string      `json:"resource" doc:"The resource that the token is for, if the endpoint wants one."`
	Scope         *string      `json:"scope" doc:"Scope to request for the token, if the endpoint requires one."`
}

// EndpointAuth says how the client shows who it is.
type EndpointAuth struct {
	Type string `json:"type" enum:"none,client_secret_basic,client_secret_post"`
}
