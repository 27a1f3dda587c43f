package tenant

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/storage"
)

// Store keeps tenants and what is theirs. What does not exist is a NotFound
// fault, a name that is taken a Conflict. Lists are in order of creation.
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
	// ChangeTenant lets change alter a tenant and appends the events it returns,
	// all in one transaction that no other change of the tenant comes between.
	// change must not use the store.
	ChangeTenant(ctx context.Context, id ID, change func(*Tenant) ([]PolicyEvent, error)) (Tenant, error)
	PolicyEvents(ctx context.Context, id ID) ([]PolicyEvent, error) // oldest first

	PutPlan(ctx context.Context, p Plan, events ...PolicyEvent) error
	Plan(ctx context.Context, name string) (Plan, error)
	Plans(ctx context.Context) ([]Plan, error)
	// DeletePlan is a Conflict while tenants have the plan or when it is built in.
	DeletePlan(ctx context.Context, name string, events ...PolicyEvent) error

	// CreateEnvironment and DeleteEnvironment append events in the same transaction.
	CreateEnvironment(ctx context.Context, e Environment, events ...PolicyEvent) error
	UpdateEnvironment(ctx context.Context, e Environment) error
	Environment(ctx context.Context, tenant ID, idOrName string) (Environment, error)
	Environments(ctx context.Context, tenant ID) ([]Environment, error)
	DeleteEnvironment(ctx context.Context, tenant ID, id string, events ...PolicyEvent) error // a Conflict while valid keys are bound to it

	// CreateKey and RevokeKey append events in the same transaction.
	CreateKey(ctx context.Context, k Key, events ...PolicyEvent) error
	UpdateKey(ctx context.Context, k Key) error // name, scopes, webhook, expiry
	Key(ctx context.Context, tenant ID, idOrName string) (Key, error)
	Keys(ctx context.Context, tenant ID) ([]Key, error)
	RevokeKey(ctx context.Context, tenant ID, id string, events ...PolicyEvent) error // by the store's clock; again is no error

	// Principal finds the caller whose key has a hash, with all that bounds it,
	// unless the key is revoked or expired by the store's clock or its tenant
	// disabled: NotFound. left is how long the key is still valid, 0 for ever.
	Principal(ctx context.Context, hash [32]byte) (p Principal, left time.Duration, err error)
	// Enter puts a caller into another environment of its tenant, by id or name, with what
	// may be mounted there.
	Enter(ctx context.Context, p *Principal, idOrName string) error

	TokenStore

	CreateConnection(ctx context.Context, c storage.Connection) error
	UpdateConnection(ctx context.Context, c storage.Connection) error // prefix, mode, target
	Connection(ctx context.Context, tenant ID, idOrSlug string) (storage.Connection, error)
	Connections(ctx context.Context, tenant ID) ([]storage.Connection, error)
	DeleteConnection(ctx context.Context, tenant ID, id string) error // a Conflict while it has grants

	CreateGrant(ctx context.Context, g storage.Grant) error // a Conflict when there is one of the same two
	Grants(ctx context.Context, tenant ID, connection string) ([]storage.Grant, error)
	DeleteGrant(ctx context.Context, tenant ID, connection, id string) error

	// PutTemplate makes or replaces a template and appends the event.
	PutTemplate(ctx context.Context, t Template, e PolicyEvent) error
	Template(ctx context.Context, tenant ID, name string) (Template, error)
	Templates(ctx context.Context, tenant ID) ([]Template, error)
	DeleteTemplate(ctx context.Context, tenant ID, name string, e PolicyEvent) error
}
