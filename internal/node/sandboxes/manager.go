// Package sandboxes has the named sandboxes of one machine.
//
// A Manager finds them by their names, makes and wakes them, holds the limits of plans,
// and takes over what an earlier process left. How a sandbox is made is an Engine's
// business, where it is recorded Records', and what is done inside one its guest
// daemon's, to which a Handle leads.
package sandboxes

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/internal/node/contexts"
)

// Images finds images by what callers call them.
type Images interface {
	// Resolve returns the name in the image store of what was asked for; an Invalid
	// fault says how to import what is not there.
	Resolve(asked string) (string, error)
	// Provide is Resolve, and imports what is not there where the operator lets it.
	Provide(ctx context.Context, asked string) (string, error)
	// Named returns the name in the image store of an environment's image, which may be a
	// reference to one with packages; it waits for these, for a while.
	Named(ctx context.Context, image string) (string, error)
	// Warning warns that a stored image has another version than requested; "" if the versions
	// match. Exact rejects such an image unless the operator accepts it.
	Warning(asked, name string) string
	Exact(asked, name string) error
}

// Config is what a Manager is made of. All of it is required.
type Config struct {
	Records       sandbox.Records
	Ledger        sandbox.Ledger
	Snapshots     sandbox.SnapshotRecords
	Engine        Engine
	SnapshotFiles SnapshotFiles
	Images        Images
	Contexts      *contexts.Contexts
	Grants        sandbox.Grants
	Executor      string                  // name of this installation
	AdmitDisk     func() error            // refuses new sandboxes while the disk is full
	AdmitBytes    func(bytes int64) error // refuses a checkpoint of that size, likewise
	Rules         []string                // all redaction rules

	SleepAfter     time.Duration // how long a sandbox that sets no time of its own stays awake without use
	KeepFrozen     time.Duration // how long one that sleeps stays frozen in memory; negative for good
	CheckpointDisk int64         // bytes that checkpoints on disk may take together; 0 for no bound
	AuthTTL        time.Duration // how long cached authorization of a running sandbox is trusted
	DiskLimit      int64         // bytes of each sandbox's files; a plan's limit may be less; 0 for none
	MaxSandboxes   int           // sandboxes of this machine; 0 for no limit
	KeepOnDisk     time.Duration // how long one that sleeps stays on disk before the blob store has it; negative for good
	KeepUnused     time.Duration // how long a sleeping one is kept without use; 0 for ever
	KeepSnapshots  time.Duration // how long a snapshot that sets no time of its own is kept; 0 for ever
	Detach         bool          // Close leaves them for the next process

	Log     *slog.Logger
	Cleanup *cleanup.Queue // nil only logs what could not be removed
}

// Manager has the named sandboxes of one machine. Recover comes first, Close
// last; Run runs in between.
type Manager struct {
	cfg        Config
	redactors  redactorCache
	budgets    budgets
	background sync.WaitGroup // of what Run begins, and waits for
	// maintenanceSlots is held, by having sent, by goroutines that maintain a sandbox.
	maintenanceSlots chan struct{}
	// copySlots is held likewise, by those that have the host copy a folder.
	copySlots chan struct{}

	mu      sync.Mutex
	byID    map[runtime.ID]*entry // guarded by mu
	byName  map[address]*entry    // guarded by mu
	staged  map[runtime.ID]bool   // guarded by mu; copies on their way to the blob store
	uploads int                   // guarded by mu; sandboxes on their way to the blob store
	closed  bool                  // guarded by mu

	recovering int // guarded by mu; sandboxes of an earlier process that are still to be taken over
}

// address is the key by which a sandbox is found.
type address struct {
	tenant, environment, session, name string
}

