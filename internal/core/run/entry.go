package run

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Entry is a line of a run's log. Exactly one of its pointers is set.
type Entry struct {
	Seq int64 // from 1, without gaps
	At  time.Time

	Begun      *Request     `json:",omitzero"`
	Asked      *Asked       `json:",omitzero"`
	Answered   *Answered    `json:",omitzero"`
	Failed     *ModelFailed `json:",omitzero"`
	Calling    *Calling     `json:",omitzero"`
	Claimed    *Claimed     `json:",omitzero"`
	Called     *Called      `json:",omitzero"`
	Checked    *Checked     `json:",omitzero"`
	Evaluating *Evaluating  `json:",omitzero"`
	Compacted  *Compacted   `json:",omitzero"`
	Ended      *End         `json:",omitzero"`

	// Lost are answers on the side that failed since the entry before.
	Lost []Lost `json:",omitempty"`
}

// Asked says that a model is about to be asked. One without an Answered or Failed after
// it was under way in a process that is gone: the model is asked again, and the provider
// may charge for both.
type Asked struct {
	Step  int // from 1
	Try   int // of the model, from 1 in each step
	Model string
	View  View // of the conversation
}

// Answered has a model's answer.
type Answered struct {
	Answer model.Answer
	Cost   model.Cost
}

// ModelFailed says that a model did not answer, or not to the end.
type ModelFailed struct {
	Failure model.Failure // "" if the process that asked is gone
	Message string
	// Shown is what readers of the run have seen of the answer.
	Shown []model.Item `json:",omitempty"`
	// Again is when the same model is asked again; zero for never.
	Again time.Time `json:",omitzero"`
	// Usage and Cost are those of the part of the answer that came.
	Usage model.Usage `json:",omitzero"`
	Cost  model.Cost  `json:",omitzero"`
}

// Calling says that a tool is about to be called. Pending.Number names the call for good,
// so that its outcome is found by another process.
type Calling struct {
	Call string // model.Call.ID
	Item *Item  `json:",omitzero"` // what is shown of it while it runs
	// Claims says that a Claimed entry comes before the call has an effect.
	Claims bool `json:",omitzero"`
	// Opens is the thread that the call opens with its claim; nil for none.
	Opens *Opens `json:",omitzero"`
}

// Claimed says that a call is about to have its effect. A call that claims and has not
// begins anew in another process.
type Claimed struct {
	Call string // model.Call.ID
}

// Called has the outcome of a tool call.
type Called struct {
	Call   string
	Result model.Result // for the model
	Item   *Item        `json:",omitzero"` // in place of the one of Calling
	More   []Item       `json:",omitempty"`
	// Windows is how many windows of the sandbox began with the call. Each is paid for.
	Windows int `json:",omitzero"`
	// Notes are what readers of a session are told of the call beside its result, by their kinds.
	Notes map[ToldKind]Note `json:",omitempty"`
	// Ends is how the run ends because of the call: what it needs is refused, and the model
	// cannot help it.
	Ends *End `json:",omitzero"`
	// Unknown says that the call was under way in a process that is gone, and that its
	// outcome cannot be found.
	Unknown bool `json:",omitzero"`
	// Used is what the call is charged for: nothing where it was refused.
	Used []Use `json:",omitempty"`
	// Below is what the runs have used that the call handed work to. They are charged for it.
	Below Spent `json:",omitzero"`
	// Left is how the thread was left that the call has opened; nil for none.
	Left *ThreadEnd `json:",omitzero"`
	// Held are calls of the thread that the call has opened which wait for the client: the call has
	// no result then, and waits with them.
	Held []Held `json:",omitempty"`
	// Moves has the conversation go on with another agent; nil for the same one.
	Moves *Move `json:",omitzero"`
}

// Use is something other than a model's answer that a run is charged for.
type Use struct {
	Kind  usage.Kind
	Name  string `json:",omitzero"` // of the tool; "" for a window of the sandbox
	Calls int
	Cost  model.Money `json:",omitzero"` // of all calls
}

// End says how a run ended.
type End struct {
	Status  Status // a final one
	Reason  Reason
	Message string // what the caller can do about it
	// Used is what calls are charged for that the end cut short, and Below as in Called.
	Used  []Use `json:",omitempty"`
	Below Spent `json:",omitzero"`
}

// Reason is why a run ended.
type Reason string

// Reasons.
const (
	Done            Reason = "" // the model has said all, or calls the client's tools
	MaxSteps        Reason = "max_steps"
	MaxCalls        Reason = "max_tool_calls"
	MaxOutputTokens Reason = "max_output_tokens"
	MaxTokens       Reason = "max_tokens"
	MaxCost         Reason = "max_cost"
	MaxDuration     Reason = "max_duration"
	ContentFilter   Reason = "content_filter"
	RepeatedFailure Reason = "repeated_failure"
	QuotaExceeded   Reason = "quota_exceeded" // a plan or budget has no sandbox for it
	ModelError      Reason = "model_error"
	ServerError     Reason = "server_error"
	ContextLength   Reason = "context_length_exceeded"
	Budget          Reason = "budget" // the tenant's, in money
	SessionBudget   Reason = "session_budget"
	MaxIterations   Reason = "max_iterations" // of an outcome, whose evaluations were not good enough
	OutcomeFailed   Reason = "outcome_failed" // it cannot be reached, or not be evaluated
	OpenSteps       Reason = "open_steps"     // of a plan, which the model left without a reason
)
