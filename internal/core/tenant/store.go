package tenant

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/storage"
)

// Store keeps tenants and their resources. It returns a NotFound fault for an unknown resource and
// a Conflict fault for a taken name. Lists are in order of creation.
type Store interface {
	// CreateTenant, PutPlan and DeletePlan append events in the same transaction.
	CreateTenant(ctx context.Context, t Tenant, events ...PolicyEvent) error
	// CreateTenantWithEnvironment creates both, or neither.
	CreateTenantWithEnvironment(ctx context.Context, t Tenant, e Environment, events ...PolicyEvent) error
	// Tenant also finds erased tenants by id.
	Tenant(ctx context.Context, idOrName string) (Tenant, error)
	Tenants(ctx context.Context) ([]Tenant, error) // without erased ones
	// DeleteTenant starts the deletion of a tenant: it revokes the keys and disables the tenant.
	// If the tenant is already being deleted, it changes nothing and appends no events.
	DeleteTenant(ctx context.Context, id ID, events ...PolicyEvent) (Tenant, error)
	// ChangeTenant applies change to a tenant and appends the events that it returns, in one
	// transaction that excludes other changes of the tenant. change must not use the store.
	ChangeTenant(ctx context.Context, id ID, change func(*Tenant) ([]PolicyEvent, error)) (Tenant, error)
	PolicyEvents(ctx context.Context, id ID) ([]PolicyEvent, error) // oldest first

	PutPlan(ctx context.Context, p Plan, events ...PolicyEvent) error
	Plan(ctx context.Context, name string) (Plan, error)
	Plans(ctx context.Context) ([]Plan, error)
	// DeletePlan returns a Conflict fault if tenants use the plan or it is built in.
	DeletePlan(ctx context.Context, name string, events ...PolicyEvent) error

	// CreateEnvironment and DeleteEnvironment append events in the same transaction.
	CreateEnvironment(ctx context.Context, e Environment, events ...PolicyEvent) error
	UpdateEnvironment(ctx context.Context, e Environment) error
	Environment(ctx context.Context, tenant ID, idOrName string) (Environment, error)
	Environments(ctx context.Context, tenant ID) ([]Environment, error)
	DeleteEnvironment(ctx context.Context, tenant ID, id string, events ...PolicyEvent) error // a Conflict fault while valid keys are bound to it

	// CreateKey and RevokeKey append events in the same transaction.
	CreateKey(ctx context.Context, k Key, events ...PolicyEvent) error
	UpdateKey(ctx context.Context, k Key) error // name, scopes, webhook, expiry
	Key(ctx context.Context, tenant ID, idOrName string) (Key, error)
	Keys(ctx context.Context, tenant ID) ([]Key, error)
	RevokeKey(ctx context.Context, tenant ID, id string, events ...PolicyEvent) error // by the store's clock; idempotent

	// Principal returns the caller whose key has a hash, with its limits. It returns a NotFound
	// fault if the key is revoked, has expired by the store's clock, or its tenant is disabled.
	// left is the key's remaining validity, 0 for no expiry.
	Principal(ctx context.Context, hash [32]byte) (p Principal, left time.Duration, err error)
	// Enter moves a caller into another environment of its tenant, by id or name, with the mounts
	// allowed there.
	Enter(ctx context.Context, p *Principal, idOrName string) error

	TokenStore

	CreateConnection(ctx context.Context, c storage.Connection) error
	UpdateConnection(ctx context.Context, c storage.Connection) error // prefix, mode, target
	Connection(ctx context.Context, tenant ID, idOrSlug string) (storage.Connection, error)
	Connections(ctx context.Context, tenant ID) ([]storage.Connection, error)
	DeleteConnection(ctx context.Context, tenant ID, id string) error // a Conflict fault while the connection has grants

	CreateGrant(ctx context.Context, g storage.Grant) error // a Conflict fault if the environment or key already has a grant for the connection
	Grants(ctx context.Context, tenant ID, connection string) ([]storage.Grant, error)
	DeleteGrant(ctx context.Context, tenant ID, connection, id string) error

	// PutTemplate creates or replaces a template and appends the event.
	PutTemplate(ctx context.Context, t Template, e PolicyEvent) error
	Template(ctx context.Context, tenant ID, name string) (Template, error)
	Templates(ctx context.Context, tenant ID) ([]Template, error)
	DeleteTemplate(ctx context.Context, tenant ID, name string, e PolicyEvent) error
}
