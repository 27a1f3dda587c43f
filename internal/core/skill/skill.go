// Package skill is skills of agents: folders of instructions and files in the open Agent
// Skills format, which tenants upload and version, and the behaviors that this server has
// built in. The package knows no HTTP, SQL or provider.
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

// NewID returns an ID that no other skill has.
func NewID() ID { return ID(id.New("skill")) }

// NewVersionID returns an ID that no other version has.
func NewVersionID() VersionID { return VersionID(id.New("skillver")) }

// Valid reports whether i is one that a skill can have.
func (i ID) Valid() bool { return id.Is("skill", string(i)) }

// Valid reports whether i is one that a version can have.
func (i VersionID) Valid() bool { return id.Is("skillver", string(i)) }

// Skill is a skill of a tenant. It has one version at least.
type Skill struct {
	ID         ID
	Tenant     tenant.ID
	Name       string // that of all versions; unique in the tenant
	Title      string // for people
	Latest     Version
	CreatedAt  time.Time
	UpdatedAt  time.Time // when Latest was made
	ArchivedAt time.Time // zero for one that is in use
}

// Archived reports whether s takes no new versions and no new agents.
func (s *Skill) Archived() bool { return !s.ArchivedAt.IsZero() }

// Version is a version of a skill. It does not change.
type Version struct {
	ID        VersionID
	Skill     ID
	Number    int // from 1
	Head      Head
	Files     []FileInfo // by path
	CreatedAt time.Time
}

// FileInfo is what lists say of a file.
type FileInfo struct {
	Path string // relative to the skill's folder
	Size int64
	Exec bool `json:",omitzero"` // it may be run as a program
}

// File is a file of a skill.
type File struct {
	Path string
	Exec bool
	Data []byte
}

// Dir is where the folders of skills are in a sandbox, each by the name of its skill.
const Dir = "/skills"

// Main is the file that every skill has.
const Main = "SKILL.md"

// Bounds of skills.
const (
	MaxTitle = 255     // characters
	MaxFiles = 500     // of a version
	MaxBytes = 8 << 20 // of all files of a version together
	MaxMain  = 256 << 10
	MaxPath  = 256 // bytes
	maxDepth = 16
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

var (
	// ErrNotFound says that a tenant has no such skill.
	ErrNotFound = fault.New(fault.NotFound, "skill not found")
	// ErrNoVersion says that a skill has no such version.
	ErrNoVersion = fault.New(fault.NotFound, "version not found in this skill")
	// ErrArchived refuses new versions of a skill that is archived.
	ErrArchived = fault.New(fault.Conflict, "the skill is archived")
	// ErrLast refuses to delete the only version of a skill.
	ErrLast = fault.New(fault.Conflict, "this is the only version of the skill: delete the skill, or add another version first")
)
