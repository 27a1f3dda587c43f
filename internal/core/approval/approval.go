// Package approval lists the tool calls that wait for a decision or received one, from agent
// sessions and from responses.
package approval

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// ID names an approval: "apr_" and 32 hexadecimal digits.
type ID string

// NewID returns a unique ID.
func NewID() ID { return ID(id.New("apr")) }

// Valid reports whether i is well-formed.
func (i ID) Valid() bool { return id.Is("apr", string(i)) }

// Status is the state of an approval.
type Status string

// Statuses. All but Pending are final.
const (
	Pending   Status = "pending"
	Approved  Status = "approved"
	Denied    Status = "denied"
	Expired   Status = "expired"   // denied because no decision arrived before the deadline
	Cancelled Status = "cancelled" // the client interrupted or archived the session
)

// Statuses lists every status.
var Statuses = []Status{Pending, Approved, Denied, Expired, Cancelled}

// Approval is a tool call that waits for a decision or received one.
type Approval struct {
	ID          ID
	Tenant      tenant.ID
	Key         string // id of the key that the session or response runs for
	Environment string
	Session     string // of the agent; "" for a response
	Run         run.ID // the turn or response that asked
	Of          int64  // Told.Seq of the call in Session; 0 for a response
	Item        string // id of the response's item that asked; "" for a session
	Thread      string // the thread of Session that made the call; "" for the session itself
	Agent       string // id; "" for a response
	Tool        string
	Server      string // the MCP server of the tool; "" for other tools
	Arguments   string
	Status      Status
	Reason      string // given with the decision
	By          string // id of the key or token that decided; "" while pending or if the deadline decided
	Next        run.ID // the turn or response that continues with the decision; "" for none
	CreatedAt   time.Time
	Deadline    time.Time // zero for none
	DecidedAt   time.Time // zero while pending
}

// Decision approves or denies a tool call.
type Decision struct {
	Approve bool
	Reason  string
	By      string
}

// Response names the response of some approvals.
type Response struct {
	Tenant tenant.ID
	Run    run.ID
}

// Filter selects a tenant's approvals. Tenant is required; any other zero field matches every
// approval.
type Filter struct {
	agent.Page
	Tenant  tenant.ID
	Status  Status
	Agent   string
	Session string
	Run     run.ID
}

// Store reads approvals. The store writes a session's approvals with the session's events, and a
// response's approvals with the log of its run. Approvals of other tenants are not found.
type Store interface {
	// List returns a page, newest first, and the cursor of the next page.
	List(ctx context.Context, f Filter) (page []Approval, next string, err error)
	Get(ctx context.Context, t tenant.ID, id ID) (*Approval, error)
	// Decide records a decision and its audit row for a call of a response, and returns the
	// response's approvals. Repeating the same decision succeeds until a response continues with
	// it; any other repeat is a Conflict.
	Decide(ctx context.Context, t tenant.ID, id ID, d Decision) ([]Approval, error)
	// Undone returns up to limit responses whose calls were all decided, the last one at least a few
	// seconds and at most a day ago, and that no response continues yet. If there are more, it
	// returns different ones each time, so that none waits behind others that cannot continue.
	Undone(ctx context.Context, limit int) ([]Response, error)
	// Expire denies up to limit calls of responses whose deadline has passed.
	Expire(ctx context.Context, limit int) (int, error)
}

var (
	// ErrNotFound is returned if the tenant has no approval with the id.
	ErrNotFound = fault.New(fault.NotFound, "approval not found")
	// ErrDecided rejects a second, different decision.
	ErrDecided = fault.New(fault.Conflict, "the approval was already decided: read it to see the decision")
)

// NoAnswer returns the denial reason of a call whose deadline passed without a decision.
func NoAnswer(until time.Time) string {
	return "no answer until " + until.UTC().Format(time.RFC3339)
}
