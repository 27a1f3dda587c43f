package execution

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// rare is below how many executions a piece of metadata is worth beginning
// with: they are looked at one by one.
const rare = 1000

// List looks through one index in the order of the answer and stops after a
// page. Which index is decided here for metadata, since no engine can know how
// many executions have a pair, and by the engine for everything else.
func (s *Store) List(ctx context.Context, f execution.Filter) ([]*execution.Execution, string, error) {
	if err := checkFilter(f); err != nil {
		return nil, "", err
	}
	var after *sqldb.Place
	if f.Cursor != "" {
		p, err := sqldb.DecodeCursor(s.db.Seal, list(f.Tenant), f.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = &p
	}
	first, some, err := s.narrow(ctx, &f)
	if err != nil || !some {
		return nil, "", s.db.Read.Wrap("list executions", err)
	}
	rows, err := s.listQuery(f, first, after).Rows(ctx, s.db.Read)
	page, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (*execution.Execution, error) {
		row, err := Scan(sc)
		return row.Execution, err
	})
	if err != nil {
		return nil, "", s.db.Read.Wrap("list executions", err)
	}
	if len(page) <= f.Limit {
		return page, "", nil
	}
	page = page[:f.Limit]
	last := page[len(page)-1]
	return page, sqldb.EncodeCursor(s.db.Seal, list(f.Tenant), sqldb.Place{At: sqldb.Micros(last.CreatedAt), ID: last.TraceID}), nil
}

func list(tenant string) string { return "executions/" + tenant }

func checkFilter(f execution.Filter) error {
	if f.Limit < 1 || f.Limit > sqldb.MaxPage {
		return fault.New(fault.Invalid, "limit must be between 1 and %d", sqldb.MaxPage)
	}
	if f.Status != "" && !slices.Contains(execution.Statuses, f.Status) {
		return execution.UnknownStatus(f.Status)
	}
	if f.Language != "" && !slices.Contains(execution.Languages, f.Language) {
		return execution.UnknownLanguage(f.Language)
	}
	if len(f.Metadata) > execution.MaxMetadata {
		return execution.ErrManyFilters
	}
	return nil
}

// narrow looks at how many executions have each piece of metadata, and since
// when until when. It returns the one to begin with, "" for none, and puts the
// time that all have in common into the filter; some is false when there can be
// no execution.
func (s *Store) narrow(ctx context.Context, f *execution.Filter) (first string, some bool, err error) {
	keys := slices.Sorted(maps.Keys(f.Metadata))
	others := f.Thread != "" || f.Key != "" || f.Status != "" || f.Language != ""
	if len(keys) == 0 || len(keys) == 1 && !others {
		return strings.Join(keys, ""), true, nil
	}
	least := rare
	for _, key := range keys {
		var n int
		var oldest, newest sql.NullInt64
		const having = `FROM execution_metadata WHERE tenant = ? AND key = ? AND value = ?`
		value := f.Metadata[key]
		err := s.db.Read.Row(ctx, `SELECT (SELECT count(*) FROM (SELECT 1 `+having+` LIMIT ?) AS few),
				(SELECT created_at `+having+` ORDER BY created_at, trace_id LIMIT 1),
				(SELECT created_at `+having+` ORDER BY created_at DESC, trace_id DESC LIMIT 1)`,
			f.Tenant, key, value, rare, f.Tenant, key, value, f.Tenant, key, value).Scan(&n, &oldest, &newest)
		if err != nil {
			return "", false, err
		}
		if n == 0 {
			return "", false, nil
		}
		if since := sqldb.Instant(oldest.Int64); since.After(f.Since) {
			f.Since = since
		}
		if before := sqldb.Instant(newest.Int64 + 1); f.Before.IsZero() || before.Before(f.Before) {
			f.Before = before
		}
		if n < least {
			first, least = key, n
		}
	}
	if first == "" && !others {
		first = keys[0]
	}
	return first, true, nil
}

var qualifiedColumns = Table.Of("e")

func (s *Store) listQuery(f execution.Filter, first string, after *sqldb.Place) *sqldb.Selection {
	q := &sqldb.Selection{}
	order := "e"
	q.Add(`SELECT ` + qualifiedColumns + ` FROM `)
	if value, ok := f.Metadata[first]; ok {
		order = "m"
		q.Add(`execution_metadata m CROSS JOIN `+ofTrace(s.db.Read, "executions", "e", "m")+` m.tenant = ? AND m.key = ? AND m.value = ?`,
			f.Tenant, first, value)
	} else {
		q.Add(`executions e WHERE e.tenant = ?`, f.Tenant)
	}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		if key != first || order == "e" {
			q.Add(fmt.Sprintf(` AND (SELECT 1 FROM execution_metadata x WHERE x.tenant = ? AND x.key = ? AND x.value = ?
				AND x.created_at = %[1]s.created_at AND x.trace_id = %[1]s.trace_id) = 1`, order), f.Tenant, key, f.Metadata[key])
		}
	}
	executionConditions(q, f)
	if !f.Since.IsZero() {
		q.Add(` AND `+order+`.created_at >= ?`, sqldb.Micros(f.Since))
	}
	if !f.Before.IsZero() {
		q.Add(` AND `+order+`.created_at < ?`, sqldb.Micros(f.Before))
	}
	if after != nil {
		q.Add(fmt.Sprintf(` AND (%[1]s.created_at, %[1]s.trace_id) < (?, ?)`, order), after.At, after.ID)
	}
	q.Add(fmt.Sprintf(` ORDER BY %[1]s.created_at DESC, %[1]s.trace_id DESC LIMIT ?`, order), f.Limit+1)
	return q
}

// ofTrace joins the row of a table that has another's trace id, one at a time.
// PostgreSQL thinks that most rows will be needed and would rather read all of
// them first, which OFFSET forbids; so does, above, comparing a subquery instead
// of asking whether it exists.
func ofTrace(p *sqldb.Pool, table, alias, other string) string {
	if p.Postgres {
		return fmt.Sprintf(`LATERAL (SELECT * FROM %[1]s WHERE trace_id = %[3]s.trace_id OFFSET 0) %[2]s WHERE`, table, alias, other)
	}
	return fmt.Sprintf(`%[1]s %[2]s WHERE %[2]s.trace_id = %[3]s.trace_id AND`, table, alias, other)
}

// executionConditions repeats the conditions of partial indexes word for word:
// SQLite uses such an index only then.
func executionConditions(q *sqldb.Selection, f execution.Filter) {
	if f.Key != "" {
		q.Add(` AND e.key_id = ?`, f.Key)
	}
	if f.Thread != "" {
		q.Add(` AND e.thread = ? AND e.thread <> ''`, f.Thread)
	}
	switch f.Status {
	case "":
	case execution.Running:
		q.Add(` AND e.status = 'running'`)
	case execution.Success:
		q.Add(` AND e.status = 'success'`)
	default:
		q.Add(` AND e.status = ? AND e.status IN ('failed', 'timeout', 'oom', 'blocked', 'cancelled')`, string(f.Status))
	}
	switch f.Language {
	case "":
	case execution.Node, execution.Bash: // as the index of a shipped migration has them
		q.Add(` AND e.language = ? AND e.language IN ('node', 'bash')`, string(f.Language))
	default:
		q.Add(` AND e.language = ?`, string(f.Language))
	}
}
