package grader_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/grader"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

const owner tenant.ID = "ten_0123456789abcdef"

// works is a model that answers by what it was told last, and grades.
type works struct{}

func (works) Generate(_ context.Context, q model.Request) iter.Seq2[model.Delta, error] {
	last := model.Joined(q.Items[len(q.Items)-1].Message.Parts)
	text := "first"
	switch {
	case strings.HasPrefix(q.Instructions, "You grade") && strings.Contains(last, "third"):
		text = `{"result": "satisfied", "explanation": "yes"}`
	case strings.HasPrefix(q.Instructions, "You grade"):
		text = `{"result": "needs_revision", "explanation": "more"}`
	case strings.Contains(last, "Its explanation: more"):
		text = "third"
	case strings.Contains(last, "did not pass"):
		text = "second"
	}
	return func(yield func(model.Delta, error) bool) {
		for _, d := range []model.Delta{{Kind: model.Said, Text: text}, {Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}, {Kind: model.Stopped, Stop: model.StopEnd}} {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (w works) Use(_ context.Context, _ tenant.ID, name string) (model.Model, *model.Record, error) {
	spec := model.Spec{Capabilities: model.Capabilities, Prices: model.Prices{Input: 1, Output: 2}}
	return model.Guard(w, spec, model.DefaultBounds), &model.Record{Name: name, Spec: spec}, nil
}

// checks run once each, and the first one fails.
type checks struct {
	mu   sync.Mutex
	made map[int]int // by number
	done map[int]*loop.Outcome
}

func (c *checks) Show(*loop.Call) (*run.Item, error) { return nil, nil }

func (c *checks) Do(_ context.Context, call *loop.Call) (*loop.Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done := c.done[call.Number]; done != nil && call.Begun {
		return done, nil
	}
	c.made[call.Number]++
	c.done[call.Number] = &loop.Outcome{Result: model.Result{Failed: call.Number == -1, Parts: []model.Part{{Kind: model.PartText, Text: fmt.Sprint("check ", call.Number)}}}}
	return c.done[call.Number], nil
}

var errDead = errors.New("this process is dead")

// dying is a store of a process that dies before or after it has recorded something for the nth
// time.
type dying struct {
	run.Store
	mu    sync.Mutex
	left  int
	after bool
}

func (d *dying) Append(ctx context.Context, id run.ID, l run.Lease, entries []run.Entry, left ...run.Trace) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	if d.left >= 0 || d.left == -1 && d.after {
		if err := d.Store.Append(ctx, id, l, entries, left...); err != nil || d.left >= 0 {
			return err
		}
	}
	return errDead
}

func (*dying) Release(context.Context, run.ID, run.Lease, time.Time) error { return errDead }
func (*dying) Renew(context.Context, string) error                         { return errDead }
func (*dying) Claim(context.Context, string, int) ([]run.Due, time.Time, error) {
	return nil, time.Time{}, nil
}

// TestDeath: after any record that is the last of a process, another process brings the run to its
// outcome: a check is not made twice, and what graders use is on record once.
func TestDeath(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Config{Name: "test", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	for n := range 12 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("record %d, after %t", n, after), func(t *testing.T) {
				db := storetest.SQLite(t)
				made := &checks{made: map[int]int{}, done: map[int]*loop.Outcome{}}
				begin := func(store run.Store) *loop.Loop {
					l := loop.New(loop.Config{Store: store, Models: works{}, Handlers: map[string]loop.Handler{"check": made}, Events: b.RunEvents(storetest.Box(t)), Log: slog.New(slog.DiscardHandler), Holder: "a", Grade: grader.Outcome})
					if err := l.Start(t.Context()); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(l.Stop)
					return l
				}
				r := &run.Run{ID: run.NewID(), Tenant: owner}
				q := &run.Request{Models: []string{"m"}, Input: []model.Item{model.Text(model.User, "go")}, Publish: true, Outcome: &run.Outcome{
					ID: "outc_1", Description: "do", Rubric: "well", Iterations: 5, Check: &run.OutcomeCheck{Tool: run.Tool{Tool: model.Tool{Name: "check"}, Handler: "check"}, Arguments: "{}"},
				}}
				done, err := begin(&dying{Store: db.Runs(), left: n, after: after}).Begin(t.Context(), r, q, 0, nil)
				if err != nil {
					t.Fatal(err)
				}
				<-done
				l := begin(db.Runs()) // a process of the same name starts again
				atolltest.Until(t, 30*time.Second, "the run has ended", func() bool {
					now, err := db.Runs().Run(t.Context(), owner, r.ID)
					return err == nil && now.Status.Final()
				})
				s, err := l.State(t.Context(), r.ID)
				if err != nil {
					t.Fatal(err)
				}
				if e := s.Evaluation(); s.End.Status != run.Completed || e.Result != run.Satisfied || e.Iteration != 2 || grader.Answer(s) != "third" {
					t.Errorf("%+v, %+v, %q", s.End, e, grader.Answer(s))
				}
				for number, times := range made.made {
					if times != 1 {
						t.Errorf("check %d was made %d times", number, times)
					}
				}
				if u := s.Usage; len(made.made) != 3 || u.Input+u.Output-u.Estimated != 75 || u.Estimated == 0 && s.Cost.Total != 100 || s.Cost.Total < 100 {
					t.Errorf("%d checks, %+v, %s", len(made.made), s.Usage, s.Cost.Total)
				}
			})
		}
	}
}
