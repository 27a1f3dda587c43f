package tenant

import (
	"context"
	"strings"

	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Erasures implements tenant.ErasureStore.
type Erasures struct{ db *sqldb.DB }

// NewErasures returns the store in a database.
func NewErasures(db *sqldb.DB) *Erasures { return &Erasures{db} }

func (s *Store) DeleteTenant(ctx context.Context, id tenant.ID, events ...tenant.PolicyEvent) (tenant.Tenant, error) {
	err := s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		n, err := t.Exec(ctx, `UPDATE tenants SET deleted_at = atoll_now(), disabled_at = coalesce(disabled_at, atoll_now()) WHERE id = ? AND deleted_at IS NULL`, id)
		if err != nil || n == 0 {
			return err
		}
		if _, err := t.Exec(ctx, `UPDATE keys SET revoked_at = atoll_now() WHERE tenant = ? AND revoked_at IS NULL`, id); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
	if err != nil {
		return tenant.Tenant{}, s.db.Write.Wrap("delete a tenant", err)
	}
	return s.Tenant(ctx, id)
}

func (s *Erasures) Deleted(ctx context.Context) ([]tenant.Tenant, error) {
	all, err := sqldb.Select(ctx, s.db.Read, tenantTable.Row, `SELECT `+tenantTable.Selected+` FROM tenants WHERE deleted_at IS NOT NULL AND erased_at IS NULL ORDER BY deleted_at`)
	return all, s.db.Read.Wrap("list deleted tenants", err)
}

func (s *Erasures) Halt(ctx context.Context, id tenant.ID) error {
	return s.db.Transact(ctx, "halt a deleted tenant", func(t *sqldb.Tx) error {
		for _, statement := range []string{
			`UPDATE keys SET revoked_at = atoll_now() WHERE tenant = ? AND revoked_at IS NULL`,
			`DELETE FROM session_queue WHERE session IN (SELECT id FROM sessions WHERE tenant = ?)`,
			`UPDATE runs SET cancelled = 1, due_at = CASE WHEN holder = '' THEN created_at ELSE due_at END WHERE tenant = ? AND due_at IS NOT NULL`,
			`UPDATE sandboxes SET bereft = TRUE WHERE tenant = ? AND state <> 'destroyed' AND NOT bereft`,
		} {
			if _, err := t.Exec(ctx, statement, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Erasures) Remains(ctx context.Context, id tenant.ID) (r tenant.Remains, err error) {
	err = s.db.Read.Row(ctx, `SELECT
			(SELECT count(*) FROM executions WHERE tenant = ? AND status = 'running'),
			(SELECT count(*) FROM runs WHERE tenant = ? AND due_at IS NOT NULL),
			(SELECT count(*) FROM sandboxes WHERE tenant = ? AND state <> 'destroyed'),
			(SELECT coalesce(min(executor), '') FROM sandboxes WHERE tenant = ? AND state <> 'destroyed')`, id, id, id, id).
		Scan(&r.Executions, &r.Runs, &r.Sandboxes, &r.Executor)
	return r, s.db.Read.Wrap("count the remaining work of a tenant", err)
}

func (s *Erasures) ExpireRuns(ctx context.Context, id tenant.ID) error {
	return s.db.Exec(ctx, "expire the runs of a tenant", `UPDATE runs SET expires_at = ended_at WHERE tenant = ? AND due_at IS NULL AND (expires_at IS NULL OR expires_at > ended_at)`, id)
}

// tenantRows lists the tables with rows of tenants and their primary keys, in an order that
// satisfies foreign keys. It leaves out executions and runs, which the purge deletes together with
// their data outside the database. Other tables cascade from their foreign keys.
var tenantRows = []struct{ table, key string }{
	{"grants", "id"}, {"connections", "id"}, {"tokens", "id"}, {"keys", "id"}, {"templates", "tenant, name"}, {"model_keys", "tenant, model"},
	{"snapshots", "id"}, {"sandboxes", "id"}, {"environments", "id"},
	{"approvals", "id"}, {"sessions", "id"}, {"agents", "id"}, {"skills", "id"}, {"vaults", "id"}, {"files", "id"}, {"threads", "tenant, id"},
	{"thread_litter", "tenant"}, {"snapshot_litter", "tenant"},
	{"idempotent_objects", "tenant, object, caller, key"}, {"idempotent_requests", "tenant, caller, key"}, {"idempotency_keys", "tenant, key"},
	{"usage_entries", "tenant, at, trace_id"}, {"usage_days", "tenant, day, source"}, {"charges", "tenant, at, id"}, {"charge_days", "tenant, day, kind, name"},
	{"breaker_counts", "tenant, dimension, agent, starts_at"}, {"activity_texts", "tenant, trace_id"}, {"agent_days", "tenant, day, agent, session"},
}

func (s *Erasures) Erase(ctx context.Context, id tenant.ID, most int) (int, error) {
	for _, rows := range tenantRows {
		n, err := s.erase(ctx, rows.table, rows.key, id, most)
		if err != nil || n > 0 {
			return n, s.db.Write.Wrap("erase a tenant", err)
		}
	}
	return 0, nil
}

// erase deletes rows of one table. It notifies the readers of deleted sessions.
func (s *Erasures) erase(ctx context.Context, table, key string, id tenant.ID, most int) (n int, err error) {
	first, _, _ := strings.Cut(key, ",")
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		gone, err := sqldb.Select(ctx, t, sqldb.Value[string], `DELETE FROM `+table+` WHERE (`+key+`) IN (SELECT `+key+` FROM `+table+` WHERE tenant = ? LIMIT ?) RETURNING `+first, id, most)
		if table == "sessions" {
			for _, session := range gone {
				t.Changes(session)
			}
		}
		n = len(gone)
		return err
	})
	return n, err
}

func (s *Erasures) Finish(ctx context.Context, id tenant.ID) error {
	return s.db.Exec(ctx, "finish the deletion of a tenant", `UPDATE tenants SET erased_at = atoll_now(), name = id, redaction_off = '' WHERE id = ? AND deleted_at IS NOT NULL AND erased_at IS NULL`, id)
}
