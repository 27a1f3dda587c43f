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

// Skill is a skill of a run. The code that checks runs implements its effect.
type Skill struct {
	Name    string
	Version string          `json:",omitzero"`  // id of the version, for a tenant's skill
	Config  json.RawMessage `json:",omitempty"` // for a built-in skill
}

// Skill returns the request's skill with a name, or nil.
func (q *Request) Skill(name string) *Skill {
	for i := range q.Skills {
		if q.Skills[i].Name == name {
			return &q.Skills[i]
		}
	}
	return nil
}

// Note is an event that a skill or a tool adds for the readers of a session.
type Note struct {
	Skill string          // "" for a tool
	Data  json.RawMessage // format depends on the kind of event
}

// Checked is the verdict of a skill or a grader when the model wants to stop. If the run continues,
// it is checked again at the next stop.
type Checked struct {
	Kind EventKind // of the event
	Note Note
	// Say is a message that makes the run continue; nil for none. End overrides how the run ends;
	// nil keeps the original end.
	Say *model.Item `json:",omitzero"`
	End *End        `json:",omitzero"`
	// Evaluation completes the current evaluation with its Result and Explanation. Without one, the
	// run asks the grader again at Again.
	Evaluation *Evaluation `json:",omitzero"`
	Again      time.Time   `json:",omitzero"`
	// Asked is the model that produced the verdict; "" for none.
	Asked string      `json:",omitzero"`
	Usage model.Usage `json:",omitzero"`
	Cost  model.Cost  `json:",omitzero"`
}

// checks reports whether skills check the run before it ends.
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

// chargeCheck charges for the model that a check used.
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

// aside is a model request outside the conversation.
type aside struct {
	model string
	usage model.Usage
	cost  model.Cost
	said  [sha256.Size]byte
	about map[string]string
}

// aside adds a ledger line and an audit row.
func (t *Trace) aside(r *Run, e *Entry, a aside) {
	t.chargeModel(r, e, a.model, &a.usage, &a.cost)
	row := r.row(&Request{Agent: t.agent})
	row.Source, row.CodeSHA256, row.ExitStatus = TrailSource, a.said, audit.OK
	row.Metadata = map[string]string{"run": string(r.ID), "model": a.model, "answer_sha256": hex.EncodeToString(a.said[:])}
	spent(&row, &a.usage, &a.cost)
	maps.Copy(row.Metadata, a.about)
	t.Rows = append(t.Rows, row)
}
