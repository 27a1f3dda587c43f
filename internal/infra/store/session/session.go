// Package session stores sessions with their events, threads, queues and notices.
package session

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	approvaldb "github.com/atoll-run/atoll/internal/infra/store/approval"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	sandboxdb "github.com/atoll-run/atoll/internal/infra/store/sandbox"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements session.Store.
type Store struct {
	db        *sqldb.DB
	approvals *approvaldb.Store
	tell      func(ctx context.Context, tx *sql.Tx, t tenant.ID, id string, sealed []byte) error // nil if no session has a webhook
}

var _ session.Store = (*Store)(nil)

// New returns the store. tell adds a sealed message about a session to the queue of jobs,
// in the transaction that records its cause; nil if no session has a webhook.
func New(db *sqldb.DB, a *approvaldb.Store, tell func(ctx context.Context, tx *sql.Tx, t tenant.ID, id string, sealed []byte) error) *Store {
	return &Store{db, a, tell}
}

func aboutPlace(id session.ID) string { return "sessions/about/" + string(id) }

// sessionRow is a session with its place in lists and its sealed columns.
type sessionRow struct {
	session.Session
	seq            int64
	about, webhook []byte
}

// sessionView is a session with the number of its queued turns.
var sessionView = sqldb.NewView(
	sqldb.Col("seq", sqldb.Read, func(r *sessionRow) any { return &r.seq }),
	sqldb.Col("id", sqldb.Read, func(r *sessionRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Read, func(r *sessionRow) any { return &r.Tenant }),
	sqldb.Col("key_id", sqldb.Read, func(r *sessionRow) any { return &r.Key }),
	sqldb.Col("environment", sqldb.Read, func(r *sessionRow) any { return &r.Environment }),
	sqldb.Col("agent", sqldb.Read, func(r *sessionRow) any { return &r.Agent }),
	sqldb.Col("agent_version", sqldb.Read, func(r *sessionRow) any { return &r.Version }),
	sqldb.Col("sandbox", sqldb.Read, func(r *sessionRow) any { return &r.Sandbox }),
	sqldb.Col("about", sqldb.Read, func(r *sessionRow) any { return &r.about }),
	sqldb.Col("run", sqldb.Read, func(r *sessionRow) any { return &r.Run }),
	sqldb.Col("events", sqldb.Read, func(r *sessionRow) any { return &r.Events }),
	sqldb.Col("waits", sqldb.Read, func(r *sessionRow) any { return &r.Waits }),
	sqldb.Col("created_at", sqldb.Read, func(r *sessionRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("updated_at", sqldb.Read, func(r *sessionRow) any { return sqldb.TimeAt(&r.UpdatedAt) }),
	sqldb.Col("archived_at", sqldb.Read, func(r *sessionRow) any { return sqldb.ZeroTimeAt(&r.ArchivedAt) }),
	sqldb.Col("budget_tokens", sqldb.Read, func(r *sessionRow) any { return &r.Budget.Tokens }),
	sqldb.Col("budget_cost", sqldb.Read, func(r *sessionRow) any { return &r.Budget.Cost }),
	sqldb.Col("used_input", sqldb.Read, func(r *sessionRow) any { return &r.Used.Usage.Input }),
	sqldb.Col("used_output", sqldb.Read, func(r *sessionRow) any { return &r.Used.Usage.Output }),
	sqldb.Col("used_cost", sqldb.Read, func(r *sessionRow) any { return &r.Used.Cost }),
	sqldb.Col("waits_until", sqldb.Read, func(r *sessionRow) any { return sqldb.ZeroTimeAt(&r.Until) }),
	sqldb.Col("webhook", sqldb.Read, func(r *sessionRow) any { return &r.webhook }),
	sqldb.Col("vaults", sqldb.Read, func(r *sessionRow) any { return sqldb.TextsAt(&r.Vaults) }),
	sqldb.Col("speaker", sqldb.Read, func(r *sessionRow) any { return &r.Speaker.Agent }),
	sqldb.Col("speaker_version", sqldb.Read, func(r *sessionRow) any { return &r.Speaker.Version }),
	sqldb.Col("(SELECT COUNT(*) FROM session_queue q WHERE q.session = sessions.id)", sqldb.Read, func(r *sessionRow) any { return &r.Queued }),
)

func (s *Store) scan(sc sqldb.Scanner) (sessionRow, error) {
	r, err := sessionView.Row(sc)
	if err != nil {
		return r, err
	}
	err = s.db.OpenJSON(r.Tenant, r.about, aboutPlace(r.ID), &r.About)
	if err == nil {
		r.Webhook, err = s.openWebhook(r.Tenant, r.ID, r.webhook)
	}
	return r, sqldb.About(err, "the description of session", string(r.ID))
}

func (s *Store) Create(ctx context.Context, v *session.Session, most int, events ...tenant.PolicyEvent) error {
	sealed, err := s.db.SealJSON(v.Tenant, &v.About, aboutPlace(v.ID))
	if err != nil {
		return err
	}
	webhook, err := s.sealWebhook(v.Tenant, v.ID, v.Webhook)
	if err != nil {
		return err
	}
	vaults, err := sqldb.TextsAt(&v.Vaults).Value()
	if err != nil {
		return err
	}
	return s.db.Transact(ctx, "create a session", func(t *sqldb.Tx) error {
		if err := sessionsLeft(ctx, t, v.Tenant, most); err != nil {
			return err
		}
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		v.CreatedAt, v.UpdatedAt, v.ArchivedAt, v.Run, v.Events, v.Waits, v.Until = now, now, time.Time{}, "", 0, 0, time.Time{}
		if _, err := t.Exec(ctx, `INSERT INTO sessions (id, tenant, key_id, environment, agent, agent_version, sandbox, about, run, events, waits, created_at, updated_at, budget_tokens, budget_cost, webhook, vaults) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', 0, 0, ?, ?, ?, ?, ?, ?)`,
			string(v.ID), v.Tenant, v.Key, v.Environment, string(v.Agent), v.Version, v.Sandbox, sealed, sqldb.Micros(now), sqldb.Micros(now), v.Budget.Tokens, int64(v.Budget.Cost), webhook, vaults); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
}

// sessionsLeft refuses another session of a tenant that has the most, while no other is made.
func sessionsLeft(ctx context.Context, t *sqldb.Tx, of tenant.ID, most int) error {
	if most == 0 {
		return nil
	}
	if err := t.Lock(ctx, "sessions", of); err != nil {
		return err
	}
	var n int
	if err := t.Row(ctx, `SELECT COUNT(*) FROM sessions WHERE tenant = ?`, of).Scan(&n); err != nil || n < most {
		return err
	}
	return session.TooMany(n)
}

func (s *Store) Get(ctx context.Context, id tenant.ID, of session.ID) (*session.Session, error) {
	return s.get(ctx, s.db.Read, id, of)
}

func (s *Store) get(ctx context.Context, q sqldb.Querier, id tenant.ID, of session.ID) (*session.Session, error) {
	r, err := s.scan(q.Row(ctx, `SELECT `+sessionView.Selected+` FROM sessions WHERE tenant = ? AND id = ?`, id, string(of)))
	if err == sql.ErrNoRows {
		return nil, session.ErrNotFound
	}
	return &r.Session, s.db.Read.Wrap("get a session", err)
}

func (s *Store) Update(ctx context.Context, id tenant.ID, of session.ID, a session.About, b session.Budget, events ...tenant.PolicyEvent) (*session.Session, error) {
	sealed, err := s.db.SealJSON(id, &a, aboutPlace(of))
	if err != nil {
		return nil, err
	}
	return s.change(ctx, "change a session", id, of, session.ErrArchived, events, func(t *sqldb.Tx, now int64) (int64, error) {
		return t.Exec(ctx, `UPDATE sessions SET about = ?, updated_at = ?, budget_tokens = CASE WHEN budget_tokens < ? THEN CAST(? AS BIGINT) ELSE budget_tokens END,
			budget_cost = CASE WHEN budget_cost < ? THEN CAST(? AS BIGINT) ELSE budget_cost END WHERE tenant = ? AND id = ? AND archived_at IS NULL`,
			sealed, now, b.Tokens, b.Tokens, int64(b.Cost), int64(b.Cost), id, string(of))
	})
}

// change makes a change and records its events if a row changed. It returns the changed session. If no
// row changed, it returns refused.
func (s *Store) change(ctx context.Context, step string, id tenant.ID, of session.ID, refused error, events []tenant.PolicyEvent, do func(t *sqldb.Tx, now int64) (int64, error)) (out *session.Session, err error) {
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		n, err := do(t, sqldb.Micros(now))
		if err != nil {
			return err
		}
		if out, err = s.get(ctx, t, id, of); err != nil {
			return err
		}
		if n == 0 {
			return refused
		}
		t.Changes(string(of))
		return policydb.Insert(ctx, t, events...)
	})
	return out, s.db.Write.Wrap(step, err)
}

func (s *Store) Archive(ctx context.Context, id tenant.ID, of session.ID, events ...tenant.PolicyEvent) (*session.Session, error) {
	out, err := s.change(ctx, "archive a session", id, of, session.ErrBusy, events, func(t *sqldb.Tx, now int64) (int64, error) {
		n, err := t.Exec(ctx, `UPDATE sessions SET archived_at = ?, updated_at = ? WHERE tenant = ? AND id = ? AND archived_at IS NULL AND run = ''`, now, now, id, string(of))
		if err == nil && n > 0 {
			_, err = t.Exec(ctx, `DELETE FROM session_queue WHERE session = ?`, string(of))
			if err == nil {
				_, err = t.Exec(ctx, `UPDATE approvals SET status = 'cancelled', decided_at = ? WHERE session = ? AND session <> '' AND status = 'pending'`, now, string(of))
			}
			if err == nil {
				_, err = t.Exec(ctx, endWaits, string(session.ThreadTerminated), now, string(of), string(session.ThreadWaits), "")
			}
			if err == nil {
				err = sandboxdb.EndOfSession(ctx, t, id, of)
			}
			if err == nil {
				err = s.terminated(ctx, t, id, of, now)
			}
		}
		return n, err
	})
	if err == session.ErrBusy && out.Archived() {
		return out, nil
	}
	return out, err
}

func (s *Store) Delete(ctx context.Context, id tenant.ID, of session.ID, events ...tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "delete a session", func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		v, err := s.get(ctx, t, id, of)
		if err != nil {
			return err
		}
		n, err := t.Exec(ctx, `DELETE FROM sessions WHERE tenant = ? AND id = ? AND run = ''`, id, string(of))
		if err != nil {
			return err
		}
		if n > 0 && !v.Archived() {
			if err := s.notify(ctx, t.SQL(), v.Termination(now)); err != nil {
				return err
			}
		}
		if n == 0 {
			if _, err := s.get(ctx, t, id, of); err != nil {
				return err
			}
			return session.ErrBusy
		}
		if err := sandboxdb.EndOfSession(ctx, t, id, of); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `DELETE FROM approvals WHERE session = ? AND session <> ''`, string(of)); err != nil {
			return err
		}
		t.Changes(string(of))
		// Expiry deletes the runs later, because they also have data outside the database.
		if _, err := t.Exec(ctx, `UPDATE runs SET expires_at = ended_at WHERE tenant = ? AND session = ? AND session <> ''`, id, string(of)); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
}

func (s *Store) List(ctx context.Context, id tenant.ID, f session.Filter) ([]session.Session, string, error) {
	if f.Limit < 1 || f.Limit > sqldb.MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", sqldb.MaxPage)
	}
	list, order, beyond := "sessions/"+id+"/"+string(f.Agent), `DESC`, ` AND seq < ?`
	if f.First {
		list, order, beyond = list+"/asc", `ASC`, ` AND seq > ?`
	}
	where, args := chosen(id, &f)
	if f.Cursor != "" {
		from, err := sqldb.DecodeCursor(s.db.Seal, list, f.Cursor)
		if err != nil {
			return nil, "", err
		}
		where, args = where+beyond, append(args, from.At)
	}
	all, err := sqldb.Select(ctx, s.db.Read, s.scan, `SELECT `+sessionView.Selected+` FROM sessions WHERE `+where+` ORDER BY seq `+order+` LIMIT ?`, append(args, f.Limit+1)...)
	if err != nil {
		return nil, "", s.db.Read.Wrap("list sessions", err)
	}
	next := ""
	if len(all) > f.Limit {
		all = all[:f.Limit]
		next = sqldb.EncodeCursor(s.db.Seal, list, sqldb.Place{At: all[f.Limit-1].seq})
	}
	out := make([]session.Session, len(all))
	for i := range all {
		out[i] = all[i].Session
	}
	return out, next, nil
}

// states are conditions for states of sessions.
var states = map[session.State]string{
	session.Idle: `archived_at IS NULL AND run = ''`, session.Running: `run <> ''`, session.Ended: `archived_at IS NOT NULL`,
}

// chosen is the condition of a filter, but for its page.
func chosen(id tenant.ID, f *session.Filter) (where string, args []any) {
	where, args = `tenant = ?`, []any{id}
	if f.Agent != "" {
		where, args = where+` AND agent = ?`, append(args, string(f.Agent))
	}
	if f.Version > 0 {
		where, args = where+` AND agent_version = ?`, append(args, f.Version)
	}
	if f.States != nil {
		either := []string{`1 = 0`}
		for _, state := range f.States {
			either = append(either, `(`+states[state]+`)`)
		}
		where += ` AND (` + strings.Join(either, ` OR `) + `)`
	} else if !f.Archived {
		where += ` AND archived_at IS NULL`
	}
	within, bounds := spanOf("created_at", f.Span)
	return where + within, append(args, bounds...)
}

// spanOf is the condition that a column of times is in a span.
func spanOf(column string, of session.Span) (where string, args []any) {
	if !of.From.IsZero() {
		where, args = ` AND `+column+` >= ?`, append(args, ceilMicros(of.From))
	}
	if !of.Until.IsZero() {
		where, args = where+` AND `+column+` < ?`, append(args, ceilMicros(of.Until))
	}
	return where, args
}

// ceilMicros is the first microsecond that is not before t.
func ceilMicros(t time.Time) int64 {
	if whole := t.Truncate(time.Microsecond); whole.Before(t) {
		return sqldb.Micros(whole) + 1
	}
	return sqldb.Micros(t)
}
