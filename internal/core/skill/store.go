package skill

import (
	"context"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store keeps skills with all their versions. It encrypts everything except names, and returns a
// NotFound fault for another tenant's skill.
type Store interface {
	// Create records a skill with its first version. AddVersion adds a version and updates s. Both
	// append events in the same transaction, as do Archive, Delete and DeleteVersion. A taken name
	// is a Conflict fault; a tenant beyond most gets an Exhausted fault.
	Create(ctx context.Context, s *Skill, b *Bundle, most Limits, events ...tenant.PolicyEvent) error
	AddVersion(ctx context.Context, s *Skill, b *Bundle, most Limits, events ...tenant.PolicyEvent) error
	// Get returns a skill by its ID or name.
	Get(ctx context.Context, t tenant.ID, idOrName string) (*Skill, error)
	// Version returns a version of a tenant's skill by its ID.
	Version(ctx context.Context, t tenant.ID, id VersionID) (*Version, error)
	// Numbered returns a version of a skill by its number.
	Numbered(ctx context.Context, t tenant.ID, id ID, number int) (*Version, error)
	// Content returns the files of a version.
	Content(ctx context.Context, t tenant.ID, id VersionID) (*Bundle, error)
	// List returns a page of skills, newest first, and the cursor of the next page; "" at the end.
	// Versions does the same for the versions of a skill.
	List(ctx context.Context, t tenant.ID, f Filter) (page []Skill, next string, err error)
	Versions(ctx context.Context, t tenant.ID, id ID, p Page) (page []Version, next string, err error)
	// Archive stops new versions and new uses. Archiving again succeeds without an event.
	Archive(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) (*Skill, error)
	// Delete deletes a skill with its versions.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error
	// DeleteVersion deletes a version. It returns ErrLast for the only one.
	DeleteVersion(ctx context.Context, t tenant.ID, id ID, v VersionID, events ...tenant.PolicyEvent) error
}

// Limits bounds a tenant's skills; 0 means unlimited.
type Limits struct {
	Skills int   // including archived ones, whose versions are kept
	Bytes  int64 // stored size of all versions together
}

// Dimensions of Limits in Exhausted faults.
const (
	DimensionSkills = "skills"
	DimensionBytes  = "skill_bytes"
)

// Room rejects another version of size bytes, and with first another skill, if the tenant would
// exceed its limits.
func (l Limits) Room(skills int, bytes, size int64, first bool) error {
	switch {
	case first && l.Skills > 0 && skills >= l.Skills:
		return fault.Limit(DimensionSkills, time.Time{}, "this tenant has reached its limit of %d skills; delete some first", skills)
	case l.Bytes > 0 && bytes+size > l.Bytes:
		return fault.Limit(DimensionBytes, time.Time{}, "the versions of this tenant's skills use %d of %d bytes: delete some first", bytes, l.Bytes)
	}
	return nil
}

// Page selects a page of a list.
type Page struct {
	Cursor string // next of the previous page; "" for the first page
	Limit  int
}

// Filter selects skills.
type Filter struct {
	Page
	Archived bool // include archived skills
}

// Resolve returns a version by ID or number; "latest" or "" returns the newest one. It returns
// ErrNoVersion if the skill has no such version.
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
