package agent

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store keeps agents with all their versions and encrypts definitions. Methods treat another
// tenant's agent as not found, whatever its visibility, except Template.
type Store interface {
	// Create, Update and Archive append events in the same transaction. Create records version 1.
	// It fails with a Conflict fault if the slug is taken, and with an Exhausted fault if the
	// tenant has reached most.
	Create(ctx context.Context, a *Agent, most Limits, events ...tenant.PolicyEvent) error
	// Get returns the current version.
	Get(ctx context.Context, t tenant.ID, idOrSlug string) (*Agent, error)
	// Template returns the current version of any tenant's template that is not archived, with the
	// owner's secrets. Pass it through Shared before you show it to another tenant.
	Template(ctx context.Context, id ID) (*Agent, error)
	// At returns a specific version.
	At(ctx context.Context, t tenant.ID, idOrSlug string, version int) (*Agent, error)
	// Update records a as the version after a.Version-1. It fails with a Conflict fault if
	// a.Version-1 is not the current version or the agent is archived.
	Update(ctx context.Context, a *Agent, most Limits, events ...tenant.PolicyEvent) error
	// List returns a page of agents, newest first, and the cursor of the next page; "" at the end.
	List(ctx context.Context, t tenant.ID, f Filter) (page []Agent, next string, err error)
	// Versions returns a page of an agent's versions, newest first.
	Versions(ctx context.Context, t tenant.ID, idOrSlug string, p Page) (page []Agent, next string, err error)
	// Archive stops changes and new sessions. Archiving again succeeds without an event.
	Archive(ctx context.Context, t tenant.ID, idOrSlug string, events ...tenant.PolicyEvent) (*Agent, error)
	// Delete removes an agent with its versions and frees its slug. It fails with a Conflict fault
	// while the agent has sessions, including archived ones, because they need its versions.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error
}

// Limits bounds a tenant's agents; 0 means unlimited.
type Limits struct {
	Agents   int // not archived
	Versions int // of all agents, including archived ones
}

// Dimensions of Limits in Exhausted faults.
const (
	DimensionAgents   = "agents"
	DimensionVersions = "agent_versions"
)

// Room rejects another version, and with first another agent, if the tenant has reached its limits.
func (l Limits) Room(agents, versions int, first bool) error {
	switch {
	case first && l.Agents > 0 && agents >= l.Agents:
		return fault.Limit(DimensionAgents, time.Time{}, "this tenant has reached its limit of %d agents; archive or delete some first", agents)
	case l.Versions > 0 && versions >= l.Versions:
		return fault.Limit(DimensionVersions, time.Time{}, "this tenant has reached its limit of %d agent versions; delete agents, or ask the operator for a higher limit", versions)
	}
	return nil
}

// Page selects a page of a list.
type Page struct {
	Cursor string // next of the previous page; "" for the first page
	Limit  int
}

// Filter chooses agents.
type Filter struct {
	Page
	Archived bool // include archived agents
	// From and To bound the creation time, inclusive; zero for no bound.
	From, To time.Time
}

// VersionConflict returns the error for a change that was based on another version.
func VersionConflict(current int) error {
	return fault.New(fault.Conflict, "the agent is now at version %d: read it again, and apply the change to that version", current)
}

// ErrArchived rejects changes to an archived agent.
var ErrArchived = fault.New(fault.Conflict, "the agent is archived")

// HasSessions returns the error for deleting an agent that has n sessions.
func HasSessions(n int) error {
	return fault.New(fault.Conflict, "the agent has %d sessions, including archived ones: delete them first, or archive the agent", n)
}

// ErrNotFound is returned if the tenant has no such agent.
var ErrNotFound = fault.New(fault.NotFound, "agent not found")

// NoVersion returns the error for a version that the agent does not have.
func NoVersion(version int) error {
	return fault.New(fault.NotFound, "the agent has no version %d", version)
}
