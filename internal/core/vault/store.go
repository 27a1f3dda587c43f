package vault

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store keeps vaults. All but ids and times is encrypted with the tenant's key. What another
// tenant has is not found. Those that change something append events in the same transaction.
type Store interface {
	// Create records a vault. It is an Exhausted fault where the tenant has most; 0 for any
	// number.
	Create(ctx context.Context, v *Vault, most int, events ...tenant.PolicyEvent) error
	Get(ctx context.Context, t tenant.ID, id ID) (*Vault, error)
	// List returns a page of vaults, newest first, and where the next one begins; "" at the
	// end. Credentials does so with those of a vault.
	List(ctx context.Context, t tenant.ID, f Filter) (page []Vault, next string, err error)
	// Update replaces what is said of a vault. It is ErrArchived for one that is archived.
	Update(ctx context.Context, t tenant.ID, id ID, about About, events ...tenant.PolicyEvent) (*Vault, error)
	// Archive archives a vault and its credentials, and removes their secrets. Again is no
	// error, and no event.
	Archive(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) (*Vault, error)
	// Delete removes a vault with its credentials.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error

	// Add records a credential of a vault: ErrTaken where one in use is for the same, an
	// Exhausted fault where the vault has MaxCredentials.
	Add(ctx context.Context, c *Credential, s Secret, events ...tenant.PolicyEvent) error
	Credential(ctx context.Context, t tenant.ID, v ID, id CredentialID) (*Credential, error)
	Credentials(ctx context.Context, t tenant.ID, v ID, f Filter) (page []Credential, next string, err error)
	// Change changes a credential while nothing else does. What it is for stays.
	Change(ctx context.Context, t tenant.ID, v ID, id CredentialID, change func(*Credential, *Secret) error, events ...tenant.PolicyEvent) (*Credential, error)
	// ArchiveCredential ends the use of a credential, and removes its secrets. Again is no
	// error, and no event.
	ArchiveCredential(ctx context.Context, t tenant.ID, v ID, id CredentialID, events ...tenant.PolicyEvent) (*Credential, error)
	DeleteCredential(ctx context.Context, t tenant.ID, v ID, id CredentialID, events ...tenant.PolicyEvent) error

	// ForServer returns the credential in use for an MCP server, of the first vault that has
	// one; nil for none.
	ForServer(ctx context.Context, t tenant.ID, vaults []ID, url string) (*Held, error)
	// Hosts returns the HostSecrets in use, the first one of each name.
	Hosts(ctx context.Context, t tenant.ID, vaults []ID) ([]Held, error)
	// Lease reports whether the caller may refresh a credential, which is as it was read. It
	// is so until a change, or until the lease has run out; 0 gives it back.
	Lease(ctx context.Context, c *Credential, d time.Duration) (bool, error)
}

// Page is a part of a list.
type Page struct {
	Cursor string // what the page before gave as next; "" for the first one
	Limit  int
}

// Filter chooses vaults or credentials.
type Filter struct {
	Page
	Archived bool // those that are archived, too
}

// DimensionVaults and DimensionCredentials are the dimensions of the limits.
const (
	DimensionVaults      = "vaults"
	DimensionCredentials = "vault_credentials"
)

// Room refuses another vault of a tenant that has so many.
func Room(has, most int) error {
	if most > 0 && has >= most {
		return fault.Limit(DimensionVaults, time.Time{}, "this tenant has reached its limit of %d vaults; delete some first", has)
	}
	return nil
}

// RoomFor refuses another credential of a vault that has so many, and so many in use.
func RoomFor(all, used int) error {
	switch {
	case used >= MaxCredentials:
		return fault.Limit(DimensionCredentials, time.Time{}, "this vault has reached its limit of %d active credentials; archive or delete some first", used)
	case all >= MaxAll:
		return fault.Limit(DimensionCredentials, time.Time{}, "this vault has reached its limit of %d credentials, including archived ones; delete some first", all)
	}
	return nil
}
