// Package approval is the tool calls of agents' sessions and of responses that wait for a
// decision, and those that were decided, in one list.
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

// NewID returns an ID that no other approval has.
func NewID() ID { return ID(id.New("apr")) }

// Valid reports whether i is one that an approval can have.
func (i ID) Valid() bool { return id.Is("apr", string(i)) }

// Status is where an approval is in its life.
type Status string

// Statuses. All but Pending are final.
const (
	Pending   Status = "pending"
	Approved  Status = "approved"
	Denied    Status = "denied"
	Expired   Status = "expired"   // denied, because nobody answered until the deadline
	Cancelled Status = "cancelled" // the session was interrupted or archived
)

// Statuses lists every status.
var Statuses = []Status{Pending, Approved, Denied, Expired, Cancelled}

// Approval is a tool call that waits for a decision, or had one.
type Approval struct {
	ID          ID
	Tenant      tenant.ID
	Key         string // id of the key whose work it is
	Environment string
	Session     string // of the agent; "" of a response
	Run         run.ID // the turn or response that asked
	Of          int64  // Told.Seq of the call in Session; 0 of a response
	Item        string // id of the item that asked, of a response; "" of a session
	Thread      string // of Session that made the call; "" for the session itself
	Agent       string // id; "" of a response
	Tool        string
	Server      string // the MCP server that has the tool; "" for none
	Arguments   string
	Status      Status
	Reason      string // of the decision
	By          string // id of the key or token that decided; "" while pending, and for the deadline
	Next        run.ID // the turn or response that goes on with the decision; "" for none
	CreatedAt   time.Time
	Deadline    time.Time // zero for none
	DecidedAt   time.Time // zero while pending
}

// Decision is what somebody says to an approval.
type Decision struct {
	Approve bool
	Reason  string
	By      string
}

// Filter selects approvals of a tenant. Zero fields select everything but Tenant.
type Filter struct {
	agent.Page
	Tenant  tenant.ID
	Status  Status
	Agent   string
	Session string
	Run     run.ID
}

// Store reads approvals. Those of sessions are written with the events of their session, those of
// responses with the log of their run. What another tenant has is not found.
type Store interface {
	// List returns a page, newest first, and where the next one begins.
	List(ctx context.Context, f Filter) (page []Approval, next string, err error)
	Get(ctx context.Context, t tenant.ID, id ID) (*Approval, error)
	// Decide notes a decision over a call of a response with its audit row, and returns the
	// approvals of the response. The same decision again is no error while nothing goes on with it;
	// any other is a Conflict.
	Decide(ctx context.Context, t tenant.ID, id ID, d Decision) ([]Approval, error)
	// Expire ends the waits of responses whose deadline has passed, at most limit of them.
	Expire(ctx context.Context, limit int) (int, error)
}

var (
	// ErrNotFound says that a tenant has no such approval.
	ErrNotFound = fault.New(fault.NotFound, "approval not found")
	// ErrDecided refuses a decision over what is decided.
	ErrDecided = fault.New(fault.Conflict, "the approval is decided already: read it to see how")
)

// NoAnswer is the reason of a call that is denied because nobody answered until a time.
func NoAnswer(until time.Time) string {
	return "no answer until " + until.UTC().Format(time.RFC3339)
}
