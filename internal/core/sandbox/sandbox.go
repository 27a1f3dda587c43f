// Package sandbox describes named sandboxes. A caller creates a sandbox under a name in a session
// and reuses it. It lives until the caller deletes it or it expires.
//
// Node and Handle are the contract for using sandboxes on any machine. Store and SnapshotStore keep
// their records.
package sandbox

import (
	"maps"
	"regexp"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// State is the state of a sandbox.
type State string

const (
	Creating  State = "creating"
	Running   State = "running"
	Sleeping  State = "sleeping"  // Sleep says how; any use wakes it
	Lost      State = "lost"      // the sandbox exited or its machine failed; Detail says why
	Destroyed State = "destroyed" // the caller deleted the sandbox, or it expired
)

// moves lists the allowed state changes; any other change is a conflict.
var moves = map[State][]State{
	Creating: {Running, Destroyed},
	Running:  {Sleeping, Lost, Destroyed},
	Sleeping: {Running, Sleeping, Lost, Destroyed},
	Lost:     {Destroyed},
}

// Sleep says how a sleeping sandbox is stored.
type Sleep string

const (
	Frozen Sleep = "frozen" // its processes are paused; its memory stays in RAM
	OnDisk Sleep = "disk"   // its memory is in a file on this machine
	Stored Sleep = "stored" // its state is in the blob store
)

// Sandbox is the record of a named sandbox.
type Sandbox struct {
	ID          runtime.ID
	Tenant      tenant.ID
	Environment string // id; names are unique within tenant, environment and session
	Session     string
	Name        string
	Key         string // id of the key that created the sandbox and pays for its running time
	Executor    string // the installation that runs it

	Image      string // name in the image store
	ImageAlias string // the requested image name; "" for the environment's image
	// ImageWarning warns that Image has a different version than ImageAlias requests; "" if the
	// versions match.
	ImageWarning string
	Limits       runtime.Limits
	Own          Size  // the size that the caller requested; a restart keeps it
	Disk         int64 // limit in bytes of its home, /tmp and /var/tmp together; 0 for unlimited
	// Permissions are fixed at creation, except that a caller may change the network policy. The
	// environment's current policy also limits the network.
	Permissions runtime.Permissions
	Connected   bool              // whether the sandbox has a network device; without one it can never use a network
	Mounts      []storage.Mount   // without credentials; fixed at creation, and narrowed if grants shrink
	Env         map[string]string // its own variables, which override those of environment and key

	State      State
	Sleep      Sleep       // set while sleeping
	Stored     *StoredCopy // the copy in the blob store, which may be the only one; nil for none
	Detail     string      // tells callers why the sandbox is lost or cannot sleep
	SleepAfter time.Duration
	CreatedAt  time.Time
	UsedAt     time.Time
	ExpiresAt  *time.Time // when Atoll destroys the sandbox; nil for never
	// UnusedUntil is when Atoll destroys a sleeping or lost sandbox unless a caller uses it first;
	// nil for never. A Node sets it for its own sandboxes; it is not recorded.
	UnusedUntil *time.Time
	MeteredAt   time.Time // end of the running time charged so far
	Endings     []Ending  // recorded endings, oldest first
	// Revision increases with each change that a machine with a journal makes to the record, so that
	// an older version never replaces a newer one. It stays 0 on a machine that writes to the Store.
	Revision uint64
}

// Status returns State as the contract's tools report it.
func (s *Sandbox) Status() State {
	if s.State == Creating {
		return Running
	}
	return s.State
}

// Resident reports whether s occupies memory of its machine.
func (s *Sandbox) Resident() bool {
	return s.State == Creating || s.State == Running || s.State == Sleeping && s.Sleep == Frozen
}

// Move changes the state. It returns a Conflict fault for a change that is not allowed.
func (s *Sandbox) Move(to State, detail string) error {
	if !slices.Contains(moves[s.State], to) {
		return fault.New(fault.Conflict, "the sandbox %q is %s, so it cannot become %s", s.Name, s.State, to)
	}
	s.State, s.Sleep, s.Detail = to, "", detail
	return nil
}

// FallAsleep moves the sandbox to a sleeping state, or to a deeper one.
func (s *Sandbox) FallAsleep(how Sleep, detail string) error {
	if err := s.Move(Sleeping, detail); err != nil {
		return err
	}
	if s.Sleep = how; how != Stored {
		s.Stored = nil // it has run since, or is about to leave
	}
	return nil
}

// Clone returns a copy with its own Env, Mounts and Stored.
func (s *Sandbox) Clone() *Sandbox {
	c := *s
	c.Env, c.Mounts = maps.Clone(s.Env), slices.Clone(s.Mounts)
	if s.Stored != nil {
		kept := *s.Stored
		c.Stored = &kept
	}
	return &c
}

// CopySaved copies Revision, and the fields that Store.Save records, from another record.
func (s *Sandbox) CopySaved(from *Sandbox) {
	f := from.Clone()
	s.Image, s.ImageWarning, s.Limits, s.Disk = f.Image, f.ImageWarning, f.Limits, f.Disk
	s.Permissions, s.Connected, s.Mounts = f.Permissions, f.Connected, f.Mounts
	s.State, s.Sleep, s.Stored, s.Detail = f.State, f.Sleep, f.Stored, f.Detail
	s.SleepAfter, s.UsedAt, s.ExpiresAt, s.Revision = f.SleepAfter, f.UsedAt, f.ExpiresAt, f.Revision
}

// Size holds the limits that a caller can choose for a sandbox. A zero field selects the
// environment's limit.
type Size struct {
	CPU    float64 // cores
	Memory int64   // bytes
	Disk   int64   // bytes of files
}

// Spec describes a sandbox to create. The zero value uses the defaults.
type Spec struct {
	Image string // as requested; "" for the environment's
	// ImageAssumed says that the caller named no image. The sandbox gets the environment's image,
	// under the name in Image.
	ImageAssumed bool
	// ImageExact rejects an image whose version differs from Image. Callers that cannot show a
	// warning set it.
	ImageExact bool
	Size                         // at most the environment's limits
	SleepAfter time.Duration     // idle time before sleep; 0 for the server's default, negative for never
	Timeout    time.Duration     // time until Atoll destroys the sandbox; 0 for the plan's maximum
	Env        map[string]string // variables of its programs
	Network    *runtime.NetworkPolicy
	SubPaths   []storage.SubPath // narrows the mounts; a connection without an entry is mounted as granted

	Snapshot  SnapshotID // initial state; "" for none
	FilesOnly bool       // restore only the snapshot's files, not its processes
}

// Default is the sandbox name, and the session name, for calls that set none.
const Default = "default"

// MaxSession limits a session's name, in characters.
const MaxSession = 128

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// LacksNetwork reports whether a restart would give s more network access. policy is the
// environment's current policy.
func (s *Sandbox) LacksNetwork(policy runtime.NetworkPolicy) bool {
	switch s.State {
	case Lost, Destroyed:
		return false
	}
	return !policy.Blocked() && (!s.Connected || !policy.Within(s.Permissions.Network))
}

// RestartCommand returns the shell command that restarts s.
func (s *Sandbox) RestartCommand() string {
	if s.Session == Default {
		return "atoll sandbox restart " + s.Name
	}
	return "atoll sandbox restart " + string(s.ID) // the id needs no quoting; names of sessions can contain any character
}

// CheckName validates a sandbox name. It rejects names that look like ids, because callers may use
// either to find a sandbox.
func CheckName(name string) error {
	if runtime.ID(name).Valid() {
		return fault.New(fault.Invalid, "sandbox: %q not found; it looks like an id, which only the server creates, so it cannot be the name of a new sandbox", name)
	}
	if !namePattern.MatchString(name) {
		return fault.New(fault.Invalid, "sandbox: %.80q is not a valid name; want 1 to 64 letters, digits, '_', '.' and '-', starting with a letter or digit, such as \"builder\"", name)
	}
	return nil
}

// CheckSession validates a session name.
func CheckSession(name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > MaxSession || !utf8.ValidString(name) {
		return fault.New(fault.Invalid, "session: want a name of 1 to %d characters", MaxSession)
	}
	for _, c := range name {
		if unicode.IsControl(c) {
			return fault.New(fault.Invalid, "session: a name must not have control characters")
		}
	}
	return nil
}
