// Package audit stores the audit trail, its seals, and the texts of activities.
package audit

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
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements audit.Store.
type Store struct {
	db    *sqldb.DB
	seals keyedMutex
}

// New returns the store. A database has one, which seals one trail at a time.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

var _ audit.Store = (*Store)(nil)

const (
	maxAuditPage = 1000
	exportPage   = 500 // rows that an export holds at a time
)

// appendRow is the task of a row without an execution.
type appendRow struct{ r audit.Row }

func (t *appendRow) Locks() []int64 { return nil }
func (t *appendRow) Order() string  { return "c" }
func (t *appendRow) Owner() string  { return t.r.Tenant }
func (t *appendRow) Do(ctx context.Context, b *sqldb.Batch) error {
	return Insert(ctx, b, t.r, time.Time{})
}

func (s *Store) Append(ctx context.Context, r audit.Row) error {
	r.FailureReason = sqldb.Storable(r.FailureReason)
	return s.db.Write.Wrap("append an audit row", s.db.Submit(ctx, &appendRow{r}))
}

// Check rejects a row whose retention or metadata the database cannot store.
func Check(r audit.Row) error {
	if r.Retention%sqldb.Day != 0 || r.Retention < 0 || r.Retention > audit.MaxRetention {
		return audit.ErrRetention
	}
	return sqldb.CheckMap(r.Metadata)
}

// Insert adds a row at a time; zero is the time of the batch. A row without a retention gets that of
// its tenant.
func Insert(ctx context.Context, b *sqldb.Batch, r audit.Row, at time.Time) error {
	if err := Check(r); err != nil {
		return err
	}
	if at.IsZero() {
		var err error
		if at, err = b.Clock(ctx); err != nil {
			return err
		}
	}
	r.CreatedAt = at
	r = r.Committed()
	values, err := Table.Values(sqldb.Insert, &r)
	if err != nil {
		return err
	}
	return b.Later(ctx, Table.Insert, values...)
}

// Table lists the columns of the audit trail. No statement changes its rows.
var Table = sqldb.NewTable("audit_rows",
	sqldb.Col("id", sqldb.Read, func(r *audit.Row) any { return &r.ID }),
	sqldb.Col("trace_id", sqldb.Fixed, func(r *audit.Row) any { return &r.TraceID }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *audit.Row) any { return &r.Tenant }),
	sqldb.Col("key_id", sqldb.Fixed, func(r *audit.Row) any { return &r.Key }),
	sqldb.Col("environment", sqldb.Fixed, func(r *audit.Row) any { return &r.Environment }),
	sqldb.Col("source", sqldb.Fixed, func(r *audit.Row) any { return &r.Source }),
	sqldb.Col("agent", sqldb.Fixed, func(r *audit.Row) any { return &r.Agent }),
	sqldb.Col("session_id", sqldb.Fixed, func(r *audit.Row) any { return &r.SessionID }),
	sqldb.Col("language", sqldb.Fixed, func(r *audit.Row) any { return &r.Language }),
	sqldb.Col("code_sha256", sqldb.Fixed, func(r *audit.Row) any { return sqldb.DigestAt(&r.CodeSHA256) }),
	sqldb.Col("exit_status", sqldb.Fixed, func(r *audit.Row) any { return &r.ExitStatus }),
	sqldb.Col("exit_code", sqldb.Fixed, func(r *audit.Row) any { return &r.ExitCode }),
	sqldb.Col("failure_reason", sqldb.Fixed, func(r *audit.Row) any { return &r.FailureReason }),
	sqldb.Col("duration_ms", sqldb.Fixed, func(r *audit.Row) any { return &r.DurationMS }),
	sqldb.Col("stdout_bytes", sqldb.Fixed, func(r *audit.Row) any { return &r.StdoutBytes }),
	sqldb.Col("stderr_bytes", sqldb.Fixed, func(r *audit.Row) any { return &r.StderrBytes }),
	sqldb.Col("stdout_truncated", sqldb.Fixed, func(r *audit.Row) any { return &r.StdoutTruncated }),
	sqldb.Col("stderr_truncated", sqldb.Fixed, func(r *audit.Row) any { return &r.StderrTruncated }),
	sqldb.Col("peak_memory", sqldb.Fixed, func(r *audit.Row) any { return &r.PeakMemory }),
	sqldb.Col("outbound_hosts", sqldb.Fixed, func(r *audit.Row) any { return sqldb.ListAt(&r.OutboundHosts) }),
	sqldb.Col("metadata", sqldb.Fixed, func(r *audit.Row) any { return sqldb.MapAt(&r.Metadata) }),
	sqldb.Col("mounts", sqldb.Fixed, func(r *audit.Row) any { return sqldb.ListAt(&r.Mounts) }),
	sqldb.Col("turn", sqldb.Fixed, func(r *audit.Row) any { return &r.Turn }),
	sqldb.Col("sandbox", sqldb.Fixed, func(r *audit.Row) any { return &r.Sandbox }),
	sqldb.Col("thread", sqldb.Fixed, func(r *audit.Row) any { return &r.Thread }),
	sqldb.Col("credits", sqldb.Fixed, func(r *audit.Row) any { return &r.Credits }),
	sqldb.Col("cost", sqldb.Fixed, func(r *audit.Row) any { return &r.Cost }),
	// A retention that is not given is the tenant's.
	sqldb.Column[audit.Row]{
		Name: "retention_days", In: sqldb.Fixed, At: func(r *audit.Row) any { return sqldb.DaysAt(&r.Retention) },
		Expr: "coalesce(nullif(?, 0), (SELECT audit_days FROM tenants WHERE id = ?), ?)",
		Args: func(r *audit.Row) []any {
			return []any{int64(r.Retention / sqldb.Day), r.Tenant, int64(audit.DefaultRetention / sqldb.Day)}
		},
	},
	sqldb.Col("created_at", sqldb.Fixed, func(r *audit.Row) any { return sqldb.TimeAt(&r.CreatedAt) }),
)

