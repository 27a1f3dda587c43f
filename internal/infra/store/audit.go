package store

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// auditStore is the audit.Store.
type auditStore struct{ db *DB }

var _ audit.Store = (*auditStore)(nil)

const (
	maxAuditPage = 1000
	exportPage   = 500 // rows that an export holds at a time
	day          = 24 * time.Hour
)

// appendRow is the task of a row without an execution.
type appendRow struct{ r audit.Row }

func (t *appendRow) locks() []int64 { return nil }
func (t *appendRow) order() string  { return "c" }
func (t *appendRow) owner() string  { return t.r.Tenant }
func (t *appendRow) do(ctx context.Context, b *batch) error {
	return insertAudit(ctx, b, t.r, time.Time{})
}

func (s *auditStore) Append(ctx context.Context, r audit.Row) error {
	r.FailureReason = storable(r.FailureReason)
	return s.db.write.wrap("append an audit row", s.db.writer.write(ctx, &appendRow{r}))
}

// checkAudit refuses a row that the database cannot keep as it is.
func checkAudit(r audit.Row) error {
	if r.Retention%day != 0 || r.Retention < 0 || r.Retention > audit.MaxRetention {
		return audit.ErrRetention
	}
	return checkMap(r.Metadata)
}

// insertAudit adds a row; the database gives it its time where that is zero, and a
// retention that is not said is the tenant's.
func insertAudit(ctx context.Context, b *batch, r audit.Row, at time.Time) error {
	if err := checkAudit(r); err != nil {
		return err
	}
	if at.IsZero() {
		var err error
		if at, err = b.clock(ctx); err != nil {
			return err
		}
	}
	r.CreatedAt = at
	r = r.Committed()
	values, err := auditTable.values(insert, &r)
	if err != nil {
		return err
	}
	return b.later(ctx, auditTable.insert, values...)
}

// auditTable is the audit trail. Nothing of it is ever changed.
var auditTable = newTable("audit_rows",
	col("id", read, func(r *audit.Row) any { return &r.ID }),
	col("trace_id", fixed, func(r *audit.Row) any { return &r.TraceID }),
	col("tenant", fixed, func(r *audit.Row) any { return &r.Tenant }),
	col("key_id", fixed, func(r *audit.Row) any { return &r.Key }),
	col("environment", fixed, func(r *audit.Row) any { return &r.Environment }),
	col("source", fixed, func(r *audit.Row) any { return &r.Source }),
	col("agent", fixed, func(r *audit.Row) any { return &r.Agent }),
	col("session_id", fixed, func(r *audit.Row) any { return &r.SessionID }),
	col("language", fixed, func(r *audit.Row) any { return &r.Language }),
	col("code_sha256", fixed, func(r *audit.Row) any { return digestAt(&r.CodeSHA256) }),
	col("exit_status", fixed, func(r *audit.Row) any { return &r.ExitStatus }),
	col("exit_code", fixed, func(r *audit.Row) any { return &r.ExitCode }),
	col("failure_reason", fixed, func(r *audit.Row) any { return &r.FailureReason }),
	col("duration_ms", fixed, func(r *audit.Row) any { return &r.DurationMS }),
	col("stdout_bytes", fixed, func(r *audit.Row) any { return &r.StdoutBytes }),
	col("stderr_bytes", fixed, func(r *audit.Row) any { return &r.StderrBytes }),
	col("stdout_truncated", fixed, func(r *audit.Row) any { return &r.StdoutTruncated }),
	col("stderr_truncated", fixed, func(r *audit.Row) any { return &r.StderrTruncated }),
	col("peak_memory", fixed, func(r *audit.Row) any { return &r.PeakMemory }),
	col("outbound_hosts", fixed, func(r *audit.Row) any { return listAt(&r.OutboundHosts) }),
	col("metadata", fixed, func(r *audit.Row) any { return mapAt(&r.Metadata) }),
	col("mounts", fixed, func(r *audit.Row) any { return listAt(&r.Mounts) }),
	col("turn", fixed, func(r *audit.Row) any { return &r.Turn }),
	col("sandbox", fixed, func(r *audit.Row) any { return &r.Sandbox }),
	col("thread", fixed, func(r *audit.Row) any { return &r.Thread }),
	col("credits", fixed, func(r *audit.Row) any { return &r.Credits }),
	col("cost", fixed, func(r *audit.Row) any { return &r.Cost }),
	// A retention that is not given is the tenant's.
	column[audit.Row]{
		name: "retention_days", in: fixed, at: func(r *audit.Row) any { return daysAt(&r.Retention) },
		expr: "coalesce(nullif(?, 0), (SELECT audit_days FROM tenants WHERE id = ?), ?)",
		args: func(r *audit.Row) []any {
			return []any{int64(r.Retention / day), r.Tenant, int64(audit.DefaultRetention / day)}
		},
	},
	col("created_at", fixed, func(r *audit.Row) any { return timeAt(&r.CreatedAt) }),
)

