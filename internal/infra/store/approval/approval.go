// Package approval stores tool calls that wait for a decision.
package approval

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/approval"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	auditdb "github.com/atoll-run/atoll/internal/infra/store/audit"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements approval.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

var _ approval.Store = (*Store)(nil)

func argumentsPlace(id approval.ID) string { return "approvals/arguments/" + string(id) }
func reasonPlace(id approval.ID) string    { return "approvals/reason/" + string(id) }

// approvalRow is an approval with its position in lists and its sealed texts.
type approvalRow struct {
	approval.Approval
	seq               int64
	arguments, reason []byte
}

var approvalTable = sqldb.NewTable("approvals",
	sqldb.Col("seq", sqldb.Read, func(r *approvalRow) any { return &r.seq }),
	sqldb.Col("id", sqldb.Read, func(r *approvalRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Read, func(r *approvalRow) any { return &r.Tenant }),
	sqldb.Col("key_id", sqldb.Read, func(r *approvalRow) any { return &r.Key }),
	sqldb.Col("environment", sqldb.Read, func(r *approvalRow) any { return &r.Environment }),
	sqldb.Col("session", sqldb.Read, func(r *approvalRow) any { return &r.Session }),
	sqldb.Col("run", sqldb.Read, func(r *approvalRow) any { return &r.Run }),
	sqldb.Col("event", sqldb.Read, func(r *approvalRow) any { return &r.Of }),
	sqldb.Col("item", sqldb.Read, func(r *approvalRow) any { return &r.Item }),
	sqldb.Col("thread", sqldb.Read, func(r *approvalRow) any { return &r.Thread }),
	sqldb.Col("agent", sqldb.Read, func(r *approvalRow) any { return &r.Agent }),
	sqldb.Col("tool", sqldb.Read, func(r *approvalRow) any { return &r.Tool }),
	sqldb.Col("server", sqldb.Read, func(r *approvalRow) any { return &r.Server }),
	sqldb.Col("arguments", sqldb.Read, func(r *approvalRow) any { return &r.arguments }),
	sqldb.Col("status", sqldb.Read, func(r *approvalRow) any { return &r.Status }),
	sqldb.Col("reason", sqldb.Read, func(r *approvalRow) any { return &r.reason }),
	sqldb.Col("decided_by", sqldb.Read, func(r *approvalRow) any { return &r.By }),
	sqldb.Col("next", sqldb.Read, func(r *approvalRow) any { return &r.Next }),
	sqldb.Col("created_at", sqldb.Read, func(r *approvalRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("deadline", sqldb.Read, func(r *approvalRow) any { return sqldb.ZeroTimeAt(&r.Deadline) }),
	sqldb.Col("decided_at", sqldb.Read, func(r *approvalRow) any { return sqldb.ZeroTimeAt(&r.DecidedAt) }),
)

func (s *Store) scan(sc sqldb.Scanner) (approvalRow, error) {
	r, err := approvalTable.Row(sc)
	if err != nil {
		return r, err
	}
	for _, text := range []struct {
		sealed []byte
		place  string
		to     *string
	}{{r.arguments, argumentsPlace(r.ID), &r.Arguments}, {r.reason, reasonPlace(r.ID), &r.Reason}} {
		if len(text.sealed) == 0 { // the call has no arguments, or predates approvals
			continue
		}
		plain, err := s.db.Seal.OpenFor(r.Tenant, text.sealed, text.place)
		if err != nil {
			return r, sqldb.About(err, "approval", string(r.ID))
		}
		*text.to = string(plain)
	}
	return r, nil
}

func (s *Store) Get(ctx context.Context, t tenant.ID, id approval.ID) (*approval.Approval, error) {
	r, err := s.scan(s.db.Read.Row(ctx, `SELECT `+approvalTable.Selected+` FROM approvals WHERE tenant = ? AND id = ?`, t, string(id)))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, approval.ErrNotFound
	}
	return &r.Approval, s.db.Read.Wrap("get an approval", err)
}

func (s *Store) List(ctx context.Context, f approval.Filter) ([]approval.Approval, string, error) {
	const step = "list approvals"
	if f.Limit < 1 || f.Limit > sqldb.MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", sqldb.MaxPage)
	}
	q, list := &sqldb.Selection{}, "approvals/"+f.Tenant
	q.Add(`SELECT `+approvalTable.Selected+` FROM approvals WHERE tenant = ?`, f.Tenant)
	if f.Status == approval.Pending { // repeats the predicate of the partial index
		q.Add(` AND status = 'pending'`)
	} else {
		q.Same("status", string(f.Status))
	}
	q.Same("agent", f.Agent)
	q.Partial("session", f.Session)
	q.Same("run", string(f.Run))
	if f.Cursor != "" {
		from, err := sqldb.DecodeCursor(s.db.Seal, list, f.Cursor)
		if err != nil {
			return nil, "", err
		}
		q.Add(` AND seq < ?`, from.At)
	}
	q.Add(` ORDER BY seq DESC LIMIT ?`, f.Limit+1)
	rows, err := q.Rows(ctx, s.db.Read)
	all, err := sqldb.Collect(rows, err, s.scan)
	if err != nil {
		return nil, "", s.db.Read.Wrap(step, err)
	}
	next := ""
	if len(all) > f.Limit {
		all = all[:f.Limit]
		next = sqldb.EncodeCursor(s.db.Seal, list, sqldb.Place{At: all[f.Limit-1].seq})
	}
	out := make([]approval.Approval, len(all))
	for i := range all {
		out[i] = all[i].Approval
	}
	return out, next, nil
}

// insert adds a pending approval.
func (s *Store) insert(ctx context.Context, b *sqldb.Batch, a *approval.Approval) error {
	return b.Later(ctx, `INSERT INTO approvals (id, tenant, key_id, environment, session, run, event, item, thread, agent, tool, server, arguments, status, created_at, deadline)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)`,
		string(a.ID), a.Tenant, a.Key, a.Environment, a.Session, string(a.Run), a.Of, a.Item, a.Thread, a.Agent, sqldb.Storable(a.Tool), sqldb.Storable(a.Server),
		s.db.Seal.SealFor(a.Tenant, []byte(a.Arguments), argumentsPlace(a.ID)), sqldb.Micros(a.CreatedAt), sqldb.MaybeMicros(&a.Deadline))
}

// AskInSession adds the approvals that a session waits for at the end of a turn.
func (s *Store) AskInSession(ctx context.Context, b *sqldb.Batch, id run.ID, session string, end *run.SessionState, at time.Time) error {
	base := approval.Approval{Session: session, Run: id, CreatedAt: at, Deadline: end.Until}
	for _, w := range end.Waits {
		if !w.Approve {
			continue
		}
		if base.Tenant == "" {
			if err := b.Row(ctx, `SELECT s.tenant, r.key_id, s.environment, CASE WHEN s.speaker <> '' THEN s.speaker ELSE s.agent END FROM sessions s JOIN runs r ON r.id = ? WHERE s.id = ?`,
				string(id), session).Scan(&base.Tenant, &base.Key, &base.Environment, &base.Agent); err != nil {
				return err
			}
		}
		a := base
		a.ID, a.Of, a.Thread, a.Tool, a.Server, a.Arguments = approval.NewID(), w.Of, w.Thread, w.Tool, w.Server, w.Arguments
		if w.Member.Agent != "" {
			a.Agent = w.Member.Agent
		}
		if err := s.insert(ctx, b, &a); err != nil {
			return err
		}
	}
	return nil
}

// outcomeOf returns the status that an answer gives its approval.
func outcomeOf(a *run.Answer) approval.Status {
	switch {
	case a.Expired:
		return approval.Expired
	case a.Decision.Approve:
		return approval.Approved
	case a.Decision.GivenUp:
		return approval.Cancelled
	}
	return approval.Denied
}

// DecideInSession records the decisions in answers. next is the turn that continues with them and
// with earlier decisions; "" if no turn does yet. done says that no call of the session waits.
func (s *Store) DecideInSession(ctx context.Context, b *sqldb.Batch, of tenant.ID, session string, answers []run.Answer, next run.ID, done bool, at time.Time) error {
	for i := range answers {
		a := &answers[i]
		if a.Decision == nil {
			continue
		}
		ids, err := sqldb.Select(ctx, b, sqldb.Value[approval.ID], `SELECT id FROM approvals WHERE session = ? AND session <> '' AND event = ? AND next = '' AND status IN ('pending', 'approved')`, session, a.Of)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := s.decide(ctx, b, of, id, outcomeOf(a), a.Decision, at); err != nil {
				return err
			}
		}
	}
	if next != "" {
		return b.Later(ctx, `UPDATE approvals SET next = ? WHERE session = ? AND session <> '' AND next = '' AND status IN ('approved', 'denied')`, string(next), session)
	}
	if done { // the session will not make the remaining approved calls
		return b.Later(ctx, `UPDATE approvals SET status = 'cancelled', decided_at = ? WHERE session = ? AND session <> '' AND status = 'pending'`, sqldb.Micros(at), session)
	}
	return nil
}

