package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	auditdb "github.com/atoll-run/atoll/internal/infra/store/audit"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// eventRow is an event with its sort and its sealed content.
type eventRow struct {
	session.TreeEvent
	sort   run.Sort
	sealed []byte
}

// Columns of events. The events of sessions and those of threads have the same ones.
var (
	eventView = sqldb.NewView(eventColumns...)
	// treeView is an event with its thread, which is "" for an event of the session.
	treeView = sqldb.NewView(append([]sqldb.Column[eventRow]{
		sqldb.Col("thread", sqldb.Read, func(r *eventRow) any { return &r.Thread }),
	}, eventColumns...)...)

	eventColumns = []sqldb.Column[eventRow]{
		sqldb.Col("seq", sqldb.Read, func(r *eventRow) any { return &r.Seq }),
		sqldb.Col("run", sqldb.Read, func(r *eventRow) any { return &r.Run }),
		sqldb.Col("type", sqldb.Read, func(r *eventRow) any { return &r.sort }),
		sqldb.Col("at", sqldb.Read, func(r *eventRow) any { return sqldb.TimeAt(&r.At) }),
		sqldb.Col("event", sqldb.Read, func(r *eventRow) any { return &r.sealed }),
	}
)

// events reads events of a session of a tenant.
func (s *Store) events(ctx context.Context, t tenant.ID, id string, where string, args ...any) ([]session.Event, error) {
	rows, err := s.db.Read.Rows(ctx, `SELECT `+eventView.Selected+` FROM session_events WHERE session = ? AND `+where, append([]any{id}, args...)...)
	all, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (session.Event, error) { return s.scanEvent(sc, t, id) })
	return all, s.db.Read.Wrap("read the events of a session", err)
}

// scanEvent reads an event of a session or thread.
func (s *Store) scanEvent(sc sqldb.Scanner, t tenant.ID, of string) (session.Event, error) {
	r, err := eventView.Row(sc)
	if err != nil {
		return r.Event, err
	}
	return r.Event, s.openEvent(&r, t, of)
}

// openEvent opens the content of an event of a session or thread.
func (s *Store) openEvent(r *eventRow, t tenant.ID, of string) error {
	r.Kind = r.sort.Kind()
	return s.unsealEvent(t, of, r.sealed, &r.SessionEvent)
}

func (s *Store) Events(ctx context.Context, t tenant.ID, id session.ID, f session.EventFilter) ([]session.Event, string, error) {
	if f.Limit < 1 || f.Limit > sqldb.MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", sqldb.MaxPage)
	}
	if _, err := s.Get(ctx, t, id); err != nil {
		return nil, "", err
	}
	return s.page("session_events/"+string(id), f, func(where string, args ...any) ([]session.Event, error) {
		return s.events(ctx, t, string(id), where, args...)
	})
}

