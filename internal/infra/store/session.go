package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Sessions is the store of sessions.
func (db *DB) Sessions() session.Store { return &sessions{db} }

type sessions struct{ db *DB }

const sessionColumns = `seq, id, tenant, key_id, environment, agent, agent_version, sandbox, about, run, events, waits, created_at, updated_at, archived_at, budget_tokens, budget_cost, used_input, used_output, used_cost, waits_until, webhook, vaults, speaker, speaker_version,
	(SELECT COUNT(*) FROM session_queue q WHERE q.session = sessions.id)`

func aboutPlace(id session.ID) string { return "sessions/about/" + string(id) }

// sessionRow is a session with its place in lists.
type sessionRow struct {
	session.Session
	seq int64
}

func (s *sessions) scan(sc scanner) (r sessionRow, err error) {
	var sealed, webhook []byte
	var created, updated int64
	var archived, until sql.NullInt64
	var vaults string
	v := &r.Session
	if err := sc.Scan(&r.seq, &v.ID, &v.Tenant, &v.Key, &v.Environment, &v.Agent, &v.Version, &v.Sandbox, &sealed, &v.Run, &v.Events, &v.Waits, &created, &updated, &archived,
		&v.Budget.Tokens, &v.Budget.Cost, &v.Used.Usage.Input, &v.Used.Usage.Output, &v.Used.Cost, &until, &webhook, &vaults, &v.Speaker.Agent, &v.Speaker.Version, &v.Queued); err != nil {
		return r, err
	}
	v.CreatedAt, v.UpdatedAt = instant(created), instant(updated)
	if vaults != "" {
		if err := json.Unmarshal([]byte(vaults), &v.Vaults); err != nil {
			return r, about(err, "the vaults of session", string(v.ID))
		}
	}
	if until.Valid {
		v.Until = instant(until.Int64)
	}
	if archived.Valid {
		v.ArchivedAt = instant(archived.Int64)
	}
	plain, err := s.db.seal.OpenFor(v.Tenant, sealed, aboutPlace(v.ID))
	if err == nil {
		err = json.Unmarshal(plain, &v.About)
	}
	if err == nil {
		v.Webhook, err = s.db.openWebhook(v.Tenant, v.ID, webhook)
	}
	return r, about(err, "the description of session", string(v.ID))
}

func (s *sessions) sealAbout(t tenant.ID, id session.ID, a *session.About) ([]byte, error) {
	plain, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return s.db.seal.SealFor(t, plain, aboutPlace(id)), nil
}

func (s *sessions) Create(ctx context.Context, v *session.Session, most int, events ...tenant.PolicyEvent) error {
	sealed, err := s.sealAbout(v.Tenant, v.ID, &v.About)
	if err != nil {
		return err
	}
	webhook, err := s.sealWebhook(v.Tenant, v.ID, v.Webhook)
	if err != nil {
		return err
	}
	vaults := ""
	if len(v.Vaults) > 0 {
		ids, err := json.Marshal(v.Vaults)
		if err != nil {
			return err
		}
		vaults = string(ids)
	}
	return s.db.write.wrap("create a session", s.db.write.transact(ctx, func(t *tx) error {
		if err := sessionsLeft(ctx, t, v.Tenant, most); err != nil {
			return err
		}
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		v.CreatedAt, v.UpdatedAt, v.ArchivedAt, v.Run, v.Events, v.Waits, v.Until = now, now, time.Time{}, "", 0, 0, time.Time{}
		if _, err := t.exec(ctx, `INSERT INTO sessions (id, tenant, key_id, environment, agent, agent_version, sandbox, about, run, events, waits, created_at, updated_at, budget_tokens, budget_cost, webhook, vaults) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', 0, 0, ?, ?, ?, ?, ?, ?)`,
			string(v.ID), v.Tenant, v.Key, v.Environment, string(v.Agent), v.Version, v.Sandbox, sealed, micros(now), micros(now), v.Budget.Tokens, int64(v.Budget.Cost), webhook, vaults); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	}))
}

// sessionsLeft refuses another session of a tenant that has the most, while no other is made.
func sessionsLeft(ctx context.Context, t *tx, of tenant.ID, most int) error {
	if most == 0 {
		return nil
	}
	if t.pool.postgres {
		if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("sessions", of)); err != nil {
			return err
		}
	}
	var n int
	if err := t.row(ctx, `SELECT COUNT(*) FROM sessions WHERE tenant = ?`, of).Scan(&n); err != nil || n < most {
		return err
	}
	return session.TooMany(n)
}

func (s *sessions) Get(ctx context.Context, id tenant.ID, of session.ID) (*session.Session, error) {
	return s.get(ctx, s.db.read, id, of)
}

