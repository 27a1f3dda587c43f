// Package records keeps the records of a machine's named sandboxes without a database.
//
// A Journal has the current record of each sandbox in a file, with the events that gateways have not
// got yet. A change is one write to the file; gateways learn of it by an event on the bus. Creating
// and waking a sandbox need a gateway, because they count against quotas.
package records

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Publisher sends events to gateways.
type Publisher interface {
	// Publish returns nil once the bus stores an event. Repeating an event is harmless.
	Publish(ctx context.Context, seq uint64, event []byte) error
}

// Records are the gateways' records of this executor's sandboxes. The methods match those of
// sandbox.Records that need a gateway's answer.
type Records interface {
	Create(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) (there *sandbox.Sandbox, err error)
	Wake(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) error
	Delete(ctx context.Context, id runtime.ID) error
	CheckBudget(ctx context.Context, tenantID tenant.ID) error
	Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*sandbox.Sandbox, error)
	ListByExecutor(ctx context.Context, executor string) ([]*sandbox.Sandbox, error)
	ListWithoutEnvironment(ctx context.Context, executor string) ([]runtime.ID, error)
}

// Config describes a Journal. Fields without a default are required.
type Config struct {
	Dir       string // folder that outlives the machine's restart; created with mode 0700
	Executor  string // id of this executor
	Records   Records
	Publisher Publisher
	MaxBytes  int64 // of events that were not sent; 0 for 64 MiB
	MaxEvents int   // events that were not sent; 0 for 100,000
	Log       *slog.Logger
}

// Journal implements sandbox.Records and sandbox.Ledger. Run sends its events; Close comes last.
type Journal struct {
	cfg  Config
	file file

	mu      sync.Mutex // guards the rest; taken before file.mu
	id      string     // of the journal, see sandbox.Event
	next    uint64     // number of the next event
	adopt   bool       // the journal may lack records that gateways have
	records map[runtime.ID]*entry
	pending []*pending // oldest first
	bytes   int64      // of pending
	live    int64      // bytes of the file when it was compacted
	freed   map[tenant.ID]time.Time
	ended   []*sandbox.Sandbox // destroyed lately, oldest first

	changed chan struct{}   // signals the sender
	sending sync.Mutex      // held by the sender
	closing context.Context // ends with Close
	close   context.CancelFunc
}

var (
	_ sandbox.Records = (*Journal)(nil)
	_ sandbox.Ledger  = (*Journal)(nil)
)

// entry is the record of a sandbox.
type entry struct {
	sb *sandbox.Sandbox // replaced and never changed
	// asked says that a gateway may have recorded that the sandbox wakes, in sb.Revision.
	asked bool
	last  *pending // its last event; nil if all were sent
}

// pending is an event that the bus does not store yet.
type pending struct {
	seq     uint64
	sandbox runtime.ID
	replace string // events of the same kind replace one another; "" for none
	ends    bool   // the sandbox is destroyed
	data    []byte
	at      int64 // see file.sync
	begun   time.Time
	tried   bool // the bus may store it already, so that it cannot be replaced
}

const (
	defaultBytes  = 64 << 20
	defaultEvents = 100_000
	// adoptedBy is added to the revisions of records that are taken from a gateway, because events of
	// a lost journal may still be on their way.
	adoptedBy = 1 << 32
	maxEnded  = 256
)

// Open opens the journal in a folder, and begins one if the folder has none. It logs an error for
// each kind of damage, and keeps every readable record.
func Open(cfg Config) (*Journal, error) {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultBytes
	}
	if cfg.MaxEvents == 0 {
		cfg.MaxEvents = defaultEvents
	}
	j := &Journal{cfg: cfg, records: map[runtime.ID]*entry{}, freed: map[tenant.ID]time.Time{}, changed: make(chan struct{}, 1)}
	j.file.dir = cfg.Dir
	j.closing, j.close = context.WithCancel(context.Background())
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := j.load(); err != nil {
		return nil, err
	}
	if err := j.compact(); err != nil {
		return nil, err
	}
	j.correctAsked()
	return j, nil
}