func scanAudit(s scanner) (r audit.Row, err error) { return r, auditTable.scan(s, &r) }

// scanBare reads a row without the commitment, as lists return it.
func scanBare(s scanner) (audit.Row, error) {
	r, err := scanAudit(s)
	return r.Bare(), err
}

// List is ordered by time and then id: the ids of a tenant grow with time but
// for calls at the same moment.
func (s *auditStore) List(ctx context.Context, f audit.Filter) ([]audit.Row, string, error) {
	if f.Limit < 1 || f.Limit > maxAuditPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxAuditPage)
	}
	q, err := s.listQuery(f)
	if err != nil {
		return nil, "", s.db.read.wrap("list audit rows", err)
	}
	rows, err := q.rows(ctx, s.db.read)
	page, err := collect(rows, err, scanBare)
	if err != nil {
		return nil, "", s.db.read.wrap("list audit rows", err)
	}
	if len(page) <= f.Limit {
		return page, "", nil
	}
	page = page[:f.Limit]
	last := page[len(page)-1]
	return page, encodeCursor(s.db.seal, auditList(f.Tenant), place{micros(last.CreatedAt), strconv.FormatInt(last.ID, 10)}), nil
}

func auditList(tenant string) string { return "audit/" + tenant }

func (s *auditStore) listQuery(f audit.Filter) (*selection, error) {
	q := &selection{}
	q.add(`SELECT `+auditTable.selected+` FROM audit_rows WHERE tenant = ?`, f.Tenant)
	for _, c := range []struct{ column, value string }{
		{"key_id", f.Key}, {"source", f.Source}, {"exit_status", string(f.ExitStatus)}, {"trace_id", f.TraceID},
	} {
		if c.value != "" {
			q.add(` AND `+c.column+` = ?`, c.value)
		}
	}
	if f.Agent != "" { // the second condition is the partial index's
		q.add(` AND agent = ? AND agent <> ''`, f.Agent)
	}
	if f.SessionID != "" {
		q.add(` AND session_id = ? AND session_id <> ''`, f.SessionID)
	}
	q.partial("turn", f.Turn)
	if len(f.CodeSHA256) > 0 {
		q.add(` AND code_sha256 = ?`, f.CodeSHA256)
	}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		q.add(` AND `+s.db.read.jsonPair("metadata"), key, f.Metadata[key])
	}
	if !f.Since.IsZero() {
		q.add(` AND created_at >= ?`, micros(f.Since))
	}
	if !f.Before.IsZero() {
		q.add(` AND created_at < ?`, micros(f.Before))
	}
	if f.Cursor != "" {
		p, err := decodeCursor(s.db.seal, auditList(f.Tenant), f.Cursor)
		if err != nil {
			return nil, err
		}
		id, err := strconv.ParseInt(p.id, 10, 64)
		if err != nil {
			return nil, fault.New(fault.Invalid, "page must be the next_page of an earlier answer")
		}
		q.add(` AND (created_at, id) < (?, ?)`, p.at, id)
	}
	q.add(` ORDER BY created_at DESC, id DESC LIMIT ?`, f.Limit+1)
	return q, nil
}

