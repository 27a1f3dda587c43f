package store

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
)

// approvals implements approval.Store.
type approvals struct{ db *DB }

var _ approval.Store = (*approvals)(nil)

// Approvals returns the approval.Store.
func (db *DB) Approvals() approval.Store { return &approvals{db} }

func argumentsPlace(id approval.ID) string { return "approvals/arguments/" + string(id) }
func reasonPlace(id approval.ID) string    { return "approvals/reason/" + string(id) }

const approvalColumns = `seq, id, tenant, key_id, environment, session, run, event, item, thread, agent, tool, server, arguments, status, reason, decided_by, next, created_at, deadline, decided_at`

// approvalRow is an approval with its position in lists.
type approvalRow struct {
	approval.Approval
	seq int64
}

func (db *DB) scanApproval(sc scanner) (r approvalRow, err error) {
	var arguments, reason []byte
	var created int64
	var deadline, decided sql.NullInt64
	a := &r.Approval
	if err := sc.Scan(&r.seq, &a.ID, &a.Tenant, &a.Key, &a.Environment, &a.Session, &a.Run, &a.Of, &a.Item, &a.Thread, &a.Agent, &a.Tool, &a.Server, &arguments, &a.Status, &reason,
		&a.By, &a.Next, &created, &deadline, &decided); err != nil {
		return r, err
	}
	a.CreatedAt = instant(created)
	if deadline.Valid {
		a.Deadline = instant(deadline.Int64)
	}
	if decided.Valid {
		a.DecidedAt = instant(decided.Int64)
	}
	for _, text := range []struct {
		sealed []byte
		place  string
		to     *string
	}{{arguments, argumentsPlace(a.ID), &a.Arguments}, {reason, reasonPlace(a.ID), &a.Reason}} {
		if len(text.sealed) == 0 { // the call has no arguments, or predates approvals
			continue
		}
		plain, err := db.seal.OpenFor(a.Tenant, text.sealed, text.place)
		if err != nil {
			return r, about(err, "approval", string(a.ID))
		}
		*text.to = string(plain)
	}
	return r, nil
}

func (s *approvals) Get(ctx context.Context, t tenant.ID, id approval.ID) (*approval.Approval, error) {
	r, err := s.db.scanApproval(s.db.read.row(ctx, `SELECT `+approvalColumns+` FROM approvals WHERE tenant = ? AND id = ?`, t, string(id)))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, approval.ErrNotFound
	}
	return &r.Approval, s.db.read.wrap("get an approval", err)
}

func (s *approvals) List(ctx context.Context, f approval.Filter) ([]approval.Approval, string, error) {
	const step = "list approvals"
	if f.Limit < 1 || f.Limit > maxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxPage)
	}
	q, list := &selection{}, "approvals/"+f.Tenant
	q.add(`SELECT `+approvalColumns+` FROM approvals WHERE tenant = ?`, f.Tenant)
	if f.Status == approval.Pending { // repeats the predicate of the partial index
		q.add(` AND status = 'pending'`)
	} else {
		q.same("status", string(f.Status))
	}
	q.same("agent", f.Agent)
	q.partial("session", f.Session)
	q.same("run", string(f.Run))
	if f.Cursor != "" {
		from, err := decodeCursor(s.db.seal, list, f.Cursor)
		if err != nil {
			return nil, "", err
		}
		q.add(` AND seq < ?`, from.at)
	}
	q.add(` ORDER BY seq DESC LIMIT ?`, f.Limit+1)
	rows, err := q.rows(ctx, s.db.read)
	all, err := collect(rows, err, s.db.scanApproval)
	if err != nil {
		return nil, "", s.db.read.wrap(step, err)
	}
	next := ""
	if len(all) > f.Limit {
		all = all[:f.Limit]
		next = encodeCursor(s.db.seal, list, place{at: all[f.Limit-1].seq})
	}
	out := make([]approval.Approval, len(all))
	for i := range all {
		out[i] = all[i].Approval
	}
	return out, next, nil
}

// insertApproval adds a pending approval.
func (db *DB) insertApproval(ctx context.Context, b *batch, a *approval.Approval) error {
	return b.later(ctx, `INSERT INTO approvals (id, tenant, key_id, environment, session, run, event, item, thread, agent, tool, server, arguments, status, created_at, deadline)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)`,
		string(a.ID), a.Tenant, a.Key, a.Environment, a.Session, string(a.Run), a.Of, a.Item, a.Thread, a.Agent, storable(a.Tool), storable(a.Server),
		db.seal.SealFor(a.Tenant, []byte(a.Arguments), argumentsPlace(a.ID)), micros(a.CreatedAt), maybeMicros(&a.Deadline))
}

