package anthropic

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// VaultFields is the body that makes or changes a vault.
type VaultFields struct {
	DisplayName *string        `json:"display_name,omitzero"`
	Metadata    jsontext.Value `json:"metadata,omitzero"`
}

// CredentialFields is the body that adds or changes a credential.
type CredentialFields struct {
	Auth        jsontext.Value `json:"auth,omitzero"`
	DisplayName *string        `json:"display_name,omitzero"`
	Metadata    jsontext.Value `json:"metadata,omitzero"`
}

// VariableFields is the auth of a new credential of the type environment_variable, and of a
// change of it.
type VariableFields struct {
	Type       *string               `json:"type" required:"true"`
	Name       *string               `json:"secret_name,omitzero"`
	Value      *string               `json:"secret_value,omitzero"`
	Networking *CredentialNetworking `json:"networking,omitzero"`
	Location   *LocationFields       `json:"injection_location,omitzero"`
}

// CredentialNetworking says which hosts a secret is sent to.
type CredentialNetworking struct {
	Type         *string   `json:"type" required:"true"`
	AllowedHosts *[]string `json:"allowed_hosts,omitzero"`
}

// LocationFields says where in requests a secret is put.
type LocationFields struct {
	Body   *bool `json:"body,omitzero"`
	Header *bool `json:"header,omitzero"`
}

// Credential is a credential of a vault, without its secrets.
type Credential struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	VaultID     string            `json:"vault_id"`
	DisplayName *string           `json:"display_name"`
	Auth        any               `json:"auth"` // a vaultwire.CredentialAuth, or a VariableAuth
	Metadata    map[string]string `json:"metadata"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	ArchivedAt  *time.Time        `json:"archived_at"`
}

// VariableAuth is a secret of hosts.
type VariableAuth struct {
	Type       string          `json:"type"`
	Name       string          `json:"secret_name"`
	Networking LimitedHosts    `json:"networking"`
	Location   SecretLocations `json:"injection_location"`
}

// LimitedHosts are the hosts that a secret is sent to.
type LimitedHosts struct {
	Type         string   `json:"type"`
	AllowedHosts []string `json:"allowed_hosts"`
}

// SecretLocations are the parts of requests that a secret is put into.
type SecretLocations struct {
	Body   bool `json:"body"`
	Header bool `json:"header"`
}
