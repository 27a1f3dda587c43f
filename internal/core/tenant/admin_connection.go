package tenant

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// ConnectionChange changes a connection; nil keeps a field.
type ConnectionChange struct {
	Prefix      *string
	ReadOnly    *bool
	Credentials *storage.Credentials // replaces all of them
}

// GrantTo names the environment or key, by id or name, that mounts a connection.
type GrantTo struct {
	Environment, Key string
	Prefix           string
	ReadOnly         bool
}

// CreateConnection creates a connection after checking that its storage is reachable. It parses
// prefix into c.Prefix.
func (a *Admin) CreateConnection(ctx context.Context, tenant, prefix string, c storage.Connection) (storage.Connection, error) {
	t, err := a.Changeable(ctx, tenant)
	if err != nil {
		return storage.Connection{}, err
	}
	c.ID, c.Tenant, c.CreatedAt = NewID("con"), t.ID, now()
	if c.Prefix, err = storage.ParsePath("prefix", prefix); err != nil {
		return storage.Connection{}, err
	}
	if err := a.reach(ctx, &c); err != nil {
		return storage.Connection{}, err
	}
	defer a.changing()()
	if _, err := a.Changeable(ctx, t.ID); err != nil { // a concurrent deletion may have removed the tenant and its records
		return storage.Connection{}, err
	}
	if err := a.store.CreateConnection(ctx, c); err != nil {
		return storage.Connection{}, err
	}
	return a.store.Connection(ctx, t.ID, c.ID)
}

// reach validates a connection and checks that its storage is reachable. It may be slow, so callers
// must not hold mu.
func (a *Admin) reach(ctx context.Context, c *storage.Connection) error {
	if err := c.Check(); err != nil {
		return err
	}
	return a.cfg.Reach(ctx, c)
}

// ChangeConnection changes a connection. Its target cannot change, except for the credentials.
func (a *Admin) ChangeConnection(ctx context.Context, tenant, idOrSlug string, change ConnectionChange) (storage.Connection, error) {
	c, err := a.Connection(ctx, tenant, idOrSlug)
	if err != nil {
		return storage.Connection{}, err
	}
	set(&c.ReadOnly, change.ReadOnly)
	set(&c.Credentials, change.Credentials)
	if change.Prefix != nil {
		if c.Prefix, err = storage.ParsePath("prefix", *change.Prefix); err != nil {
			return storage.Connection{}, err
		}
	}
	if err := a.reach(ctx, &c); err != nil {
		return storage.Connection{}, err
	}
	defer a.changing()()
	grants, err := a.store.Grants(ctx, c.Tenant, c.ID)
	if err != nil {
		return storage.Connection{}, err
	}
	for _, g := range grants {
		if g.Prefix != "" && !g.Prefix.Within(c.Prefix) {
			return storage.Connection{}, fault.New(fault.Conflict, "the grant %s has the prefix %q, which is outside %q; remove the grant first", g.ID, g.Prefix, c.Prefix)
		}
	}
	if err := a.store.UpdateConnection(ctx, c); err != nil {
		return storage.Connection{}, err
	}
	return a.store.Connection(ctx, c.Tenant, c.ID)
}

// Connection returns a connection by its id or slug.
func (a *Admin) Connection(ctx context.Context, tenant, idOrSlug string) (storage.Connection, error) {
	t, err := a.find(ctx, tenant)
	if err != nil {
		return storage.Connection{}, err
	}
	return a.store.Connection(ctx, t.ID, idOrSlug)
}

// Connections returns a tenant's connections.
func (a *Admin) Connections(ctx context.Context, tenant string) ([]storage.Connection, error) {
	t, err := a.find(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return a.store.Connections(ctx, t.ID)
}

// DeleteConnection deletes a connection that no environment or key mounts. It does not touch the
// stored data.
func (a *Admin) DeleteConnection(ctx context.Context, tenant, idOrSlug string) error {
	defer a.changing()()
	c, err := a.Connection(ctx, tenant, idOrSlug)
	if err != nil {
		return err
	}
	return a.store.DeleteConnection(ctx, c.Tenant, c.ID)
}

// Grant lets an environment or a key mount a connection.
func (a *Admin) Grant(ctx context.Context, tenant, connection string, to GrantTo) (storage.Grant, error) {
	defer a.changing()()
	c, err := a.Connection(ctx, tenant, connection)
	if err != nil {
		return storage.Grant{}, err
	}
	g := storage.Grant{ID: NewID("grt"), Tenant: c.Tenant, Connection: c.ID, ReadOnly: to.ReadOnly, CreatedAt: now()}
	if g.Prefix, err = storage.ParsePath("prefix", to.Prefix); err != nil {
		return storage.Grant{}, err
	}
	if g.Prefix != "" && !g.Prefix.Within(c.Prefix) {
		return storage.Grant{}, invalid("prefix must be inside the connection's prefix, %q: both start at the connection's root", c.Prefix)
	}
	switch {
	case (to.Environment == "") == (to.Key == ""):
		return storage.Grant{}, invalid("pass either the environment or the key that mounts the connection")
	case to.Environment != "":
		e, err := a.store.Environment(ctx, c.Tenant, to.Environment)
		if err != nil {
			return storage.Grant{}, missing(err, "environment: not found in this tenant")
		}
		g.Environment = e.ID
	default:
		k, err := a.store.Key(ctx, c.Tenant, to.Key)
		if err != nil {
			return storage.Grant{}, missing(err, "key: not found in this tenant")
		}
		if k.Environment == "" || k.RevokedAt != nil {
			return storage.Grant{}, invalid("key: it cannot run code, because it was revoked or has no environment")
		}
		g.Key = k.ID
	}
	return g, a.store.CreateGrant(ctx, g)
}

// missing turns a NotFound fault for something that a request body names into an Invalid fault.
func missing(err error, msg string) error {
	if fault.KindOf(err) == fault.NotFound {
		return fault.Wrap(fault.Invalid, err, msg)
	}
	return err
}

// Grants returns the grants of a connection.
func (a *Admin) Grants(ctx context.Context, tenant, connection string) ([]storage.Grant, error) {
	c, err := a.Connection(ctx, tenant, connection)
	if err != nil {
		return nil, err
	}
	return a.store.Grants(ctx, c.Tenant, c.ID)
}

// Ungrant revokes a grant. The next execution no longer mounts the connection; other processes
// follow within 10 seconds. Running executions keep their mounts.
func (a *Admin) Ungrant(ctx context.Context, tenant, connection, id string) error {
	defer a.changing()()
	c, err := a.Connection(ctx, tenant, connection)
	if err != nil {
		return err
	}
	return a.store.DeleteGrant(ctx, c.Tenant, c.ID, id)
}
