package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const threadColumns = `h.seq, h.id, h.session, s.tenant, h.turn, h.parent, h.agent, h.agent_version, h.name, h.status, h.events, h.used_input, h.used_output, h.used_cost, h.created_at, h.ended_at, h.archived_at`

const threadFrom = ` FROM session_threads h JOIN sessions s ON s.id = h.session `

func threadPlace(id string) string { return "session_threads/name/" + id }

func keptPlace(id string) string { return "session_threads/kept/" + id }

// threadRow is a thread with its place in lists.
type threadRow struct {
	session.Thread
	seq int64
}

func (s *sessions) scanThread(sc scanner) (r threadRow, err error) {
	var name []byte
	var created int64
	var ended, archived sql.NullInt64
	v := &r.Thread
	if err := sc.Scan(&r.seq, &v.ID, &v.Session, &v.Tenant, &v.Turn, &v.Parent, &v.Agent, &v.Version, &name, &v.Status, &v.Events,
		&v.Used.Usage.Input, &v.Used.Usage.Output, &v.Used.Cost, &created, &ended, &archived); err != nil {
		return r, err
	}
	v.CreatedAt = instant(created)
	if ended.Valid {
		v.EndedAt = instant(ended.Int64)
	}
	if archived.Valid {
		v.ArchivedAt = instant(archived.Int64)
	}
	plain, err := s.db.seal.OpenFor(v.Tenant, name, threadPlace(v.ID))
	v.Name = string(plain)
	return r, about(err, "name of thread", v.ID)
}

