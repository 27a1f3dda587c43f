package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// beginTurn makes a run the turn of its session that is under way. It is refused when
// there is another one, or the session has changed since it was read.
func (db *DB) beginTurn(ctx context.Context, b *batch, r *run.Run, turn *run.Turn, now time.Time) (refused, err error) {
	if err := b.flush(ctx); err != nil {
		return nil, err
	}
	n, err := b.exec(ctx, `UPDATE sessions SET run = ?, waits = 0, waits_until = NULL, updated_at = ? WHERE tenant = ? AND id = ? AND run = '' AND events = ? AND waits = ? AND archived_at IS NULL
		AND CAST(? AS BIGINT) IN (0, (SELECT seq FROM session_queue WHERE run = ?))`,
		string(r.ID), micros(now), r.Tenant, turn.Session, turn.Until, len(turn.Answers), turn.Queued, string(r.ID))
	if err != nil {
		return nil, err
	}
	if n > 0 {
		b.changes(turn.Session)
		if err := b.later(ctx, `DELETE FROM session_queue WHERE run = ?`, string(r.ID)); err != nil {
			return nil, err
		}
		if len(turn.Answers) > 0 {
			if err := db.decideInSession(ctx, b, r.Tenant, turn.Session, turn.Answers, r.ID, false, now); err != nil {
				return nil, err
			}
		}
		return nil, b.later(ctx, `DELETE FROM session_calls WHERE session = ?`, turn.Session)
	}
	return whyNot(ctx, b, r.Tenant, turn.Session)
}

// whyNot says why a session takes no turn and no answers now.
func whyNot(ctx context.Context, q querier, t tenant.ID, id string) (refused, err error) {
	var archived sql.NullInt64
	var under string
	err = q.row(ctx, `SELECT archived_at, run FROM sessions WHERE tenant = ? AND id = ?`, t, id).Scan(&archived, &under)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return session.ErrNotFound, nil
	case err != nil:
		return nil, err
	case archived.Valid:
		return session.ErrArchived, nil
	case under != "":
		return session.ErrBusy, nil
	}
	return session.ErrChanged, nil
}

// sealedTold is a run.Told as it is stored.
type sealedTold struct {
	*run.Told
	sealed []byte
}

func eventPlace(id string, seq int64) string { return fmt.Sprintf("session_events/%s/%d", id, seq) }

// summarized is the talk of an event that stands for those before it.
const summarized = 3

// talk is the column of that name.
func talk(t *run.Told) int {
	switch {
	case t.Kind == run.ToldCompacted:
		return summarized
	case t.Begins():
		return 2
	case t.Talk():
		return 1
	}
	return 0
}

func (db *DB) sealTold(of tenant.ID, id string, all []run.Told) ([]sealedTold, error) {
	out := make([]sealedTold, len(all))
	for i := range all {
		plain, err := json.Marshal(&all[i])
		if err != nil {
			return nil, fmt.Errorf("store: event %d of session %s: %w", all[i].Seq, id, err)
		}
		out[i] = sealedTold{&all[i], db.seal.SealFor(of, entryWriter.EncodeAll(plain, nil), eventPlace(id, all[i].Seq))}
	}
	return out, nil
}

func (db *DB) openTold(of tenant.ID, id string, sealed []byte, t *run.Told) error {
	packed, err := db.seal.OpenFor(of, sealed, eventPlace(id, t.Seq))
	if err == nil {
		packed, err = entryReader.DecodeAll(packed, nil)
	}
	if err != nil {
		return about(err, "event of session", id)
	}
	return json.Unmarshal(packed, t)
}

// sealedTrace is the part of a run.Trace that a session has.
type sealedTrace struct {
	session string
	thread  string // "" for the session's own events
	told    []sealedTold
	kept    []byte // what the thread goes on with; nil for one that waits for nothing
}

