package session

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
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// BeginTurn makes a run the current turn of its session. It is refused if the session has a turn, or
// has changed since the caller read it.
func (s *Store) BeginTurn(ctx context.Context, b *sqldb.Batch, r *run.Run, turn *run.Turn, now time.Time) (refused, err error) {
	if err := b.Flush(ctx); err != nil {
		return nil, err
	}
	n, err := b.Exec(ctx, `UPDATE sessions SET run = ?, waits = 0, waits_until = NULL, updated_at = ? WHERE tenant = ? AND id = ? AND run = '' AND events = ? AND waits = ? AND archived_at IS NULL
		AND CAST(? AS BIGINT) IN (0, (SELECT seq FROM session_queue WHERE run = ?))`,
		string(r.ID), sqldb.Micros(now), r.Tenant, turn.Session, turn.Until, len(turn.Answers), turn.Queued, string(r.ID))
	if err != nil {
		return nil, err
	}
	if n > 0 {
		b.Changes(turn.Session)
		if err := b.Later(ctx, `DELETE FROM session_queue WHERE run = ?`, string(r.ID)); err != nil {
			return nil, err
		}
		if len(turn.Answers) > 0 {
			if err := s.approvals.DecideInSession(ctx, b, r.Tenant, turn.Session, turn.Answers, r.ID, false, now); err != nil {
				return nil, err
			}
		}
		return nil, b.Later(ctx, `DELETE FROM session_calls WHERE session = ?`, turn.Session)
	}
	return whyNot(ctx, b, r.Tenant, turn.Session)
}

