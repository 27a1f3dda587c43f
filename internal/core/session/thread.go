package session

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Thread is work that an agent has handed to another one in a turn of a session: a
// conversation of its own.
type Thread struct {
	ID        string // "sthr_" and the digits of the run that does the work
	Session   ID
	Tenant    tenant.ID
	Turn      run.ID // at the top
	Parent    string // the thread that handed it on; "" for the session's own conversation
	Agent     agent.ID
	Version   int    // of Agent
	Name      string // of the hand-off
	Status    ThreadStatus
	Events    int64     // Seq of the last one
	Used      run.Spent // once it has ended, with that of threads below it
	CreatedAt time.Time
	EndedAt   time.Time // zero while it runs or waits
	// ArchivedAt is when the client put it aside; zero for one that it did not. Archived ones are
	// listed, too.
	ArchivedAt time.Time
}

// Changed is when the thread last changed, but for its events.
func (t *Thread) Changed() time.Time {
	switch {
	case !t.ArchivedAt.IsZero():
		return t.ArchivedAt
	case !t.EndedAt.IsZero():
		return t.EndedAt
	}
	return t.CreatedAt
}

// ThreadFilter chooses threads of a session.
type ThreadFilter struct {
	agent.Page
	Statuses []ThreadStatus // all if it is nil
}

// ValidThread reports whether a text is one that can name a thread.
func ValidThread(text string) bool { return id.Is("sthr", text) }

// ThreadStatus is what a thread is doing.
type ThreadStatus string

// Statuses of threads.
const (
	ThreadRunning    ThreadStatus = "running"
	ThreadWaits      ThreadStatus = "requires_action" // calls of it, or below it, wait for the client
	ThreadIdle       ThreadStatus = "idle"            // it came to its end
	ThreadTerminated ThreadStatus = "terminated"      // it was ended, or has failed
)

// ErrThreadEnded refuses a thread that was there before, and what came of it is gone.
var ErrThreadEnded = fault.New(fault.Conflict, "the thread has ended, and its result has expired")

// ErrThreadRuns refuses to archive a thread that runs.
var ErrThreadRuns = fault.New(fault.Conflict, "the thread is running: interrupt the session, or wait until it ends")

// ErrNoThread says that a session has no such thread.
var ErrNoThread = fault.New(fault.NotFound, "thread not found in this session")

// DimensionDelegations is the dimension of the limit of a turn's hand-offs.
const DimensionDelegations = "delegations"
