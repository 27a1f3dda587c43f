package skill

import (
	"context"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store keeps skills with all of their versions. All but names is encrypted. What another
// tenant has is not found.
type Store interface {
	// Create records a skill with its first version, and AddVersion another one of a skill,
	// which sets s to what it is then. Both append events in the same transaction, as do
	// Archive and those that delete. A name that is taken is a Conflict; a tenant that has most is refused
	// by an Exhausted fault.
	Create(ctx context.Context, s *Skill, b *Bundle, most Limits, events ...tenant.PolicyEvent) error
	AddVersion(ctx context.Context, s *Skill, b *Bundle, most Limits, events ...tenant.PolicyEvent) error
	// Get returns a skill by its ID or name.
	Get(ctx context.Context, t tenant.ID, idOrName string) (*Skill, error)
	// Version returns a version of a tenant's skill by its ID.
	Version(ctx context.Context, t tenant.ID, id VersionID) (*Version, error)
	// Numbered returns a version of a skill by its number.
	Numbered(ctx context.Context, t tenant.ID, id ID, number int) (*Version, error)
	// Content returns the files of a version of a tenant's.
	Content(ctx context.Context, t tenant.ID, id VersionID) (*Bundle, error)
	// List returns a page of skills, newest first, and where the next one begins; "" at the
	// end. Versions does so with the versions of one.
	List(ctx context.Context, t tenant.ID, f Filter) (page []Skill, next string, err error)
	Versions(ctx context.Context, t tenant.ID, id ID, p Page) (page []Version, next string, err error)
	// Archive ends new versions and new uses. Again is no error, and no event.
	Archive(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) (*Skill, error)
	// Delete removes a skill with its versions.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error
	// DeleteVersion removes a version. It is ErrLast for the only one.
	DeleteVersion(ctx context.Context, t tenant.ID, id ID, v VersionID, events ...tenant.PolicyEvent) error
}

// Limits bound what a tenant has; 0 for any number.
type Limits struct {
	Skills int   // also those that are archived: their versions are kept
	Bytes  int64 // of all versions together, as they are kept
}

// Dimensions of the limits.
const (
	DimensionSkills = "skills"
	DimensionBytes  = "skill_bytes"
)

// Room refuses another version of a size where a tenant has so much, and another skill, too,
// with first.
func (l Limits) Room(skills int, bytes, size int64, first bool) error {
	switch {
	case first && l.Skills > 0 && skills >= l.Skills:
		return fault.Limit(DimensionSkills, time.Time{}, "this tenant has reached its limit of %d skills; delete some first", skills)
	case l.Bytes > 0 && bytes+size > l.Bytes:
		return fault.Limit(DimensionBytes, time.Time{}, "the versions of this tenant's skills use %d of %d bytes: delete some first", bytes, l.Bytes)
	}
	return nil
}

// Page is a part of a list.
type Page struct {
	Cursor string // what the page before gave as next; "" for the first one
	Limit  int
}

// Filter chooses skills.
type Filter struct {
	Page
	Archived bool // those that are archived, too
}

// Resolve is a version of a skill by its ID or number; latest or "" for the newest one.
func Resolve(ctx context.Context, store Store, s *Skill, name string) (*Version, error) {
	if name == "" || name == "latest" || name == string(s.Latest.ID) {
		return &s.Latest, nil
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n < 1<<31 && strconv.Itoa(n) == name {
		return store.Numbered(ctx, s.Tenant, s.ID, n)
	}
	if !VersionID(name).Valid() {
		return nil, ErrNoVersion
	}
	v, err := store.Version(ctx, s.Tenant, VersionID(name))
	if err == nil && v.Skill != s.ID {
		err = ErrNoVersion
	}
	return v, err
}
