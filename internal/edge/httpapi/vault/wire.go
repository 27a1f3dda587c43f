package vault

import (
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi/vaultwire"
)

// NewVault is the body that makes a vault.
type NewVault struct {
	DisplayName *string              `json:"display_name" required:"true" doc:"1 to 255 characters."`
	Metadata    map[string]wire.Text `json:"metadata,omitzero" doc:"Up to 16 pairs; keys of up to 64 characters, values of up to 512."`
}

// VaultChange changes the description of a vault; omitted fields stay unchanged.
type VaultChange struct {
	DisplayName *string               `json:"display_name,omitzero"`
	Metadata    *map[string]wire.Text `json:"metadata,omitzero" doc:"Replaces it."`
}

// NewCredential is the body that adds a credential.
type NewCredential struct {
	Auth        *vaultwire.NewAuth   `json:"auth" required:"true" doc:"Purpose of the credential, with its type."`
	DisplayName *string              `json:"display_name,omitzero"`
	Metadata    map[string]wire.Text `json:"metadata,omitzero" doc:"Up to 16 pairs; keys of up to 64 characters, values of up to 512."`
}

// CredentialChange changes a credential; omitted fields stay unchanged.
type CredentialChange struct {
	Auth        *vaultwire.AuthChange `json:"auth,omitzero" doc:"Purpose of the credential, with its type."`
	DisplayName *string               `json:"display_name,omitzero"`
	Metadata    *map[string]wire.Text `json:"metadata,omitzero" doc:"Replaces it."`
}

// DeletedVault says that a vault is gone.
type DeletedVault struct {
	ID   string `json:"id"`
	Type string `json:"type" enum:"vault_deleted"`
}

// DeletedCredential says that a credential is gone.
type DeletedCredential struct {
	ID   string `json:"id"`
	Type string `json:"type" enum:"vault_credential_deleted"`
}

func texts(in map[string]wire.Text) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for key, value := range in {
		out[key] = string(value)
	}
	return out
}

// edit sets the given parts of a description.
func edit(name *string, metadata *map[string]wire.Text) func(*vault.About) {
	return func(a *vault.About) {
		if name != nil {
			a.Name = *name
		}
		if metadata != nil {
			a.Metadata = texts(*metadata)
		}
	}
}
