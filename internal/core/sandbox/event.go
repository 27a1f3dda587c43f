package sandbox

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// MaxEvent limits an encoded Event, in bytes.
const MaxEvent = 512 << 10

// Event is a change of one sandbox that an executor reports to gateways. Exactly one of Save,
// Endings, Charge, Contact and Discard is set.
type Event struct {
	// Journal identifies the journal that numbers the event. Numbers of one journal have no gaps. An
	// executor that loses its journal begins another one.
	Journal string
	Sandbox runtime.ID

	Save    *Sandbox // fields that CopySaved copies; the others are zero
	Endings []Ending // see Store.SaveEndings
	Charge  *Charge
	Contact *Contact
	Discard bool // the creation failed: delete the record if it is still in the state Creating
}

// Charge is the use of a resident sandbox in a time.
type Charge struct {
	From, Until time.Time
	CPU         float64 // cores
	Memory      int64   // bytes
	BytesOut    int64   // bytes to the network
}

// Contact lists the hosts that a sandbox contacted in a time, or that its network policy refused.
type Contact struct {
	From, Until time.Time
	Hosts       []string
}

// Bounds of the values that executors report. The database can store all values within them, and add
// up the sizes of a tenant's sandboxes.
const (
	maxEventEndings = 64
	maxEventHosts   = 4096
	maxHostLength   = 1024
	maxCores        = 100_000
	// MaxBytes is the largest size of memory, files or traffic.
	MaxBytes = 1 << 50
	// MaxRevision is the largest Revision that a record can have.
	MaxRevision = 1 << 62
)

// Times outside these bounds have no equivalent in the database, or are those of a broken clock.
var (
	firstTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Check returns an Invalid fault unless e is an event that an executor may send. Its sender may have
// been taken over, so every value is checked.
func (e *Event) Check() error {
	if !tokenPattern.MatchString(e.Journal) {
		return badReport("its journal has no valid id")
	}
	if !e.Sandbox.Valid() {
		return badReport("its sandbox has no valid id")
	}
	kinds := 0
	for _, set := range []bool{e.Save != nil, e.Endings != nil, e.Charge != nil, e.Contact != nil, e.Discard} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		return badReport("want one change")
	}
	switch {
	case e.Save != nil:
		return e.Save.CheckSaved()
	case e.Endings != nil:
		return checkEndings(e.Endings)
	case e.Charge != nil:
		return e.Charge.check()
	case e.Contact != nil:
		return e.Contact.check()
	}
	return nil
}

// EventStore applies events of executors to the records.
type EventStore interface {
	// Fold applies an event once: it calls effect with the record and applies the result, in one
	// transaction that also advances the executor's Mark to the event's number. An event of the same
	// journal that the Mark has passed changes nothing.
	//
	// The record that effect gets has only the fields that never change, State, MeteredAt and
	// Revision. effect may run several times. Fold returns its error, and has advanced the Mark even
	// so. It returns a Forbidden fault for a sandbox of another executor and a NotFound fault for an
	// unknown sandbox.
	Fold(ctx context.Context, executor string, seq uint64, e *Event, effect func(s *Sandbox) (Effect, error)) (before Mark, err error)
	// SaveNewer is Save for a record that Replaces the recorded one; another one changes nothing. It
	// returns a Forbidden fault for a sandbox of another executor.
	SaveNewer(ctx context.Context, executor string, s *Sandbox) error
}

// Mark is the last event of an executor that was applied. It is zero before the first event.
type Mark struct {
	Journal string
	Seq     uint64
}

// Passed reports whether the event seq of a journal was applied before.
func (m Mark) Passed(journal string, seq uint64) bool { return m.Journal == journal && seq <= m.Seq }

// Effect is how an event changes the records.
type Effect struct {
	Save    *Sandbox    // saved if it Replaces the record; nil for no change
	Endings []Ending    // replace those of a sandbox that is not destroyed; nil for no change
	Entry   usage.Entry // added to the ledger; its time becomes MeteredAt. Without a TraceID: none
	Row     *audit.Row  // added to the audit trail; nil for none
	Discard bool        // deletes a record in the state Creating
}

