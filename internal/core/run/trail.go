package run

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// TrailSource is the source of audit rows of model calls. Those of tool calls are left by
// what does them.
const TrailSource = "model"

// trail returns the audit row of the model call whose outcome an entry has. It has
// digests and counts, and no text of the conversation but an error's.
func (s *State) trail(r *Run, e *Entry) audit.Row {
	row := audit.Row{
		TraceID: execution.NewTraceID(), Tenant: r.Tenant, Key: r.Key, Environment: r.Environment, Source: TrailSource, SessionID: r.Sandbox,
		CodeSHA256: s.digest(), DurationMS: e.At.Sub(s.askedAt).Milliseconds(), ExitStatus: audit.OK,
		Metadata: map[string]string{"run": string(r.ID), "model": s.asked.Model, "step": strconv.Itoa(s.asked.Step), "try": strconv.Itoa(s.asked.Try)},
	}
	if f := e.Failed; f != nil {
		row.ExitStatus, row.FailureReason = audit.Error, f.Message
		return row
	}
	u := e.Answered.Answer.Usage
	row.Metadata["input_tokens"], row.Metadata["output_tokens"] = strconv.FormatInt(u.Input, 10), strconv.FormatInt(u.Output, 10)
	row.Metadata["cost_usd"] = e.Answered.Cost.Total.String()
	return row
}

// digest is the SHA-256 of what the model is asked, as JSON.
func (s *State) digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(s.ModelRequest()) // of plain values to a hash: never fails
	h.Sum(sum[:0])
	return sum
}

// Record adds an entry, as Apply does, and returns the audit row that it leaves; nil for
// none.
func (s *State) Record(r *Run, e *Entry) (*audit.Row, error) {
	var row *audit.Row
	if s.asked != nil && (e.Answered != nil || e.Failed != nil) {
		made := s.trail(r, e)
		row = &made
	}
	return row, s.Apply(e)
}