// whyNot says why a session takes no turn and no answers now.
func whyNot(ctx context.Context, q sqldb.Querier, t tenant.ID, id string) (refused, err error) {
	var archived sql.NullInt64
	var under string
	err = q.Row(ctx, `SELECT archived_at, run FROM sessions WHERE tenant = ? AND id = ?`, t, id).Scan(&archived, &under)
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

// sealedEvent is the stored form of a run.SessionEvent.
type sealedEvent struct {
	*run.SessionEvent
	sealed []byte
}

func eventPlace(id string, seq int64) string { return fmt.Sprintf("session_events/%s/%d", id, seq) }

// summarized is the talk of an event that stands for those before it.
const summarized = 3

// talk is the column of that name.
func talk(t *run.SessionEvent) int {
	switch {
	case t.Kind == run.EventCompacted:
		return summarized
	case t.Begins():
		return 2
	case t.Talk():
		return 1
	}
	return 0
}

func (s *Store) sealEvents(of tenant.ID, id string, all []run.SessionEvent) ([]sealedEvent, error) {
	out := make([]sealedEvent, len(all))
	for i := range all {
		sealed, err := s.db.SealPacked(of, &all[i], eventPlace(id, all[i].Seq))
		if err != nil {
			return nil, fmt.Errorf("store: event %d of session %s: %w", all[i].Seq, id, err)
		}
		out[i] = sealedEvent{&all[i], sealed}
	}
	return out, nil
}

func (s *Store) unsealEvent(of tenant.ID, id string, sealed []byte, t *run.SessionEvent) error {
	plain, err := s.db.OpenPacked(of, sealed, eventPlace(id, t.Seq))
	if err != nil {
		return sqldb.About(err, "event of session", id)
	}
	return json.Unmarshal(plain, t)
}

// SealedTrace is the part of a run.Trace that belongs to a session.
type SealedTrace struct {
	Session string
	thread  string // "" for the session's own events
	events  []sealedEvent
	kept    []byte // state from which the thread continues; nil if it does not wait
}

// SealTrace seals the part of a trace that belongs to a session. It returns nil if no part does.
func (s *Store) SealTrace(of tenant.ID, left []run.Trace) (*SealedTrace, error) {
	for i := range left {
		if left[i].Session == "" {
			continue
		}
		events, err := s.sealEvents(of, cmp.Or(left[i].Thread, left[i].Session), left[i].Events)
		if err != nil {
			return nil, err
		}
		out := &SealedTrace{Session: left[i].Session, thread: left[i].Thread, events: events}
		if left[i].Kept != nil {
			if out.kept, err = s.db.SealPacked(of, left[i].Kept, keptPlace(out.thread)); err != nil {
				return nil, fmt.Errorf("store: read the conversation of thread %s: %w", out.thread, err)
			}
		}
		return out, nil
	}
	return nil, nil
}

// plainEvents are events without their sealed form.
func plainEvents(all []sealedEvent) []run.SessionEvent {
	out := make([]run.SessionEvent, len(all))
	for i := range all {
		out[i] = *all[i].SessionEvent
	}
	return out
}

func insertEvents(ctx context.Context, b *sqldb.Batch, id string, of run.ID, all []sealedEvent) error {
	for _, t := range all {
		if err := b.Later(ctx, `INSERT INTO session_events (session, seq, run, type, talk, at, event) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			id, t.Seq, string(of), string(t.Sort()), talk(t.SessionEvent), sqldb.Micros(t.At), t.sealed); err != nil {
			return err
		}
	}
	return nil
}

// AddEvents adds the events of a turn to its session. After the last one, the session accepts
// messages.
func (s *Store) AddEvents(ctx context.Context, b *sqldb.Batch, id run.ID, trace *SealedTrace) error {
	b.Changes(trace.Session)
	if trace.thread != "" {
		return addThreadEvents(ctx, b, id, trace)
	}
	last := trace.events[len(trace.events)-1]
	query, args := `UPDATE sessions SET events = ?, updated_at = ? WHERE id = ? AND run = ?`, []any{last.Seq, sqldb.Micros(last.At), trace.Session, string(id)}
	if end := last.Status; end != nil && !end.Running {
		if err := s.notifyTurn(ctx, b, trace); err != nil {
			return err
		}
		if err := endThreads(ctx, b, id, last.At); err != nil {
			return err
		}
		but := id
		if len(end.Waits) == 0 {
			but = ""
		}
		if err := endWaiting(ctx, b, trace.Session, but, last.At); err != nil {
			return err
		}
		waits := 0
		for _, w := range end.Waits {
			approve := 0
			if w.Approve {
				approve = 1
			}
			if err := b.Later(ctx, `INSERT INTO session_calls (session, seq, call, tool, approve, answered) VALUES (?, ?, ?, ?, ?, 0)`,
				trace.Session, w.Of, w.Call, w.Tool, approve); err != nil {
				return err
			}
			waits++
		}
		if err := s.approvals.AskInSession(ctx, b, id, trace.Session, end, last.At); err != nil {
			return err
		}
		query = `UPDATE sessions SET events = ?, updated_at = ?, run = '', waits = ?, waits_until = ? WHERE id = ? AND run = ?`
		args = []any{last.Seq, sqldb.Micros(last.At), waits, sqldb.MaybeMicros(&end.Until), trace.Session, string(id)}
	}
	for _, t := range trace.events {
		if used := t.Spent; used != nil && t.Kind == run.EventUsage {
			if err := b.Later(ctx, `UPDATE sessions SET used_input = used_input + ?, used_output = used_output + ?, used_cost = used_cost + ? WHERE id = ? AND run = ?`,
				used.Usage.Input, used.Usage.Output, int64(used.Cost), trace.Session, string(id)); err != nil {
				return err
			}
		}
	}
	for _, t := range trace.events {
		if who := t.Speaker; who != nil {
			if err := b.Later(ctx, `UPDATE sessions SET speaker = ?, speaker_version = ? WHERE id = ? AND run = ?`, who.Agent, who.Version, trace.Session, string(id)); err != nil {
				return err
			}
		}
	}
	if err := b.Later(ctx, query, args...); err != nil {
		return err
	}
	return insertEvents(ctx, b, trace.Session, id, trace.events)
}
