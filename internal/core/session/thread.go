package session

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Thread is work that an agent delegated to another in a turn of a session, with its own
// conversation.
type Thread struct {
	ID        string // "sthr_" and the digits of the run that does the work
	Session   ID
	Tenant    tenant.ID
	Turn      run.ID // the session's turn
	Parent    string // the delegating thread; "" for the session's own conversation
	Agent     agent.ID
	Version   int    // of Agent
	Name      string // name of the handoff
	Status    ThreadStatus
	Events    int64     // Seq of the last event
	Used      run.Spent // once ended, including threads below it
	CreatedAt time.Time
	EndedAt   time.Time // zero while the thread runs or waits
	// ArchivedAt is when the client archived the thread; zero if it did not. Lists include archived
	// threads.
	ArchivedAt time.Time
}

// Changed returns when the thread last changed, apart from its events.
func (t *Thread) Changed() time.Time {
	switch {
	case !t.ArchivedAt.IsZero():
		return t.ArchivedAt
	case !t.EndedAt.IsZero():
		return t.EndedAt
	}
	return t.CreatedAt
}

// ThreadFilter selects threads of a session.
type ThreadFilter struct {
	agent.Page
	Statuses []ThreadStatus // nil for all
}

// ValidThread reports whether a text is a well-formed thread id.
func ValidThread(text string) bool { return id.Is("sthr", text) }

// ThreadStatus is the state of a thread.
type ThreadStatus string

// Statuses of threads.
const (
	ThreadRunning    ThreadStatus = "running"
	ThreadWaits      ThreadStatus = "requires_action" // calls in or below it wait for the client
	ThreadIdle       ThreadStatus = "idle"            // the thread finished
	ThreadTerminated ThreadStatus = "terminated"      // the thread was ended or failed
)

// ErrThreadEnded rejects an existing thread whose result has expired.
var ErrThreadEnded = fault.New(fault.Conflict, "the thread has ended, and its result has expired")

// ErrThreadRuns rejects archiving a running thread.
var ErrThreadRuns = fault.New(fault.Conflict, "the thread is running: interrupt the session, or wait until it ends")

// ErrNoThread is returned if the session has no such thread.
var ErrNoThread = fault.New(fault.NotFound, "thread not found in this session")

// DimensionDelegations is the dimension of the limit on a turn's handoffs.
const DimensionDelegations = "delegations"
