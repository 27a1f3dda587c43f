package store

import (
	"context"
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func queuedPlace(id run.ID) string { return "session_queue/" + string(id) }

func (s *sessions) Enqueue(ctx context.Context, q *session.Queued) error {
	plain, err := json.Marshal(q)
	if err != nil {
		return err
	}
	sealed := s.db.seal.SealFor(q.Run.Tenant, entryWriter.EncodeAll(plain, nil), queuedPlace(q.Run.ID))
	return s.db.write.wrap("queue a turn", s.db.write.transact(ctx, func(t *tx) error {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		// The change keeps others from the session until this is done.
		n, err := t.exec(ctx, `UPDATE sessions SET updated_at = ? WHERE tenant = ? AND id = ? AND archived_at IS NULL AND waits = 0`, micros(now), q.Run.Tenant, q.Run.Session)
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
		_, err = t.exec(ctx, `INSERT INTO session_queue (session, run, turn) VALUES (?, ?, ?)`, q.Run.Session, string(q.Run.ID), sealed)
		return err
	}))
}

func (s *sessions) Ready(ctx context.Context, limit int) ([]session.Queued, error) {
	// The first of each tenant come first: a tenant whose turns wait for room keeps no other's.
	rows, err := s.db.read.rows(ctx, `SELECT tenant, session, events, seq, run, turn, budget_tokens, budget_cost, used_input, used_output, used_cost, speaker, speaker_version FROM (
		SELECT s.tenant, q.session, s.events, q.seq, q.run, q.turn, s.budget_tokens, s.budget_cost, s.used_input, s.used_output, s.used_cost, s.speaker, s.speaker_version, ROW_NUMBER() OVER (PARTITION BY s.tenant ORDER BY q.seq) AS place
		FROM session_queue q JOIN sessions s ON s.id = q.session
		WHERE s.run = '' AND s.waits = 0 AND q.seq = (SELECT MIN(f.seq) FROM session_queue f WHERE f.session = q.session)
	) AS heads ORDER BY place, seq LIMIT ?`, limit)
	all, err := collect(rows, err, func(sc scanner) (q session.Queued, err error) {
		var of tenant.ID
		var id run.ID
		var sealed []byte
		t, v := &run.Turn{}, session.Session{}
		if err := sc.Scan(&of, &t.Session, &t.Until, &t.Queued, &id, &sealed, &v.Budget.Tokens, &v.Budget.Cost, &v.Used.Usage.Input, &v.Used.Usage.Output, &v.Used.Cost, &v.Speaker.Agent, &v.Speaker.Version); err != nil {
			return q, err
		}
		packed, err := s.db.seal.OpenFor(of, sealed, queuedPlace(id))
		if err == nil {
			packed, err = entryReader.DecodeAll(packed, nil)
		}
		if err != nil {
			return q, about(err, "queued turn", string(id))
		}
		err = json.Unmarshal(packed, &q)
		if was := q.Request.Turn; was != nil {
			t.Within = was.Within
		}
		q.Request.Turn, q.Request.Limits.Session, q.Now = t, v.Left(), v.Speaker
		return q, err
	})
	return all, s.db.read.wrap("look for turns that may begin", err)
}
