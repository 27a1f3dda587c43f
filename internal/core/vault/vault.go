// Package vault holds the credentials that agent sessions use for MCP servers and hosts. The host
// sends them; programs and models never see them. The package does not depend on HTTP, SQL or a
// provider.
package vault

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// ID names a vault: "vlt_" and 32 hexadecimal digits.
type ID string

// CredentialID names a credential: "vcrd_" and 32 hexadecimal digits.
type CredentialID string

// NewID returns a unique ID.
func NewID() ID { return ID(id.New("vlt")) }

// NewCredentialID returns a unique ID.
func NewCredentialID() CredentialID { return CredentialID(id.New("vcrd")) }

// Valid reports whether i is well-formed.
func (i ID) Valid() bool { return id.Is("vlt", string(i)) }

// Valid reports whether i is well-formed.
func (i CredentialID) Valid() bool { return id.Is("vcrd", string(i)) }

// Vault is a group of credentials, such as those of one of the tenant's users.
type Vault struct {
	ID         ID
	Tenant     tenant.ID
	About      About
	CreatedAt  time.Time
	UpdatedAt  time.Time
	ArchivedAt time.Time // zero while the vault is active
}

// Archived reports whether v rejects changes and sessions cannot use it.
func (v *Vault) Archived() bool { return !v.ArchivedAt.IsZero() }

// About is a tenant's description of a vault or a credential.
type About struct {
	Name     string            `json:",omitzero"`
	Metadata map[string]string `json:",omitempty"`
}

// Kind says how a credential is used.
type Kind string

// Kinds of credentials.
const (
	StaticBearer Kind = "static_bearer" // a token for an MCP server
	MCPOAuth     Kind = "mcp_oauth"     // a refreshable token for an MCP server
	HostSecret   Kind = "host_secret"   // a variable of programs that only some hosts receive
)

// Credential is a credential without its secrets.
type Credential struct {
	ID         CredentialID
	Vault      ID
	Tenant     tenant.ID
	Kind       Kind
	About      About
	Auth       Auth
	Version    int64 // increases with each change
	CreatedAt  time.Time
	UpdatedAt  time.Time
	ArchivedAt time.Time // zero while the credential is active; archiving deletes its secrets
}

// Archived reports whether c is archived.
func (c *Credential) Archived() bool { return !c.ArchivedAt.IsZero() }

// Auth says what a credential is used for.
type Auth struct {
	ServerURL string    `json:",omitzero"` // of the MCP server
	ExpiresAt time.Time `json:",omitzero"` // of the access token; zero if unknown
	Refresh   *Refresh  `json:",omitempty"`

	Variable string         `json:",omitzero"` // for a HostSecret
	Binding  tenant.Binding `json:",omitzero"` // for a HostSecret
}

// Refresh says how to refresh an access token.
type Refresh struct {
	ClientID     string
	Endpoint     string // URL
	EndpointAuth EndpointAuth
	Resource     string `json:",omitzero"`
	Scope        string `json:",omitzero"`
}

// EndpointAuth says how the client authenticates at the token endpoint.
type EndpointAuth string

// Kinds of EndpointAuth, by their OAuth names.
const (
	AuthNone  EndpointAuth = "none"
	AuthBasic EndpointAuth = "client_secret_basic"
	AuthPost  EndpointAuth = "client_secret_post"
)

// Secret holds the secrets of a credential.
type Secret struct {
	Value        string // the token, or the value of the variable
	RefreshToken string `json:",omitzero"`
	ClientSecret string `json:",omitzero"`
}

// Held is a credential with its secrets, as the host uses it.
type Held struct {
	Credential
	Secret Secret
}

// Identity returns a key that is unique among the active credentials of a vault.
func (c *Credential) Identity() (string, error) {
	if c.Kind == HostSecret {
		return "variable/" + c.Auth.Variable, nil
	}
	return ServerIdentity(c.Auth.ServerURL)
}

var (
	// ErrNotFound is returned if the tenant has no such vault.
	ErrNotFound = fault.New(fault.NotFound, "vault not found")
	// ErrNoCredential is returned if the vault has no such credential.
	ErrNoCredential = fault.New(fault.NotFound, "credential not found")
	// ErrArchived rejects changes and use of an archived vault.
	ErrArchived = fault.New(fault.Conflict, "the vault is archived")
	// ErrCredentialArchived rejects changes of an archived credential.
	ErrCredentialArchived = fault.New(fault.Conflict, "the credential is archived")
	// ErrTaken rejects a second credential with the same identity.
	ErrTaken = fault.New(fault.Conflict, "the vault has a credential for this MCP server or of this name: change or archive it first")
)
