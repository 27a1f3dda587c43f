package loop

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// stubborn is a handler whose calls go on when their process leaves them.
type stubborn struct {
	claims bool

	mu    sync.Mutex
	did   []string      // guarded by mu
	waits chan struct{} // calls wait for it before they claim
	claim chan struct{} // has a token when a call has claimed
	letGo chan run.ID
}

func (s *stubborn) do(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, what)
}

func (s *stubborn) Show(*Call) (*run.Item, error) { return nil, nil }
func (s *stubborn) Claims(*Call) bool             { return s.claims }

func (s *stubborn) Do(ctx context.Context, c *Call) (*Outcome, error) {
	if c.Begun {
		s.do("collect")
		return &Outcome{Result: result("", "collected", false)}, nil
	}
	s.do("make")
	select {
	case <-s.waits:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c.Claim != nil {
		if err := c.Claim(ctx); err != nil {
			return nil, err
		}
	}
	if s.claim != nil {
		s.claim <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return &Outcome{Result: result("", "made", false)}, nil
}

func (s *stubborn) End(_ context.Context, c *Call) (*Outcome, error) {
	if !c.Begun {
		s.do("end a call that has not begun")
	}
	s.do("end")
	return &Outcome{Windows: 1, Uses: map[string]int{"add": 2}}, nil
}

func (k *kit) stubborn(t *testing.T, s *stubborn) *Loop {
	t.Helper()
	l := New(Config{
		Store: k.store, Models: k.models, Handlers: map[string]Handler{"add": s}, Events: k.bus.RunEvents(storetest.Box(t)), Log: slog.New(slog.DiscardHandler),
		Holder: "a", Prices: prices, Budget: usage.NewBudget(k.db.Usage().CheckCost),
		LetGo: func(_ context.Context, r *run.Run) error { s.letGo <- r.ID; return nil },
	})
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	return l
}

// TestEndsOthers: what a process has left under way is ended, and charged once, by the one
// that ends its run: cancelled while no process was up.
func TestEndsOthers(t *testing.T) {
	k := newKit(t, models{"m": script(adds)})
	s := &stubborn{waits: make(chan struct{}), letGo: make(chan run.ID, 1)}
	first := k.stubborn(t, s)
	id, done := k.begin(t, first, request("1"))
	atolltest.Until(t, 30*time.Second, "the call is made", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.did) == 1
	})
	first.Stop()
	<-done
	if err := k.store.Cancel(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}
	k.stubborn(t, s)
	if state := k.ended(t, id); state.End.Status != run.Cancelled {
		t.Fatalf("got %+v", state.End)
	}
	if got := s.did; len(got) != 2 || got[1] != "end" {
		t.Errorf("it did %v", got)
	}
	k.charged(t, k.state(t, id), 1, 3, 1)
}

// TestLetGo: what a run that is not kept has left behind is removed when it has ended.
func TestLetGo(t *testing.T) {
	k := newKit(t, models{"m": script(adds)})
	s := &stubborn{waits: make(chan struct{}), letGo: make(chan run.ID, 3)}
	close(s.waits)
	l := k.stubborn(t, s)
	begin := func(keep time.Duration, sandbox func(run.ID) string) run.ID {
		r := &run.Run{ID: run.NewID(), Tenant: owner, Keep: keep}
		r.Sandbox = sandbox(r.ID)
		done, err := l.Begin(t.Context(), r, request("1"), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-done
		return r.ID
	}
	begin(time.Hour, run.SandboxOf)
	begin(0, func(run.ID) string { return "sbx_of_another" })
	if own := begin(0, run.SandboxOf); <-s.letGo != own {
		t.Error("what another run continues with was let go")
	}

	// A deleted conversation takes its sandbox along, with its last run.
	first := begin(time.Hour, run.SandboxOf)
	last := begin(time.Hour, func(run.ID) string { return run.SandboxOf(first) })
	for _, id := range []run.ID{first, last} {
		r, err := k.store.Run(t.Context(), owner, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Delete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if id := <-s.letGo; id != last {
		t.Errorf("the sandbox went with run %s, want the last one, %s", id, last)
	}
}

// TestClaims: a call that ended with its process before it claimed is made anew, and one
// that had claimed is collected.
func TestClaims(t *testing.T) {
	for name, test := range map[string]struct {
		claims, claimed bool
		want            string
	}{
		"not claimed":     {claims: true, want: "make"},
		"claimed":         {claims: true, claimed: true, want: "collect"},
		"does not claim":  {want: "collect"},
		"needs no claims": {claimed: true, want: "collect"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, models{"m": script(adds)})
			s := &stubborn{claims: test.claims, waits: make(chan struct{}), letGo: make(chan run.ID, 1)}
			if test.claimed {
				s.claim = make(chan struct{})
				close(s.waits)
			}
			first := k.stubborn(t, s)
			id, done := k.begin(t, first, request("1"))
			if test.claimed {
				<-s.claim
			}
			atolltest.Until(t, 30*time.Second, "the call is made", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.did) == 1
			})
			first.Stop()
			<-done
			if !test.claimed {
				close(s.waits)
			}
			s.claim = nil
			k.stubborn(t, s)
			if state := k.ended(t, id); state.End.Status != run.Completed || state.Calls != 1 {
				t.Fatalf("got %+v after %d calls", state.End, state.Calls)
			}
			if got := s.did; len(got) != 2 || got[1] != test.want {
				t.Errorf("it did %v", got)
			}
		})
	}
}
