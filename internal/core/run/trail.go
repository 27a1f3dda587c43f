package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// TrailSource is the source of audit rows of model calls. Those of tool calls are left by
// what does them.
const TrailSource = "model"

// trail returns the audit row of the model call whose outcome an entry has. It has
// digests and counts, and no text of the conversation but an error's.
func (s *State) trail(r *Run, e *Entry) audit.Row {
	row := r.row(s.Request)
	row.Source, row.CodeSHA256, row.DurationMS, row.ExitStatus = TrailSource, digest(s.ModelRequest()), e.At.Sub(s.askedAt).Milliseconds(), audit.OK
	row.Metadata = map[string]string{"run": string(r.ID), "model": s.asked.Model, "step": strconv.Itoa(s.asked.Step), "try": strconv.Itoa(s.asked.Try)}
	if f := e.Failed; f != nil {
		row.ExitStatus, row.FailureReason = audit.Error, f.Message
		if f.Usage != (model.Usage{}) {
			spent(&row, &f.Usage, &f.Cost)
		}
		return row
	}
	spent(&row, &e.Answered.Answer.Usage, &e.Answered.Cost)
	answer := digest(e.Answered.Answer.Items)
	row.Metadata["answer_sha256"] = hex.EncodeToString(answer[:])
	return row
}

// spent adds the usage and cost of an answer to a row.
func spent(row *audit.Row, u *model.Usage, c *model.Cost) {
	row.Cost = c.Total
	about := row.Metadata
	about["input_tokens"], about["output_tokens"] = strconv.FormatInt(u.Input, 10), strconv.FormatInt(u.Output, 10)
	about["cost_usd"] = c.Total.String()
	if u.Estimated > 0 {
		about["estimated_tokens"] = strconv.FormatInt(u.Estimated, 10)
	}
}

// ConfirmationSource is the source of audit rows of decisions over calls.
const ConfirmationSource = "confirmation"

// AnswerRows returns audit rows for the decisions in answers. of holds the attribution of the
// calls.
func AnswerRows(of audit.Row, answers []Answer) (rows []audit.Row) {
	for i := range answers {
		a := &answers[i]
		if a.Decision == nil {
			continue
		}
		decided := "denied"
		switch {
		case a.Expired:
			decided = "expired"
		case a.Decision.Approve:
			decided = "approved"
		}
		row := of
		row.TraceID, row.Key, row.Source, row.CodeSHA256, row.ExitStatus = execution.NewTraceID(), a.Decision.Key, ConfirmationSource, digest(a.Call), audit.OK
		row.Metadata = map[string]string{"tool": a.Tool, "event": strconv.FormatInt(a.Of, 10), "decision": decided}
		rows = append(rows, row)
	}
	return rows
}

// saidAnswers converts the client's decisions that the store has not recorded yet.
func saidAnswers(key string, all []Said) (out []Answer) {
	for _, d := range all {
		if !d.Noted {
			out = append(out, Answer{Call: d.Call, Tool: d.Tool, Decision: &Decision{Approve: d.Approve, Reason: d.Reason, Key: key}})
		}
	}
	return out
}

// digest is the SHA-256 of what a model is asked, or has answered, as JSON.
func digest(of any) (sum [sha256.Size]byte) {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(of) // of plain values to a hash: never fails
	h.Sum(sum[:0])
	return sum
}

// Trace is what an entry leaves beside the log: rows of the audit trail and lines of the
// ledger. They are recorded with it, and stay when the run is deleted.
type Trace struct {
	Rows    []audit.Row
	Charges []usage.Charge
	Session string // of which the run is a turn, or works for one; "" for none
	Thread  string // of the session that Events belong to; "" for its own events
	Events  []SessionEvent
	Asks    []Asks // set when a response ends
	Kept    *Kept  // set when a thread starts waiting for the client

	agent string // id of the run's agent
}

