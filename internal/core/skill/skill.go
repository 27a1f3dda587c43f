// Package skill implements skills of agents: directories of instructions and files in the open
// Agent Skills format, which tenants upload and version, and the server's built-in behaviors. The
// package does not depend on HTTP, SQL or a provider.
package skill

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// ID names a skill: "skill_" and 32 hexadecimal digits.
type ID string

// VersionID names a version of a skill: "skillver_" and 32 hexadecimal digits.
type VersionID string

// NewID returns a unique ID.
func NewID() ID { return ID(id.New("skill")) }

// NewVersionID returns a unique ID.
func NewVersionID() VersionID { return VersionID(id.New("skillver")) }

// Valid reports whether i is well-formed.
func (i ID) Valid() bool { return id.Is("skill", string(i)) }

// Valid reports whether i is well-formed.
func (i VersionID) Valid() bool { return id.Is("skillver", string(i)) }

// Skill is a tenant's skill. It has at least one version.
type Skill struct {
	ID         ID
	Tenant     tenant.ID
	Name       string // the same in all versions; unique in the tenant
	Title      string // for display
	Latest     Version
	CreatedAt  time.Time
	UpdatedAt  time.Time // when Latest was created
	ArchivedAt time.Time // zero while the skill is in use
}

// Archived reports whether s rejects new versions and new agents.
func (s *Skill) Archived() bool { return !s.ArchivedAt.IsZero() }

// Version is an immutable version of a skill.
type Version struct {
	ID        VersionID
	Skill     ID
	Number    int // from 1
	Head      Head
	Files     []FileInfo // by path
	CreatedAt time.Time
}

// FileInfo describes a file in lists.
type FileInfo struct {
	Path string // relative to the skill's directory
	Size int64
	Exec bool `json:",omitzero"` // the file is executable
}

// File is a file of a skill.
type File struct {
	Path string
	Exec bool
	Data []byte
}

// Dir is the sandbox directory that contains one directory per skill, by name.
const Dir = "/skills"

// Main is the file that every skill must contain.
const Main = "SKILL.md"

// Limits of skills.
const (
	MaxTitle = 255     // characters
	MaxFiles = 500     // per version
	MaxBytes = 8 << 20 // total per version
	MaxMain  = 256 << 10
	MaxPath  = 256 // bytes
	maxDepth = 16
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

var (
	// ErrNotFound is returned if the tenant has no such skill.
	ErrNotFound = fault.New(fault.NotFound, "skill not found")
	// ErrNoVersion is returned if the skill has no such version.
	ErrNoVersion = fault.New(fault.NotFound, "version not found in this skill")
	// ErrArchived rejects new versions of an archived skill.
	ErrArchived = fault.New(fault.Conflict, "the skill is archived")
	// ErrLast rejects deleting the only version of a skill.
	ErrLast = fault.New(fault.Conflict, "this is the only version of the skill: delete the skill, or add another version first")
)

// Renamed rejects a version whose name differs from name, that of earlier versions.
func Renamed(name string) error {
	return invalid("%s: name must be %s, as in the versions before", Main, name)
}
