package store

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
)

// activityStore implements activity.Store on the audit trail and the running executions.
type activityStore struct{ db *DB }

var _ activity.Store = (*activityStore)(nil)

// Activity returns the activity.Store.
func (db *DB) Activity() activity.Store { return &activityStore{db} }

func activityPlace(traceID string) string { return "activity_texts/" + traceID }

// sealActivity encrypts a text. It returns nil for "".
func (db *DB) sealActivity(of tenant.ID, traceID, text string) []byte {
	if text == "" {
		return nil
	}
	return db.seal.SealFor(of, []byte(text), activityPlace(traceID))
}

// keepText stores a text with the retention of the tenant's audit rows.
func keepText(ctx context.Context, b *batch, of tenant.ID, traceID string, sealed []byte) error {
	if sealed == nil {
		return nil
	}
	return b.later(ctx, `INSERT INTO activity_texts (tenant, trace_id, text, expires_at)
		VALUES (?, ?, ?, atoll_now() + 86400000000 * coalesce((SELECT audit_days FROM tenants WHERE id = ?), ?)) ON CONFLICT (tenant, trace_id) DO NOTHING`,
		of, traceID, sealed, of, int64(audit.DefaultRetention/day))
}

// A cursor records whether a page ended with an audit row or a running execution. At equal times,
// audit rows come first.
const (
	wasRow = "r"
	ran    = "e"
)

func activityList(of tenant.ID) string { return "activity/" + of }

func (s *activityStore) Activity(ctx context.Context, f activity.Filter) ([]activity.Entry, string, error) {
	const step = "list the activity"
	if f.Limit < 1 || f.Limit > activity.MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", activity.MaxPage)
	}
	var after *place
	if f.Cursor != "" {
		p, err := decodeCursor(s.db.seal, activityList(f.Tenant), f.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = &p
	}
	page, err := s.rows(ctx, &f, after)
	if err != nil {
		return nil, "", s.db.read.wrap(step, err)
	}
	running, err := s.running(ctx, &f, after)
	if err != nil {
		return nil, "", s.db.read.wrap(step, err)
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
		next = encodeCursor(s.db.seal, activityList(f.Tenant), place{micros(last.CreatedAt), id})
	}
	return page, next, s.db.read.wrap(step, s.name(ctx, f.Tenant, page))
}

// rows returns entries from the audit trail.
func (s *activityStore) rows(ctx context.Context, f *activity.Filter, after *place) ([]activity.Entry, error) {
	if f.Status == activity.Running {
		return nil, nil
	}
	q := &selection{}
	q.add(`SELECT `+auditTable.selected+` FROM audit_rows WHERE tenant = ?`, f.Tenant)
	q.activityConditions(f, "agent", "session_id", "turn")
	q.same("exit_status", f.Status)
	q.partial("sandbox", f.Sandbox)
	if after != nil {
		id := int64(0) // a running execution follows all rows of its time
		if text, ok := strings.CutPrefix(after.id, wasRow); ok {
			var err error
			if id, err = strconv.ParseInt(text, 10, 64); err != nil {
				return nil, fault.New(fault.Invalid, "page must be the next_page of an earlier answer")
			}
		}
		q.add(` AND (created_at, id) < (?, ?)`, after.at, id)
	}
	q.add(` ORDER BY created_at DESC, id DESC LIMIT ?`, f.Limit+1)
	rows, err := q.rows(ctx, s.db.read)
	return collect(rows, err, func(sc scanner) (e activity.Entry, err error) {
		e.Row, err = scanBare(sc)
		return e, err
	})
}