// entry is a sandbox that the Manager has.
type entry struct {
	id runtime.ID
	// sem is the lock of a sandbox: it is held, by having sent, while the sandbox is made,
	// changed or ended. It is taken before Manager.mu.
	sem chan struct{}

	sb              *sandbox.Sandbox // guarded by Manager.mu, replaced and never changed
	live            Live             // guarded by Manager.mu; nil unless it is resident
	users           int              // guarded by Manager.mu; open Handles
	usedAt          time.Time        // guarded by Manager.mu
	removed         bool             // guarded by Manager.mu; it was removed and is not found any more
	recovering      bool             // guarded by Manager.mu; it is still to be taken over from an earlier process, and locked
	uncharged       int64            // guarded by Manager.mu; carried out and not charged for
	exclusive       bool             // guarded by Manager.mu; a use may not begin without the lock
	checkpointBytes int64            // guarded by Manager.mu; bytes of its checkpoint on disk
	cannotSleep     bool             // guarded by Manager.mu; it could not be put to sleep; tried again after its next use

	opens       int       // guarded by Manager.mu; uses that ever began
	upload      *upload   // guarded by Manager.mu; nil unless it is on its way to the blob store
	uploadAfter time.Time // guarded by Manager.mu; not before

	filesShort bool      // guarded by Manager.mu; its file server has hardly any descriptor left
	renewedAt  time.Time // guarded by Manager.mu; when it got another file server

	watching   bool             // guarded by Manager.mu; a goroutine uses watch
	stops      int              // guarded by Manager.mu; how often all its programs were ended
	stopReason error            // guarded by Manager.mu; why they were last
	endings    []sandbox.Ending // guarded by Manager.mu; the last ones, oldest first

	authorization authorization // guarded by Manager.mu

	net      networkState
	outbound []string // guarded by sem; contacted and refused, and not recorded yet

	copying  hostCopies // guarded by Manager.mu
	diskUsed int64      // guarded by Manager.mu; bytes of its files when they were measured last, and of copies since; 0 before

	watch watch // used by the goroutine that set watching
}

// newEntry returns the entry of a sandbox that is not resident.
func newEntry(sb *sandbox.Sandbox) *entry {
	return &entry{id: sb.ID, sem: make(chan struct{}, 1), sb: sb, authorization: authorization{valid: tenant.NewAuthorization(nil)}}
}

// New returns a Manager.
func New(cfg Config) *Manager {
	return &Manager{
		cfg: cfg, maintenanceSlots: make(chan struct{}, maxMaintenance), copySlots: make(chan struct{}, maxCopies), byID: map[runtime.ID]*entry{}, byName: map[address]*entry{}, staged: map[runtime.ID]bool{},
	}
}

// lock waits for the lock of e.
func (e *entry) lock(ctx context.Context) error {
	select {
	case e.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Unavailable, context.Cause(ctx), "the sandbox is being changed by another call; retry in a few seconds")
	}
}

// tryLock locks e unless it is locked.
func (e *entry) tryLock() bool {
	select {
	case e.sem <- struct{}{}:
		return true
	default:
		return false
	}
}

func (e *entry) unlock() { <-e.sem }

// addressOf is where grant's sandbox of a name is.
func addressOf(grant *sandbox.Grant, session, name string) address {
	return address{grant.Tenant, grant.Environment, session, name}
}

func addressOfSandbox(s *sandbox.Sandbox) address {
	return address{s.Tenant, s.Environment, s.Session, s.Name}
}

// register makes e known. m.mu is held.
func (m *Manager) register(e *entry) {
	m.byID[e.sb.ID], m.byName[addressOfSandbox(e.sb)] = e, e
}

// unregister makes e unknown.
func (m *Manager) unregister(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.removed = true
	delete(m.byID, e.sb.ID)
	if m.byName[addressOfSandbox(e.sb)] == e {
		delete(m.byName, addressOfSandbox(e.sb))
	}
}

// find returns grant's sandbox, by its name in a session or by its id: then the
// session does not matter. Another's is as unknown as one that never was.
func (m *Manager) find(grant *sandbox.Grant, session, nameOrID string) (*entry, error) {
	if err := grant.Check(); err != nil {
		return nil, err
	}
	byID := runtime.ID(nameOrID).Valid()
	if !byID {
		if err := sandbox.CheckSession(session); err != nil {
			return nil, err
		}
		if err := sandbox.CheckName(nameOrID); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byName[addressOf(grant, session, nameOrID)]
	if byID {
		e = m.byID[runtime.ID(nameOrID)]
	}
	if e == nil || e.sb.Tenant != grant.Tenant || e.sb.Environment != grant.Environment {
		return nil, sandbox.Unknown(nameOrID)
	}
	return e, nil
}

// save saves what change makes of e's sandbox, and then lets it be seen. e is
// locked.
func (m *Manager) save(ctx context.Context, e *entry, change func(*sandbox.Sandbox) error) error {
	sb := m.current(e)
	if err := change(sb); err != nil {
		return err
	}
	if err := m.cfg.Records.Save(ctx, sb); err != nil {
		return err
	}
	m.publish(e, sb)
	return nil
}

// current is e's sandbox as of now, to be changed.
func (m *Manager) current(e *entry) *sandbox.Sandbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	sb := e.sb.Clone()
	if e.usedAt.After(sb.UsedAt) {
		sb.UsedAt = e.usedAt
	}
	return sb
}

// publish lets another version of e's sandbox be seen.
func (m *Manager) publish(e *entry, sb *sandbox.Sandbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.sb = sb
}