func (s *sessions) OpenThread(ctx context.Context, v *session.Thread, most int) error {
	name := s.db.seal.SealFor(v.Tenant, []byte(v.Name), threadPlace(v.ID))
	return s.db.write.wrap("open a thread", s.db.write.transact(ctx, func(t *tx) error {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		// The change keeps others from the session until this is done.
		n, err := t.exec(ctx, `UPDATE sessions SET updated_at = ? WHERE tenant = ? AND id = ?`, micros(now), v.Tenant, string(v.Session))
		if err != nil {
			return err
		}
		if n == 0 {
			return session.ErrNotFound
		}
		var all, running, ended int
		if err := t.row(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN id = ? AND status = ? THEN 1 ELSE 0 END), 0), COALESCE(SUM(CASE WHEN id = ? AND status <> ? THEN 1 ELSE 0 END), 0) FROM session_threads WHERE turn = ?`,
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
		_, err = t.exec(ctx, `INSERT INTO session_threads (id, session, turn, parent, agent, agent_version, name, status, events, used_input, used_output, used_cost, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, ?)`,
			v.ID, string(v.Session), string(v.Turn), v.Parent, string(v.Agent), v.Version, name, string(session.ThreadRunning), micros(now))
		t.changes(string(v.Session))
		return err
	}))
}

func (s *sessions) CloseThread(ctx context.Context, v *session.Thread) error {
	return s.db.write.wrap("close a thread", s.db.write.transact(ctx, func(t *tx) error {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, `UPDATE session_threads SET status = ?, ended_at = ? WHERE id = ? AND status = ?`, string(session.ThreadTerminated), micros(now), v.ID, string(session.ThreadRunning))
		t.changes(string(v.Session))
		return err
	}))
}

// endThreads ends what is left of a turn's hand-offs when it has ended: threads whose runs never
// began, and runs that a process has begun which drove the turn before.
func endThreads(ctx context.Context, b *batch, turn run.ID, at time.Time) error {
	if err := b.later(ctx, `UPDATE runs SET cancelled = 1, due_at = CASE WHEN holder = '' THEN created_at ELSE due_at END WHERE top = ? AND top <> '' AND due_at IS NOT NULL`, string(turn)); err != nil {
		return err
	}
	return b.later(ctx, `UPDATE session_threads SET status = ?, ended_at = ? WHERE turn = ? AND status = ?`,
		string(session.ThreadTerminated), micros(at), string(turn), string(session.ThreadRunning))
}

const endWaits = `UPDATE session_threads SET status = ?, ended_at = ?, kept = NULL WHERE session = ? AND status = ? AND turn <> ?`

// endWaiting ends the threads that wait for the client, but those of a turn.
func endWaiting(ctx context.Context, b *batch, of string, but run.ID, at time.Time) error {
	return b.later(ctx, endWaits,
		string(session.ThreadTerminated), micros(at), of, string(session.ThreadWaits), string(but))
}

func (s *sessions) ResumeThread(ctx context.Context, v *session.Thread) (*run.Kept, error) {
	kept := &run.Kept{}
	return kept, s.db.write.wrap("continue with a thread", s.db.write.transact(ctx, func(t *tx) error {
		n, err := t.exec(ctx, `UPDATE session_threads SET status = ?, turn = ? WHERE id = ? AND session = (SELECT id FROM sessions WHERE tenant = ? AND id = ?) AND kept IS NOT NULL AND (status = ? OR status = ? AND turn = ?)`,
			string(session.ThreadRunning), string(v.Turn), v.ID, v.Tenant, string(v.Session), string(session.ThreadWaits), string(session.ThreadRunning), string(v.Turn))
		if err != nil {
			return err
		}
		if n == 0 {
			return session.ErrThreadEnded
		}
		t.changes(string(v.Session))
		var sealed []byte
		if err := t.row(ctx, `SELECT events, kept FROM session_threads WHERE id = ?`, v.ID).Scan(&v.Events, &sealed); err != nil {
			return err
		}
		packed, err := s.db.seal.OpenFor(v.Tenant, sealed, keptPlace(v.ID))
		if err == nil {
			packed, err = entryReader.DecodeAll(packed, nil)
		}
		if err != nil {
			return about(err, "the kept state of thread", v.ID)
		}
		return json.Unmarshal(packed, kept)
	}))
}

// tellThread adds the events of a run to its thread, which ends with the last one.
func tellThread(ctx context.Context, b *batch, id run.ID, s *sealedTrace) error {
	last := s.told[len(s.told)-1]
	query, args := `UPDATE session_threads SET events = ? WHERE id = ?`, []any{last.Seq, s.thread}
	if end := last.Status; end != nil && !end.Running {
		used := run.Spent{}
		for _, t := range s.told {
			if t.Kind == run.ToldUsage && t.Spent != nil {
				used = *t.Spent
			}
		}
		status := session.ThreadIdle
		if (&run.ThreadEnd{Status: end.End, Reason: end.Reason}).Ended() {
			status = session.ThreadTerminated
		}
		ended := micros(last.At)
		query = `UPDATE session_threads SET events = ?, status = ?, ended_at = CAST(? AS BIGINT), kept = ?, used_input = used_input + ?, used_output = used_output + ?, used_cost = used_cost + ? WHERE id = ?`
		args = []any{last.Seq, string(status), ended, nil, used.Usage.Input, used.Usage.Output, int64(used.Cost), s.thread}
		if s.kept != nil {
			args[1], args[2], args[3] = string(session.ThreadWaits), nil, s.kept
		}
	}
	if err := b.later(ctx, query, args...); err != nil {
		return err
	}
	for _, t := range s.told {
		if err := b.later(ctx, `INSERT INTO session_thread_events (thread, seq, run, type, at, event) VALUES (?, ?, ?, ?, ?, ?)`,
			s.thread, t.Seq, string(id), string(t.Sort()), micros(t.At), t.sealed); err != nil {
			return err
		}
	}
	return nil
}

func (s *sessions) Threads(ctx context.Context, t tenant.ID, id session.ID, f session.ThreadFilter) (page []session.Thread, next string, err error) {
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
	all, next, err := pageOf(ctx, s.db, skill.Page(f.Page), "session_threads/"+string(id), `SELECT `+threadColumns+threadFrom+where, "h.seq", args,
		s.scanThread, func(r *threadRow) int64 { return r.seq })
	for i := range all {
		page = append(page, all[i].Thread)
	}
	return page, next, s.db.read.wrap("list the threads of a session", err)
}

func (s *sessions) Thread(ctx context.Context, t tenant.ID, id session.ID, thread string) (*session.Thread, error) {
	if _, err := s.Get(ctx, t, id); err != nil {
		return nil, err
	}
	return s.thread(ctx, s.db.read, t, id, thread)
}

func (s *sessions) thread(ctx context.Context, q querier, t tenant.ID, id session.ID, thread string) (*session.Thread, error) {
	r, err := s.scanThread(q.row(ctx, `SELECT `+threadColumns+threadFrom+`WHERE s.tenant = ? AND h.session = ? AND h.id = ?`, t, string(id), thread))
	if err == sql.ErrNoRows {
		return nil, session.ErrNoThread
	}
	return &r.Thread, s.db.read.wrap("get a thread of a session", err)
}

func (s *sessions) ArchiveThread(ctx context.Context, t tenant.ID, id session.ID, thread string, events ...tenant.PolicyEvent) (out *session.Thread, err error) {
	err = s.db.write.transact(ctx, func(x *tx) error {
		now, err := x.pool.clock(ctx, x)
		if err != nil {
			return err
		}
		n, err := x.exec(ctx, `UPDATE session_threads SET archived_at = ? WHERE id = ? AND session = (SELECT id FROM sessions WHERE tenant = ? AND id = ?) AND ended_at IS NOT NULL AND archived_at IS NULL`,
			micros(now), thread, t, string(id))
		if err != nil {
			return err
		}
		if out, err = s.thread(ctx, x, t, id, thread); err != nil || n == 0 {
			return err
		}
		return insertEvents(ctx, x, events)
	})
	if err == nil && out.ArchivedAt.IsZero() {
		return nil, session.ErrThreadRuns
	}
	return out, s.db.write.wrap("archive a thread", err)
}

func (s *sessions) ThreadEvents(ctx context.Context, of *session.Thread, f session.EventFilter) ([]session.Event, string, error) {
	if f.Limit < 1 || f.Limit > maxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxPage)
	}
	list, where, order, args := "session_thread_events/"+of.ID, `seq > ?`, `ASC`, []any{of.ID, int64(0)}
	if f.Last {
		list, where, order, args[1] = list+"/desc", `seq < ?`, `DESC`, int64(1)<<62
	}
	if f.Cursor != "" {
		from, err := decodeCursor(s.db.seal, list, f.Cursor)
		if err != nil {
			return nil, "", err
		}
		args[1] = from.at
	}
	sorts := f.Sorts
	for _, k := range f.Kinds {
		sorts = append(slices.Clip(sorts), k.Sorts()...)
	}
	if len(sorts) > 0 {
		where += ` AND type IN (?` + strings.Repeat(`, ?`, len(sorts)-1) + `)`
		for _, sort := range sorts {
			args = append(args, string(sort))
		}
	}
	all, err := s.threadEvents(ctx, of, where+` ORDER BY seq `+order+` LIMIT ?`, append(args, f.Limit+1)...)
	if err != nil || len(all) <= f.Limit {
		return all, "", err
	}
	all = all[:f.Limit]
	return all, encodeCursor(s.db.seal, list, place{at: all[f.Limit-1].Seq}), nil
}

func (s *sessions) ThreadAfter(ctx context.Context, of *session.Thread, seq int64, limit int) ([]session.Event, error) {
	return s.threadEvents(ctx, of, `seq > ? ORDER BY seq LIMIT ?`, of.ID, seq, limit)
}

func (s *sessions) threadEvents(ctx context.Context, of *session.Thread, where string, args ...any) ([]session.Event, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+eventColumns+` FROM session_thread_events WHERE thread = ? AND `+where, args...)
	all, err := collect(rows, err, func(sc scanner) (session.Event, error) { return s.scanEvent(sc, of.Tenant, of.ID) })
	return all, s.db.read.wrap("read the events of a thread", err)
}

func (s *sessions) Tree(ctx context.Context, t tenant.ID, id session.ID, kind run.ToldKind, p agent.Page) ([]session.TreeEvent, string, error) {
	if p.Limit < 1 || p.Limit > maxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxPage)
	}
	if _, err := s.Get(ctx, t, id); err != nil {
		return nil, "", err
	}
	list, from, thread, seq := "session_tree/"+string(id)+"/"+string(kind), place{}, "", "0"
	if p.Cursor != "" {
		var err error
		if from, err = decodeCursor(s.db.seal, list, p.Cursor); err != nil {
			return nil, "", err
		}
		thread, seq, _ = strings.Cut(from.id, "/")
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
	rows, err := s.db.read.rows(ctx, `SELECT thread, `+eventColumns+` FROM (
			SELECT '' AS thread, `+eventColumns+` FROM session_events WHERE session = ? AND type `+chosen+`
			UNION ALL SELECT e.thread, e.seq, e.run, e.type, e.at, e.event FROM session_thread_events e JOIN session_threads h ON h.id = e.thread WHERE h.session = ? AND e.type `+chosen+`
		) AS tree WHERE (at, thread, seq) > (CAST(? AS BIGINT), ?, CAST(? AS BIGINT)) ORDER BY at, thread, seq LIMIT ?`,
		append(args, from.at, thread, after, p.Limit+1)...)
	all, err := collect(rows, err, func(sc scanner) (e session.TreeEvent, err error) {
		var at int64
		var sealed []byte
		var sort run.Sort
		if err := sc.Scan(&e.Thread, &e.Seq, &e.Run, &sort, &at, &sealed); err != nil {
			return e, err
		}
		e.Kind, e.At = sort.Kind(), instant(at)
		return e, s.db.openTold(t, cmp.Or(e.Thread, string(id)), sealed, &e.Told)
	})
	if err != nil || len(all) <= p.Limit {
		return all, "", s.db.read.wrap("read the events of a session and its threads", err)
	}
	all = all[:p.Limit]
	last := &all[p.Limit-1]
	return all, encodeCursor(s.db.seal, list, place{at: micros(last.At), id: last.Thread + "/" + strconv.FormatInt(last.Seq, 10)}), nil
}

func (s *sessions) Latest(ctx context.Context, t tenant.ID, id session.ID, kind run.ToldKind) (*session.Event, error) {
	own, _, err := s.Events(ctx, t, id, session.EventFilter{Page: agent.Page{Limit: 1}, Kinds: []run.ToldKind{kind}, Last: true})
	if err != nil {
		return nil, err
	}
	var thread string
	rows, err := s.db.read.rows(ctx, `SELECT e.seq, e.run, e.type, e.at, e.event, e.thread FROM session_thread_events e JOIN session_threads h ON h.id = e.thread
		WHERE h.session = ? AND e.type = ? ORDER BY e.at DESC LIMIT 1`, string(id), string(kind))
	theirs, err := collect(rows, err, func(sc scanner) (e session.Event, err error) {
		var sort run.Sort
		var at int64
		var sealed []byte
		if err := sc.Scan(&e.Seq, &e.Run, &sort, &at, &sealed, &thread); err != nil {
			return e, err
		}
		e.Kind, e.At = sort.Kind(), instant(at)
		return e, s.db.openTold(t, thread, sealed, &e.Told)
	})
	all := append(own, theirs...)
	if err != nil || len(all) == 0 {
		return nil, s.db.read.wrap("read the last event of a session", err)
	}
	if len(all) == 2 && all[1].At.After(all[0].At) {
		return &all[1], nil
	}
	return &all[0], nil
}
