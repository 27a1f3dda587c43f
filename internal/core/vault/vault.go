// Package vault is credentials for sessions of agents: what MCP servers and hosts are asked
// with. The host sends them; programs and models do not see them. The package knows no HTTP,
// SQL or provider.
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

// NewID returns an ID that no other vault has.
func NewID() ID { return ID(id.New("vlt")) }

// NewCredentialID returns an ID that no other credential has.
func NewCredentialID() CredentialID { return CredentialID(id.New("vcrd")) }

// Valid reports whether i is one that a vault can have.
func (i ID) Valid() bool { return id.Is("vlt", string(i)) }

// Valid reports whether i is one that a credential can have.
func (i CredentialID) Valid() bool { return id.Is("vcrd", string(i)) }

// Vault is a group of credentials, such as those of one user of the tenant's.
type Vault struct {
	ID         ID
	Tenant     tenant.ID
	About      About
	CreatedAt  time.Time
	UpdatedAt  time.Time
	ArchivedAt time.Time // zero for one that is in use
}

// Archived reports whether v takes no changes, and no session has it any more.
func (v *Vault) Archived() bool { return !v.ArchivedAt.IsZero() }

// About is what a tenant says of a vault or a credential.
type About struct {
	Name     string            `json:",omitzero"`
	Metadata map[string]string `json:",omitempty"`
}

// Kind says how a credential is used.
type Kind string

// Kinds of credentials.
const (
	StaticBearer Kind = "static_bearer" // a token for an MCP server
	MCPOAuth     Kind = "mcp_oauth"     // a token for an MCP server that can be refreshed
	HostSecret   Kind = "host_secret"   // a variable of programs that is sent to some hosts
)

// Credential is a credential without what is secret of it.
type Credential struct {
	ID         CredentialID
	Vault      ID
	Tenant     tenant.ID
	Kind       Kind
	About      About
	Auth       Auth
	Version    int64 // grows with each change
	CreatedAt  time.Time
	UpdatedAt  time.Time
	ArchivedAt time.Time // zero for one that is in use; its secrets are gone otherwise
}

// Archived reports whether c is used no more.
func (c *Credential) Archived() bool { return !c.ArchivedAt.IsZero() }

// Auth is what a credential is for.
type Auth struct {
	ServerURL string    `json:",omitzero"` // of the MCP server
	ExpiresAt time.Time `json:",omitzero"` // of the access token; zero for not known
	Refresh   *Refresh  `json:",omitempty"`

	Variable string         `json:",omitzero"` // of a HostSecret
	Binding  tenant.Binding `json:",omitzero"` // likewise
}

// Refresh says how an access token is refreshed.
type Refresh struct {
	ClientID     string
	Endpoint     string // URL
	EndpointAuth EndpointAuth
	Resource     string `json:",omitzero"`
	Scope        string `json:",omitzero"`
}

// EndpointAuth says how a client shows who it is where tokens are refreshed.
type EndpointAuth string

// Kinds of EndpointAuth, by OAuth's names.
const (
	AuthNone  EndpointAuth = "none"
	AuthBasic EndpointAuth = "client_secret_basic"
	AuthPost  EndpointAuth = "client_secret_post"
)

// Secret is what is secret of a credential.
type Secret struct {
	Value        string // the token, or the variable's
	RefreshToken string `json:",omitzero"`
	ClientSecret string `json:",omitzero"`
}

// Held is a credential with its secret, as the host uses it.
type Held struct {
	Credential
	Secret Secret
}

// Identity is what no two credentials of a vault that are in use are for.
func (c *Credential) Identity() (string, error) {
	if c.Kind == HostSecret {
		return "variable/" + c.Auth.Variable, nil
	}
	return ServerIdentity(c.Auth.ServerURL)
}

var (
	// ErrNotFound says that a tenant has no such vault.
	ErrNotFound = fault.New(fault.NotFound, "vault not found")
	// ErrNoCredential says that a vault has no such credential.
	ErrNoCredential = fault.New(fault.NotFound, "credential not found")
	// ErrArchived refuses changes of a vault that is archived, and its use.
	ErrArchived = fault.New(fault.Conflict, "the vault is archived")
	// ErrCredentialArchived refuses changes of a credential that is archived.
	ErrCredentialArchived = fault.New(fault.Conflict, "the credential is archived")
	// ErrTaken refuses a second credential for the same.
	ErrTaken = fault.New(fault.Conflict, "the vault has a credential for this MCP server or of this name: change or archive it first")
)
