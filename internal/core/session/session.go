// Package session implements conversations with agents. A session pins a version of its agent,
// keeps the conversation, and owns sandboxes for all of its turns. Each turn is a run. The package
// does not depend on HTTP, SQL or a provider.
package session

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// ID names a session: "sess_" and 32 hexadecimal digits.
type ID string

// NewID returns a unique ID.
func NewID() ID { return ID(id.New("sess")) }

// Valid reports whether i is well-formed.
func (i ID) Valid() bool { return id.Is("sess", string(i)) }

// Session is a conversation with an agent.
type Session struct {
	ID          ID
	Tenant      tenant.ID
	Key         string // id of the key that created the session
	Environment string // id of the environment of its tools
	Agent       agent.ID
	Version     int // of Agent
	Speaker     Speaker
	Sandbox     string // name of the sandbox of its tools
	About       About
	Budget      Budget
	Used        run.Spent // by all ended turns
	Webhook     Webhook
	Vaults      []vault.ID // vaults whose credentials its turns use
	Run         run.ID     // the running turn; "" for none
	Events      int64      // Seq of the last event
	Waits       int        // calls that wait for the client
	Queued      int        // turns that wait for earlier turns
	Until       time.Time  // deadline of the waiting calls; zero for none
	CreatedAt   time.Time
	UpdatedAt   time.Time
	ArchivedAt  time.Time // zero while the session accepts messages
}

// Speaker is the agent that currently speaks in a swarm session; the zero Speaker is the session's
// own agent.
type Speaker struct {
	Agent   agent.ID
	Version int
}

// About is the caller's description of a session, stored encrypted.
type About struct {
	Title    string                     `json:",omitzero"`
	Metadata map[string]json.RawMessage `json:",omitempty"`
	Mounts   []Mount                    `json:",omitempty"` // immutable
}

// Budget limits the total usage of a session's turns; 0 means unlimited.
type Budget struct {
	Tokens int64 // input and output tokens
	Cost   model.Money
}

// Left returns the remainder of the session's budget.
func (s *Session) Left() (l run.Left) {
	if s.Budget.Tokens > 0 {
		l.Tokens = new(max(0, s.Budget.Tokens-s.Used.Usage.Input-s.Used.Usage.Output))
	}
	if s.Budget.Cost > 0 {
		l.Cost = new(max(0, s.Budget.Cost-s.Used.Cost))
	}
	return l
}

// Check returns an Exhausted fault if the session's budget is used up.
func (s *Session) Check() error {
	l := s.Left()
	switch {
	case l.Tokens != nil && *l.Tokens == 0:
		return fault.Limit(DimensionBudget, time.Time{}, "the session has used %d tokens of its budget of %d: raise budget.tokens to continue", s.Used.Usage.Input+s.Used.Usage.Output, s.Budget.Tokens)
	case l.Cost != nil && *l.Cost == 0:
		return fault.Limit(DimensionBudget, time.Time{}, "the session has cost %s of its budget of %s US dollars: raise budget.cost_usd to continue", s.Used.Cost, s.Budget.Cost)
	}
	return nil
}

// Archived reports whether s rejects messages and changes.
func (s *Session) Archived() bool { return !s.ArchivedAt.IsZero() }

// Limits of a session.
const (
	MaxTitle       = 256 // characters
	MaxMetadata    = 64  // pairs
	MaxMetadataLen = 16 << 10
	MaxMessage     = 1 << 20 // bytes
	MaxReason      = 4 << 10 // bytes of a decision's reason
	MaxEvents      = 100_000 // a turn that begins below the limit may exceed it
	MaxSandboxes   = 5       // named sandboxes, including lost ones
)

// Check validates the description. Errors name the invalid field.
func (a *About) Check() error {
	if utf8.RuneCountInString(a.Title) > MaxTitle || strings.ContainsRune(a.Title, 0) {
		return fault.New(fault.Invalid, "title must have at most %d characters, and no NUL", MaxTitle)
	}
	size := 0
	for key, value := range a.Metadata {
		if n := utf8.RuneCountInString(key); n < 1 || n > 64 {
			return fault.New(fault.Invalid, "metadata must have keys of 1 to 64 characters")
		}
		size += len(key) + len(value)
	}
	if len(a.Metadata) > MaxMetadata || size > MaxMetadataLen {
		return fault.New(fault.Invalid, "metadata must have at most %d pairs and %d bytes", MaxMetadata, MaxMetadataLen)
	}
	return nil
}

