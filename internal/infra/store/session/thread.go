package session

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

const threadFrom = ` FROM session_threads h JOIN sessions s ON s.id = h.session `

func threadPlace(id string) string { return "session_threads/name/" + id }

func keptPlace(id string) string { return "session_threads/kept/" + id }

// threadRow is a thread with its place in lists and its sealed name.
type threadRow struct {
	session.Thread
	seq  int64
	name []byte
}

// threadView is a thread with the tenant of its session.
var threadView = sqldb.NewView(
	sqldb.Col("h.seq", sqldb.Read, func(r *threadRow) any { return &r.seq }),
	sqldb.Col("h.id", sqldb.Read, func(r *threadRow) any { return &r.ID }),
	sqldb.Col("h.session", sqldb.Read, func(r *threadRow) any { return &r.Session }),
	sqldb.Col("s.tenant", sqldb.Read, func(r *threadRow) any { return &r.Tenant }),
	sqldb.Col("h.turn", sqldb.Read, func(r *threadRow) any { return &r.Turn }),
	sqldb.Col("h.parent", sqldb.Read, func(r *threadRow) any { return &r.Parent }),
	sqldb.Col("h.agent", sqldb.Read, func(r *threadRow) any { return &r.Agent }),
	sqldb.Col("h.agent_version", sqldb.Read, func(r *threadRow) any { return &r.Version }),
	sqldb.Col("h.name", sqldb.Read, func(r *threadRow) any { return &r.name }),
	sqldb.Col("h.status", sqldb.Read, func(r *threadRow) any { return &r.Status }),
	sqldb.Col("h.events", sqldb.Read, func(r *threadRow) any { return &r.Events }),
	sqldb.Col("h.used_input", sqldb.Read, func(r *threadRow) any { return &r.Used.Usage.Input }),
	sqldb.Col("h.used_output", sqldb.Read, func(r *threadRow) any { return &r.Used.Usage.Output }),
	sqldb.Col("h.used_cost", sqldb.Read, func(r *threadRow) any { return &r.Used.Cost }),
	sqldb.Col("h.created_at", sqldb.Read, func(r *threadRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("h.ended_at", sqldb.Read, func(r *threadRow) any { return sqldb.ZeroTimeAt(&r.EndedAt) }),
	sqldb.Col("h.archived_at", sqldb.Read, func(r *threadRow) any { return sqldb.ZeroTimeAt(&r.ArchivedAt) }),
)

func (s *Store) scanThread(sc sqldb.Scanner) (threadRow, error) {
	r, err := threadView.Row(sc)
	if err != nil {
		return r, err
	}
	plain, err := s.db.Seal.OpenFor(r.Tenant, r.name, threadPlace(r.ID))
	r.Name = string(plain)
	return r, sqldb.About(err, "name of thread", r.ID)
}

func (s *Store) OpenThread(ctx context.Context, v *session.Thread, most int) error {
	name := s.db.Seal.SealFor(v.Tenant, []byte(v.Name), threadPlace(v.ID))
	return s.db.Transact(ctx, "open a thread", func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		// The change keeps others from the session until this is done.
		n, err := t.Exec(ctx, `UPDATE sessions SET updated_at = ? WHERE tenant = ? AND id = ?`, sqldb.Micros(now), v.Tenant, string(v.Session))
		if err != nil {
			return err
		}
		if n == 0 {
			return session.ErrNotFound
		}
		var all, running, ended int
		if err := t.Row(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN id = ? AND status = ? THEN 1 ELSE 0 END), 0), COALESCE(SUM(CASE WHEN id = ? AND status <> ? THEN 1 ELSE 0 END), 0) FROM session_threads WHERE turn = ?`,
			v.ID, string(session.ThreadRunning), v.ID, string(session.ThreadRunning), string(v.Turn)).Scan(&all, &running, &ended); err != nil {
			return err
		}
		switch {
		case running > 0:
			return nil
		case ended > 0:
			return session.ErrThreadEnded
		case all >= most:
			return session.TooManyDelegations(all)
		}
		_, err = t.Exec(ctx, `INSERT INTO session_threads (id, session, turn, parent, agent, agent_version, name, status, events, used_input, used_output, used_cost, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, ?)`,
			v.ID, string(v.Session), string(v.Turn), v.Parent, string(v.Agent), v.Version, name, string(session.ThreadRunning), sqldb.Micros(now))
		t.Changes(string(v.Session))
		return err
	})
}

func (s *Store) CloseThread(ctx context.Context, v *session.Thread) error {
	return s.db.Transact(ctx, "close a thread", func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `UPDATE session_threads SET status = ?, ended_at = ? WHERE id = ? AND status = ?`, string(session.ThreadTerminated), sqldb.Micros(now), v.ID, string(session.ThreadRunning))
		t.Changes(string(v.Session))
		return err
	})
}

// endThreads ends the remaining hand-offs of an ended turn: threads whose runs never began, and runs
// that an earlier driver of the turn started.
func endThreads(ctx context.Context, b *sqldb.Batch, turn run.ID, at time.Time) error {
	if err := b.Later(ctx, `UPDATE runs SET cancelled = 1, due_at = CASE WHEN holder = '' THEN created_at ELSE due_at END WHERE top = ? AND top <> '' AND due_at IS NOT NULL`, string(turn)); err != nil {
		return err
	}
	return b.Later(ctx, `UPDATE session_threads SET status = ?, ended_at = ? WHERE turn = ? AND status = ?`,
		string(session.ThreadTerminated), sqldb.Micros(at), string(turn), string(session.ThreadRunning))
}

const endWaits = `UPDATE session_threads SET status = ?, ended_at = ?, kept = NULL WHERE session = ? AND status = ? AND turn <> ?`

// endWaiting ends the threads that wait for the client, but those of a turn.
func endWaiting(ctx context.Context, b *sqldb.Batch, of string, but run.ID, at time.Time) error {
	return b.Later(ctx, endWaits,
		string(session.ThreadTerminated), sqldb.Micros(at), of, string(session.ThreadWaits), string(but))
}

func (s *Store) ResumeThread(ctx context.Context, v *session.Thread) (*run.Kept, error) {
	kept := &run.Kept{}
	return kept, s.db.Write.Wrap("continue with a thread", s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		n, err := t.Exec(ctx, `UPDATE session_threads SET status = ?, turn = ? WHERE id = ? AND session = (SELECT id FROM sessions WHERE tenant = ? AND id = ?) AND kept IS NOT NULL AND (status = ? OR status = ? AND turn = ?)`,
			string(session.ThreadRunning), string(v.Turn), v.ID, v.Tenant, string(v.Session), string(session.ThreadWaits), string(session.ThreadRunning), string(v.Turn))
		if err != nil {
			return err
		}
		if n == 0 {
			return session.ErrThreadEnded
		}
		t.Changes(string(v.Session))
		var sealed []byte
		if err := t.Row(ctx, `SELECT events, kept FROM session_threads WHERE id = ?`, v.ID).Scan(&v.Events, &sealed); err != nil {
			return err
		}
		plain, err := s.db.OpenPacked(v.Tenant, sealed, keptPlace(v.ID))
		if err != nil {
			return sqldb.About(err, "the kept state of thread", v.ID)
		}
		return json.Unmarshal(plain, kept)
	}))
}

// addThreadEvents adds the events of a run to its thread, which ends with the last one.
func addThreadEvents(ctx context.Context, b *sqldb.Batch, id run.ID, s *SealedTrace) error {
	last := s.events[len(s.events)-1]
	query, args := `UPDATE session_threads SET events = ? WHERE id = ?`, []any{last.Seq, s.thread}
	if end := last.Status; end != nil && !end.Running {
		used := run.Spent{}
		for _, t := range s.events {
			if t.Kind == run.EventUsage && t.Spent != nil {
				used = *t.Spent
			}
		}
		status := session.ThreadIdle
		if (&run.ThreadEnd{Status: end.End, Reason: end.Reason}).Ended() {
			status = session.ThreadTerminated
		}
		ended := sqldb.Micros(last.At)
		query = `UPDATE session_threads SET events = ?, status = ?, ended_at = CAST(? AS BIGINT), kept = ?, used_input = used_input + ?, used_output = used_output + ?, used_cost = used_cost + ? WHERE id = ?`
		args = []any{last.Seq, string(status), ended, nil, used.Usage.Input, used.Usage.Output, int64(used.Cost), s.thread}
		if s.kept != nil {
			args[1], args[2], args[3] = string(session.ThreadWaits), nil, s.kept
		}
	}
	if err := b.Later(ctx, query, args...); err != nil {
		return err
	}
	for _, t := range s.events {
		if err := b.Later(ctx, `INSERT INTO session_thread_events (thread, seq, run, type, at, event) VALUES (?, ?, ?, ?, ?, ?)`,
			s.thread, t.Seq, string(id), string(t.Sort()), sqldb.Micros(t.At), t.sealed); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) Threads(ctx context.Context, t tenant.ID, id session.ID, f session.ThreadFilter) (page []session.Thread, next string, err error) {
	if _, err := s.Get(ctx, t, id); err != nil {
		return nil, "", err
	}
	where, args := `WHERE s.tenant = ? AND h.session = ?`, []any{t, string(id)}
	if f.Statuses != nil {
		either := []string{`1 = 0`}
		for _, status := range f.Statuses {
			either, args = append(either, `h.status = ?`), append(args, string(status))
		}
		where += ` AND (` + strings.Join(either, ` OR `) + `)`
	}
	all, next, err := sqldb.PageOf(ctx, s.db, sqldb.Page(f.Page), "session_threads/"+string(id), `SELECT `+threadView.Selected+threadFrom+where, "h.seq", args,
		s.scanThread, func(r *threadRow) int64 { return r.seq })
	for i := range all {
		page = append(page, all[i].Thread)
	}
	return page, next, s.db.Read.Wrap("list the threads of a session", err)
}

func (s *Store) Thread(ctx context.Context, t tenant.ID, id session.ID, thread string) (*session.Thread, error) {
	if _, err := s.Get(ctx, t, id); err != nil {
		return nil, err
	}
	return s.thread(ctx, s.db.Read, t, id, thread)
}

func (s *Store) thread(ctx context.Context, q sqldb.Querier, t tenant.ID, id session.ID, thread string) (*session.Thread, error) {
	r, err := s.scanThread(q.Row(ctx, `SELECT `+threadView.Selected+threadFrom+`WHERE s.tenant = ? AND h.session = ? AND h.id = ?`, t, string(id), thread))
	if err == sql.ErrNoRows {
		return nil, session.ErrNoThread
	}
	return &r.Thread, s.db.Read.Wrap("get a thread of a session", err)
}

func (s *Store) ArchiveThread(ctx context.Context, t tenant.ID, id session.ID, thread string, events ...tenant.PolicyEvent) (out *session.Thread, err error) {
	err = s.db.Write.Transact(ctx, func(x *sqldb.Tx) error {
		now, err := x.Clock(ctx)
		if err != nil {
			return err
		}
		n, err := x.Exec(ctx, `UPDATE session_threads SET archived_at = ? WHERE id = ? AND session = (SELECT id FROM sessions WHERE tenant = ? AND id = ?) AND ended_at IS NOT NULL AND archived_at IS NULL`,
			sqldb.Micros(now), thread, t, string(id))
		if err != nil {
			return err
		}
		if out, err = s.thread(ctx, x, t, id, thread); err != nil || n == 0 {
			return err
		}
		return policydb.Insert(ctx, x, events...)
	})
	if err == nil && out.ArchivedAt.IsZero() {
		return nil, session.ErrThreadRuns
	}
	return out, s.db.Write.Wrap("archive a thread", err)
}

func (s *Store) ThreadEvents(ctx context.Context, of *session.Thread, f session.EventFilter) ([]session.Event, string, error) {
	if f.Limit < 1 || f.Limit > sqldb.MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", sqldb.MaxPage)
	}
	f.Run, f.Span = "", session.Span{} // select the events of sessions only
	return s.page("session_thread_events/"+of.ID, f, func(where string, args ...any) ([]session.Event, error) {
		return s.threadEvents(ctx, of, where, append([]any{of.ID}, args...)...)
	})
}

func (s *Store) ThreadAfter(ctx context.Context, of *session.Thread, seq int64, limit int) ([]session.Event, error) {
	return s.threadEvents(ctx, of, `seq > ? ORDER BY seq LIMIT ?`, of.ID, seq, limit)
}

func (s *Store) threadEvents(ctx context.Context, of *session.Thread, where string, args ...any) ([]session.Event, error) {
	rows, err := s.db.Read.Rows(ctx, `SELECT `+eventView.Selected+` FROM session_thread_events WHERE thread = ? AND `+where, args...)
	all, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (session.Event, error) { return s.scanEvent(sc, of.Tenant, of.ID) })
	return all, s.db.Read.Wrap("read the events of a thread", err)
}

func (s *Store) Tree(ctx context.Context, t tenant.ID, id session.ID, kind run.EventKind, p agent.Page) ([]session.TreeEvent, string, error) {
	if p.Limit < 1 || p.Limit > sqldb.MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", sqldb.MaxPage)
	}
	if _, err := s.Get(ctx, t, id); err != nil {
		return nil, "", err
	}
	list, from, thread, seq := "session_tree/"+string(id)+"/"+string(kind), sqldb.Place{}, "", "0"
	if p.Cursor != "" {
		var err error
		if from, err = sqldb.DecodeCursor(s.db.Seal, list, p.Cursor); err != nil {
			return nil, "", err
		}
		thread, seq, _ = strings.Cut(from.ID, "/")
	}
	after, err := strconv.ParseInt(seq, 10, 64)
	if err != nil {
		return nil, "", err
	}
	sorts := kind.Sorts()
	chosen, args := `IN (?`+strings.Repeat(`, ?`, len(sorts)-1)+`)`, []any{}
	for range 2 {
		args = append(args, string(id))
		for _, sort := range sorts {
			args = append(args, string(sort))
		}
	}
	rows, err := s.db.Read.Rows(ctx, `SELECT `+treeView.Selected+` FROM (
			SELECT '' AS thread, `+eventView.Selected+` FROM session_events WHERE session = ? AND type `+chosen+`
			UNION ALL SELECT e.thread, e.seq, e.run, e.type, e.at, e.event FROM session_thread_events e JOIN session_threads h ON h.id = e.thread WHERE h.session = ? AND e.type `+chosen+`
		) AS tree WHERE (at, thread, seq) > (CAST(? AS BIGINT), ?, CAST(? AS BIGINT)) ORDER BY at, thread, seq LIMIT ?`,
		append(args, from.At, thread, after, p.Limit+1)...)
	all, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (session.TreeEvent, error) {
		r, err := treeView.Row(sc)
		if err == nil {
			err = s.openEvent(&r, t, cmp.Or(r.Thread, string(id)))
		}
		return r.TreeEvent, err
	})
	if err != nil || len(all) <= p.Limit {
		return all, "", s.db.Read.Wrap("read the events of a session and its threads", err)
	}
	all = all[:p.Limit]
	last := &all[p.Limit-1]
	return all, sqldb.EncodeCursor(s.db.Seal, list, sqldb.Place{At: sqldb.Micros(last.At), ID: last.Thread + "/" + strconv.FormatInt(last.Seq, 10)}), nil
}

func (s *Store) Latest(ctx context.Context, t tenant.ID, id session.ID, kind run.EventKind) (*session.Event, error) {
	own, _, err := s.Events(ctx, t, id, session.EventFilter{Page: agent.Page{Limit: 1}, Kinds: []run.EventKind{kind}, Last: true})
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Read.Rows(ctx, `SELECT `+eventView.Of("e")+`, e.thread FROM session_thread_events e JOIN session_threads h ON h.id = e.thread
		WHERE h.session = ? AND e.type = ? ORDER BY e.at DESC LIMIT 1`, string(id), string(kind))
	theirs, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (session.Event, error) {
		var r eventRow
		err := sc.Scan(append(eventView.Dest(&r), &r.Thread)...)
		if err == nil {
			err = s.openEvent(&r, t, r.Thread)
		}
		return r.Event, err
	})
	all := append(own, theirs...)
	if err != nil || len(all) == 0 {
		return nil, s.db.Read.Wrap("read the last event of a session", err)
	}
	if len(all) == 2 && all[1].At.After(all[0].At) {
		return &all[1], nil
	}
	return &all[0], nil
}