// running returns entries for the executions that have not ended. The tenant's plan limits their
// number.
func (s *activityStore) running(ctx context.Context, f *activity.Filter, after *place) ([]activity.Entry, error) {
	if f.Status != "" && f.Status != activity.Running || f.Sandbox != "" {
		return nil, nil
	}
	q := &selection{}
	q.add(`SELECT `+executionTable.selected+` FROM executions WHERE tenant = ? AND status = 'running'`, f.Tenant)
	q.activityConditions(f, "CASE WHEN by_turn <> '' THEN by_agent ELSE agent END", "CASE WHEN by_turn <> '' THEN by_session ELSE turn END", "by_turn")
	if after != nil {
		trace, ok := strings.CutPrefix(after.id, ran)
		if ok {
			q.add(` AND (created_at, trace_id) < (?, ?)`, after.at, trace)
		} else {
			q.add(` AND created_at <= ?`, after.at)
		}
	}
	q.add(` ORDER BY created_at DESC, trace_id DESC LIMIT ?`, f.Limit+1)
	rows, err := q.rows(ctx, s.db.read)
	return collect(rows, err, func(sc scanner) (activity.Entry, error) {
		r, err := scanExecution(sc)
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
func (q *selection) activityConditions(f *activity.Filter, agent, session, turn string) {
	if f.Key != "" { // include the key's tokens, whose ids start with the key's digits
		tokens := "tok_" + strings.TrimPrefix(f.Key, "key_") + "_"
		q.add(` AND (key_id = ? OR key_id >= ? AND key_id < ?)`, f.Key, tokens, tokens+"~")
	}
	q.same("environment", f.Environment)
	q.same("source", f.Source)
	q.partial(agent, f.Agent)
	q.partial(session, f.Session)
	q.partial(turn, f.Turn)
	q.partial("thread", f.Thread)
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
		q.add(` AND source`+not+` IN (?`+strings.Repeat(`, ?`, len(list)-1)+`)`, args...)
	}
	if len(f.CodeSHA256) > 0 {
		q.add(` AND code_sha256 = ?`, f.CodeSHA256)
	}
	if !f.Since.IsZero() {
		q.add(` AND created_at >= ?`, micros(f.Since))
	}
	if !f.Before.IsZero() {
		q.add(` AND created_at < ?`, micros(f.Before))
	}
}

// same requires that a column equals value, unless value is "".
func (q *selection) same(column, value string) {
	if value != "" {
		q.add(` AND `+column+` = ?`, value)
	}
}

// partial is same for a column whose partial index leaves out "".
func (q *selection) partial(column, value string) {
	if value != "" {
		q.add(` AND `+column+` = ? AND `+column+` <> ''`, value)
	}
}

// shownTexts selects the texts of tenants that currently keep texts. If a tenant turned texts off,
// Atoll hides the older texts too.
const shownTexts = `(SELECT tenant, trace_id, text FROM activity_texts WHERE EXISTS (SELECT 1 FROM tenants WHERE id = activity_texts.tenant AND audit_text)) AS shown`

// name adds the names and texts of entries.
func (s *activityStore) name(ctx context.Context, of tenant.ID, page []activity.Entry) error {
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
			plain, err := s.db.seal.OpenFor(of, sealed, activityPlace(e.TraceID))
			if err != nil {
				return about(err, "the text of", e.TraceID)
			}
			e.Text = string(plain)
		}
	}
	return nil
}

// inOne limits the ids in one query.
const inOne = 500

// lookUp maps the ids that name returns for the entries to a column of their rows.
func (s *activityStore) lookUp(ctx context.Context, table, column, id string, of tenant.ID, page []activity.Entry, name func(*activity.Entry) string) (map[string][]byte, error) {
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
		q := &selection{}
		q.add(`SELECT `+id+`, `+column+` FROM `+table+` WHERE tenant = ? AND `+id+` IN (?`, of, some[0])
		for _, one := range some[1:] {
			q.add(`, ?`, one)
		}
		q.add(`)`)
		rows, err := q.rows(ctx, s.db.read)
		type pair struct {
			id    string
			value []byte
		}
		found, err := collect(rows, err, func(sc scanner) (p pair, err error) { return p, sc.Scan(&p.id, &p.value) })
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			out[p.id] = p.value
		}
	}
	return out, nil
}
