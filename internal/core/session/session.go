// Package session is conversations with agents. A session keeps the version of its agent,
// remembers what was said in it, and has sandboxes for all of its turns. A turn is a run.
// The package knows no HTTP, SQL or provider.
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

// NewID returns an ID that no other session has.
func NewID() ID { return ID(id.New("sess")) }

// Valid reports whether i is one that a session can have.
func (i ID) Valid() bool { return id.Is("sess", string(i)) }

// Session is a conversation with an agent.
type Session struct {
	ID          ID
	Tenant      tenant.ID
	Key         string // id of the key that made it
	Environment string // id of the environment that its tools work in
	Agent       agent.ID
	Version     int // of Agent
	Speaker     Speaker
	Sandbox     string // names the sandbox of its tools
	About       About
	Budget      Budget
	Used        run.Spent // of all turns that have ended
	Webhook     Webhook
	Vaults      []vault.ID // whose credentials its turns use
	Run         run.ID     // the turn under way; "" while there is none
	Events      int64      // Seq of the last one
	Waits       int        // calls that wait for the client
	Queued      int        // turns that wait for those before them
	Until       time.Time  // how long the calls wait; zero for ever, or for none
	CreatedAt   time.Time
	UpdatedAt   time.Time
	ArchivedAt  time.Time // zero for one that takes messages
}

// Speaker is who speaks for a session whose agent is one of a swarm: the zero Speaker is the
// agent itself.
type Speaker struct {
	Agent   agent.ID
	Version int
}

// About is what the caller says of a session. It is encrypted.
type About struct {
	Title    string                     `json:",omitzero"`
	Metadata map[string]json.RawMessage `json:",omitempty"`
	Mounts   []Mount                    `json:",omitempty"` // they do not change
}

// Budget is what the turns of a session may use together; 0 for no bound.
type Budget struct {
	Tokens int64 // sent to models and said by them
	Cost   model.Money
}

// Left is what a session's budget has left.
func (s *Session) Left() (l run.Left) {
	if s.Budget.Tokens > 0 {
		l.Tokens = new(max(0, s.Budget.Tokens-s.Used.Usage.Input-s.Used.Usage.Output))
	}
	if s.Budget.Cost > 0 {
		l.Cost = new(max(0, s.Budget.Cost-s.Used.Cost))
	}
	return l
}

// Check refuses turns of a session whose budget is used up.
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

// Archived reports whether s takes no more messages and changes.
func (s *Session) Archived() bool { return !s.ArchivedAt.IsZero() }

// Limits of a session.
const (
	MaxTitle       = 256 // characters
	MaxMetadata    = 64  // pairs
	MaxMetadataLen = 16 << 10
	MaxMessage     = 1 << 20 // bytes
	MaxReason      = 4 << 10 // bytes, of a decision
	MaxEvents      = 100_000 // a turn that began with fewer adds its own
	MaxSandboxes   = 5       // named ones, lost ones included
)

// Check refuses what cannot be said of a session, by the path of what is wrong.
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

