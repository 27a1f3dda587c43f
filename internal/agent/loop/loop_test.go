package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

const owner tenant.ID = "ten_0123456789abcdef"

// script is a model whose answers follow from the conversation.
type script func(q model.Request) ([]model.Delta, error)

func (s script) Generate(ctx context.Context, q model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		deltas, err := s(q)
		for _, d := range deltas {
			if ctx.Err() != nil {
				yield(model.Delta{}, context.Cause(ctx))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		if errors.Is(err, errHang) {
			<-ctx.Done()
			err = context.Cause(ctx)
		}
		if err != nil {
			yield(model.Delta{}, err)
		}
	}
}

// errHang is a model that says no more.
var errHang = errors.New("hang")

type models map[string]model.Model

func (m models) Use(_ context.Context, _ tenant.ID, name string) (model.Model, *model.Record, error) {
	if m[name] == nil {
		return nil, nil, fault.New(fault.NotFound, "no model %q", name)
	}
	spec := model.Spec{Capabilities: model.Capabilities, Prices: model.Prices{Input: 1, Output: 2}}
	return model.Guard(m[name], spec, model.DefaultBounds), &model.Record{Name: name, Spec: spec}, nil
}

// say is an answer that ends a run.
func say(text string) []model.Delta {
	var out []model.Delta
	for word := range strings.SplitAfterSeq(text, " ") {
		out = append(out, model.Delta{Kind: model.Said, Text: word})
	}
	return append(out, model.Delta{Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}, model.Delta{Kind: model.Stopped, Stop: model.StopEnd})
}

// ask is an answer that calls tools: pairs of name and arguments.
func ask(calls ...string) []model.Delta {
	var out []model.Delta
	for i := 0; i < len(calls); i += 2 {
		c := model.Call{ID: fmt.Sprintf("call_%d", i/2), Name: calls[i], Arguments: calls[i+1]}
		out = append(out, model.Delta{Kind: model.CallBegun, Index: i, Call: c},
			model.Delta{Kind: model.CallArguments, Index: i, Text: c.Arguments}, model.Delta{Kind: model.CallEnded, Index: i, Call: c})
	}
	return append(out, model.Delta{Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}, model.Delta{Kind: model.Stopped, Stop: model.StopToolCalls})
}

// adder is a handler that counts what it does.
type adder struct {
	mu    sync.Mutex
	calls map[string]int // by run and call
	hang  chan struct{}  // not nil: a call waits for it
}

func (a *adder) Show(c *Call) (*run.Item, error) {
	return &run.Item{Status: run.ItemInProgress, Code: &run.CodeRun{CallID: c.Call.ID, Language: "python", Code: c.Call.Arguments}}, nil
}

// begun is how many calls have begun.
func (a *adder) begun() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.calls)
}

func (a *adder) Do(ctx context.Context, c *Call) (*Outcome, error) {
	a.mu.Lock()
	key := fmt.Sprint(c.Run.ID, c.Number)
	if c.Begun && a.calls[key] == 0 {
		a.mu.Unlock()
		return nil, ErrUnknown
	}
	if !c.Begun {
		a.calls[key]++
	}
	a.mu.Unlock()
	if a.hang != nil {
		select {
		case <-a.hang:
		case <-ctx.Done():
			return &Outcome{Windows: 1}, context.Cause(ctx)
		}
	}
	it := *c.Item
	it.Status = run.ItemCompleted
	out := &Outcome{Result: result(c.Call.ID, "done "+c.Call.Arguments, false), Item: &it}
	if c.Number == 1 {
		out.Windows = 1
	}
	return out, nil
}

