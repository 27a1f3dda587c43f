package session

import (
	"context"
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

func queuedPlace(id run.ID) string { return "session_queue/" + string(id) }

func (s *Store) Enqueue(ctx context.Context, q *session.Queued) error {
	sealed, err := s.db.SealPacked(q.Run.Tenant, q, queuedPlace(q.Run.ID))
	if err != nil {
		return err
	}
	return s.db.Transact(ctx, "queue a turn", func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		// The change keeps others from the session until this is done.
		n, err := t.Exec(ctx, `UPDATE sessions SET updated_at = ? WHERE tenant = ? AND id = ? AND archived_at IS NULL AND waits = 0`, sqldb.Micros(now), q.Run.Tenant, q.Run.Session)
		if err != nil {
			return err
		}
		v, err := s.get(ctx, t, q.Run.Tenant, session.ID(q.Run.Session))
		switch {
		case err != nil:
			return err
		case v.Archived():
			return session.ErrArchived
		case n == 0:
			return session.ErrWaits
		case v.Queued >= session.MaxQueued:
			return session.ErrFull
		}
		_, err = t.Exec(ctx, `INSERT INTO session_queue (session, run, turn) VALUES (?, ?, ?)`, q.Run.Session, string(q.Run.ID), sealed)
		return err
	})
}

func (s *Store) Ready(ctx context.Context, limit int) ([]session.Queued, error) {
	// The first of each tenant come first: a tenant whose turns wait for room keeps no other's.
	all, err := sqldb.Select(ctx, s.db.Read, s.scanQueued, `SELECT `+queuedView.Selected+` FROM (
		SELECT s.tenant, q.session, s.events, q.seq, q.run, q.turn, s.budget_tokens, s.budget_cost, s.used_input, s.used_output, s.used_cost, s.speaker, s.speaker_version, ROW_NUMBER() OVER (PARTITION BY s.tenant ORDER BY q.seq) AS place
		FROM session_queue q JOIN sessions s ON s.id = q.session
		WHERE s.run = '' AND s.waits = 0 AND q.seq = (SELECT MIN(f.seq) FROM session_queue f WHERE f.session = q.session)
	) AS heads ORDER BY place, seq LIMIT ?`, limit)
	return all, s.db.Read.Wrap("look for turns that may begin", err)
}

// queuedRow is a queued turn with the state of its session.
type queuedRow struct {
	turn   run.Turn
	id     run.ID
	of     session.Session
	sealed []byte
}

var queuedView = sqldb.NewView(
	sqldb.Col("tenant", sqldb.Read, func(r *queuedRow) any { return &r.of.Tenant }),
	sqldb.Col("session", sqldb.Read, func(r *queuedRow) any { return &r.turn.Session }),
	sqldb.Col("events", sqldb.Read, func(r *queuedRow) any { return &r.turn.Until }),
	sqldb.Col("seq", sqldb.Read, func(r *queuedRow) any { return &r.turn.Queued }),
	sqldb.Col("run", sqldb.Read, func(r *queuedRow) any { return &r.id }),
	sqldb.Col("turn", sqldb.Read, func(r *queuedRow) any { return &r.sealed }),
	sqldb.Col("budget_tokens", sqldb.Read, func(r *queuedRow) any { return &r.of.Budget.Tokens }),
	sqldb.Col("budget_cost", sqldb.Read, func(r *queuedRow) any { return &r.of.Budget.Cost }),
	sqldb.Col("used_input", sqldb.Read, func(r *queuedRow) any { return &r.of.Used.Usage.Input }),
	sqldb.Col("used_output", sqldb.Read, func(r *queuedRow) any { return &r.of.Used.Usage.Output }),
	sqldb.Col("used_cost", sqldb.Read, func(r *queuedRow) any { return &r.of.Used.Cost }),
	sqldb.Col("speaker", sqldb.Read, func(r *queuedRow) any { return &r.of.Speaker.Agent }),
	sqldb.Col("speaker_version", sqldb.Read, func(r *queuedRow) any { return &r.of.Speaker.Version }),
)

func (s *Store) scanQueued(sc sqldb.Scanner) (q session.Queued, err error) {
	r, err := queuedView.Row(sc)
	if err != nil {
		return q, err
	}
	plain, err := s.db.OpenPacked(r.of.Tenant, r.sealed, queuedPlace(r.id))
	if err != nil {
		return q, sqldb.About(err, "queued turn", string(r.id))
	}
	err = json.Unmarshal(plain, &q)
	if was := q.Request.Turn; was != nil {
		r.turn.Within = was.Within
	}
	q.Request.Turn, q.Request.Limits.Session, q.Now = &r.turn, r.of.Left(), r.of.Speaker
	return q, err
}
