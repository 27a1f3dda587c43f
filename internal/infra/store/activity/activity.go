// Package activity lists audit rows and running executions together.
package activity

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	auditdb "github.com/atoll-run/atoll/internal/infra/store/audit"
	executiondb "github.com/atoll-run/atoll/internal/infra/store/execution"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements activity.Store.
type Store struct{ db *sqldb.DB }

var _ activity.Store = (*Store)(nil)

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

// A cursor records whether a page ended with an audit row or a running execution. At equal times,
// audit rows come first.
const (
	wasRow = "r"
	ran    = "e"
)

func activityList(of tenant.ID) string { return "activity/" + of }

func (s *Store) Activity(ctx context.Context, f activity.Filter) ([]activity.Entry, string, error) {
	const step = "list the activity"
	if f.Limit < 1 || f.Limit > activity.MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", activity.MaxPage)
	}
	var after *sqldb.Place
	if f.Cursor != "" {
		p, err := sqldb.DecodeCursor(s.db.Seal, activityList(f.Tenant), f.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = &p
	}
	page, err := s.rows(ctx, &f, after)
	if err != nil {
		return nil, "", s.db.Read.Wrap(step, err)
	}
	running, err := s.running(ctx, &f, after)
	if err != nil {
		return nil, "", s.db.Read.Wrap(step, err)
	}
	page = append(page, running...)
	slices.SortStableFunc(page, func(a, b activity.Entry) int { return b.CreatedAt.Compare(a.CreatedAt) })
	next := ""
	if len(page) > f.Limit {
		page = page[:f.Limit]
		last := &page[f.Limit-1]
		id := wasRow + strconv.FormatInt(last.ID, 10)
		if last.Running {
			id = ran + last.TraceID
		}
		next = sqldb.EncodeCursor(s.db.Seal, activityList(f.Tenant), sqldb.Place{At: sqldb.Micros(last.CreatedAt), ID: id})
	}
	return page, next, s.db.Read.Wrap(step, s.name(ctx, f.Tenant, page))
}

// rows returns entries from the audit trail.
func (s *Store) rows(ctx context.Context, f *activity.Filter, after *sqldb.Place) ([]activity.Entry, error) {
	if f.Status == activity.Running {
		return nil, nil
	}
	q := &sqldb.Selection{}
	q.Add(`SELECT `+auditdb.Table.Selected+` FROM audit_rows WHERE tenant = ?`, f.Tenant)
	activityConditions(q, f, "agent", "session_id", "turn")
	q.Same("exit_status", f.Status)
	q.Partial("sandbox", f.Sandbox)
	if after != nil {
		id := int64(0) // a running execution follows all rows of its time
		if text, ok := strings.CutPrefix(after.ID, wasRow); ok {
			var err error
			if id, err = strconv.ParseInt(text, 10, 64); err != nil {
				return nil, fault.New(fault.Invalid, "page must be the next_page of an earlier answer")
			}
		}
		q.Add(` AND (created_at, id) < (?, ?)`, after.At, id)
	}
	q.Add(` ORDER BY created_at DESC, id DESC LIMIT ?`, f.Limit+1)
	rows, err := q.Rows(ctx, s.db.Read)
	return sqldb.Collect(rows, err, func(sc sqldb.Scanner) (e activity.Entry, err error) {
		e.Row, err = auditdb.Scan(sc)
		return e, err
	})
}

// running returns entries for the executions that have not ended. The tenant's plan limits their
// number.
func (s *Store) running(ctx context.Context, f *activity.Filter, after *sqldb.Place) ([]activity.Entry, error) {
	if f.Status != "" && f.Status != activity.Running || f.Sandbox != "" {
		return nil, nil
	}
	q := &sqldb.Selection{}
	q.Add(`SELECT `+executiondb.Table.Selected+` FROM executions WHERE tenant = ? AND status = 'running'`, f.Tenant)
	activityConditions(q, f, "CASE WHEN by_turn <> '' THEN by_agent ELSE agent END", "CASE WHEN by_turn <> '' THEN by_session ELSE turn END", "by_turn")
	if after != nil {
		trace, ok := strings.CutPrefix(after.ID, ran)
		if ok {
			q.Add(` AND (created_at, trace_id) < (?, ?)`, after.At, trace)
		} else {
			q.Add(` AND created_at <= ?`, after.At)
		}
	}
	q.Add(` ORDER BY created_at DESC, trace_id DESC LIMIT ?`, f.Limit+1)
	rows, err := q.Rows(ctx, s.db.Read)
	return sqldb.Collect(rows, err, func(sc sqldb.Scanner) (activity.Entry, error) {
		r, err := executiondb.Scan(sc)
		return entryOf(r.Execution), err
	})
}