// Scan reads the selected columns of Table, without the commitment, as lists return a row.
func Scan(s sqldb.Scanner) (audit.Row, error) {
	r, err := Table.Row(s)
	return r.Bare(), err
}

// List is ordered by time and then id: the ids of a tenant grow with time but
// for calls at the same moment.
func (s *Store) List(ctx context.Context, f audit.Filter) ([]audit.Row, string, error) {
	if f.Limit < 1 || f.Limit > maxAuditPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxAuditPage)
	}
	q, err := s.listQuery(f)
	if err != nil {
		return nil, "", s.db.Read.Wrap("list audit rows", err)
	}
	rows, err := q.Rows(ctx, s.db.Read)
	page, err := sqldb.Collect(rows, err, Scan)
	if err != nil {
		return nil, "", s.db.Read.Wrap("list audit rows", err)
	}
	if len(page) <= f.Limit {
		return page, "", nil
	}
	page = page[:f.Limit]
	last := page[len(page)-1]
	return page, sqldb.EncodeCursor(s.db.Seal, list(f.Tenant), sqldb.Place{At: sqldb.Micros(last.CreatedAt), ID: strconv.FormatInt(last.ID, 10)}), nil
}

func list(tenant string) string { return "audit/" + tenant }

func (s *Store) listQuery(f audit.Filter) (*sqldb.Selection, error) {
	q := &sqldb.Selection{}
	q.Add(`SELECT `+Table.Selected+` FROM audit_rows WHERE tenant = ?`, f.Tenant)
	for _, c := range []struct{ column, value string }{
		{"key_id", f.Key}, {"source", f.Source}, {"exit_status", string(f.ExitStatus)}, {"trace_id", f.TraceID},
	} {
		if c.value != "" {
			q.Add(` AND `+c.column+` = ?`, c.value)
		}
	}
	if f.Agent != "" { // the second condition is the partial index's
		q.Add(` AND agent = ? AND agent <> ''`, f.Agent)
	}
	if f.SessionID != "" {
		q.Add(` AND session_id = ? AND session_id <> ''`, f.SessionID)
	}
	q.Partial("turn", f.Turn)
	if len(f.CodeSHA256) > 0 {
		q.Add(` AND code_sha256 = ?`, f.CodeSHA256)
	}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		q.Add(` AND `+jsonPair(s.db.Read, "metadata"), key, f.Metadata[key])
	}
	if !f.Since.IsZero() {
		q.Add(` AND created_at >= ?`, sqldb.Micros(f.Since))
	}
	if !f.Before.IsZero() {
		q.Add(` AND created_at < ?`, sqldb.Micros(f.Before))
	}
	if f.Cursor != "" {
		p, err := sqldb.DecodeCursor(s.db.Seal, list(f.Tenant), f.Cursor)
		if err != nil {
			return nil, err
		}
		id, err := strconv.ParseInt(p.ID, 10, 64)
		if err != nil {
			return nil, fault.New(fault.Invalid, "page must be the next_page of an earlier answer")
		}
		q.Add(` AND (created_at, id) < (?, ?)`, p.At, id)
	}
	q.Add(` ORDER BY created_at DESC, id DESC LIMIT ?`, f.Limit+1)
	return q, nil
}

// jsonPair is a condition that a column's JSON object has a key with a value.
func jsonPair(p *sqldb.Pool, column string) string {
	if p.Postgres {
		return fmt.Sprintf(`(nullif(%s, '')::json ->> ?::text) = ?`, column)
	}
	return fmt.Sprintf(`EXISTS (SELECT 1 FROM json_each(nullif(%s, '')) AS j WHERE j.key = ? AND j.value = ?)`, column)
}

