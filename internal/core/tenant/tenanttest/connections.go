package tenanttest

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func testConnections(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a, b := Tenant(t, s, "a"), Tenant(t, s, "b")
	e := Environment(t, s, a.ID, "e")
	k, clear := Key(t, s, e, "k")
	full := storage.Connection{
		ID: tenant.NewID("con"), Tenant: a.ID, Slug: "full", Kind: storage.S3, Prefix: "a/b", ReadOnly: true, CreatedAt: now(),
		Target: storage.Target{
			Bucket: "b", Region: "r", Endpoint: "https://e", PathStyle: true, Account: "x",
			Credentials: storage.Credentials{AccessKeyID: "1", SecretAccessKey: "2", ServiceAccount: "{}", AccountKey: "3"},
		},
	}
	must(t, s.CreateConnection(ctx, full))
	wantSame(t, get[storage.Connection](t)(s.Connection(ctx, a.ID, "full")), full)
	twice := full
	twice.ID = tenant.NewID("con")
	wantKind(t, "a slug twice", s.CreateConnection(ctx, twice), fault.Conflict)
	_, err := s.Connection(ctx, b.ID, full.ID)
	wantKind(t, "another tenant's connection", err, fault.NotFound)
	full.Prefix, full.ReadOnly, full.Credentials = "", false, storage.Credentials{}
	must(t, s.UpdateConnection(ctx, full))
	wantSame(t, get[[]storage.Connection](t)(s.Connections(ctx, a.ID)), []storage.Connection{full})

	grants := []storage.Grant{
		{ID: tenant.NewID("grt"), Tenant: a.ID, Connection: full.ID, Environment: e.ID, Prefix: "a", ReadOnly: true, CreatedAt: now()},
		{ID: tenant.NewID("grt"), Tenant: a.ID, Connection: full.ID, Key: k.ID, CreatedAt: now()},
	}
	var granted []storage.Granted
	for _, g := range grants {
		must(t, s.CreateGrant(ctx, g))
		granted = append(granted, storage.Granted{Grant: g, Connection: full})
	}
	again := grants[0]
	again.ID = tenant.NewID("grt")
	wantKind(t, "a grant twice", s.CreateGrant(ctx, again), fault.Conflict)
	again.Tenant = b.ID
	wantKind(t, "another tenant's grant", s.CreateGrant(ctx, again), fault.NotFound)
	wantSame(t, get[[]storage.Grant](t)(s.Grants(ctx, a.ID, full.ID)), grants)
	p, _, err := s.Principal(ctx, tenant.HashKey(clear))
	must(t, err)
	wantSame(t, p.Storage, granted)
	wantKind(t, "a connection with grants", s.DeleteConnection(ctx, a.ID, full.ID), fault.Conflict)
	for _, g := range grants {
		must(t, s.DeleteGrant(ctx, a.ID, full.ID, g.ID))
	}
	wantKind(t, "a grant that is gone", s.DeleteGrant(ctx, a.ID, full.ID, grants[0].ID), fault.NotFound)
	must(t, s.DeleteConnection(ctx, a.ID, full.ID))
}