// CheckSaved returns an Invalid fault if a field that CopySaved copies has a value that no record has.
func (s *Sandbox) CheckSaved() error {
	if _, known := moves[s.State]; !known && s.State != Destroyed {
		return badReport("its state is unknown")
	}
	switch s.Sleep {
	case Frozen, OnDisk, Stored:
		if s.State != Sleeping {
			return badReport("a sandbox sleeps that is not in the state sleeping")
		}
	case "":
		if s.State == Sleeping {
			return badReport("it does not say how a sandbox sleeps")
		}
	default:
		return badReport("its kind of sleep is unknown")
	}
	if s.Revision < 1 || s.Revision > MaxRevision {
		return badReport("its revision is out of bounds")
	}
	if err := CheckLimits(s.Limits, s.Disk); err != nil {
		return err
	}
	if !plausible(s.UsedAt) || s.ExpiresAt != nil && !plausible(*s.ExpiresAt) {
		return badReport("one of its times is out of bounds")
	}
	if s.Sleep == Stored && s.Stored == nil {
		return badReport("it does not name the copy of a sandbox in the blob store")
	}
	if s.Stored != nil {
		return s.Stored.Check()
	}
	return nil
}

// CheckLimits returns an Invalid fault for limits that no machine has. disk is in bytes.
func CheckLimits(l runtime.Limits, disk int64) error {
	if !(l.CPU >= 0 && l.CPU <= maxCores) { // not for NaN
		return badReport("its limits are out of bounds")
	}
	for _, n := range []int64{l.Memory, int64(l.Processes), int64(l.OpenFiles), l.Root, l.Tmp, l.Shm, int64(l.Inodes), disk} {
		if n < 0 || n > MaxBytes {
			return badReport("its limits are out of bounds")
		}
	}
	return nil
}

// Check returns an Invalid fault unless c has the name of an object of its tenant and possible sizes.
func (c *StoredCopy) Check() error {
	if !tokenPattern.MatchString(c.State) || c.Bytes < 0 || c.Disk < 0 || c.Bytes > MaxBytes || c.Disk > MaxBytes {
		return badReport("its copy in the blob store is not valid")
	}
	return nil
}

// Replaces reports whether s, which an executor sent, replaces the version in the records: a newer
// one does, unless the sandbox is destroyed. A created sandbox that would be Creating again is an
// Invalid fault, because Discard would then delete its record.
func (s *Sandbox) Replaces(recorded *Sandbox) (bool, error) {
	switch {
	case s.Revision <= recorded.Revision, recorded.State == Destroyed:
		return false, nil
	case s.State == Creating && recorded.State != Creating:
		return false, badReport("a created sandbox is being created again")
	}
	return true, nil
}

func checkEndings(endings []Ending) error {
	if len(endings) == 0 || len(endings) > maxEventEndings {
		return badReport("its number of endings is out of bounds")
	}
	for _, e := range endings {
		if !plausible(e.From) || !e.Until.IsZero() && !plausible(e.Until) {
			return badReport("one of its times is out of bounds")
		}
	}
	return nil
}

func (c *Charge) check() error {
	switch {
	case !plausible(c.From), !plausible(c.Until), !c.Until.After(c.From):
		return badReport("its time is out of bounds")
	case !(c.CPU >= 0 && c.CPU <= maxCores), c.Memory < 0, c.Memory > MaxBytes, c.BytesOut < 0, c.BytesOut > MaxBytes:
		return badReport("its use is out of bounds")
	}
	return nil
}

func (c *Contact) check() error {
	if !plausible(c.From) || !plausible(c.Until) || c.Until.Before(c.From) {
		return badReport("its time is out of bounds")
	}
	if len(c.Hosts) == 0 || len(c.Hosts) > maxEventHosts {
		return badReport("its number of hosts is out of bounds")
	}
	for _, host := range c.Hosts {
		if len(host) > maxHostLength {
			return badReport("the name of a host is too long")
		}
	}
	return nil
}

func plausible(t time.Time) bool { return t.After(firstTime) && t.Before(lastTime) }

func badReport(why string) error {
	return fault.New(fault.Invalid, "an executor sent an invalid report: %s; run the same version on all servers", why)
}