// page reads a page of the events of a session or thread.
func (s *Store) page(list string, f session.EventFilter, read func(where string, args ...any) ([]session.Event, error)) ([]session.Event, string, error) {
	where, order, args := `seq > ?`, `ASC`, []any{int64(0)}
	if f.Last {
		list, where, order, args = list+"/desc", `seq < ?`, `DESC`, []any{int64(1) << 62}
	}
	if f.Cursor != "" {
		from, err := sqldb.DecodeCursor(s.db.Seal, list, f.Cursor)
		if err != nil {
			return nil, "", err
		}
		args[0] = from.At
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
	if f.Run != "" {
		where, args = where+` AND run = ?`, append(args, string(f.Run))
	}
	within, bounds := spanOf("at", f.Span)
	where, args = where+within, append(args, bounds...)
	all, err := read(where+` ORDER BY seq `+order+` LIMIT ?`, append(args, f.Limit+1)...)
	if err != nil || len(all) <= f.Limit {
		return all, "", err
	}
	all = all[:f.Limit]
	return all, sqldb.EncodeCursor(s.db.Seal, list, sqldb.Place{At: all[f.Limit-1].Seq}), nil
}

func (s *Store) After(ctx context.Context, t tenant.ID, id session.ID, seq int64, limit int) ([]session.Event, error) {
	if _, err := s.Get(ctx, t, id); err != nil {
		return nil, err
	}
	return s.events(ctx, t, string(id), `seq > ? ORDER BY seq LIMIT ?`, seq, limit)
}

func (s *Store) Total(ctx context.Context, t tenant.ID, id session.ID) (run.Total, error) {
	all, err := s.events(ctx, t, string(id), `type = ? ORDER BY seq DESC LIMIT 1`, string(run.EventUsage))
	if err != nil || len(all) == 0 || all[0].Total == nil {
		return run.Total{}, err
	}
	return *all[0].Total, nil
}

// eventSize is the size of an event of a conversation, in bytes.
type eventSize struct{ seq, talk, size int64 }

var sizeView = sqldb.NewView(
	sqldb.Col("seq", sqldb.Read, func(r *eventSize) any { return &r.seq }),
	sqldb.Col("talk", sqldb.Read, func(r *eventSize) any { return &r.talk }),
	sqldb.Col("length(event)", sqldb.Read, func(r *eventSize) any { return &r.size }),
)

func (s *Store) Window(ctx context.Context, id session.ID, until int64) (after int64, err error) {
	all, err := sqldb.Select(ctx, s.db.Read, sizeView.Row, `SELECT `+sizeView.Selected+` FROM session_events WHERE session = ? AND talk > 0 AND seq <= ? ORDER BY seq DESC LIMIT ?`,
		string(id), until, session.MaxTurnItems)
	if err != nil {
		return 0, s.db.Read.Wrap("measure the conversation of a session", err)
	}
	first, size := int64(0), int64(0)
	for _, r := range all {
		if size += r.size; size > session.MaxTurnBytes && first > 0 {
			break
		}
		if r.talk == summarized {
			return s.summarized(ctx, id, r.seq)
		}
		if r.talk == 2 {
			first = r.seq
		}
	}
	if first == 0 { // the last turn alone is longer than the bounds
		err := s.db.Read.Row(ctx, `SELECT coalesce(max(seq), 1) FROM session_events WHERE session = ? AND talk = 2 AND seq <= ?`, string(id), until).Scan(&first)
		if err != nil {
			return 0, s.db.Read.Wrap("measure the conversation of a session", err)
		}
	}
	return first - 1, nil
}

// summarized is the last event that a summary stands for, which is another event.
func (s *Store) summarized(ctx context.Context, id session.ID, seq int64) (upto int64, err error) {
	var of tenant.ID
	if err := s.db.Read.Row(ctx, `SELECT tenant FROM sessions WHERE id = ?`, string(id)).Scan(&of); err != nil {
		return 0, s.db.Read.Wrap("measure the conversation of a session", err)
	}
	all, err := s.events(ctx, of, string(id), `seq = ?`, seq)
	if err != nil || len(all) == 0 || all[0].Compaction == nil {
		return 0, cmp.Or(err, fmt.Errorf("store: event %d of a session is no summary", seq))
	}
	return all[0].Compaction.Upto, nil
}

func (s *Store) Conversation(ctx context.Context, t *run.Turn) ([]model.Item, error) {
	var of tenant.ID
	if err := s.db.Read.Row(ctx, `SELECT tenant FROM sessions WHERE id = ?`, t.Session).Scan(&of); err != nil {
		return nil, s.db.Read.Wrap("read the conversation of a session", err)
	}
	all, err := s.events(ctx, of, t.Session, `talk > 0 AND seq > ? AND seq <= ? ORDER BY seq`, t.After, t.Until)
	if err != nil {
		return nil, err
	}
	return conversation(all)
}

// afterSummary returns the last summary among events, and the events that it does not cover.
func afterSummary(all []session.Event) []session.Event {
	isSummary := func(e session.Event) bool { return e.Kind == run.EventCompacted }
	last := -1
	for i := range all {
		if isSummary(all[i]) {
			last = i
		}
	}
	if last < 0 {
		return all
	}
	summary := all[last]
	rest := slices.DeleteFunc(all, func(e session.Event) bool { return isSummary(e) || e.Seq <= summary.Compaction.Upto })
	return append([]session.Event{summary}, rest...)
}

// conversation is what events say to a model, with results in the order of their calls.
func conversation(all []session.Event) ([]model.Item, error) {
	all = afterSummary(all)
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].Kind == run.EventResult {
			j++
		}
		slices.SortStableFunc(all[i:j], func(a, b session.Event) int { return cmp.Compare(a.Of, b.Of) })
		i = j + 1
	}
	out := make([]model.Item, len(all))
	for i := range all {
		if all[i].Item == nil {
			return nil, fmt.Errorf("store: event %d of a session has no item", all[i].Seq)
		}
		out[i] = *all[i].Item
	}
	return out, nil
}

// callView is a call that waits, but for what the end of its turn says.
var callView = sqldb.NewView(
	sqldb.Col("c.seq", sqldb.Read, func(c *session.Call) any { return &c.Of }),
	sqldb.Col("c.call", sqldb.Read, func(c *session.Call) any { return &c.Call }),
	sqldb.Col("c.tool", sqldb.Read, func(c *session.Call) any { return &c.Tool }),
	sqldb.Col("c.approve", sqldb.Read, func(c *session.Call) any { return &c.Approve }),
	sqldb.Col("c.answered", sqldb.Read, func(c *session.Call) any { return &c.Approved }),
)