// Add adds what another entry leaves.
func (t *Trace) Add(o Trace) {
	t.Rows, t.Charges = append(t.Rows, o.Rows...), append(t.Charges, o.Charges...)
	t.Asks = append(t.Asks, o.Asks...)
	if o.Session != "" {
		t.Session, t.Thread, t.Events, t.Kept = o.Session, o.Thread, append(t.Events, o.Events...), o.Kept
	}
}

// charge adds a line to the ledger.
func (t *Trace) charge(r *Run, e *Entry, c usage.Charge) {
	c.ID = fmt.Sprintf("%s/%d/%d", r.ID, e.Seq, len(t.Charges))
	c.Tenant, c.Key, c.At = r.Tenant, r.Key, e.At
	if r.Session != "" {
		c.Agent, c.Session = t.agent, r.Session
	}
	t.Charges = append(t.Charges, c)
}

// chargeModel adds what a model cost to the ledger.
func (t *Trace) chargeModel(r *Run, e *Entry, name string, u *model.Usage, c *model.Cost) {
	t.charge(r, e, usage.Charge{
		Kind: usage.Model, Name: name, Calls: 1, Cost: c.Total,
		Tokens: usage.Tokens{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output, Reasoning: u.Reasoning, Estimated: u.Estimated},
	})
}

// Record adds an entry, as Apply does, and returns what it leaves.
func (s *State) Record(r *Run, e *Entry) (Trace, error) {
	t := Trace{agent: s.Request.agent()}
	if e.Begun != nil {
		t.agent = e.Begun.agent()
	}
	if e.Begun != nil && e.Begun.Turn != nil { // threads hear of answers that were given to a turn
		t.Rows = AnswerRows(r.row(e.Begun), e.Begun.Turn.Answers)
	}
	if e.Begun != nil && len(e.Begun.Verdicts) > 0 {
		t.Rows = append(t.Rows, AnswerRows(r.row(e.Begun), saidAnswers(r.Key, e.Begun.Verdicts))...)
	}
	if s.asked != nil && (e.Answered != nil || e.Failed != nil) {
		t.Rows = append(t.Rows, s.trail(r, e))
	}
	if e.Begun != nil && e.Begun.Thread != nil && e.Begun.Thread.Summary != nil {
		t.chargeSummary(r, e, e.Begun.Thread.Summary)
	}
	for i := range e.Lost {
		l := &e.Lost[i]
		t.aside(r, e, aside{l.Model, l.Usage, l.Cost, digest(l.Usage), map[string]string{"failed": "true"}})
	}
	used := []Use(nil)
	switch {
	case e.Answered != nil && s.asked != nil:
		t.chargeModel(r, e, s.asked.Model, &e.Answered.Answer.Usage, &e.Answered.Cost)
	case e.Failed != nil && s.asked != nil && e.Failed.Usage != (model.Usage{}):
		t.chargeModel(r, e, s.asked.Model, &e.Failed.Usage, &e.Failed.Cost)
	case e.Called != nil:
		used = e.Called.Used
	case e.Compacted != nil && e.Compacted.Usage != (model.Usage{}):
		c := e.Compacted
		t.aside(r, e, aside{c.Model, c.Usage, c.Cost, digest(c.Summary), map[string]string{"compaction": "true"}})
	case e.Checked != nil:
		s.chargeCheck(&t, r, e, e.Checked)
	case e.Ended != nil:
		used = e.Ended.Used
	}
	for _, u := range used {
		t.charge(r, e, usage.Charge{Kind: u.Kind, Name: u.Name, Calls: int64(u.Calls), Cost: u.Cost})
	}
	events, err := s.advance(e)
	if len(events) > 0 {
		t.Session, t.Thread = s.of()
		t.Events = events
	}
	if e.Ended != nil && e.Ended.Status.Continuable() && r.Session == "" && r.Keep > 0 {
		t.Asks = s.asksAt(e.At)
	}
	if e.Ended != nil && t.Thread != "" && e.Ended.Status == RequiresAction {
		t.Kept = &Kept{s.Conversation, s.Waits()}
	}
	return t, err
}
