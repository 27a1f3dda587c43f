package run

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Turn makes a run a turn of a session. The session's events hold the earlier conversation, because
// copying it would grow the log with each turn.
type Turn struct {
	Session string
	// After and Until select the events that the run begins with: Seq above After, up to Until, the
	// session's last event. Items is their number of conversation items.
	After, Until int64
	Items        int
	// Queued is the turn's position in the session's queue; 0 if it did not wait.
	Queued int64 `json:",omitzero"`
	// Spent is the total of the session's earlier turns.
	Spent Total `json:",omitzero"`
	// Answers are the client's answers to waiting calls. Their results precede Request.Input in the
	// conversation.
	Answers []Answer `json:",omitempty"`
	// Within is how long calls wait for the client after the turn ends; 0 for no limit.
	Within time.Duration `json:",omitzero"`
}

// Answer is a client's answer to a waiting call.
type Answer struct {
	Of   int64  // SessionEvent.Seq of the call
	Call string // id of the call
	Tool string
	// Server is the MCP server of Tool; "" for none.
	Server string `json:",omitzero"`
	// Result is the result of a client's tool or of a denied call; nil for an approved call.
	Result *model.Result `json:",omitzero"`
	// Decision is nil for a client's tool.
	Decision *Decision `json:",omitzero"`
	// Expired says that the client did not answer in time.
	Expired bool `json:",omitzero"`
	// Thread, Member and In say where the call was made, as in Wait.
	Thread string `json:",omitzero"`
	Member Member `json:",omitzero"`
	In     int64  `json:",omitzero"`
	// Gone says that Of is a handoff whose thread was abandoned. Result is then its result.
	Gone bool `json:",omitzero"`
}

// Decision says whether a call may run.
type Decision struct {
	Approve bool
	Reason  string `json:",omitzero"`
	Key     string // id of the key that decided; "" if the deadline did
	GivenUp bool   `json:",omitzero"` // the client interrupted its session
}

// Interrupted is the Reason of a Decision with GivenUp. Clients may give the same reason, so check
// GivenUp instead.
const Interrupted = "interrupted"

// Spent is the usage of a turn.
type Spent struct {
	Usage model.Usage
	Cost  model.Money // of models, tools and the sandbox
}

// Plus returns the sum.
func (s Spent) Plus(o Spent) Spent { return Spent{s.Usage.Plus(o.Usage), s.Cost.Plus(o.Cost)} }

// Total is the usage of several turns.
type Total struct {
	Spent
	Active time.Duration // total running time
}
