// Package run implements one turn of a model with tools: send the conversation to the model,
// execute its tool calls, return their results, and repeat until the model stops, a limit ends the
// run, or the client must act.
//
// A run is its log. Each Entry is recorded before the effect that it announces, or together with
// the result of the effect. State is a fold of the log, and State.Next says what to do next. Any
// process that reads the log can therefore continue from the last entry. The package does not
// depend on HTTP, SQL or a provider.
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

// NewID returns a unique ID.
func NewID() ID { return ID(id.New("run")) }

// Valid reports whether i is well-formed.
func (i ID) Valid() bool { return id.Is("run", string(i)) }

// Run is the record of a run. The first entry of its log holds the request.
type Run struct {
	ID          ID
	Tenant      tenant.ID
	Key         string // id of the key that started the run and pays for it
	Environment string // id of the environment of its tools
	Sandbox     string // name of the sandbox of its tools; a run that continues another shares its sandbox
	Session     string // id of the session that the run is a turn of, or works for; "" for none
	// Top is the run at the root of the delegation tree; "" if no run started this one.
	Top ID
	// Keep is how long the run is stored after its end. A run with 0 is visible only to its caller
	// and is stored for Unkept.
	Keep time.Duration

	Status    Status
	Seq       int64 // of the last entry of its log
	CreatedAt time.Time
	EndedAt   time.Time // zero until the status is final
}

// SandboxOf returns the name of a conversation's sandboxes, derived from its first run.
func SandboxOf(first ID) string { return "sbx_" + string(first[len("run_"):]) }

// Unkept is how long a run with Keep 0 is stored after its end, for the waiting caller.
const Unkept = time.Minute

// Status is the state of a run.
type Status string

// Statuses, by the names of the open Responses specification.
const (
	Queued         Status = "queued"      // no process runs it yet
	InProgress     Status = "in_progress" // includes waiting for a provider
	Completed      Status = "completed"
	RequiresAction Status = "requires_action" // the model called tools that the client runs
	Incomplete     Status = "incomplete"      // a limit ended the run, which has output
	Failed         Status = "failed"
	Cancelled      Status = "cancelled"

	// Expired ends a session's wait for the client. Runs never have this status.
	Expired Status = "expired"
)

// Final reports whether s is a final status.
func (s Status) Final() bool { return s != Queued && s != InProgress }

// Continuable reports whether another run can continue the conversation of a run that ended with s.
func (s Status) Continuable() bool { return s == Completed || s == RequiresAction || s == Incomplete }

// Request is the request of a run.
type Request struct {
	// Agent is the id of the agent that answers; "" for a response.
	Agent string `json:",omitzero"`
	// Models are tried in order. The run falls back to the next one when a model fails permanently.
	Models       []string
	Instructions string
	Input        []model.Item // includes the earlier conversation
	Before       int          // number of Input items in the earlier conversation
	// Turn locates the conversation before Input. A State includes that conversation in its
	// Request.Input.
	Turn *Turn `json:",omitzero"`
	// Thread is set for a run that another run delegated to.
	Thread *Thread `json:",omitzero"`
	// PlaceFiles copies the files of the input to where the tools run.
	PlaceFiles bool
	Tools      []Tool
	// Remotes are the external servers that provide some of Tools.
	Remotes []Remote `json:",omitempty"`
	// Warnings say which tools are missing. Instructions also tell the model.
	Warnings []Warning `json:",omitempty"`
	// Skills configure the run's tools and checks. Instructions describe them to the model.
	Skills []Skill `json:",omitempty"`
	// Vaults hold the credentials for servers and the secrets for code in the sandbox.
	Vaults []vault.ID `json:",omitempty"`
	// Copies are uploaded files to copy into the run's sandbox.
	Copies []execution.FileRef `json:",omitempty"`
	// NoWeb says that code in the sandbox may not call the web services.
	NoWeb bool `json:",omitzero"`
	// Outcome is the run's goal; nil if the model decides when it is done.
	Outcome *Outcome `json:",omitzero"`
	// Approved are the calls that the run makes before it asks a model.
	Approved []Approved `json:",omitempty"`
	// Within is how long a response's calls wait for approval after the response ends; 0 means no
	// limit.
	Within time.Duration `json:",omitzero"`
	// Verdicts are the client's decisions about calls of the response that the run continues.
	Verdicts []Said `json:",omitempty"`
	// Output is the start of the run's output.
	Output []Item `json:",omitempty"`
	// Choice applies to the first step. If it forces a call, the model chooses freely in later
	// steps; otherwise the run would never end.
	Choice model.ToolChoice
	// Parallel runs the calls of one step concurrently.
	Parallel    bool
	Reasoning   model.Reasoning
	Temperature *float64
	TopP        *float64
	Stop        []string `json:",omitempty"` // texts that end an answer
	Format      *model.Format
	CacheKey    string
	// Truncate drops the start of a conversation that exceeds the model's context. Without it the
	// run fails.
	Truncate bool
	// Compact summarizes the conversation before it exceeds the context; nil for never.
	Compact *Compact `json:",omitzero"`
	// RetryFor is how long the run retries a model whose provider fails, from the first failure;
	// nil for a few tries within seconds. If another of Models follows, the run always makes only a
	// few tries.
	RetryFor *time.Duration `json:",omitzero"`
	// Publish publishes the run's events for readers that follow it.
	Publish bool
	Limits  Limits
	// Settings is the API's own encoding of the request. This package does not interpret it.
	Settings []byte
}

// Tool is a tool that the model may call.
type Tool struct {
	model.Tool
	// Handler names the component that executes the calls; "" for the client, so that a call ends
	// the run.
	Handler string
	// Idempotent calls may be repeated if their outcome is unknown.
	Idempotent bool
	// Serial runs calls of the same Handler one at a time.
	Serial bool
	// Beside limits concurrent calls of the same Handler; 0 for unlimited.
	Beside int `json:",omitzero"`
	// Counted is the name under which calls are counted and charged; "" uses the Handler. Uncounted
	// calls are a part of other counted calls.
	Counted   string `json:",omitzero"`
	Uncounted bool   `json:",omitzero"`
	// Shown says that readers see a call of this server's tool while the model writes it. The
	// handler then shows the same item.
	Shown bool `json:",omitzero"`
	// Window says that a call starts a billed window of the sandbox unless one is open.
	Window bool `json:",omitzero"`
	// Approve requires the client's approval of each call. The call ends the run, and another run
	// begins with it.
	Approve bool `json:",omitzero"`
	// Server and RemoteName identify a Remote's tool; "" for one of this server.
	Server     string `json:",omitzero"`
	RemoteName string `json:",omitzero"`
	// Options belong to the handler.
	Options []byte `json:",omitzero"`
}

// CheckTools rejects tools with the same name.
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

// CheckChoice rejects a tool choice that names an unknown tool.
func (q *Request) CheckChoice() error {
	if q.Choice.Mode == model.ToolNamed && !slices.ContainsFunc(q.Tools, func(t Tool) bool { return t.Name == q.Choice.Name }) {
		return fault.New(fault.Invalid, "tool_choice names %q, which is not among tools", q.Choice.Name)
	}
	return nil
}

// Limits bounds a run; 0 means unlimited.
type Limits struct {
	Steps        int
	Calls        int           // tool calls by the server
	OutputTokens int64         // of all answers
	Tokens       int64         // of all requests and answers
	Cost         model.Money   // of all answers, tool calls and sandbox windows
	Duration     time.Duration // from the run's first entry
	Session      Left          `json:",omitzero"` // remainder of the session's budget
}
