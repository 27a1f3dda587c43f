package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/model"
)

// Skill is a skill that a run has. What it does is said by whoever checks runs.
type Skill struct {
	Name    string
	Version string          `json:",omitzero"`  // id of the version, of one of the tenant's
	Config  json.RawMessage `json:",omitempty"` // of one of the server's own
}

// Skill returns a skill of the request by its name, nil if there is none.
func (q *Request) Skill(name string) *Skill {
	for i := range q.Skills {
		if q.Skills[i].Name == name {
			return &q.Skills[i]
		}
	}
	return nil
}

// Note is what a skill or a tool tells the readers of a session.
type Note struct {
	Skill string          // "" for a tool
	Data  json.RawMessage // by the kind of event
}

// Kinds of events of skills.
const (
	ToldPlan     ToldKind = "plan"
	ToldReview   ToldKind = "review"
	ToldDocument ToldKind = "state"
	ToldReminder ToldKind = "reminder"
)

// Checked is what a skill or a grader says when a run would end as the model wants it to. A run
// that goes on is checked again when it would end again.
type Checked struct {
	Kind ToldKind // of the event
	Note Note
	// Say is a message after which the run goes on, nil for none; End is how it ends then, nil
	// for as it would have.
	Say *model.Item `json:",omitzero"`
	End *End        `json:",omitzero"`
	// Evaluation is the end of the evaluation under way, by its Result and Explanation. Without one
	// the grader is asked again, at Again.
	Evaluation *Evaluation `json:",omitzero"`
	Again      time.Time   `json:",omitzero"`
	// Asked is the model that was asked for it, "" for none.
	Asked string      `json:",omitzero"`
	Usage model.Usage `json:",omitzero"`
	Cost  model.Cost  `json:",omitzero"`
}

// checks reports whether skills have a say before the run ends.
func (s *State) checks() bool { return !s.settled && len(s.Request.Skills) > 0 }

func (s *State) checked(c *Checked) bool {
	if s.Progress.Open {
		return s.evaluated(c)
	}
	if s.stop == "" || s.asked != nil || len(s.pending) > 0 || s.settled || c.Evaluation != nil {
		return false
	}
	s.Checks = append(s.Checks, *c)
	s.Usage, s.Cost = s.Usage.Plus(c.Usage), s.Cost.Plus(c.Cost)
	if c.Say == nil {
		s.settled, s.ends = true, c.End
		return true
	}
	s.Conversation = append(s.Conversation, *c.Say)
	s.stop = ""
	return true
}

// chargeCheck adds what the model cost that was asked for a check.
func (s *State) chargeCheck(t *Trace, r *Run, e *Entry, c *Checked) {
	if c.Asked == "" {
		return
	}
	said, of, name := digest(c.Note), "skill", c.Note.Skill
	if s.Progress.Open {
		said, of, name = digest(c.Evaluation), "outcome", s.Request.Outcome.ID
	}
	t.aside(r, e, aside{c.Asked, c.Usage, c.Cost, said, map[string]string{of: name}})
}

// aside is something that a model was asked which is no part of the conversation.
type aside struct {
	model string
	usage model.Usage
	cost  model.Cost
	said  [sha256.Size]byte
	about map[string]string
}

// aside adds a line to the ledger and a row to the audit trail.
func (t *Trace) aside(r *Run, e *Entry, a aside) {
	t.chargeModel(r, e, a.model, &a.usage, &a.cost)
	row := r.row(&Request{Agent: t.agent})
	row.Source, row.CodeSHA256, row.ExitStatus = TrailSource, a.said, audit.OK
	row.Metadata = map[string]string{"run": string(r.ID), "model": a.model, "answer_sha256": hex.EncodeToString(a.said[:])}
	spent(&row, &a.usage, &a.cost)
	maps.Copy(row.Metadata, a.about)
	t.Rows = append(t.Rows, row)
}