// decide records a decision.
func (s *Store) decide(ctx context.Context, b *sqldb.Batch, of tenant.ID, id approval.ID, status approval.Status, d *run.Decision, at time.Time) error {
	var reason []byte
	if d.Reason != "" {
		reason = s.db.Seal.SealFor(of, []byte(d.Reason), reasonPlace(id))
	}
	_, err := b.Exec(ctx, `UPDATE approvals SET status = ?, reason = ?, decided_by = ?, decided_at = ? WHERE id = ?`, string(status), reason, d.Key, sqldb.Micros(at), string(id))
	return err
}

// Ask adds the approvals that a response waits for.
func (s *Store) Ask(ctx context.Context, b *sqldb.Batch, r *run.Run, asks []run.Asks) error {
	for i := range asks {
		q := &asks[i]
		if err := s.insert(ctx, b, &approval.Approval{
			ID: approval.NewID(), Tenant: r.Tenant, Key: r.Key, Environment: r.Environment, Run: r.ID, Item: q.Item, Tool: q.Tool, Server: q.Server,
			Arguments: q.Arguments, CreatedAt: q.At, Deadline: q.Until,
		}); err != nil {
			return err
		}
	}
	return nil
}

// Settle records the decisions that a response starts with. If one contradicts the record, Settle
// rejects the response and writes nothing.
func (s *Store) Settle(ctx context.Context, b *sqldb.Batch, r *run.Run, said []run.Said) (refused, err error) {
	if len(said) == 0 {
		return nil, nil
	}
	if err := b.Flush(ctx); err != nil {
		return nil, err
	}
	now, err := b.Clock(ctx)
	if err != nil {
		return nil, err
	}
	known := make([]*approval.Approval, len(said))
	for i := range said {
		a, err := s.scan(b.Row(ctx, `SELECT `+approvalTable.Selected+` FROM approvals WHERE tenant = ? AND item = ? AND item <> ''`+b.Pool.ForUpdate(), r.Tenant, said[i].Item))
		if errors.Is(err, sql.ErrNoRows) { // only the client keeps the response, or an earlier version asked
			continue
		}
		if err != nil {
			return nil, err
		}
		if refused := contradicts(&a.Approval, &said[i], now); refused != nil {
			return refused, nil
		}
		known[i] = &a.Approval
	}
	for i, a := range known {
		if a == nil {
			continue
		}
		if d := &said[i]; a.Status == approval.Pending {
			status := statusOf(d.Approve)
			if err := s.decide(ctx, b, r.Tenant, a.ID, status, &run.Decision{Approve: d.Approve, Reason: d.Reason, Key: r.Key}, now); err != nil {
				return nil, err
			}
		}
		if _, err := b.Exec(ctx, `UPDATE approvals SET next = ? WHERE id = ? AND next = ''`, string(r.ID), string(a.ID)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func statusOf(approve bool) approval.Status {
	if approve {
		return approval.Approved
	}
	return approval.Denied
}

// contradicts rejects a client's decision that differs from the recorded one or comes too late.
func contradicts(a *approval.Approval, d *run.Said, now time.Time) error {
	late := !a.Deadline.IsZero() && !now.Before(a.Deadline)
	switch {
	case d.Approve && (a.Status == approval.Expired || a.Status == approval.Pending && late):
		return approval.TooLate(d.Tool, a.Deadline)
	case a.Status != approval.Pending && d.Approve != (a.Status == approval.Approved):
		return approval.DecidedBefore(d.Tool, a.Status)
	case d.Noted && a.Next != "":
		return approval.ErrDecided
	}
	return nil
}

func (s *Store) Decide(ctx context.Context, t tenant.ID, id approval.ID, d approval.Decision) (all []approval.Approval, err error) {
	d.Reason = sqldb.Storable(d.Reason)
	task := &sqldb.Change{Key: string(id), Of: t}
	task.Write = func(ctx context.Context, b *sqldb.Batch) error {
		all = nil
		if err := b.Flush(ctx); err != nil {
			return err
		}
		now, err := b.Clock(ctx)
		if err != nil {
			return err
		}
		// Lock all approvals of the response. Of two concurrent decisions, the later one then sees
		// the other, and finds that no call is left.
		found, err := sqldb.Select(ctx, b, s.scan, `SELECT `+approvalTable.Selected+` FROM approvals WHERE tenant = ? AND session = ''
			AND run = (SELECT run FROM approvals WHERE tenant = ? AND id = ? AND session = '') ORDER BY seq`+b.Pool.ForUpdate(), t, t, string(id))
		if err != nil {
			return err
		}
		at := slices.IndexFunc(found, func(r approvalRow) bool { return r.ID == id })
		if at < 0 {
			task.Refused = approval.ErrNotFound
			return nil
		}
		a := found[at]
		status := statusOf(d.Approve)
		switch {
		case a.Status == approval.Pending && !a.Deadline.IsZero() && !now.Before(a.Deadline):
			task.Refused = approval.HasExpired(a.Deadline)
			return nil
		case a.Status == approval.Pending:
			if err := s.record(ctx, b, &a.Approval, status, &run.Decision{Approve: d.Approve, Reason: d.Reason, Key: d.By}, now); err != nil {
				return err
			}
		case a.Status != status || a.Next != "":
			task.Refused = approval.ErrDecided
			return nil
		}
		found, err = sqldb.Select(ctx, b, s.scan, `SELECT `+approvalTable.Selected+` FROM approvals WHERE run = ? AND tenant = ? AND session = '' ORDER BY seq`, string(a.Run), t)
		for i := range found {
			all = append(all, found[i].Approval)
		}
		return err
	}
	if err := s.db.Do(ctx, "decide over a tool call", task); err != nil {
		return nil, err
	}
	return all, nil
}

// record stores a decision about a call of a response, with its audit row.
func (s *Store) record(ctx context.Context, b *sqldb.Batch, a *approval.Approval, status approval.Status, d *run.Decision, at time.Time) error {
	if err := s.decide(ctx, b, a.Tenant, a.ID, status, d, at); err != nil {
		return err
	}
	of := audit.Row{Tenant: a.Tenant, Environment: a.Environment, Turn: (&run.Run{ID: a.Run}).TurnID()}
	for _, row := range run.AnswerRows(of, []run.Answer{{Call: a.Item, Tool: a.Tool, Decision: d, Expired: status == approval.Expired}}) {
		if err := auditdb.Insert(ctx, b, auditdb.StorableRow(row), time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of the age of the last decision in Undone. The server that
// records the decision continues the response first.
const (
	undoneAfter = 2 * time.Second
	undoneFor   = 24 * time.Hour
)

var responseView = sqldb.NewView(
	sqldb.Col("tenant", sqldb.Read, func(r *approval.Response) any { return &r.Tenant }),
	sqldb.Col("run", sqldb.Read, func(r *approval.Response) any { return &r.Run }),
)

func (s *Store) Undone(ctx context.Context, limit int) ([]approval.Response, error) {
	all, err := sqldb.Select(ctx, s.db.Read, responseView.Row, `SELECT `+responseView.Selected+` FROM approvals a WHERE session = '' AND next = '' AND status IN ('approved', 'denied')
		AND decided_at > atoll_now() - ? AND NOT EXISTS (SELECT 1 FROM approvals b WHERE b.run = a.run AND b.session = ''
		AND (b.status NOT IN ('approved', 'denied') OR b.next <> '' OR b.decided_at > atoll_now() - ?)) GROUP BY tenant, run ORDER BY random() LIMIT ?`,
		undoneFor.Microseconds(), undoneAfter.Microseconds(), limit)
	return all, s.db.Read.Wrap("look for responses whose calls are decided", err)
}

func (s *Store) Expire(ctx context.Context, limit int) (n int, err error) {
	err = s.db.Do(ctx, "end the waits for approvals", &sqldb.Change{Write: func(ctx context.Context, b *sqldb.Batch) error {
		n = 0
		now, err := b.Clock(ctx)
		if err != nil {
			return err
		}
		if err := b.Flush(ctx); err != nil {
			return err
		}
		lock := ""
		if b.Pool.Postgres {
			lock = ` FOR UPDATE SKIP LOCKED`
		}
		// Include the response's approved calls: the response cannot make them without the others.
		late, err := sqldb.Select(ctx, b, s.scan, `SELECT `+approvalTable.Selected+` FROM approvals WHERE session = '' AND next = '' AND status IN ('pending', 'approved')
			AND run IN (SELECT run FROM approvals WHERE status = 'pending' AND session = '' AND deadline <= ? ORDER BY deadline LIMIT ?)`+lock, sqldb.Micros(now), limit)
		if err != nil {
			return err
		}
		for i := range late {
			a := &late[i].Approval
			if err := s.record(ctx, b, a, approval.Expired, &run.Decision{Reason: approval.NoAnswer(a.Deadline)}, now); err != nil {
				return err
			}
		}
		n = len(late)
		return nil
	}})
	return n, err
}