// entryOf returns the entry of a running execution.
func entryOf(e *execution.Execution) activity.Entry {
	row := audit.Row{
		TraceID: e.TraceID, Tenant: e.Tenant, Key: e.Key, Environment: e.Environment, Source: string(e.Source), Agent: e.Agent, SessionID: e.Turn,
		Thread: e.Thread, Language: string(e.Language), CodeSHA256: e.CodeSHA256, Mounts: e.Mounts, Metadata: e.Metadata, CreatedAt: e.CreatedAt,
	}
	if e.By.Turn != "" {
		row.Agent, row.SessionID, row.Turn = e.By.Agent, e.By.Session, e.By.Turn
		row.Metadata = map[string]string{"tool": e.By.Tool}
	}
	return activity.Entry{Row: row, Running: true}
}

// activityConditions adds the conditions that audit rows and executions share. It repeats the
// predicate of a partial index, so that the database uses the index.
func activityConditions(q *sqldb.Selection, f *activity.Filter, agent, session, turn string) {
	if f.Key != "" { // include the key's tokens, whose ids start with the key's digits
		tokens := "tok_" + strings.TrimPrefix(f.Key, "key_") + "_"
		q.Add(` AND (key_id = ? OR key_id >= ? AND key_id < ?)`, f.Key, tokens, tokens+"~")
	}
	q.Same("environment", f.Environment)
	q.Same("source", f.Source)
	q.Partial(agent, f.Agent)
	q.Partial(session, f.Session)
	q.Partial(turn, f.Turn)
	q.Partial("thread", f.Thread)
	if f.Kind != "" {
		list, except := f.Kind.Sources()
		not := ""
		if except {
			not = ` NOT`
		}
		args := make([]any, len(list))
		for i := range list {
			args[i] = list[i]
		}
		q.Add(` AND source`+not+` IN (?`+strings.Repeat(`, ?`, len(list)-1)+`)`, args...)
	}
	if len(f.CodeSHA256) > 0 {
		q.Add(` AND code_sha256 = ?`, f.CodeSHA256)
	}
	if !f.Since.IsZero() {
		q.Add(` AND created_at >= ?`, sqldb.Micros(f.Since))
	}
	if !f.Before.IsZero() {
		q.Add(` AND created_at < ?`, sqldb.Micros(f.Before))
	}
}

// shownTexts selects the texts of tenants that currently keep texts. If a tenant turned texts off,
// Atoll hides the older texts too.
const shownTexts = `(SELECT tenant, trace_id, text FROM activity_texts WHERE EXISTS (SELECT 1 FROM tenants WHERE id = activity_texts.tenant AND audit_text)) AS shown`

// name adds the names and texts of entries.
func (s *Store) name(ctx context.Context, of tenant.ID, page []activity.Entry) error {
	keys, err := s.lookUp(ctx, "keys", "name", "id", of, page, func(e *activity.Entry) string { return tenant.KeyOf(e.Key) })
	if err != nil {
		return err
	}
	environments, err := s.lookUp(ctx, "environments", "name", "id", of, page, func(e *activity.Entry) string { return e.Environment })
	if err != nil {
		return err
	}
	texts, err := s.lookUp(ctx, shownTexts, "text", "trace_id", of, page, func(e *activity.Entry) string { return e.TraceID })
	if err != nil {
		return err
	}
	for i := range page {
		e := &page[i]
		e.KeyName, e.EnvironmentName = string(keys[tenant.KeyOf(e.Key)]), string(environments[e.Environment])
		if sealed := texts[e.TraceID]; sealed != nil {
			if e.Text, err = auditdb.OpenText(s.db, of, e.TraceID, sealed); err != nil {
				return err
			}
		}
	}
	return nil
}

// inOne limits the ids in one query.
const inOne = 500

// lookUp maps the ids that name returns for the entries to a column of their rows.
func (s *Store) lookUp(ctx context.Context, table, column, id string, of tenant.ID, page []activity.Entry, name func(*activity.Entry) string) (map[string][]byte, error) {
	var ids []string
	for i := range page {
		if n := name(&page[i]); n != "" {
			ids = append(ids, n)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	out := map[string][]byte{}
	for some := range slices.Chunk(ids, inOne) {
		q := &sqldb.Selection{}
		q.Add(`SELECT `+id+`, `+column+` FROM `+table+` WHERE tenant = ? AND `+id+` IN (?`, of, some[0])
		for _, one := range some[1:] {
			q.Add(`, ?`, one)
		}
		q.Add(`)`)
		rows, err := q.Rows(ctx, s.db.Read)
		type pair struct {
			id    string
			value []byte
		}
		found, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (p pair, err error) { return p, sc.Scan(&p.id, &p.value) })
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			out[p.id] = p.value
		}
	}
	return out, nil
}