// Status describes the events that the bus does not store yet.
type Status struct {
	Events int
	Bytes  int64
	Oldest time.Time // when the oldest event happened, or when the journal was opened; zero for none
	Err    error     // why the journal cannot be written; nil if it can
}

// Status returns the state of the journal, for readiness and metrics.
func (j *Journal) Status() Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Status{Events: len(j.pending), Bytes: j.bytes}
	if len(j.pending) > 0 {
		s.Oldest = j.pending[0].begun
	}
	j.file.mu.Lock()
	defer j.file.mu.Unlock()
	s.Err = j.file.failed
	return s
}

// Record returns the record of a sandbox, also of one that was destroyed a short time ago. A command
// that changed a sandbox returns it to its gateway.
func (j *Journal) Record(id runtime.ID) (*sandbox.Sandbox, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.records[id]; e != nil {
		return e.sb.Clone(), true
	}
	for _, sb := range j.ended {
		if sb.ID == id {
			return sb.Clone(), true
		}
	}
	return nil, false
}

// room returns an Unavailable fault if an event of n bytes exceeds the journal's limits. Changes of
// records, which callers wait for, may use the last quarter. mu is held.
func (j *Journal) room(n int, change bool) error {
	bytes, events := j.cfg.MaxBytes, j.cfg.MaxEvents
	if !change {
		bytes, events = bytes/4*3, events/4*3
	}
	if j.bytes+int64(n) <= bytes && len(j.pending) < events {
		return nil
	}
	return fault.New(fault.Unavailable, "gateways have not received the last %d changes of this executor's sandboxes, so it accepts no more; retry when the message bus is back", len(j.pending))
}

// report writes an event and returns its place in the file. An event that replaces the sandbox's last
// one keeps its number. mu is held.
func (j *Journal) report(id runtime.ID, e *sandbox.Event, replace string, change bool) (at int64, err error) {
	e.Journal, e.Sandbox = j.id, id
	data, err := e.Encode()
	if err != nil {
		return 0, err
	}
	var last *pending
	if of := j.records[id]; of != nil {
		last = of.last
	}
	if last != nil && !last.tried && replace != "" && last.replace == replace {
		if at, err = j.file.write(frame{event, last.seq, data}); err != nil {
			return 0, err
		}
		j.bytes += int64(len(data) - len(last.data))
		last.data, last.at, last.ends = data, at, destroys(e)
		return at, nil
	}
	if err := j.room(len(data), change); err != nil {
		return 0, err
	}
	if at, err = j.file.write(frame{event, j.next, data}); err != nil {
		return 0, err
	}
	j.push(&pending{seq: j.next, sandbox: id, replace: replace, ends: destroys(e), data: data, at: at, begun: time.Now()})
	return at, nil
}

// push adds the event with the next number. mu is held.
func (j *Journal) push(p *pending) {
	j.pending = append(j.pending, p)
	j.bytes += int64(len(p.data))
	j.next = p.seq + 1
	if e := j.records[p.sandbox]; e != nil {
		e.last = p
	}
}

func destroys(e *sandbox.Event) bool { return e.Save != nil && e.Save.State == sandbox.Destroyed }

// settle waits until the file is on disk up to at, and then wakes the sender.
func (j *Journal) settle(at int64) error {
	if err := j.file.sync(at); err != nil {
		return err
	}
	select {
	case j.changed <- struct{}{}:
	default:
	}
	return nil
}

// compact rewrites the file without outdated entries.
func (j *Journal) compact() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	frames, err := j.frames()
	if err != nil {
		return err
	}
	if err := j.file.replace(frames); err != nil {
		return err
	}
	j.live = j.file.length()
	return nil
}

// compactIfDue compacts a file of which more than half is outdated.
func (j *Journal) compactIfDue() {
	j.mu.Lock()
	due := j.file.length() > 2*j.live+compactAt
	j.mu.Unlock()
	if !due {
		return
	}
	if err := j.compact(); err != nil {
		j.cfg.Log.Error("cannot compact the journal of sandboxes; its file grows until this succeeds", "folder", j.cfg.Dir, "error", err)
	}
}

const compactAt = 1 << 20