// Store keeps sessions and their events. What callers said of a session, and events, are
// encrypted. What another tenant has is not found. A run.Store of the same database begins
// and ends turns, and adds their events.
type Store interface {
	// Create, Update, Archive and Delete append events in the same transaction. Create is
	// refused by an Exhausted fault where the tenant has most sessions; 0 for any number.
	Create(ctx context.Context, s *Session, most int, events ...tenant.PolicyEvent) error
	Get(ctx context.Context, t tenant.ID, id ID) (*Session, error)
	// Update changes About, and raises Budget where it is above what it was. It is a Conflict
	// for one that is archived.
	Update(ctx context.Context, t tenant.ID, id ID, about About, budget Budget, events ...tenant.PolicyEvent) (*Session, error)
	// List returns a page of sessions, newest first unless the filter says otherwise, and where the next one begins; "" at
	// the end.
	List(ctx context.Context, t tenant.ID, f Filter) (page []Session, next string, err error)
	// Archive ends messages and changes, and drops what is queued. Again is no error, and no event. While a turn is
	// under way it is ErrBusy.
	Archive(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) (*Session, error)
	// Delete removes a session with its events, and has the runs of its turns expire. While
	// a turn is under way it is ErrBusy.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error
	// Events returns a page of events, oldest first.
	Events(ctx context.Context, t tenant.ID, id ID, f EventFilter) (page []Event, next string, err error)
	// Total returns what the turns of a session that have ended came to.
	Total(ctx context.Context, t tenant.ID, id ID) (run.Total, error)
	// After returns up to limit events after one, oldest first.
	After(ctx context.Context, t tenant.ID, id ID, seq int64, limit int) ([]Event, error)
	// Window returns the event after which a conversation begins that a turn can begin with.
	Window(ctx context.Context, id ID, until int64) (after int64, err error)
	// Conversation returns what was said before a turn. The results of calls that were made
	// side by side are in the order of the calls.
	Conversation(ctx context.Context, t *run.Turn) ([]model.Item, error)

	// Enqueue has a turn wait for those before it. It is an Exhausted fault when MaxQueued do.
	Enqueue(ctx context.Context, q *Queued) error
	// Ready returns up to limit turns that may begin now, each the first one of its session:
	// with Request.Turn, but without where its conversation begins. Those of a tenant with
	// many do not come before the first ones of others.
	Ready(ctx context.Context, limit int) ([]Queued, error)

	// Calls returns the calls of the last turn that wait, and those that are approved and not
	// made yet, in their order.
	Calls(ctx context.Context, t tenant.ID, id ID) ([]Call, error)
	// Expired returns up to limit sessions whose calls have waited for too long.
	Expired(ctx context.Context, limit int) ([]Session, error)
	// Answer notes answers to calls of s, and appends the events and the audit rows that say so. It is ErrChanged when s is not as it was read. done says
	// that no call is left, so that no turn comes of them. Answers after which a turn begins
	// are a part of that turn: run.Turn.Answers.
	Answer(ctx context.Context, s *Session, answers []run.Answer, done bool) error

	// OpenThread records a thread before its run begins; again is no error while it has not ended,
	// and ErrThreadEnded then. It is an Exhausted fault where its turn has most of them. The run of
	// a thread adds its events, and ends it.
	OpenThread(ctx context.Context, t *Thread, most int) error
	// CloseThread ends a thread whose run has not begun.
	CloseThread(ctx context.Context, t *Thread) error
	// ResumeThread has a thread go on that waits for the client, in t.Turn, and sets t.Events; again is no
	// error until it has ended, and ErrThreadEnded then.
	ResumeThread(ctx context.Context, t *Thread) (*run.Kept, error)
	// Threads returns a page of threads, newest first.
	Threads(ctx context.Context, t tenant.ID, id ID, f ThreadFilter) (page []Thread, next string, err error)
	Thread(ctx context.Context, t tenant.ID, id ID, thread string) (*Thread, error)
	// ArchiveThread notes that a thread was put aside, and appends events. Again is no error, and no
	// event. It is ErrThreadRuns for one that runs.
	ArchiveThread(ctx context.Context, t tenant.ID, id ID, thread string, events ...tenant.PolicyEvent) (*Thread, error)
	// ThreadEvents returns a page of the events of a thread, oldest first. Of the filter it goes
	// by the page, Kinds, Sorts and Last.
	ThreadEvents(ctx context.Context, of *Thread, f EventFilter) (page []Event, next string, err error)
	// ThreadAfter returns up to limit events of a thread after one, oldest first.
	ThreadAfter(ctx context.Context, of *Thread, seq int64, limit int) ([]Event, error)
	// Tree returns a page of the events of a kind of a session and its threads, oldest first.
	Tree(ctx context.Context, t tenant.ID, id ID, kind run.ToldKind, p agent.Page) (page []TreeEvent, next string, err error)
	// Latest returns the last event of a kind of a session, with those of its threads; nil for
	// none.
	Latest(ctx context.Context, t tenant.ID, id ID, kind run.ToldKind) (*Event, error)
}

// DimensionSessions is the dimension of the limit of sessions.
const DimensionSessions = "sessions"

// DimensionBudget is the dimension of a session's budget.
const DimensionBudget = "session_budget"

// DimensionSandboxes is the dimension of MaxSandboxes.
const DimensionSandboxes = "session_sandboxes"

// Filter chooses sessions.
type Filter struct {
	agent.Page
	Agent    agent.ID // "" for those of all agents
	Version  int      // of the agent; 0 for any
	Archived bool     // those that are archived, too
	Span              // in which they were made
	States   []State  // nil for any that Archived has
	First    bool     // the first one first
}

// State is what a session is doing.
type State string

// States of a session.
const (
	Idle    State = "idle"
	Running State = "running"
	Ended   State = "archived"
)

var (
	// ErrNotFound says that a tenant has no such session.
	ErrNotFound = fault.New(fault.NotFound, "session not found")
	// ErrArchived refuses messages to and changes of a session that is archived.
	ErrArchived = fault.New(fault.Conflict, "the session is archived")
	// ErrElsewhere refuses what is done from another environment than the session's.
	ErrElsewhere = fault.New(fault.Conflict, "the session belongs to another environment: use a key of that environment, or one with the scope environments")
	// ErrBusy refuses what cannot be done while a turn is under way.
	ErrBusy = fault.New(fault.Conflict, "a turn of the session is running: wait until it ends, or interrupt it")
)