// sealTrace returns nil for traces that no session has a part of.
func (db *DB) sealTrace(of tenant.ID, left []run.Trace) (*sealedTrace, error) {
	for i := range left {
		if left[i].Session == "" {
			continue
		}
		told, err := db.sealTold(of, cmp.Or(left[i].Thread, left[i].Session), left[i].Told)
		if err != nil {
			return nil, err
		}
		out := &sealedTrace{session: left[i].Session, thread: left[i].Thread, told: told}
		if left[i].Kept != nil {
			plain, err := json.Marshal(left[i].Kept)
			if err != nil {
				return nil, fmt.Errorf("store: read the conversation of thread %s: %w", out.thread, err)
			}
			out.kept = db.seal.SealFor(of, entryWriter.EncodeAll(plain, nil), keptPlace(out.thread))
		}
		return out, nil
	}
	return nil, nil
}

// plainTold are events without their sealed form.
func plainTold(all []sealedTold) []run.Told {
	out := make([]run.Told, len(all))
	for i := range all {
		out[i] = *all[i].Told
	}
	return out
}

func insertTold(ctx context.Context, b *batch, id string, of run.ID, all []sealedTold) error {
	for _, t := range all {
		if err := b.later(ctx, `INSERT INTO session_events (session, seq, run, type, talk, at, event) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			id, t.Seq, string(of), string(t.Sort()), talk(t.Told), micros(t.At), t.sealed); err != nil {
			return err
		}
	}
	return nil
}

// tellSession adds the events of a turn to its session, which takes messages again after
// the last one.
func (db *DB) tellSession(ctx context.Context, b *batch, id run.ID, s *sealedTrace) error {
	b.changes(s.session)
	if s.thread != "" {
		return tellThread(ctx, b, id, s)
	}
	last := s.told[len(s.told)-1]
	query, args := `UPDATE sessions SET events = ?, updated_at = ? WHERE id = ? AND run = ?`, []any{last.Seq, micros(last.At), s.session, string(id)}
	if end := last.Status; end != nil && !end.Running {
		if err := db.notifyTurn(ctx, b, s); err != nil {
			return err
		}
		if err := endThreads(ctx, b, id, last.At); err != nil {
			return err
		}
		but := id
		if len(end.Waits) == 0 {
			but = ""
		}
		if err := endWaiting(ctx, b, s.session, but, last.At); err != nil {
			return err
		}
		waits := 0
		for _, w := range end.Waits {
			approve := 0
			if w.Approve {
				approve = 1
			}
			if err := b.later(ctx, `INSERT INTO session_calls (session, seq, call, tool, approve, answered) VALUES (?, ?, ?, ?, ?, 0)`,
				s.session, w.Of, w.Call, w.Tool, approve); err != nil {
				return err
			}
			waits++
		}
		if err := db.askInSession(ctx, b, id, s.session, end, last.At); err != nil {
			return err
		}
		query = `UPDATE sessions SET events = ?, updated_at = ?, run = '', waits = ?, waits_until = ? WHERE id = ? AND run = ?`
		args = []any{last.Seq, micros(last.At), waits, maybeMicros(&end.Until), s.session, string(id)}
	}
	for _, t := range s.told {
		if used := t.Spent; used != nil && t.Kind == run.ToldUsage {
			if err := b.later(ctx, `UPDATE sessions SET used_input = used_input + ?, used_output = used_output + ?, used_cost = used_cost + ? WHERE id = ? AND run = ?`,
				used.Usage.Input, used.Usage.Output, int64(used.Cost), s.session, string(id)); err != nil {
				return err
			}
		}
	}
	for _, t := range s.told {
		if who := t.Speaker; who != nil {
			if err := b.later(ctx, `UPDATE sessions SET speaker = ?, speaker_version = ? WHERE id = ? AND run = ?`, who.Agent, who.Version, s.session, string(id)); err != nil {
				return err
			}
		}
	}
	if err := b.later(ctx, query, args...); err != nil {
		return err
	}
	return insertTold(ctx, b, s.session, id, s.told)
}
