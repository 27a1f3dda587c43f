package executors_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	node "github.com/atoll-run/atoll/internal/node/control"
)

// remoteStore is a store whose machines ask a gateway. The gateway's questions go to the records.
type remoteStore struct {
	sandbox.Store
	t testing.TB
}

// quotaOf is a grant of a tenant whose plan has the quota. The gateway computes the quota from it.
type quotaOf struct{ sandbox.Quota }

func (q quotaOf) Grant(_ context.Context, tenantID tenant.ID, key, environment string) (*sandbox.Grant, error) {
	return &sandbox.Grant{
		Tenant: tenantID, Key: key, Environment: environment, Credits: q.Credits, Plan: tenant.Plan{MaxSandboxes: q.Sandboxes, MaxSandboxMemory: q.Memory},
	}, nil
}

// records are those of an executor, where the tenants' plans have a quota.
func (s remoteStore) records(executor string, q sandbox.Quota) node.Records {
	service := executors.NewService(executors.Config{Sandboxes: s.Store, Grants: quotaOf{q}, Signer: storetest.Box(s.t)})
	return node.Records{Client: node.New(node.Config{Gateways: wire{handlers: service.Handlers(), from: executor}, Log: discard, Patience: 1})}
}

func (s remoteStore) grant(sb *sandbox.Sandbox) *sandbox.Grant {
	g := &sandbox.Grant{Tenant: sb.Tenant, Environment: sb.Environment, Key: sb.Key}
	return g.ProvenTo(sb.Executor, storetest.Box(s.t), time.Now().Add(time.Hour))
}

func (s remoteStore) Create(ctx context.Context, sb *sandbox.Sandbox, q sandbox.Quota) (*sandbox.Sandbox, error) {
	return s.records(sb.Executor, q).Create(ctx, s.grant(sb), sb)
}

func (s remoteStore) Wake(ctx context.Context, sb *sandbox.Sandbox, q sandbox.Quota) error {
	return s.records(sb.Executor, q).Wake(ctx, s.grant(sb), sb)
}

func (s remoteStore) Save(ctx context.Context, sb *sandbox.Sandbox) error {
	return s.records(sb.Executor, sandbox.Quota{}).Save(ctx, sb)
}

func (s remoteStore) SaveEndings(ctx context.Context, id runtime.ID, endings []sandbox.Ending) error {
	return s.records("exe_1", sandbox.Quota{}).SaveEndings(ctx, id, endings)
}

func (s remoteStore) Delete(ctx context.Context, id runtime.ID) error {
	return s.records("exe_1", sandbox.Quota{}).Delete(ctx, id)
}

func (s remoteStore) Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*sandbox.Sandbox, error) {
	return s.records("exe_1", sandbox.Quota{}).Get(ctx, tenantID, id)
}

func (s remoteStore) ListByExecutor(ctx context.Context, executor string) ([]*sandbox.Sandbox, error) {
	return s.records(executor, sandbox.Quota{}).ListByExecutor(ctx, executor)
}

func (s remoteStore) ListWithoutEnvironment(ctx context.Context, executor string) ([]runtime.ID, error) {
	return s.records(executor, sandbox.Quota{}).ListWithoutEnvironment(ctx, executor)
}

// TestContract runs the suite of stores over calls, except where that has snapshots of no sandbox.
func TestContract(t *testing.T) {
	sandboxtest.Store(t, func(t *testing.T) sandboxtest.Opened {
		db := storetest.SQLite(t)
		storetest.Operator(t, db)
		return sandboxtest.Opened{
			Store: remoteStore{db.Sandboxes(), t}, Snapshots: db.Snapshots(), Audit: db.Audit(), Usage: db.Usage(),
			Tenant: func(t *testing.T, id string, credits float64) { createTenant(t, db, id, credits) },
			Keys: func(t *testing.T, id, of string) (ids []string) {
				createTenant(t, db, id, 0)
				environment(t, db, id, of)
				ids = []string{key(t, db, id, of), key(t, db, id, of), key(t, db, id, of)}
				must(t, db.Tenants().RevokeKey(t.Context(), id, ids[2]))
				return ids
			},
			Delete: func(t *testing.T, id, of string) {
				createTenant(t, db, id, 0)
				environment(t, db, id, of)
				must(t, db.Tenants().DeleteEnvironment(t.Context(), id, of))
			},
			Age: func(t *testing.T, by time.Duration) {
				for column, table := range map[string]string{"ended_at": "sandboxes", "expires_at": "snapshots", "last": "snapshot_litter"} {
					_, err := db.SQL().ExecContext(t.Context(), fmt.Sprintf(`UPDATE %s SET %s = %s - %d`, table, column, column, by.Microseconds()))
					must(t, err)
				}
			},
		}
	})
}

func createTenant(t *testing.T, db *store.DB, id string, credits float64) {
	t.Helper()
	must(t, db.Tenants().CreateTenant(t.Context(), tenant.Tenant{ID: id, Name: id, Plan: "free", Tier: tenant.Standard, AuditDays: 30, MonthlyCredits: credits, CreatedAt: time.Now()}))
}
