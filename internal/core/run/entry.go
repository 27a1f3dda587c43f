package run

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Entry is a record in a run's log. Exactly one of its pointers is set.
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

	// Lost lists answers outside the conversation that failed since the previous entry.
	Lost []Lost `json:",omitempty"`
}

// Asked says that the run is about to send a model request. If no Answered or Failed follows, the
// process died during the request. Another process then sends it again, and the provider may charge
// for both.
type Asked struct {
	Step  int // from 1
	Try   int // attempt for the model, from 1 in each step
	Model string
	View  View // the part of the conversation that the model sees
}

// Answered records a model's answer.
type Answered struct {
	Answer model.Answer
	Cost   model.Cost
}

// ModelFailed says that a model gave no answer or only a part of one.
type ModelFailed struct {
	Failure model.Failure // "" if the requesting process died
	Message string
	// Shown is the part of the answer that readers of the run have seen.
	Shown []model.Item `json:",omitempty"`
	// Again is when the run retries the same model; zero for never.
	Again time.Time `json:",omitzero"`
	// Usage and Cost cover the part of the answer that arrived.
	Usage model.Usage `json:",omitzero"`
	Cost  model.Cost  `json:",omitzero"`
}

// Calling says that the run is about to call a tool. Pending.Number identifies the call
// permanently, so that another process can find its outcome.
type Calling struct {
	Call string // model.Call.ID
	Item *Item  `json:",omitzero"` // shown while the call runs
	// Claims says that the call writes a Claimed entry before it takes effect.
	Claims bool `json:",omitzero"`
	// Opens is the thread that the call opens with its claim; nil for none.
	Opens *Opens `json:",omitzero"`
}

// Claimed says that a call is about to take effect. If the process of a claiming call dies before
// this entry, another process starts the call again.
type Claimed struct {
	Call string // model.Call.ID
}

// Called records the outcome of a tool call.
type Called struct {
	Call   string
	Result model.Result // shown to the model
	Item   *Item        `json:",omitzero"` // replaces Calling.Item
	More   []Item       `json:",omitempty"`
	// Windows is how many billed windows of the sandbox began with the call.
	Windows int `json:",omitzero"`
	// Notes are additional events for readers of the session, by kind.
	Notes map[EventKind]Note `json:",omitempty"`
	// Ends says how the call ends the run, because a request that it needs was denied and the model
	// cannot fix that.
	Ends *End `json:",omitzero"`
	// Unknown says that the process of the call died and the outcome cannot be recovered.
	Unknown bool `json:",omitzero"`
	// Used is what the call is charged for; empty if it was rejected.
	Used []Use `json:",omitempty"`
	// Below is the usage of the runs that the call delegated to, which are charged themselves.
	Below Spent `json:",omitzero"`
	// Left says how the thread that the call opened ended; nil for none.
	Left *ThreadEnd `json:",omitzero"`
	// Held lists calls of the opened thread that wait for the client. The call then has no result
	// and waits with them.
	Held []Held `json:",omitempty"`
	// Moves continues the conversation with another agent; nil to keep the agent.
	Moves *Move `json:",omitzero"`
}

// Use is a charge of a run other than a model's answer.
type Use struct {
	Kind  usage.Kind
	Name  string `json:",omitzero"` // of the tool; "" for a window of the sandbox
	Calls int
	Cost  model.Money `json:",omitzero"` // for all calls
}

// End says how a run ended.
type End struct {
	Status  Status // final
	Reason  Reason
	Message string // tells the caller how to fix it
	// Used is the charge for calls that the end interrupted. Below is as in Called.
	Used  []Use `json:",omitempty"`
	Below Spent `json:",omitzero"`
}

// Reason says why a run ended.
type Reason string

// Reasons.
const (
	Done            Reason = "" // the model finished, or called the client's tools
	MaxSteps        Reason = "max_steps"
	MaxCalls        Reason = "max_tool_calls"
	MaxOutputTokens Reason = "max_output_tokens"
	MaxTokens       Reason = "max_tokens"
	MaxCost         Reason = "max_cost"
	MaxDuration     Reason = "max_duration"
	ContentFilter   Reason = "content_filter"
	RepeatedFailure Reason = "repeated_failure"
	QuotaExceeded   Reason = "quota_exceeded" // the plan or budget allows no sandbox
	ModelError      Reason = "model_error"
	ServerError     Reason = "server_error"
	ContextLength   Reason = "context_length_exceeded"
	Budget          Reason = "budget" // the tenant's budget, in money
	SessionBudget   Reason = "session_budget"
	MaxIterations   Reason = "max_iterations" // no evaluation of the outcome was good enough
	OutcomeFailed   Reason = "outcome_failed" // the outcome cannot be reached or evaluated
	OpenSteps       Reason = "open_steps"     // the model left steps of a plan open without a reason
)