func (s *sessions) get(ctx context.Context, q querier, id tenant.ID, of session.ID) (*session.Session, error) {
	r, err := s.scan(q.row(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE tenant = ? AND id = ?`, id, string(of)))
	if err == sql.ErrNoRows {
		return nil, session.ErrNotFound
	}
	return &r.Session, s.db.read.wrap("get a session", err)
}

func (s *sessions) Update(ctx context.Context, id tenant.ID, of session.ID, a session.About, b session.Budget, events ...tenant.PolicyEvent) (*session.Session, error) {
	sealed, err := s.sealAbout(id, of, &a)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, "change a session", id, of, session.ErrArchived, events, func(t *tx, now int64) (int64, error) {
		return t.exec(ctx, `UPDATE sessions SET about = ?, updated_at = ?, budget_tokens = CASE WHEN budget_tokens < ? THEN CAST(? AS BIGINT) ELSE budget_tokens END,
			budget_cost = CASE WHEN budget_cost < ? THEN CAST(? AS BIGINT) ELSE budget_cost END WHERE tenant = ? AND id = ? AND archived_at IS NULL`,
			sealed, now, b.Tokens, b.Tokens, int64(b.Cost), int64(b.Cost), id, string(of))
	})
}

// change makes a change, with its events if there is one, and returns the session after
// it. One that is refused is archived already, or cannot be.
func (s *sessions) change(ctx context.Context, step string, id tenant.ID, of session.ID, refused error, events []tenant.PolicyEvent, do func(t *tx, now int64) (int64, error)) (out *session.Session, err error) {
	err = s.db.write.transact(ctx, func(t *tx) error {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		n, err := do(t, micros(now))
		if err != nil {
			return err
		}
		if out, err = s.get(ctx, t, id, of); err != nil {
			return err
		}
		if n == 0 {
			return refused
		}
		t.changes(string(of))
		return insertEvents(ctx, t, events)
	})
	return out, s.db.write.wrap(step, err)
}

func (s *sessions) Archive(ctx context.Context, id tenant.ID, of session.ID, events ...tenant.PolicyEvent) (*session.Session, error) {
	out, err := s.change(ctx, "archive a session", id, of, session.ErrBusy, events, func(t *tx, now int64) (int64, error) {
		n, err := t.exec(ctx, `UPDATE sessions SET archived_at = ?, updated_at = ? WHERE tenant = ? AND id = ? AND archived_at IS NULL AND run = ''`, now, now, id, string(of))
		if err == nil && n > 0 {
			_, err = t.exec(ctx, `DELETE FROM session_queue WHERE session = ?`, string(of))
			if err == nil {
				_, err = t.exec(ctx, `UPDATE approvals SET status = 'cancelled', decided_at = ? WHERE session = ? AND session <> '' AND status = 'pending'`, now, string(of))
			}
			if err == nil {
				_, err = t.exec(ctx, endWaits, string(session.ThreadTerminated), now, string(of), string(session.ThreadWaits), "")
			}
			if err == nil {
				err = bereave(ctx, t, id, of)
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

func (s *sessions) Delete(ctx context.Context, id tenant.ID, of session.ID, events ...tenant.PolicyEvent) error {
	return s.db.write.wrap("delete a session", s.db.write.transact(ctx, func(t *tx) error {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		v, err := s.get(ctx, t, id, of)
		if err != nil {
			return err
		}
		n, err := t.exec(ctx, `DELETE FROM sessions WHERE tenant = ? AND id = ? AND run = ''`, id, string(of))
		if err != nil {
			return err
		}
		if n > 0 && !v.Archived() {
			if err := s.db.notify(ctx, t.Tx, v.Termination(now)); err != nil {
				return err
			}
		}
		if n == 0 {
			if _, err := s.get(ctx, t, id, of); err != nil {
				return err
			}
			return session.ErrBusy
		}
		if err := bereave(ctx, t, id, of); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM approvals WHERE session = ? AND session <> ''`, string(of)); err != nil {
			return err
		}
		t.changes(string(of))
		// They go with what they have left elsewhere, which is not to be done here.
		if _, err := t.exec(ctx, `UPDATE runs SET expires_at = ended_at WHERE tenant = ? AND session = ? AND session <> ''`, id, string(of)); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	}))
}

func (s *sessions) List(ctx context.Context, id tenant.ID, f session.Filter) ([]session.Session, string, error) {
	if f.Limit < 1 || f.Limit > maxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxPage)
	}
	list, order, beyond := "sessions/"+id+"/"+string(f.Agent), `DESC`, ` AND seq < ?`
	if f.First {
		list, order, beyond = list+"/asc", `ASC`, ` AND seq > ?`
	}
	where, args := chosen(id, &f)
	if f.Cursor != "" {
		from, err := decodeCursor(s.db.seal, list, f.Cursor)
		if err != nil {
			return nil, "", err
		}
		where, args = where+beyond, append(args, from.at)
	}
	rows, err := s.db.read.rows(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE `+where+` ORDER BY seq `+order+` LIMIT ?`, append(args, f.Limit+1)...)
	all, err := collect(rows, err, s.scan)
	if err != nil {
		return nil, "", s.db.read.wrap("list sessions", err)
	}
	next := ""
	if len(all) > f.Limit {
		all = all[:f.Limit]
		next = encodeCursor(s.db.seal, list, place{at: all[f.Limit-1].seq})
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
		return micros(whole) + 1
	}
	return micros(t)
}