func (s *Store) Calls(ctx context.Context, t tenant.ID, id session.ID) ([]session.Call, error) {
	all, err := sqldb.Select(ctx, s.db.Read, callView.Row, `SELECT `+callView.Selected+` FROM session_calls c JOIN sessions s ON s.id = c.session
		WHERE s.tenant = ? AND c.session = ? ORDER BY c.seq`, t, string(id))
	if err != nil || len(all) == 0 {
		return all, s.db.Read.Wrap("read the calls that wait", err)
	}
	// The end of the turn says which of them were made in threads.
	ends, err := s.events(ctx, t, string(id), `type = ? ORDER BY seq DESC LIMIT 1`, string(run.EventStatus))
	for i := range all {
		for j := range ends {
			for _, w := range ends[j].Status.Waits {
				if w.Of == all[i].Of {
					all[i].Wait = w
				}
			}
		}
	}
	return all, err
}

func (s *Store) Expired(ctx context.Context, limit int) ([]session.Session, error) {
	all, err := sqldb.Select(ctx, s.db.Read, s.scan, `SELECT `+sessionView.Selected+` FROM sessions WHERE waits_until <= atoll_now() AND archived_at IS NULL ORDER BY waits_until LIMIT ?`, limit)
	out := make([]session.Session, len(all))
	for i := range all {
		out[i] = all[i].Session
	}
	return out, s.db.Read.Wrap("look for calls that have waited for too long", err)
}

func (s *Store) Answer(ctx context.Context, v *session.Session, answers []run.Answer, done bool) error {
	task := &sqldb.Change{Key: string(v.ID), Of: v.Tenant, Hold: []int64{sqldb.LockOf("session", string(v.ID))}}
	task.Write = func(ctx context.Context, b *sqldb.Batch) error {
		now, err := b.Clock(ctx)
		if err != nil {
			return err
		}
		events := run.AnswerEvents(v.Events+1, now, answers)
		waits := v.Waits - len(answers)
		if done {
			waits = 0
			next, end := v.Events+int64(len(events))+1, run.Expired
			if len(answers) == 0 || !answers[0].Expired {
				events = append(events, run.SessionEvent{Seq: next, At: now, Kind: run.EventInterrupt})
				next, end = next+1, run.Cancelled
			}
			events = append(events, run.SessionEvent{Seq: next, At: now, Kind: run.EventStatus, Status: &run.SessionState{End: end}})
		}
		sealed, err := s.sealEvents(v.Tenant, string(v.ID), events)
		if err != nil {
			return err
		}
		if err := b.Flush(ctx); err != nil {
			return err
		}
		n, err := b.Exec(ctx, `UPDATE sessions SET events = ?, waits = ?, updated_at = ?, waits_until = CASE WHEN CAST(? AS BIGINT) > 0 THEN waits_until END WHERE tenant = ? AND id = ? AND run = '' AND events = ? AND waits = ? AND archived_at IS NULL`,
			events[len(events)-1].Seq, waits, sqldb.Micros(now), waits, v.Tenant, string(v.ID), v.Events, v.Waits)
		if err != nil {
			return err
		}
		if n == 0 {
			task.Refused, err = whyNot(ctx, b, v.Tenant, string(v.ID))
			return err
		}
		for _, row := range run.AnswerRows(audit.Row{Tenant: v.Tenant, Environment: v.Environment, Agent: string(v.Agent), SessionID: string(v.ID)}, answers) {
			if err := auditdb.Insert(ctx, b, auditdb.StorableRow(row), time.Time{}); err != nil {
				return err
			}
		}
		if err := noteAnswers(ctx, b, v.ID, answers, done); err != nil {
			return err
		}
		if err := s.approvals.DecideInSession(ctx, b, v.Tenant, string(v.ID), answers, "", done, now); err != nil {
			return err
		}
		if done {
			if err := endWaiting(ctx, b, string(v.ID), "", now); err != nil {
				return err
			}
		}
		if err := s.notify(ctx, b.SQL(), v.Notice(events)); err != nil {
			return err
		}
		b.Changes(string(v.ID))
		return insertEvents(ctx, b, string(v.ID), "", sealed)
	}
	return s.db.Do(ctx, "answer calls of a session", task)
}

// noteAnswers keeps the calls that are approved, until their turn begins.
func noteAnswers(ctx context.Context, b *sqldb.Batch, id session.ID, answers []run.Answer, done bool) error {
	if done {
		return b.Later(ctx, `DELETE FROM session_calls WHERE session = ?`, string(id))
	}
	for _, a := range answers {
		query := `DELETE FROM session_calls WHERE session = ? AND seq = ?`
		if a.Result == nil || a.Thread != "" { // a thread reads its answer when it goes on
			query = `UPDATE session_calls SET answered = 1 WHERE session = ? AND seq = ?`
		}
		if err := b.Later(ctx, query, string(id), a.Of); err != nil {
			return err
		}
	}
	return nil
}
