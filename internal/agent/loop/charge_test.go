package loop

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/test/atolltest"
)

// prices of the runs here: 0.25 dollars a call, 2 dollars a window.
var prices = Prices{Tools: map[string]model.Money{"add": usage.MoneyOf(0.25)}, Window: usage.MoneyOf(2)}

// charged compares the ledger of today with what a run did, and with what it says of itself.
func (k *kit) charged(t *testing.T, s *run.State, answers, calls, windows int64) {
	t.Helper()
	now := time.Now()
	days, err := k.db.Usage().Summary(t.Context(), owner, now.Add(-48*time.Hour), now.Add(48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]usage.Day{}
	for _, d := range days {
		sum := got[d.Source+" "+d.Name]
		sum.Calls += d.Calls
		sum.Cost = sum.Cost.Plus(d.Cost)
		sum.Tokens.Input += d.Tokens.Input
		sum.Tokens.Output += d.Tokens.Output
		got[d.Source+" "+d.Name] = sum
	}
	m, tool, window := got["model m"], got["tool add"], got["sandbox_window "]
	lost := min(s.Usage.Estimated, 1) // an answer that was cut
	if m.Calls != answers+lost || m.Tokens.Input+m.Tokens.Output-s.Usage.Estimated != 15*answers || m.Cost != s.Cost.Total {
		t.Errorf("the ledger has of models %+v, want %d answers for %s", m, answers, s.Cost.Total)
	}
	if tool.Calls != calls || tool.Cost.Dollars() != 0.25*float64(calls) || int64(s.Invoked["add"]) != calls {
		t.Errorf("the ledger has of tools %+v, the run %v; want %d calls", tool, s.Invoked, calls)
	}
	if window.Calls != windows || window.Cost.Dollars() != 2*float64(windows) || int64(s.Windows) != windows {
		t.Errorf("the ledger has of windows %+v, the run %d; want %d", window, s.Windows, windows)
	}
	if want := usage.MoneyOf(0.25 * float64(calls)).Plus(usage.MoneyOf(2 * float64(windows))); s.ToolCost != want || s.Spent() != want.Plus(s.Cost.Total) {
		t.Errorf("the run's tools cost %s of %s, want %s", s.ToolCost, s.Spent(), want)
	}
}

// TestChargedWhenCut: a call that a cancelled run leaves behind is charged once.
func TestChargedWhenCut(t *testing.T) {
	k := newKit(t, models{"m": script(adds)})
	k.adder.hang = make(chan struct{})
	l := k.loop(t, "a", k.store)
	id, done := k.begin(t, l, request("1"))
	atolltest.Until(t, 30*time.Second, "a call is in progress", func() bool { return k.adder.begun() > 0 })
	if err := l.Cancel(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}
	<-done
	s := k.state(t, id)
	if s.End == nil || s.End.Status != run.Cancelled {
		t.Fatalf("got %+v", s.End)
	}
	k.charged(t, s, 1, 1, 1)
}

// budget gives the owner of the runs a budget.
func (k *kit) budget(t *testing.T, dollars float64) {
	t.Helper()
	if err := k.db.Tenants().CreateTenant(t.Context(), tenant.Tenant{
		ID: owner, Name: "acme", Plan: "free", Tier: tenant.Standard, AuditDays: 1, MonthlyCost: dollars, CreatedAt: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
}

// TestBudget: what a step costs counts before the next question and the next call, and the
// run says when the budget starts anew.
func TestBudget(t *testing.T) {
	k := newKit(t, models{"m": script(adds)})
	k.budget(t, 2.3)
	id, done := k.begin(t, k.loop(t, "a", k.store), request("1 2 3"))
	<-done
	s := k.state(t, id) // a window and the first call are 2.25, the second call would be 2.5
	now := time.Now().UTC()
	resets := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
	if s.End == nil || s.End.Status != run.Failed || s.End.Reason != run.Budget || s.Steps != 2 {
		t.Fatalf("got %+v after %d steps", s.End, s.Steps)
	}
	if want := "monthly budget too small for the next step, which costs 0.25 US dollars (2.25000000004 of 2.3 used); it resets at " + resets; len(s.End.Message) < len(want) || s.End.Message[:len(want)] != want {
		t.Errorf("it says %q, want %q", s.End.Message, want)
	}
	k.charged(t, s, 2, 1, 1)
}

// TestBudgetOfParallelCalls: calls that begin together, of one run and of others, do not pass
// the budget.
func TestBudgetOfParallelCalls(t *testing.T) {
	k := newKit(t, models{"m": script(func(model.Request) ([]model.Delta, error) { return ask("add", "1", "add", "1", "add", "1"), nil })})
	k.adder.hang = make(chan struct{})
	k.budget(t, 2.6)
	l := k.loop(t, "a", k.store)
	q := request("1")
	first, firstDone := k.begin(t, l, q)
	atolltest.Until(t, 30*time.Second, "the calls are on record", func() bool { return k.state(t, first).Calls == 3 })
	// 0.75 is under way, and the ledger has none of it: a budget of 2.6 has room for 7 more.
	var others []run.ID
	var ends []<-chan struct{}
	for range 4 {
		id, done := k.begin(t, l, q)
		others, ends = append(others, id), append(ends, done)
	}
	atolltest.Until(t, 30*time.Second, "what the budget has room for has begun", func() bool {
		calls := 0
		for _, id := range others {
			s := k.state(t, id)
			if calls += s.Calls; s.Calls == 0 && s.End == nil {
				return false // it has not come to its calls
			}
		}
		return calls == 7
	})
	if err := l.Cancel(t.Context(), owner, first); err != nil {
		t.Fatal(err)
	}
	<-firstDone
	for i, id := range others {
		if s := k.state(t, id); s.End != nil {
			if s.End.Reason != run.Budget || s.Calls != 0 {
				t.Errorf("got %+v after %d calls", s.End, s.Calls)
			}
			continue
		}
		if err := l.Cancel(t.Context(), owner, id); err != nil {
			t.Fatal(err)
		}
		<-ends[i]
	}
}

// partial is a model that gives a part of its first answer, and then fails or says no more.
type partial struct {
	first []model.Delta
	fails error         // nil to say no more
	came  chan struct{} // closed when the part was read
	asked int
}

func (p *partial) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		deltas, err := say("done"), error(nil)
		if p.asked++; p.asked == 1 {
			deltas, err = p.first, p.fails
		}
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
		if p.asked == 1 && err == nil {
			close(p.came)
			<-ctx.Done()
			err = context.Cause(ctx)
		}
		if err != nil {
			yield(model.Delta{}, err)
		}
	}
}

// TestChargedForPartsOfAnswers: answers that were cut or failed are charged by what the provider
// announced, and by an estimate where it had announced nothing.
func TestChargedForPartsOfAnswers(t *testing.T) {
	announced := model.Delta{Kind: model.Used, Usage: model.Usage{Input: 100, Output: 1}}
	text := model.Delta{Kind: model.Said, Text: strings.Repeat("word ", 80)} // 100 tokens
	broken := model.Errorf(model.Transient, "the stream ended early")
	for name, test := range map[string]struct {
		first     []model.Delta
		fails     error // nil for a run that is cancelled during the answer
		in, out   int64
		estimated bool
		calls     int64
	}{
		"cancelled after a count":           {first: []model.Delta{announced, text}, in: 100, out: 100, estimated: true, calls: 1},
		"cancelled without a count":         {first: []model.Delta{text}, in: 1, out: 100, estimated: true, calls: 1},
		"cancelled before the first word":   {first: []model.Delta{{Kind: model.Started}}, in: 1, estimated: true, calls: 1},
		"failed after a count, asked again": {first: []model.Delta{announced}, fails: broken, in: 110, out: 6, calls: 2},
		"failed within the text":            {first: []model.Delta{text}, fails: broken, in: 11, out: 105, estimated: true, calls: 2},
		"failed before it did anything":     {first: []model.Delta{{Kind: model.Started}}, fails: broken, in: 10, out: 5, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &partial{first: test.first, fails: test.fails, came: make(chan struct{})}
			k := newKit(t, models{"m": m})
			l := k.loop(t, "a", k.store)
			id, done := k.begin(t, l, request("1"))
			if test.fails == nil {
				atolltest.Heard(t, m.came, "a part of the answer")
				if err := l.Cancel(t.Context(), owner, id); err != nil {
					t.Fatal(err)
				}
			}
			<-done
			s := k.ended(t, id)
			if u := s.Usage; u.Input < test.in || u.Input > test.in+100 || u.Output < test.out || u.Output > test.out+2 || (u.Estimated > 0) != test.estimated {
				t.Errorf("the run used %+v, want about %d and %d tokens", u, test.in, test.out)
			}
			if s.Cost.Total == 0 || s.Cost.Total != (model.Prices{Input: 1, Output: 2}).Cost(s.Usage).Total {
				t.Errorf("the run cost %s for %+v", s.Cost.Total, s.Usage)
			}
			now := time.Now()
			days, err := k.db.Usage().Summary(t.Context(), owner, now.Add(-48*time.Hour), now.Add(48*time.Hour))
			if err != nil || len(days) != 1 || days[0].Calls != test.calls || days[0].Cost != s.Cost.Total {
				t.Errorf("the ledger has %+v, %v; want %d answers for %s", days, err, test.calls, s.Cost.Total)
			}
		})
	}
}
