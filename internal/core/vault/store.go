package vault

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store keeps vaults and encrypts everything except ids and times with the tenant's key. It returns
// a NotFound fault for another tenant's vault. Methods that change something append events in the
// same transaction.
type Store interface {
	// Create records a vault. It returns an Exhausted fault if the tenant has most vaults; 0 means
	// unlimited.
	Create(ctx context.Context, v *Vault, most int, events ...tenant.PolicyEvent) error
	Get(ctx context.Context, t tenant.ID, id ID) (*Vault, error)
	// List returns a page of vaults, newest first, and the cursor of the next page; "" at the end.
	// Credentials does the same for a vault's credentials.
	List(ctx context.Context, t tenant.ID, f Filter) (page []Vault, next string, err error)
	// Update replaces a vault's description. It returns ErrArchived for an archived vault.
	Update(ctx context.Context, t tenant.ID, id ID, about About, events ...tenant.PolicyEvent) (*Vault, error)
	// Archive archives a vault and its credentials and deletes their secrets. Archiving again
	// succeeds without an event.
	Archive(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) (*Vault, error)
	// Delete deletes a vault with its credentials.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error

	// Add records a credential of a vault. It returns ErrTaken if an active credential has the same
	// identity, and an Exhausted fault if the vault has MaxCredentials.
	Add(ctx context.Context, c *Credential, s Secret, events ...tenant.PolicyEvent) error
	Credential(ctx context.Context, t tenant.ID, v ID, id CredentialID) (*Credential, error)
	Credentials(ctx context.Context, t tenant.ID, v ID, f Filter) (page []Credential, next string, err error)
	// Change changes a credential while no other call does. Its identity cannot change.
	Change(ctx context.Context, t tenant.ID, v ID, id CredentialID, change func(*Credential, *Secret) error, events ...tenant.PolicyEvent) (*Credential, error)
	// ArchiveCredential archives a credential and deletes its secrets. Archiving again succeeds
	// without an event.
	ArchiveCredential(ctx context.Context, t tenant.ID, v ID, id CredentialID, events ...tenant.PolicyEvent) (*Credential, error)
	DeleteCredential(ctx context.Context, t tenant.ID, v ID, id CredentialID, events ...tenant.PolicyEvent) error

	// ForServer returns the active credential for an MCP server from the first vault that has one,
	// or nil.
	ForServer(ctx context.Context, t tenant.ID, vaults []ID, url string) (*Held, error)
	// Hosts returns the active HostSecrets, the first one of each name.
	Hosts(ctx context.Context, t tenant.ID, vaults []ID) ([]Held, error)
	// Lease reports whether the caller may refresh a credential, which must be unchanged since it
	// was read. The lease lasts until a change of the credential or until d has passed; d = 0 gives
	// it back.
	Lease(ctx context.Context, c *Credential, d time.Duration) (bool, error)
}

// Page selects a page of a list.
type Page struct {
	Cursor string // next of the previous page; "" for the first page
	Limit  int
}

// Filter selects vaults or credentials.
type Filter struct {
	Page
	Archived bool // include archived ones
}

// DimensionVaults and DimensionCredentials name the limits in Exhausted faults.
const (
	DimensionVaults      = "vaults"
	DimensionCredentials = "vault_credentials"
)

// Room rejects another vault if the tenant has most vaults.
func Room(has, most int) error {
	if most > 0 && has >= most {
		return fault.Limit(DimensionVaults, time.Time{}, "this tenant has reached its limit of %d vaults; delete some first", has)
	}
	return nil
}

// RoomFor rejects another credential if the vault has too many in total or too many active ones.
func RoomFor(all, used int) error {
	switch {
	case used >= MaxCredentials:
		return fault.Limit(DimensionCredentials, time.Time{}, "this vault has reached its limit of %d active credentials; archive or delete some first", used)
	case all >= MaxAll:
		return fault.Limit(DimensionCredentials, time.Time{}, "this vault has reached its limit of %d credentials, including archived ones; delete some first", all)
	}
	return nil
}