// Store keeps sessions and their events; it encrypts events and callers' descriptions. It returns a
// NotFound fault for another tenant's session. A run.Store on the same database begins and ends
// turns and adds their events.
type Store interface {
	// Create, Update, Archive and Delete append events in the same transaction. Create returns an
	// Exhausted fault if the tenant has most sessions; 0 means unlimited.
	Create(ctx context.Context, s *Session, most int, events ...tenant.PolicyEvent) error
	Get(ctx context.Context, t tenant.ID, id ID) (*Session, error)
	// Update replaces About and sets Budget where it is higher than before. It returns a Conflict
	// fault for an archived session.
	Update(ctx context.Context, t tenant.ID, id ID, about About, budget Budget, events ...tenant.PolicyEvent) (*Session, error)
	// List returns a page of sessions, newest first unless the filter says otherwise, and the
	// cursor of the next page; "" at the end.
	List(ctx context.Context, t tenant.ID, f Filter) (page []Session, next string, err error)
	// Archive stops messages and changes and drops queued turns. Archiving again succeeds without
	// an event. It returns ErrBusy during a turn.
	Archive(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) (*Session, error)
	// Delete deletes a session with its events and makes the runs of its turns expire. It returns
	// ErrBusy during a turn.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error
	// Events returns a page of events, oldest first.
	Events(ctx context.Context, t tenant.ID, id ID, f EventFilter) (page []Event, next string, err error)
	// Total returns the total usage of a session's ended turns.
	Total(ctx context.Context, t tenant.ID, id ID) (run.Total, error)
	// After returns up to limit events after seq, oldest first.
	After(ctx context.Context, t tenant.ID, id ID, seq int64, limit int) ([]Event, error)
	// Window returns the Seq of the event before the conversation that a turn can begin with.
	Window(ctx context.Context, id ID, until int64) (after int64, err error)
	// Conversation returns the conversation before a turn. Results of concurrent calls are in the
	// order of the calls.
	Conversation(ctx context.Context, t *run.Turn) ([]model.Item, error)

	// Enqueue queues a turn. It returns an Exhausted fault if MaxQueued turns are queued.
	Enqueue(ctx context.Context, q *Queued) error
	// Ready returns up to limit turns that may begin now, each the first of its session. They have
	// Request.Turn without the start of the conversation. Tenants with many turns do not starve
	// others.
	Ready(ctx context.Context, limit int) ([]Queued, error)

	// Calls returns, in order, the calls of the last turn that wait for the client and the approved
	// ones that have not run yet.
	Calls(ctx context.Context, t tenant.ID, id ID) ([]Call, error)
	// Expired returns up to limit sessions whose calls have waited too long.
	Expired(ctx context.Context, limit int) ([]Session, error)
	// Answer records answers to calls of s and appends their events and audit rows. It returns
	// ErrChanged if s has changed since it was read. done says that no call remains, so no turn
	// follows. Answers that start a turn belong to that turn instead: run.Turn.Answers.
	Answer(ctx context.Context, s *Session, answers []run.Answer, done bool) error

	// OpenThread records a thread before its run begins. Repeating it succeeds until the thread has
	// ended, then returns ErrThreadEnded. It returns an Exhausted fault if the turn has most
	// threads. The thread's run adds its events and ends it.
	OpenThread(ctx context.Context, t *Thread, most int) error
	// CloseThread ends a thread whose run has not begun.
	CloseThread(ctx context.Context, t *Thread) error
	// ResumeThread resumes a thread that waits for the client, in t.Turn, and sets t.Events.
	// Repeating it succeeds until the thread has ended, then returns ErrThreadEnded.
	ResumeThread(ctx context.Context, t *Thread) (*run.Kept, error)
	// Threads returns a page of threads, newest first.
	Threads(ctx context.Context, t tenant.ID, id ID, f ThreadFilter) (page []Thread, next string, err error)
	Thread(ctx context.Context, t tenant.ID, id ID, thread string) (*Thread, error)
	// ArchiveThread archives a thread and appends events. Archiving again succeeds without an
	// event. It returns ErrThreadRuns for a running thread.
	ArchiveThread(ctx context.Context, t tenant.ID, id ID, thread string, events ...tenant.PolicyEvent) (*Thread, error)
	// ThreadEvents returns a page of a thread's events, oldest first. It uses only the filter's
	// page, Kinds, Sorts and Last.
	ThreadEvents(ctx context.Context, of *Thread, f EventFilter) (page []Event, next string, err error)
	// ThreadAfter returns up to limit events of a thread after seq, oldest first.
	ThreadAfter(ctx context.Context, of *Thread, seq int64, limit int) ([]Event, error)
	// Tree returns a page of the events of a kind in a session and its threads, oldest first.
	Tree(ctx context.Context, t tenant.ID, id ID, kind run.EventKind, p agent.Page) (page []TreeEvent, next string, err error)
	// Latest returns the last event of a kind in a session and its threads, or nil.
	Latest(ctx context.Context, t tenant.ID, id ID, kind run.EventKind) (*Event, error)
}

// DimensionSessions is the dimension of the session limit.
const DimensionSessions = "sessions"

// DimensionBudget is the dimension of a session's budget.
const DimensionBudget = "session_budget"

// DimensionSandboxes is the dimension of MaxSandboxes.
const DimensionSandboxes = "session_sandboxes"

// Filter selects sessions.
type Filter struct {
	agent.Page
	Agent    agent.ID // "" for all agents
	Version  int      // of the agent; 0 for any
	Archived bool     // include archived sessions
	Span              // of the creation time
	States   []State  // nil for all that Archived includes
	First    bool     // oldest first
}

// State is the state of a session.
type State string

// States of a session.
const (
	Idle    State = "idle"
	Running State = "running"
	Ended   State = "archived"
)

var (
	// ErrNotFound is returned if the tenant has no such session.
	ErrNotFound = fault.New(fault.NotFound, "session not found")
	// ErrArchived rejects messages to, and changes of, an archived session.
	ErrArchived = fault.New(fault.Conflict, "the session is archived")
	// ErrElsewhere rejects requests from another environment than the session's.
	ErrElsewhere = fault.New(fault.Conflict, "the session belongs to another environment: use a key of that environment, or one with the scope environments")
	// ErrBusy rejects requests that are not possible during a turn.
	ErrBusy = fault.New(fault.Conflict, "a turn of the session is running: wait until it ends, or interrupt it")
)