// jsonPair is a condition that a column's JSON object has a key with a value.
func (p *pool) jsonPair(column string) string {
	if p.postgres {
		return fmt.Sprintf(`(nullif(%s, '')::json ->> ?::text) = ?`, column)
	}
	return fmt.Sprintf(`EXISTS (SELECT 1 FROM json_each(nullif(%s, '')) AS j WHERE j.key = ? AND j.value = ?)`, column)
}

func (s *auditStore) Export(ctx context.Context, tenant string, since, before time.Time) iter.Seq2[audit.Row, error] {
	return func(yield func(audit.Row, error) bool) {
		at, id := micros(since), int64(0)
		if since.IsZero() {
			at = 0
		}
		end := int64(math.MaxInt64)
		if !before.IsZero() {
			end = micros(before)
		}
		for {
			rows, err := s.db.read.rows(ctx, `SELECT `+auditTable.selected+` FROM audit_rows
				WHERE tenant = ? AND (created_at, id) > (?, ?) AND created_at < ? ORDER BY created_at, id LIMIT ?`, tenant, at, id, end, exportPage)
			page, err := collect(rows, err, scanBare)
			if err != nil {
				yield(audit.Row{}, s.db.read.wrap("export audit rows", err))
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				at, id = micros(r.CreatedAt), r.ID
			}
			if len(page) < exportPage {
				return
			}
		}
	}
}

// Purge deletes rows; the database would refuse any whose time has not come.
func (s *auditStore) Purge(ctx context.Context, most int) (int, error) {
	if most <= 0 {
		return 0, nil
	}
	var n int
	err := s.db.write.transact(ctx, func(t *tx) error {
		n = 0
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		// The trigger of SQLite, which must do without our function, knows only
		// milliseconds.
		query := `SELECT id FROM audit_members WHERE expires_at <= ? ORDER BY expires_at LIMIT ?`
		if t.pool.postgres {
			query += ` FOR UPDATE SKIP LOCKED` // another process purges as well
		}
		rows, err := t.rows(ctx, query, micros(now)-1000, most)
		ids, err := collect(rows, err, func(sc scanner) (id int64, err error) { return id, sc.Scan(&id) })
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, err := t.exec(ctx, `DELETE FROM audit_rows WHERE id = ?`, id); err != nil {
				return err
			}
			if _, err := t.exec(ctx, `DELETE FROM audit_members WHERE id = ?`, id); err != nil {
				return err
			}
		}
		n = len(ids)
		_, err = t.exec(ctx, `DELETE FROM activity_texts WHERE (tenant, trace_id) IN (SELECT tenant, trace_id FROM activity_texts WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`, micros(now), most)
		return err
	})
	return n, s.db.write.wrap("purge audit rows", err)
}

func (s *auditStore) Unsealed(ctx context.Context) ([]string, error) {
	all, err := s.db.read.tenantsIn(ctx, "audit_unsealed")
	return all, s.db.read.wrap("list tenants with unsealed rows", err)
}

// Trails reads one step of an index for each tenant.
func (s *auditStore) Trails(ctx context.Context) ([]string, error) {
	rows, err := s.db.read.tenantsIn(ctx, "audit_rows")
	if err != nil {
		return nil, s.db.read.wrap("list trails", err)
	}
	seals, err := s.db.read.tenantsIn(ctx, "audit_seals")
	if err != nil {
		return nil, s.db.read.wrap("list trails", err)
	}
	all := append(rows, seals...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (s *auditStore) Uncovered(ctx context.Context, tenant string, most int) ([]int64, error) {
	rows, err := s.db.read.rows(ctx, `SELECT r.id FROM audit_rows r WHERE r.tenant = ?
		AND NOT EXISTS (SELECT 1 FROM audit_unsealed u WHERE u.tenant = r.tenant AND u.id = r.id)
		AND NOT EXISTS (SELECT 1 FROM audit_members m JOIN audit_seals s ON s.tenant = m.tenant AND s.number = m.number WHERE m.id = r.id)
		ORDER BY r.id LIMIT ?`, tenant, most)
	ids, err := collect(rows, err, func(sc scanner) (id int64, err error) { return id, sc.Scan(&id) })
	return ids, s.db.read.wrap("list rows without a seal", err)
}