// askInSession adds the approvals that a session waits for at the end of a turn.
func (db *DB) askInSession(ctx context.Context, b *batch, id run.ID, session string, end *run.ToldState, at time.Time) error {
	base := approval.Approval{Session: session, Run: id, CreatedAt: at, Deadline: end.Until}
	for _, w := range end.Waits {
		if !w.Approve {
			continue
		}
		if base.Tenant == "" {
			if err := b.row(ctx, `SELECT s.tenant, r.key_id, s.environment, CASE WHEN s.speaker <> '' THEN s.speaker ELSE s.agent END FROM sessions s JOIN runs r ON r.id = ? WHERE s.id = ?`,
				string(id), session).Scan(&base.Tenant, &base.Key, &base.Environment, &base.Agent); err != nil {
				return err
			}
		}
		a := base
		a.ID, a.Of, a.Thread, a.Tool, a.Server, a.Arguments = approval.NewID(), w.Of, w.Thread, w.Tool, w.Server, w.Arguments
		if w.Member.Agent != "" {
			a.Agent = w.Member.Agent
		}
		if err := db.insertApproval(ctx, b, &a); err != nil {
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

// decideInSession records the decisions in answers. next is the turn that continues with them and
// with earlier decisions; "" if no turn does yet. done says that no call of the session waits.
func (db *DB) decideInSession(ctx context.Context, b *batch, of tenant.ID, session string, answers []run.Answer, next run.ID, done bool, at time.Time) error {
	for i := range answers {
		a := &answers[i]
		if a.Decision == nil {
			continue
		}
		rows, err := b.rows(ctx, `SELECT id FROM approvals WHERE session = ? AND session <> '' AND event = ? AND next = '' AND status IN ('pending', 'approved')`, session, a.Of)
		ids, err := collect(rows, err, func(sc scanner) (id approval.ID, err error) { return id, sc.Scan(&id) })
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := db.decide(ctx, b, of, id, outcomeOf(a), a.Decision, at); err != nil {
				return err
			}
		}
	}
	if next != "" {
		return b.later(ctx, `UPDATE approvals SET next = ? WHERE session = ? AND session <> '' AND next = '' AND status IN ('approved', 'denied')`, string(next), session)
	}
	if done { // the session will not make the remaining approved calls
		return b.later(ctx, `UPDATE approvals SET status = 'cancelled', decided_at = ? WHERE session = ? AND session <> '' AND status = 'pending'`, micros(at), session)
	}
	return nil
}

// decide records a decision.
func (db *DB) decide(ctx context.Context, b *batch, of tenant.ID, id approval.ID, status approval.Status, d *run.Decision, at time.Time) error {
	var reason []byte
	if d.Reason != "" {
		reason = db.seal.SealFor(of, []byte(d.Reason), reasonPlace(id))
	}
	_, err := b.exec(ctx, `UPDATE approvals SET status = ?, reason = ?, decided_by = ?, decided_at = ? WHERE id = ?`, string(status), reason, d.Key, micros(at), string(id))
	return err
}

// ask adds the approvals that a response waits for.
func (db *DB) ask(ctx context.Context, b *batch, r *run.Run, asks []run.Asks) error {
	for i := range asks {
		q := &asks[i]
		if err := db.insertApproval(ctx, b, &approval.Approval{
			ID: approval.NewID(), Tenant: r.Tenant, Key: r.Key, Environment: r.Environment, Run: r.ID, Item: q.Item, Tool: q.Tool, Server: q.Server,
			Arguments: q.Arguments, CreatedAt: q.At, Deadline: q.Until,
		}); err != nil {
			return err
		}
	}
	return nil
}

// settle records the decisions that a response starts with. If one contradicts the record, settle
// rejects the response and writes nothing.
func (db *DB) settle(ctx context.Context, b *batch, r *run.Run, said []run.Said) (refused, err error) {
	if len(said) == 0 {
		return nil, nil
	}
	if err := b.flush(ctx); err != nil {
		return nil, err
	}
	now, err := b.clock(ctx)
	if err != nil {
		return nil, err
	}
	known := make([]*approval.Approval, len(said))
	for i := range said {
		a, err := db.scanApproval(b.row(ctx, `SELECT `+approvalColumns+` FROM approvals WHERE tenant = ? AND item = ? AND item <> ''`+b.pool.forUpdate(), r.Tenant, said[i].Item))
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
			if err := db.decide(ctx, b, r.Tenant, a.ID, status, &run.Decision{Approve: d.Approve, Reason: d.Reason, Key: r.Key}, now); err != nil {
				return nil, err
			}
		}
		if _, err := b.exec(ctx, `UPDATE approvals SET next = ? WHERE id = ? AND next = ''`, string(r.ID), string(a.ID)); err != nil {
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

func (s *approvals) Decide(ctx context.Context, t tenant.ID, id approval.ID, d approval.Decision) (all []approval.Approval, err error) {
	d.Reason = storable(d.Reason)
	task := &runTask{id: run.ID(id), of: t}
	task.write = func(ctx context.Context, b *batch) error {
		all = nil
		if err := b.flush(ctx); err != nil {
			return err
		}
		now, err := b.clock(ctx)
		if err != nil {
			return err
		}
		// Lock all approvals of the response. Of two concurrent decisions, the later one then sees
		// the other, and finds that no call is left.
		rows, err := b.rows(ctx, `SELECT `+approvalColumns+` FROM approvals WHERE tenant = ? AND session = ''
			AND run = (SELECT run FROM approvals WHERE tenant = ? AND id = ? AND session = '') ORDER BY seq`+b.pool.forUpdate(), t, t, string(id))
		found, err := collect(rows, err, s.db.scanApproval)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(found, func(r approvalRow) bool { return r.ID == id })
		if at < 0 {
			task.err = approval.ErrNotFound
			return nil
		}
		a := found[at]
		status := statusOf(d.Approve)
		switch {
		case a.Status == approval.Pending && !a.Deadline.IsZero() && !now.Before(a.Deadline):
			task.err = approval.HasExpired(a.Deadline)
			return nil
		case a.Status == approval.Pending:
			if err := s.record(ctx, b, &a.Approval, status, &run.Decision{Approve: d.Approve, Reason: d.Reason, Key: d.By}, now); err != nil {
				return err
			}
		case a.Status != status || a.Next != "":
			task.err = approval.ErrDecided
			return nil
		}
		rows, err = b.rows(ctx, `SELECT `+approvalColumns+` FROM approvals WHERE run = ? AND tenant = ? AND session = '' ORDER BY seq`, string(a.Run), t)
		found, err = collect(rows, err, s.db.scanApproval)
		for i := range found {
			all = append(all, found[i].Approval)
		}
		return err
	}
	if err := s.db.writer.write(ctx, task); err != nil {
		return nil, s.db.write.wrap("decide over a tool call", err)
	}
	return all, task.err
}

// record stores a decision about a call of a response, with its audit row.
func (s *approvals) record(ctx context.Context, b *batch, a *approval.Approval, status approval.Status, d *run.Decision, at time.Time) error {
	if err := s.db.decide(ctx, b, a.Tenant, a.ID, status, d, at); err != nil {
		return err
	}
	of := audit.Row{Tenant: a.Tenant, Environment: a.Environment, Turn: (&run.Run{ID: a.Run}).TurnID()}
	for _, row := range run.AnswerRows(of, []run.Answer{{Call: a.Item, Tool: a.Tool, Decision: d, Expired: status == approval.Expired}}) {
		if err := insertAudit(ctx, b, storableRow(row), time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of the age of the last decision in Undone. Whoever decides continues the response at first.
const (
	undoneAfter = 2 * time.Second
	undoneFor   = 24 * time.Hour
)

func (s *approvals) Undone(ctx context.Context, limit int) ([]approval.Response, error) {
	rows, err := s.db.read.rows(ctx, `SELECT tenant, run FROM approvals a WHERE session = '' AND next = '' AND status IN ('approved', 'denied')
		AND decided_at > atoll_now() - ? AND NOT EXISTS (SELECT 1 FROM approvals b WHERE b.run = a.run AND b.session = ''
		AND (b.status NOT IN ('approved', 'denied') OR b.next <> '' OR b.decided_at > atoll_now() - ?)) GROUP BY tenant, run ORDER BY random() LIMIT ?`,
		undoneFor.Microseconds(), undoneAfter.Microseconds(), limit)
	all, err := collect(rows, err, func(sc scanner) (r approval.Response, err error) { return r, sc.Scan(&r.Tenant, &r.Run) })
	return all, s.db.read.wrap("look for responses whose calls are decided", err)
}

func (s *approvals) Expire(ctx context.Context, limit int) (n int, err error) {
	err = s.db.writer.write(ctx, &runTask{write: func(ctx context.Context, b *batch) error {
		n = 0
		now, err := b.clock(ctx)
		if err != nil {
			return err
		}
		if err := b.flush(ctx); err != nil {
			return err
		}
		lock := ""
		if b.pool.postgres {
			lock = ` FOR UPDATE SKIP LOCKED`
		}
		// Include the response's approved calls: the response cannot make them without the others.
		rows, err := b.rows(ctx, `SELECT `+approvalColumns+` FROM approvals WHERE session = '' AND next = '' AND status IN ('pending', 'approved')
			AND run IN (SELECT run FROM approvals WHERE status = 'pending' AND session = '' AND deadline <= ? ORDER BY deadline LIMIT ?)`+lock, micros(now), limit)
		late, err := collect(rows, err, s.db.scanApproval)
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
	return n, s.db.write.wrap("end the waits for approvals", err)
}
