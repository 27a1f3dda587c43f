// Package sandbox describes named sandboxes: long-lived ones that a caller makes under a
// name in a session, uses again and again, and that end when they are told to, when their
// time is over, or never.
//
// Node and Handle are the contract by which they are used, on whichever machine they
// are. Store and SnapshotStore keep their records.
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

// State is where a sandbox is in its life.
type State string

const (
	Creating  State = "creating"
	Running   State = "running"
	Sleeping  State = "sleeping"  // Sleep says how deep; any use wakes it
	Lost      State = "lost"      // it ended by itself, or with its machine; Detail says why
	Destroyed State = "destroyed" // by its caller, or because its time was over
)

// moves is the whole life of a sandbox; a move that is not listed is a conflict.
var moves = map[State][]State{
	Creating: {Running, Destroyed},
	Running:  {Sleeping, Lost, Destroyed},
	Sleeping: {Running, Sleeping, Lost, Destroyed},
	Lost:     {Destroyed},
}

// Sleep is how a sleeping sandbox is kept.
type Sleep string

const (
	Frozen Sleep = "frozen" // its processes do not run; its memory stays
	OnDisk Sleep = "disk"   // its memory is in a file of this machine
	Stored Sleep = "stored" // it is in the blob store
)

// Sandbox is a named sandbox as it is recorded.
type Sandbox struct {
	ID          runtime.ID
	Tenant      tenant.ID
	Environment string // id; with the tenant and the session, what its name is unique in
	Session     string
	Name        string
	Key         string // id of the key that made it, which its time is charged to
	Executor    string // the installation that has it

	Image      string // name in the image store
	ImageAlias string // what Image was asked for as; "" for the environment's image
	// ImageWarning warns that Image has a different version than ImageAlias requests; "" if the
	// versions match.
	ImageWarning string
	Limits       runtime.Limits
	Own          Size  // the size that the caller requested; a restart keeps it
	Disk         int64 // limit in bytes of its home, /tmp and /var/tmp together; 0 for none
	// Permissions are those it was made with, but for a network policy of its own.
	// What of the network is open is never more than its environment allows now.
	Permissions runtime.Permissions
	Connected   bool              // it has a network device; without one it can never have a network
	Mounts      []storage.Mount   // without credentials; those it was made with, or what is left of them
	Env         map[string]string // variables of its own, over those of environment and key

	State      State
	Sleep      Sleep       // of a sleeping one
	Stored     *StoredCopy // where the blob store has it, and the machine may not; nil for nowhere
	Detail     string      // of the state, for who asks: why it is lost, why it cannot sleep
	SleepAfter time.Duration
	CreatedAt  time.Time
	UsedAt     time.Time
	ExpiresAt  *time.Time // when it is destroyed; nil for never
	// UnusedUntil is when a sandbox that sleeps or is lost is destroyed unless it is used
	// before; nil for never. A Node says it of its own sandboxes, and it is not recorded.
	UnusedUntil *time.Time
	MeteredAt   time.Time // up to when its running time is charged
	Endings     []Ending  // on record, oldest first
}

// Status is State as the contract's tools know it.
func (s *Sandbox) Status() State {
	if s.State == Creating {
		return Running
	}
	return s.State
}

// resident reports whether s has memory of its machine.
func (s *Sandbox) Resident() bool {
	return s.State == Creating || s.State == Running || s.State == Sleeping && s.Sleep == Frozen
}

// move changes the state, if that is a move of its life.
func (s *Sandbox) Move(to State, detail string) error {
	if !slices.Contains(moves[s.State], to) {
		return fault.New(fault.Conflict, "the sandbox %q is %s, so it cannot become %s", s.Name, s.State, to)
	}
	s.State, s.Sleep, s.Detail = to, "", detail
	return nil
}

// sleep is move for one that falls asleep, or deeper.
func (s *Sandbox) FallAsleep(how Sleep, detail string) error {
	if err := s.Move(Sleeping, detail); err != nil {
		return err
	}
	if s.Sleep = how; how != Stored {
		s.Stored = nil // it has run since, or is about to leave
	}
	return nil
}

// clone returns a copy whose maps are its own.
func (s *Sandbox) Clone() *Sandbox {
	c := *s
	c.Env, c.Mounts = maps.Clone(s.Env), slices.Clone(s.Mounts)
	if s.Stored != nil {
		kept := *s.Stored
		c.Stored = &kept
	}
	return &c
}

// Size holds the limits that a caller can choose for a sandbox. A zero field selects the
// environment's limit.
type Size struct {
	CPU    float64 // cores
	Memory int64   // bytes
	Disk   int64   // bytes of its files
}

// Spec is what a caller may say of a sandbox that is to be made. The zero value
// is the defaults.
type Spec struct {
	Image string // as requested; "" for the environment's
	// ImageAssumed says that the caller named no image. The sandbox gets the environment's image,
	// under the name in Image.
	ImageAssumed bool
	// ImageExact rejects an image whose version differs from Image. Callers that cannot show a
	// warning set it.
	ImageExact bool
	Size                         // at most the environment's limits
	SleepAfter time.Duration     // without use; 0 for the server's default, negative for never
	Timeout    time.Duration     // until it is destroyed; 0 for the longest that the plan allows
	Env        map[string]string // variables of its programs
	Network    *runtime.NetworkPolicy
	SubPaths   []storage.SubPath // what it wants to see of connections; all that it may if it says nothing of one

	Snapshot  SnapshotID // what it begins with; "" for nothing
	FilesOnly bool       // of the snapshot; what ran in it does not go on
}

// Default is the sandbox of a session that a call means which names none, and
// the session of a call that names none.
const Default = "default"

// MaxSession is the most characters of a session's name.
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

// CheckName says why a sandbox cannot have a name. One that looks like an id is
// none, since either can be used to find a sandbox.
func CheckName(name string) error {
	if runtime.ID(name).Valid() {
		return fault.New(fault.Invalid, "sandbox: %q is not found; it looks like an id, which only the server creates, so it cannot be the name of a new sandbox", name)
	}
	if !namePattern.MatchString(name) {
		return fault.New(fault.Invalid, "sandbox: %.80q is not a valid name; want 1 to 64 letters, digits, '_', '.' and '-', starting with a letter or digit, such as \"builder\"", name)
	}
	return nil
}

// CheckSession says why a session cannot have a name.
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