func openBus(t testing.TB) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Config{Name: "test", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

type kit struct {
	db     *store.DB
	store  run.Store
	bus    *bus.Bus
	models models
	adder  *adder
}

func newKit(t testing.TB, m models) *kit {
	db := storetest.SQLite(t)
	return &kit{db: db, store: db.Runs(), bus: openBus(t), models: m, adder: &adder{calls: map[string]int{}}}
}

func (k *kit) loop(t *testing.T, holder string, store run.Store) *Loop {
	t.Helper()
	l := New(Config{Store: store, Models: k.models, Handlers: map[string]Handler{"add": k.adder}, Events: k.bus.RunEvents(storetest.Box(t)), Log: slog.New(slog.DiscardHandler), Holder: holder, Prices: prices, Budget: usage.NewBudget(k.db.Usage().CheckCost)})
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	return l
}

var addTool = run.Tool{Tool: model.Tool{Name: "add"}, Handler: "add"}

func request(text string) *run.Request {
	return &run.Request{Models: []string{"m"}, Input: []model.Item{model.Text(model.User, text)}, Tools: []run.Tool{addTool}, Parallel: true, Publish: true}
}

func (k *kit) begin(t *testing.T, l *Loop, q *run.Request) (run.ID, <-chan struct{}) {
	t.Helper()
	r := &run.Run{ID: run.NewID(), Tenant: owner}
	done, err := l.Begin(t.Context(), r, q, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.ID, done
}

func (k *kit) state(t *testing.T, id run.ID) *run.State {
	t.Helper()
	entries, err := k.store.Log(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	s := run.NewState(id)
	for i := range entries {
		if err := s.Apply(&entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// ended waits for a run to end.
func (k *kit) ended(t *testing.T, id run.ID) *run.State {
	t.Helper()
	atolltest.Until(t, 30*time.Second, "the run has ended", func() bool {
		r, err := k.store.Run(t.Context(), owner, id)
		if err != nil {
			t.Fatal(err)
		}
		return r.Status.Final()
	})
	return k.state(t, id)
}

// events reads the events of a run that has ended.
func (k *kit) events(t *testing.T, id run.ID) []run.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var all []run.Event
	l := New(Config{Store: k.store, Events: k.bus.RunEvents(storetest.Box(t))})
	if err := l.Follow(ctx, owner, id, func(events []run.Event) error {
		all = append(all, events...)
		return nil
	}); err != nil {
		t.Fatalf("%v after %d events", err, len(all))
	}
	return all
}

// text is what the output says, an item a line.
func text(s *run.State) string {
	var out []string
	for _, it := range s.Output {
		switch {
		case it.Message != nil:
			out = append(out, fmt.Sprintf("%s message %s", it.Status, it.Message.Parts[0].Text))
		case it.Call != nil:
			out = append(out, fmt.Sprintf("%s call %s(%s)", it.Status, it.Call.Name, it.Call.Arguments))
		case it.Code != nil:
			out = append(out, fmt.Sprintf("%s code %s", it.Status, it.Code.Code))
		}
	}
	return strings.Join(out, "\n")
}

// adds has the model call add for each number of the question, and then say so.
func adds(q model.Request) ([]model.Delta, error) {
	results := 0
	for _, it := range q.Items {
		if it.Result != nil {
			results++
		}
	}
	if want := len(strings.Fields(q.Items[0].Message.Parts[0].Text)); results < want {
		return ask("add", fmt.Sprint(results)), nil
	}
	return say("I have added"), nil
}

func TestRun(t *testing.T) {
	k := newKit(t, models{"m": script(adds)})
	l := k.loop(t, "a", k.store)
	id, done := k.begin(t, l, request("1 2"))
	<-done
	s := k.state(t, id)
	if want := "completed code 0\ncompleted code 1\ncompleted message I have added"; text(s) != want || s.End == nil || s.End.Status != run.Completed {
		t.Errorf("%s\n%+v\nwant %s", text(s), s.End, want)
	}
	if s.Steps != 3 || s.Calls != 2 || s.Usage.Input != 30 || s.Cost.Total != 60 {
		t.Errorf("%d steps, %d calls, %+v, %+v", s.Steps, s.Calls, s.Usage, s.Cost)
	}
	var p run.Published
	for i, e := range k.events(t, id) {
		if !p.Apply(&e) {
			t.Errorf("event %d %+v cannot follow those before it", i, e)
		}
	}
	if missing := p.Missing(s); len(missing) != 0 {
		t.Errorf("readers were not told of %+v", missing)
	}
}

// TestSlowReader: one who reads a run that has ended, more slowly than silence is taken for the end,
// is told all of it as others are.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	long := say(strings.Repeat(strings.Repeat("x", 100<<10)+" ", 40)) // more than is read at once
	k := newKit(t, models{"m": script(func(model.Request) ([]model.Delta, error) { return long, nil })})
	l := k.loop(t, "a", k.store)
	id, done := k.begin(t, l, request("1"))
	<-done
	var slow []run.Event
	if err := l.Follow(t.Context(), owner, id, func(events []run.Event) error {
		if len(slow) == 0 {
			<-time.After(7 * lookEvery / 2)
		}
		slow = append(slow, events...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if all := k.events(t, id); !reflect.DeepEqual(slow, all) {
		t.Errorf("a slow reader was told %d events, and another one %d", len(slow), len(all))
	}
}

// dying is a store of a process that dies before or after it has recorded something for
// the nth time.
type dying struct {
	run.Store
	mu    sync.Mutex
	left  int
	after bool
	dead  chan struct{}
}

var errDead = errors.New("this process is dead")

func (d *dying) Append(ctx context.Context, id run.ID, l run.Lease, entries []run.Entry, left ...run.Trace) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left < 0 {
		return errDead
	}
	d.left--
	if d.left >= 0 {
		return d.Store.Append(ctx, id, l, entries, left...)
	}
	if d.after {
		if err := d.Store.Append(ctx, id, l, entries, left...); err != nil {
			return err
		}
	}
	close(d.dead)
	return errDead
}

func (d *dying) Release(context.Context, run.ID, run.Lease, time.Time) error { return errDead }
func (d *dying) Renew(context.Context, string) error                         { return errDead }
func (d *dying) Claim(context.Context, string, int) ([]run.Due, time.Time, error) {
	return nil, time.Time{}, nil
}

// TestDeath: whichever record is the last that a process makes, another one brings the
// run to its end, no call is made twice, and readers see one sequence.
func TestDeath(t *testing.T) {
	for n := range 8 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("record %d, after %t", n, after), func(t *testing.T) {
				k := newKit(t, models{"m": script(adds)})
				store := &dying{Store: k.store, left: n, after: after, dead: make(chan struct{})}
				id, done := k.begin(t, k.loop(t, "a", store), request("1 2 3"))
				<-done
				select {
				case <-store.dead:
				default:
					if n < 4 {
						t.Fatalf("the run ended after fewer than %d records", n)
					}
				}
				// A process of the same name starts again.
				k.loop(t, "a", k.store)
				s := k.ended(t, id)
				seen := regexp.MustCompile("(?m)^incomplete message.*\n").ReplaceAllString(text(s), "")
				if after {
					// The call was on record and not made: nothing but its maker could know.
					seen = strings.Replace(seen, "failed", "completed", 1)
				}
				if s.End.Status != run.Completed || seen != "completed code 0\ncompleted code 1\ncompleted code 2\ncompleted message I have added" {
					t.Errorf("%+v\n%s", s.End, text(s))
				}
				for call, times := range k.adder.calls {
					if times != 1 {
						t.Errorf("call %s was made %d times", call, times)
					}
				}
				var p run.Published
				for i, e := range k.events(t, id) {
					if !p.Apply(&e) {
						t.Errorf("event %d %s cannot follow those before it", i, show(e))
					}
				}
				if missing := p.Missing(s); len(missing) != 0 {
					t.Errorf("readers were not told of %s", show(missing))
				}
				if s.Windows != 1 && !after {
					t.Errorf("%d windows", s.Windows)
				}
				k.charged(t, s, 4, 3, int64(s.Windows))
			})
		}
	}
}

func show(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// gone are events of which the first ones were pushed out.
type gone struct{ Events }

func (gone) Published(context.Context, *run.Run) (*run.Published, error) {
	return nil, run.ErrNoEvents
}

// TestEventsGone: a run whose events were pushed out goes on, and readers get its end from
// the record.
func TestEventsGone(t *testing.T) {
	k := newKit(t, models{"m": script(adds)})
	k.adder.hang = make(chan struct{})
	first := k.loop(t, "a", k.store)
	id, _ := k.begin(t, first, request("1"))
	atolltest.Until(t, 30*time.Second, "a call is on record", func() bool { return k.state(t, id).Calls > 0 })
	first.Stop()
	close(k.adder.hang)
	second := New(Config{
		Store: k.store, Models: k.models, Handlers: map[string]Handler{"add": k.adder}, Events: gone{k.bus.RunEvents(storetest.Box(t))},
		Log: slog.New(slog.DiscardHandler), Holder: "b",
	})
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Stop)
	if s := k.ended(t, id); s.End.Status != run.Completed {
		t.Errorf("%+v", s.End)
	}
	all := k.events(t, id)
	if last := all[len(all)-1]; last.End == nil || last.End.Status != run.Completed {
		t.Errorf("the last event is %+v", last)
	}
}

// TestTooLong: the clock ends a run while its model or a tool says nothing, and a second
// process may cancel one that the first drives.
func TestTooLong(t *testing.T) {
	hang := script(func(model.Request) ([]model.Delta, error) { return say("well")[:1], errHang })
	for name, limit := range map[string]time.Duration{"cancelled elsewhere": 0, "too long": 300 * time.Millisecond} {
		for where, m := range map[string]script{"model": hang, "tool": adds} {
			t.Run(name+" in a "+where, func(t *testing.T) {
				k := newKit(t, models{"m": m})
				k.adder.hang = make(chan struct{})
				q := request("1")
				q.Limits.Duration = limit
				id, _ := k.begin(t, k.loop(t, "a", k.store), q)
				want := run.End{Status: run.Incomplete, Reason: run.MaxDuration}
				if limit == 0 {
					want = run.End{Status: run.Cancelled}
					atolltest.Until(t, 30*time.Second, "it is in progress", func() bool { s := k.state(t, id); return where == "model" && s.Steps > 0 || s.Calls > 0 })
					if err := k.loop(t, "b", k.store).Cancel(t.Context(), owner, id); err != nil {
						t.Fatal(err)
					}
				}
				s := k.ended(t, id)
				if s.End.Status != want.Status || s.End.Reason != want.Reason || limit > 0 && s.End.Message == "" {
					t.Errorf("it ends with %+v", s.End)
				}
				for _, it := range s.Output {
					if it.Status != run.ItemIncomplete {
						t.Errorf("an item is %s", it.Status)
					}
				}
			})
		}
	}
}
