package agent

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store keeps agents with all of their versions. Definitions are encrypted. What another
// tenant has is not found, whatever its visibility.
type Store interface {
	// Create records version 1. A slug that is taken is a Conflict.
	Create(ctx context.Context, a *Agent) error
	// Get returns the current version.
	Get(ctx context.Context, t tenant.ID, idOrSlug string) (*Agent, error)
	// At returns a version.
	At(ctx context.Context, t tenant.ID, idOrSlug string, version int) (*Agent, error)
	// Update records a as the version after a.Version-1. It is a Conflict when that is not
	// the current one, or the agent is archived.
	Update(ctx context.Context, a *Agent) error
	// List returns agents, newest first.
	List(ctx context.Context, t tenant.ID, f Filter) ([]Agent, error)
	// Versions returns up to limit versions below one, newest first; 0 is below none.
	Versions(ctx context.Context, t tenant.ID, idOrSlug string, below, limit int) ([]Agent, error)
	// Archive ends changes and new sessions. Again is no error.
	Archive(ctx context.Context, t tenant.ID, idOrSlug string) (*Agent, error)
}

// Filter chooses agents.
type Filter struct {
	After    ID // the last one of the page before; "" for the first page
	Archived bool
	Limit    int
}

// VersionConflict is the refusal of a change that was made for another version.
func VersionConflict(current int) error {
	return fault.New(fault.Conflict, "the agent has version %d by now: read it, and make the change to that version", current)
}

// ErrArchived refuses changes of an agent that is archived.
var ErrArchived = fault.New(fault.Conflict, "the agent is archived")

// ErrNotFound says that a tenant has no such agent.
var ErrNotFound = fault.New(fault.NotFound, "there is no such agent")
