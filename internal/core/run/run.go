// Package run is one turn of a model with tools: ask the model, do the tool calls it
// asks for, give it their results, until it stops, a limit ends it or the client must
// act.
//
// A run is its log. Each Entry is recorded before the effect that it announces, or with
// the result of that effect; State is a fold of the log, and State.Next says what is to
// be done. So any process that reads the log can go on from its last entry. The package
// knows no HTTP, SQL or provider.
package run

import (
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// ID names a run: "run_" and 32 hexadecimal digits.
type ID string

// NewID returns an ID that no other run has.
func NewID() ID { return ID(id.New("run")) }

// Valid reports whether i is one that a run can have.
func (i ID) Valid() bool { return id.Is("run", string(i)) }

// Run is the record of a run. What it was asked is the first entry of its log.
type Run struct {
	ID          ID
	Tenant      tenant.ID
	Key         string // id of the key that started it, which is charged
	Environment string // id of the environment that its tools work in
	Sandbox     string // names the sandbox of its tools; that of the run which it continues
	Session     string // id of the session that it is a turn of, or works for one of; "" for none
	// Top is the run that work was handed on in, at the top of the tree; "" for one that no other
	// run has begun.
	Top ID
	// Keep is how long the run is kept after its end. 0 is for one that nothing but its
	// caller is to see: it stays for Unkept.
	Keep time.Duration

	Status    Status
	Seq       int64 // of the last entry of its log
	CreatedAt time.Time
	EndedAt   time.Time // zero until the status is final
}

// SandboxOf names the sandboxes of a conversation by its first run.
func SandboxOf(first ID) string { return "sbx_" + string(first[len("run_"):]) }

// Unkept is how long a run that is not kept stays after its end, for the caller who waits
// for it.
const Unkept = time.Minute

// Status is where a run is in its life.
type Status string

// Statuses, by the names of the open Responses specification.
const (
	Queued         Status = "queued"      // no process drives it yet
	InProgress     Status = "in_progress" // also while it waits for a provider
	Completed      Status = "completed"
	RequiresAction Status = "requires_action" // the model called tools that the client runs
	Incomplete     Status = "incomplete"      // a limit ended it; there is output
	Failed         Status = "failed"
	Cancelled      Status = "cancelled"

	// Expired is the end of a session's wait for the client, and of no run.
	Expired Status = "expired"
)

// Final reports whether s does not change any more.
func (s Status) Final() bool { return s != Queued && s != InProgress }

// Continuable reports whether another run can continue the conversation of a run that ended with s.
func (s Status) Continuable() bool { return s == Completed || s == RequiresAction || s == Incomplete }

// Request is what a run was asked.
type Request struct {
	// Agent is the id of the agent that answers; "" for a response.
	Agent string `json:",omitzero"`
	// Models are asked in this order: the next one when one fails for good.
	Models       []string
	Instructions string
	Input        []model.Item // with the conversation before it
	Before       int          // items of Input that are that conversation
	// Turn has the conversation before Input. A State has it in its Request.Input.
	Turn *Turn `json:",omitzero"`
	// Thread is of a run that another one has handed work to.
	Thread *Thread `json:",omitzero"`
	// PlaceFiles has the files of the input put where the tools work.
	PlaceFiles bool
	Tools      []Tool
	// Remotes are the servers of others that some of Tools are of.
	Remotes []Remote `json:",omitempty"`
	// Warnings say which tools are missing. Instructions tell the model.
	Warnings []Warning `json:",omitempty"`
	// Skills are what the run's tools and checks go by, beside what is said of them in
	// Instructions.
	Skills []Skill `json:",omitempty"`
	// Vaults have the credentials of the servers, and secrets of code in the sandbox.
	Vaults []vault.ID `json:",omitempty"`
	// Copies are uploaded files that the run's sandbox has.
	Copies []execution.FileRef `json:",omitempty"`
	// NoWeb says that code in the sandbox does not call the services of the web.
	NoWeb bool `json:",omitzero"`
	// Outcome is what the run is to come to; nil for what its model makes of it.
	Outcome *Outcome `json:",omitzero"`
	// Approved are the calls that the run begins with, before it asks a model.
	Approved []Approved `json:",omitempty"`
	// Within is how long a response's calls wait for an approval after it has ended; 0 means no
	// limit.
	Within time.Duration `json:",omitzero"`
	// Verdicts are the client's decisions about calls of the response that the run continues.
	Verdicts []Said `json:",omitempty"`
	// Output is what the run's output begins with.
	Output []Item `json:",omitempty"`
	// Choice holds for the first step. In later ones the model chooses freely where it
	// forces a call, since it would force calls without end.
	Choice model.ToolChoice
	// Parallel says whether the calls of one step run side by side.
	Parallel    bool
	Reasoning   model.Reasoning
	Temperature *float64
	TopP        *float64
	Stop        []string `json:",omitempty"` // texts before which an answer ends
	Format      *model.Format
	CacheKey    string
	// Truncate leaves out the beginning of a conversation that is longer than the model
	// reads; without it the run fails.
	Truncate bool
	// Compact has the conversation summarized before it is too long; nil for never.
	Compact *Compact `json:",omitzero"`
	// RetryFor is how long a model is asked again whose provider is in trouble, from its first
	// failure on; nil for a few tries within seconds. Where another of Models follows, a few tries
	// are made in any case.
	RetryFor *time.Duration `json:",omitzero"`
	// Publish has the run's events published, for readers that follow it.
	Publish bool
	Limits  Limits
	// Settings are what the API that asked for the run shows of the request. They mean
	// nothing here.
	Settings []byte
}

// Tool is a tool that the model is given.
type Tool struct {
	model.Tool
	// Handler names what runs its calls; "" for the client, so that a call ends the run.
	Handler string
	// Idempotent calls may be repeated when their outcome is unknown: they change nothing,
	// or a repetition changes nothing more.
	Idempotent bool
	// Serial says that calls of the same Handler run one at a time.
	Serial bool
	// Beside bounds the calls of the same Handler that run side by side; 0 for any number.
	Beside int `json:",omitzero"`
	// Counted is the name that calls are counted and charged under; that of the Handler if it
	// is empty. Uncounted ones are a part of what is counted otherwise.
	Counted   string `json:",omitzero"`
	Uncounted bool   `json:",omitzero"`
	// Shown says that readers see a call of the server's while the model writes it. The handler
	// shows the same item then.
	Shown bool `json:",omitzero"`
	// Window says that a call begins a window of the sandbox where none is open.
	Window bool `json:",omitzero"`
	// Approve says that a call waits for the client's approval: it ends the run, and another
	// run begins with it.
	Approve bool `json:",omitzero"`
	// Server and RemoteName say which tool of a Remote it is; "" for one of this server.
	Server     string `json:",omitzero"`
	RemoteName string `json:",omitzero"`
	// Options are the handler's own.
	Options []byte `json:",omitzero"`
}

// CheckTools rejects tools that a model cannot tell apart.
func (q *Request) CheckTools() error {
	names := map[string]bool{}
	for i := range q.Tools {
		name := q.Tools[i].Name
		if names[name] {
			return fault.New(fault.Invalid, "tools has two that are called %q", name)
		}
		names[name] = true
	}
	return nil
}

// CheckChoice rejects the choice of a tool that is not there.
func (q *Request) CheckChoice() error {
	if q.Choice.Mode == model.ToolNamed && !slices.ContainsFunc(q.Tools, func(t Tool) bool { return t.Name == q.Choice.Name }) {
		return fault.New(fault.Invalid, "tool_choice names %q, which is not among tools", q.Choice.Name)
	}
	return nil
}

// Limits bound a run. 0 is no bound.
type Limits struct {
	Steps        int
	Calls        int           // of tools, by the server
	OutputTokens int64         // of all answers
	Tokens       int64         // of all answers and of what was sent for them
	Cost         model.Money   // of all answers, tool calls and windows of the sandbox
	Duration     time.Duration // from the run's first entry
	Session      Left          `json:",omitzero"` // of the session's budget
}
