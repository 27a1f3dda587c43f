package agent

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store keeps agents with all of their versions. Definitions are encrypted. What another
// tenant has is not found, whatever its visibility, but by Template.
type Store interface {
	// Create, Update and Archive append events in the same transaction. Create records
	// version 1. A slug that is taken is a Conflict; a tenant that has most is refused by an
	// Exhausted fault.
	Create(ctx context.Context, a *Agent, most Limits, events ...tenant.PolicyEvent) error
	// Get returns the current version.
	Get(ctx context.Context, t tenant.ID, idOrSlug string) (*Agent, error)
	// Template returns the current version of a template of any tenant that is not archived.
	// It is the owner's: others see and copy what Shared gives.
	Template(ctx context.Context, id ID) (*Agent, error)
	// At returns a version.
	At(ctx context.Context, t tenant.ID, idOrSlug string, version int) (*Agent, error)
	// Update records a as the version after a.Version-1. It is a Conflict when that is not
	// the current one, or the agent is archived.
	Update(ctx context.Context, a *Agent, most Limits, events ...tenant.PolicyEvent) error
	// List returns a page of agents, newest first, and where the next one begins; "" at
	// the end.
	List(ctx context.Context, t tenant.ID, f Filter) (page []Agent, next string, err error)
	// Versions returns a page of an agent's versions, newest first.
	Versions(ctx context.Context, t tenant.ID, idOrSlug string, p Page) (page []Agent, next string, err error)
	// Archive ends changes and new sessions. Again is no error, and no event.
	Archive(ctx context.Context, t tenant.ID, idOrSlug string, events ...tenant.PolicyEvent) (*Agent, error)
	// Delete removes an agent with its versions, and frees its slug. It is a Conflict while the
	// agent has sessions, also archived ones: they need its versions.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error
}

// Limits bound what a tenant has; 0 for any number.
type Limits struct {
	Agents   int // that are not archived
	Versions int // of all agents together, also of those that are archived: they are kept
}

// Dimensions of the limits.
const (
	DimensionAgents   = "agents"
	DimensionVersions = "agent_versions"
)

// Room refuses another version where a tenant has so many, and another agent, too, with first.
func (l Limits) Room(agents, versions int, first bool) error {
	switch {
	case first && l.Agents > 0 && agents >= l.Agents:
		return fault.Limit(DimensionAgents, time.Time{}, "this tenant has reached its limit of %d agents; archive or delete some first", agents)
	case l.Versions > 0 && versions >= l.Versions:
		return fault.Limit(DimensionVersions, time.Time{}, "this tenant has reached its limit of %d agent versions; delete agents, or ask the operator for a higher limit", versions)
	}
	return nil
}

// Page is a part of a list.
type Page struct {
	Cursor string // what the page before gave as next; "" for the first one
	Limit  int
}

// Filter chooses agents.
type Filter struct {
	Page
	Archived bool // those that are archived, too
	// From and To bound when agents were made, both included; zero for no bound.
	From, To time.Time
}

// VersionConflict is the refusal of a change that was made for another version.
func VersionConflict(current int) error {
	return fault.New(fault.Conflict, "the agent is now at version %d: read it again, and apply the change to that version", current)
}

// ErrArchived refuses changes of an agent that is archived.
var ErrArchived = fault.New(fault.Conflict, "the agent is archived")

// HasSessions refuses to delete an agent that has so many sessions.
func HasSessions(n int) error {
	return fault.New(fault.Conflict, "the agent has %d sessions, including archived ones: delete them first, or archive the agent", n)
}

// ErrNotFound says that a tenant has no such agent.
var ErrNotFound = fault.New(fault.NotFound, "agent not found")
