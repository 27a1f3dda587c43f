package loop

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// delayed is a store whose first Append takes longer than the run may.
type delayed struct {
	run.Store
	once sync.Once
}

func (d *delayed) Append(ctx context.Context, id run.ID, l run.Lease, entries []run.Entry, left ...run.Trace) error {
	late := false
	d.once.Do(func() {
		<-ctx.Done()
		late = true
	})
	if late {
		return context.Cause(ctx)
	}
	return d.Store.Append(ctx, id, l, entries, left...)
}

// TestTooLongToRecord: the clock ends a run also while an answer is recorded, with what the
// answer cost. Its call is not made and not charged.
func TestTooLongToRecord(t *testing.T) {
	k := newKit(t, models{"m": script(adds)})
	q := request("1")
	q.Limits.Duration = 300 * time.Millisecond
	id, done := k.begin(t, k.loop(t, "a", &delayed{Store: k.store}), q)
	atolltest.Heard(t, done, "this process ends the run")
	s := k.state(t, id)
	if s.End == nil || s.End.Status != run.Incomplete || s.End.Reason != run.MaxDuration {
		t.Fatalf("it ends with %+v", s.End)
	}
	if n := k.adder.begun(); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	k.charged(t, s, 1, 0, 0)
	k.events(t, id)
}

// away is a store that once fails to record the end of a run.
type away struct {
	run.Store
	once sync.Once
}

func (a *away) Append(ctx context.Context, id run.ID, l run.Lease, entries []run.Entry, left ...run.Trace) (err error) {
	if entries[len(entries)-1].Ended != nil {
		a.once.Do(func() { err = errors.New("the database is away") })
	}
	if err != nil {
		return err
	}
	return a.Store.Append(ctx, id, l, entries, left...)
}

// TestTooLongWithoutADatabase: a run that took too long ends also where its end cannot be recorded
// at first, while the process drives others.
func TestTooLongWithoutADatabase(t *testing.T) {
	k := newKit(t, models{"m": script(adds)})
	k.adder.hang = make(chan struct{})
	l := k.loop(t, "a", &away{Store: k.store})
	other, _ := k.begin(t, l, request("1"))
	q := request("1")
	q.Limits.Duration = 300 * time.Millisecond
	id, _ := k.begin(t, l, q)
	if s := k.ended(t, id); s.End.Status != run.Incomplete || s.End.Reason != run.MaxDuration {
		t.Errorf("it ends with %+v", s.End)
	}
	if err := l.Cancel(t.Context(), owner, other); err != nil {
		t.Fatal(err)
	}
	k.ended(t, other)
}

// TestSerialCallsAfterACut are not made, and not charged.
func TestSerialCallsAfterACut(t *testing.T) {
	k := newKit(t, models{"m": script(func(model.Request) ([]model.Delta, error) { return ask("add", "1", "add", "2", "add", "3"), nil })})
	k.adder.hang = make(chan struct{})
	l := k.loop(t, "a", k.store)
	q := request("1")
	q.Tools[0].Serial = true
	id, done := k.begin(t, l, q)
	atolltest.Until(t, 30*time.Second, "a call is in progress", func() bool { return k.adder.begun() > 0 })
	if err := l.Cancel(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}
	atolltest.Heard(t, done, "the run ends")
	k.charged(t, k.state(t, id), 1, 1, 1)
}

// apart is a handler of which a run's second call ends well after the first one was cut short.
type apart struct{ adder }

func (a *apart) Do(ctx context.Context, c *Call) (*Outcome, error) {
	a.mu.Lock()
	a.calls[string(c.Run.ID)+c.Call.ID]++
	a.mu.Unlock()
	<-ctx.Done()
	if c.Number == 1 {
		return &Outcome{Windows: 1}, context.Cause(ctx)
	}
	time.Sleep(100 * time.Millisecond) // the first one's end is heard of
	it := *c.Item
	it.Status = run.ItemCompleted
	return &Outcome{Result: result(c.Call.ID, "done all the same", false), Item: &it, Windows: 2}, nil
}

// TestEndsWellBesideACut: a call that ends well when its run is cancelled is on record with its
// outcome and what it cost, whatever becomes of the calls beside it.
func TestEndsWellBesideACut(t *testing.T) {
	k := newKit(t, models{"m": script(func(model.Request) ([]model.Delta, error) { return ask("add", "1", "add", "2"), nil })})
	a := &apart{adder{calls: map[string]int{}}}
	l := k.loop(t, "a", k.store)
	l.cfg.Handlers = map[string]Handler{"add": a}
	id, done := k.begin(t, l, request("1"))
	atolltest.Until(t, 30*time.Second, "both calls are in progress", func() bool { return a.begun() == 2 })
	if err := l.Cancel(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}
	atolltest.Heard(t, done, "the run ends")
	s := k.state(t, id)
	if s.End == nil || s.End.Status != run.Cancelled {
		t.Fatalf("got %+v", s.End)
	}
	if one, other := s.Output[0], s.Output[1]; one.Status != run.ItemIncomplete || other.Status != run.ItemCompleted {
		t.Errorf("%s: %s", text(s), show(s.Output))
	}
	k.charged(t, s, 1, 2, 3)
	k.events(t, id)
}

// early are events after the first of which the context of those that follow has ended.
type early struct {
	Events
	stop func()
	once sync.Once
}

func (e *early) Publish(ctx context.Context, r *run.Run, events []run.Event) error {
	for i := range events {
		if events[i].Began != nil {
			defer e.once.Do(e.stop)
		}
	}
	return e.Events.Publish(ctx, r, events)
}

// TestReadersSeeWhatIsShown: what a cancelled run shows of an answer is what readers were told.
func TestReadersSeeWhatIsShown(t *testing.T) {
	k := newKit(t, models{"m": script(func(model.Request) ([]model.Delta, error) { return say("one two three four"), nil })})
	l := k.loop(t, "a", k.store)
	id := run.NewID()
	l.cfg.Events = &early{Events: k.bus.RunEvents(storetest.Box(t)), stop: func() { l.Cancelled(id) }}
	done, err := l.Begin(t.Context(), &run.Run{ID: id, Tenant: owner}, request("1"), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	atolltest.Heard(t, done, "the run ends")
	told := ""
	for _, e := range k.events(t, id) {
		if e.Delta != nil {
			told += e.Delta.Text
		}
	}
	shown := ""
	for _, p := range k.state(t, id).Output[0].Message.Parts {
		shown += p.Text
	}
	if shown != told {
		t.Errorf("it shows %q, and readers were told %q", shown, told)
	}
}
