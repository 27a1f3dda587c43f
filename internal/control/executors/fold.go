package executors

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Events applies the events of executors to the records.
type Events struct {
	Store  sandbox.EventStore
	Prices usage.Prices
	Log    *slog.Logger
}

// clockAhead limits how far the clock of an executor may be ahead of the gateway's. Charges for a
// later time are rejected.
const clockAhead = 24 * time.Hour

// Fold applies an encoded sandbox.Event with its number. Repeating it has no effect. It returns an
// Invalid, Forbidden or NotFound fault for an event that no retry can apply: it cannot be decoded, or
// its sandbox belongs to another executor or has no record.
func (f *Events) Fold(ctx context.Context, executor string, seq uint64, event []byte) error {
	if seq == 0 || seq > math.MaxInt64 {
		return fault.New(fault.Invalid, "the number %d of an event is out of bounds", seq)
	}
	e, err := sandbox.DecodeEvent(event)
	if err != nil {
		return err
	}
	before, err := f.Store.Fold(ctx, executor, seq, e, func(s *sandbox.Sandbox) (sandbox.Effect, error) { return f.effect(s, e) })
	if k := fault.KindOf(err); err != nil && k != fault.Invalid && k != fault.Forbidden && k != fault.NotFound {
		return err // not applied yet
	}
	f.report(ctx, executor, seq, e.Journal, before)
	return err
}

// report logs that events are missing.
func (f *Events) report(ctx context.Context, executor string, seq uint64, journal string, before sandbox.Mark) {
	switch {
	case before.Journal == "":
	case before.Journal != journal:
		f.Log.WarnContext(ctx, "an executor began a new journal; use that its former journal had not reported is not charged",
			"executor", executor, "last_event", before.Seq, "event", seq)
	case seq > before.Seq+1:
		f.Log.ErrorContext(ctx, "events of an executor are missing, so their charges and changes are lost; check whether NATS lost data",
			"executor", executor, "first", before.Seq+1, "last", seq-1)
	}
}

// effect returns the changes of an event. s is the record.
func (f *Events) effect(s *sandbox.Sandbox, e *sandbox.Event) (out sandbox.Effect, err error) {
	switch {
	case e.Save != nil:
		if out.Save, err = reported(e.Save); err == nil {
			out.Save.ID = e.Sandbox
		}
	case e.Endings != nil:
		for _, ending := range e.Endings {
			ending.Reason, ending.Dimension = short(ending.Reason), short(ending.Dimension)
			out.Endings = append(out.Endings, ending)
		}
	case e.Charge != nil:
		out.Entry, err = f.entry(s, e.Charge)
	case e.Contact != nil:
		from, until := *s, past(e.Contact.Until)
		from.MeteredAt = latest(s.CreatedAt, e.Contact.From)
		out.Row = new(sandboxes.ContactRow(&from, latest(from.MeteredAt, until), e.Contact.Hosts))
	default:
		out.Discard = e.Discard
	}
	return out, err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// entry returns the entry of a charge, without the time that is charged already.
func (f *Events) entry(s *sandbox.Sandbox, c *sandbox.Charge) (usage.Entry, error) {
	if c.Until.After(time.Now().Add(clockAhead)) {
		return usage.Entry{}, fault.New(fault.Invalid, "an executor charges for a time in the future; set its clock")
	}
	charged := *s
	if c.From.After(s.MeteredAt) {
		charged.MeteredAt = c.From
	}
	if !c.Until.After(charged.MeteredAt) {
		return usage.Entry{}, nil
	}
	charged.Limits.CPU, charged.Limits.Memory = c.CPU, c.Memory
	return sandboxes.Entry(f.Prices, &charged, c.Until, c.BytesOut), nil
}

// FoldRecord applies a record that a command returned, before its events arrive, so that the
// caller's next request sees it. It changes nothing if a newer version is recorded. It returns a
// Forbidden fault for a sandbox of another executor, and a NotFound fault for an unknown one.
func (f *Events) FoldRecord(ctx context.Context, executor string, s *sandbox.Sandbox) error {
	saved, err := reported(s)
	if err != nil {
		return err
	}
	return f.Store.SaveNewer(ctx, executor, saved)
}
