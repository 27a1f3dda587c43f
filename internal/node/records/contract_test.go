package records_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// executorStore is a store whose sandboxes belong to executors with journals: their calls and events
// reach the records through a gateway. The gateway's own questions go to the records.
type executorStore struct {
	sandbox.Store
	t  *testing.T
	db *store.DB

	mu   sync.Mutex
	rigs map[string]*rig // by executor
}

func (s *executorStore) of(executor string) *rig {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rigs[executor] == nil {
		s.rigs[executor] = newRigOf(s.t, s.db, executor, nil)
	}
	return s.rigs[executor]
}

// grantWith is the grant of a tenant whose plan has the quota.
func grantWith(sb *sandbox.Sandbox, q sandbox.Quota) *sandbox.Grant {
	return &sandbox.Grant{
		Tenant: sb.Tenant, Environment: sb.Environment, Key: sb.Key, Credits: q.Credits, Plan: tenant.Plan{MaxSandboxes: q.Sandboxes, MaxSandboxMemory: q.Memory},
	}
}

func (s *executorStore) Create(ctx context.Context, sb *sandbox.Sandbox, q sandbox.Quota) (*sandbox.Sandbox, error) {
	sb.UsedAt = time.Now() // as the Manager sets it
	return s.of(sb.Executor).Create(ctx, grantWith(sb, q), sb)
}

func (s *executorStore) Wake(ctx context.Context, sb *sandbox.Sandbox, q sandbox.Quota) error {
	return s.of(sb.Executor).Wake(ctx, grantWith(sb, q), sb)
}

func (s *executorStore) Save(ctx context.Context, sb *sandbox.Sandbox) error {
	r := s.of(sb.Executor)
	err := r.Save(ctx, sb)
	r.settled()
	return err
}

func (s *executorStore) SaveEndings(ctx context.Context, id runtime.ID, endings []sandbox.Ending) error {
	r := s.of(self)
	err := r.SaveEndings(ctx, id, endings)
	r.settled()
	return err
}

func (s *executorStore) Delete(ctx context.Context, id runtime.ID) error {
	return s.of(self).Delete(ctx, id)
}

// Get returns the record of the gateway, after it has checked that the journal has the same one. Only
// MeteredAt differs, because gateways learn of a wake's time by the next charge, and Revision, because
// a wake that a gateway rejects has one.
func (s *executorStore) Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*sandbox.Sandbox, error) {
	r := s.of(self)
	sb, err := r.inner.Get(ctx, tenantID, id)
	if err != nil {
		return nil, err
	}
	own, err := r.Get(ctx, tenantID, id)
	must(s.t, err)
	if own.MeteredAt.After(sb.MeteredAt) {
		sb.MeteredAt = own.MeteredAt
	}
	own.MeteredAt = sb.MeteredAt
	if own.Revision > sb.Revision {
		own.Revision = sb.Revision
	}
	same(s.t, "the executor's record", own, sb)
	return sb, nil
}

func (s *executorStore) ListByExecutor(ctx context.Context, executor string) ([]*sandbox.Sandbox, error) {
	return s.of(executor).ListByExecutor(ctx, executor)
}

func (s *executorStore) ListWithoutEnvironment(ctx context.Context, executor string) ([]runtime.ID, error) {
	return s.of(executor).ListWithoutEnvironment(ctx, executor)
}

// TestContract runs the suite of stores over journals, except where that has snapshots of no sandbox.
func TestContract(t *testing.T) {
	sandboxtest.Store(t, opened)
}

func opened(t *testing.T) sandboxtest.Opened {
	t.Helper()
	db := storetest.SQLite(t)
	storetest.Operator(t, db)
	return sandboxtest.Opened{
		Store: &executorStore{Store: db.Sandboxes(), t: t, db: db, rigs: map[string]*rig{}}, Snapshots: db.Snapshots(), Audit: db.Audit(), Usage: db.Usage(),
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
}

func createTenant(t *testing.T, db *store.DB, id string, credits float64) {
	t.Helper()
	must(t, db.Tenants().CreateTenant(t.Context(), tenant.Tenant{ID: id, Name: id, Plan: "free", Tier: tenant.Standard, AuditDays: 30, MonthlyCredits: credits, CreatedAt: time.Now()}))
}

func environment(t *testing.T, db *store.DB, tenantID, id string) {
	t.Helper()
	must(t, db.Tenants().CreateEnvironment(t.Context(), tenant.Environment{ID: id, Tenant: tenantID, Name: id, Image: "default", Limits: runtime.DefaultLimits(), CreatedAt: time.Now()}))
}

// key creates a key in an environment.
func key(t *testing.T, db *store.DB, tenantID, environment string) string {
	t.Helper()
	k := tenant.Key{ID: tenant.NewID("key"), Tenant: tenantID, Environment: environment, Scopes: []tenant.Scope{tenant.ScopeSandboxes}, CreatedAt: time.Now()}
	k.Name, k.Hash = k.ID, tenant.HashKey(k.ID)
	must(t, db.Tenants().CreateKey(t.Context(), k))
	return k.ID
}