func (s *Store) Export(ctx context.Context, tenant string, since, before time.Time) iter.Seq2[audit.Row, error] {
	return func(yield func(audit.Row, error) bool) {
		at, id := sqldb.Micros(since), int64(0)
		if since.IsZero() {
			at = 0
		}
		end := int64(math.MaxInt64)
		if !before.IsZero() {
			end = sqldb.Micros(before)
		}
		for {
			page, err := sqldb.Select(ctx, s.db.Read, Scan, `SELECT `+Table.Selected+` FROM audit_rows
				WHERE tenant = ? AND (created_at, id) > (?, ?) AND created_at < ? ORDER BY created_at, id LIMIT ?`, tenant, at, id, end, exportPage)
			if err != nil {
				yield(audit.Row{}, s.db.Read.Wrap("export audit rows", err))
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				at, id = sqldb.Micros(r.CreatedAt), r.ID
			}
			if len(page) < exportPage {
				return
			}
		}
	}
}

// Purge deletes rows; the database would refuse any whose time has not come.
func (s *Store) Purge(ctx context.Context, most int) (int, error) {
	if most <= 0 {
		return 0, nil
	}
	var n int
	err := s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		n = 0
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		// The trigger of SQLite, which must do without our function, knows only
		// milliseconds.
		query := `SELECT id FROM audit_members WHERE expires_at <= ? ORDER BY expires_at LIMIT ?`
		if t.Pool.Postgres {
			query += ` FOR UPDATE SKIP LOCKED` // another process purges as well
		}
		ids, err := sqldb.Select(ctx, t, sqldb.Value[int64], query, sqldb.Micros(now)-1000, most)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, err := t.Exec(ctx, `DELETE FROM audit_rows WHERE id = ?`, id); err != nil {
				return err
			}
			if _, err := t.Exec(ctx, `DELETE FROM audit_members WHERE id = ?`, id); err != nil {
				return err
			}
		}
		n = len(ids)
		_, err = t.Exec(ctx, `DELETE FROM activity_texts WHERE (tenant, trace_id) IN (SELECT tenant, trace_id FROM activity_texts WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`, sqldb.Micros(now), most)
		return err
	})
	return n, s.db.Write.Wrap("purge audit rows", err)
}

func (s *Store) Unsealed(ctx context.Context) ([]string, error) {
	all, err := s.db.Read.TenantsIn(ctx, "audit_unsealed")
	return all, s.db.Read.Wrap("list tenants with unsealed rows", err)
}

// Trails reads one step of an index for each tenant.
func (s *Store) Trails(ctx context.Context) ([]string, error) {
	rows, err := s.db.Read.TenantsIn(ctx, "audit_rows")
	if err != nil {
		return nil, s.db.Read.Wrap("list trails", err)
	}
	seals, err := s.db.Read.TenantsIn(ctx, "audit_seals")
	if err != nil {
		return nil, s.db.Read.Wrap("list trails", err)
	}
	all := append(rows, seals...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (s *Store) Uncovered(ctx context.Context, tenant string, most int) ([]int64, error) {
	ids, err := sqldb.Select(ctx, s.db.Read, sqldb.Value[int64], `SELECT r.id FROM audit_rows r WHERE r.tenant = ?
		AND NOT EXISTS (SELECT 1 FROM audit_unsealed u WHERE u.tenant = r.tenant AND u.id = r.id)
		AND NOT EXISTS (SELECT 1 FROM audit_members m JOIN audit_seals s ON s.tenant = m.tenant AND s.number = m.number WHERE m.id = r.id)
		ORDER BY r.id LIMIT ?`, tenant, most)
	return ids, s.db.Read.Wrap("list rows without a seal", err)
}

// StorableRow is sqldb.Storable for all texts of a row: the record of a call does not depend on the
// characters of its names.
func StorableRow(r audit.Row) audit.Row {
	for _, text := range []*string{&r.TraceID, &r.Source, &r.Agent, &r.SessionID, &r.Turn, &r.Sandbox, &r.Thread, &r.Language, &r.FailureReason} {
		*text = sqldb.Storable(*text)
	}
	r.OutboundHosts, r.Mounts = slices.Clone(r.OutboundHosts), slices.Clone(r.Mounts)
	for _, list := range [][]string{r.OutboundHosts, r.Mounts} {
		for i := range list {
			list[i] = sqldb.Storable(list[i])
		}
	}
	if len(r.Metadata) > 0 {
		told := make(map[string]string, len(r.Metadata))
		for name, value := range r.Metadata {
			told[sqldb.Storable(name)] = sqldb.Storable(value)
		}
		r.Metadata = told
	}
	return r
}
