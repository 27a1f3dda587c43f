package bus

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

func turnJob(id, turn string) execution.Job {
	return execution.Job{TraceID: id, Code: "print(1)", Turn: turn}
}

// First calls of a turn that come at the same time end at one executor.
func TestTurnHasOneOwner(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 60*time.Second)
		var hs []*handler
		for i := range 4 {
			hs = append(hs, serve(t, b, fmt.Sprintf("x%d", i), 1000))
		}
		for n := range 20 {
			turn := fmt.Sprintf("turn %d", n)
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if err := b.Runner().Start(ctx, turnJob(fmt.Sprintf("trc_%d_%d", n, i), turn)); err != nil {
						t.Errorf("turn %d, call %d: %v", n, i, err)
					}
				})
			}
			wg.Wait()
			owners := 0
			for _, h := range hs {
				have := 0
				for i := range 8 {
					if h.has(fmt.Sprintf("trc_%d_%d", n, i)) {
						have++
					}
				}
				if have > 0 {
					owners++
				}
			}
			if owners != 1 {
				t.Errorf("turn %d is at %d executors", n, owners)
			}
		}
	})
}

func TestTurnComesAndGoes(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 30*time.Second)
		a := serve(t, b, "a", 2)
		if err := b.Runner().Start(ctx, turnJob("trc_1", "T")); err != nil {
			t.Fatal(err)
		}
		c := serve(t, b, "c", 10)
		if err := c.x.HoldTurn(ctx, "T"); fault.KindOf(err) != fault.Conflict {
			t.Errorf("holding another's turn: %v", err)
		}
		if err := b.Runner().Start(ctx, turnJob("trc_2", "T")); err != nil || !a.has("trc_2") {
			t.Errorf("second call: %v", err)
		}
		// The owner is full: no other executor may take the job.
		wantFault(t, b.Runner().Start(ctx, turnJob("trc_3", "T")), fault.Unavailable, "this executor is full")
		if len(c.jobs) != 0 {
			t.Error("a job of the turn went to another executor")
		}
		// The turn's sandbox is gone: the next job may go anywhere.
		a.x.ReleaseTurn("T")
		a.x.Drain()
		if err := b.Runner().Start(ctx, turnJob("trc_4", "T")); err != nil || !c.has("trc_4") {
			t.Errorf("after its release: %v", err)
		}
		// A refused first job leaves no claim behind.
		c.starter = func(_ context.Context, j execution.Job) error {
			if j.TraceID == "trc_5" {
				return fault.New(fault.Invalid, "no")
			}
			return nil
		}
		wantFault(t, b.Runner().Start(ctx, turnJob("trc_5", "U")), fault.Invalid, "no")
		if _, err := b.turns.Get(ctx, turnKey("U")); err == nil {
			t.Error("a turn without a job is claimed")
		}
	})
}

// The executor that has a turn is told to end it; then it may go on anywhere.
func TestTurnsAreEndedWhereTheyAre(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 30*time.Second)
		a := serve(t, b, "a", 10)
		if err := b.Runner().EndTurn(ctx, "T"); err != nil {
			t.Errorf("a turn that no executor has: %v", err)
		}
		if err := b.Runner().Start(ctx, turnJob("trc_1", "T")); err != nil {
			t.Fatal(err)
		}
		c := serve(t, b, "c", 10)
		if err := b.Runner().EndTurn(ctx, "T"); err != nil || len(a.ended) != 1 || a.ended[0] != "T" || len(c.ended) != 0 {
			t.Errorf("ended %v here and %v there: %v", a.ended, c.ended, err)
		}
		if err := b.Runner().EndTurn(ctx, "T"); err != nil || len(a.ended) != 1 {
			t.Errorf("again: ended %v, %v", a.ended, err)
		}
		a.x.Drain()
		if err := b.Runner().Start(ctx, turnJob("trc_2", "T")); err != nil || !c.has("trc_2") {
			t.Errorf("after its end: %v", err)
		}
	})
}

// An executor that starts anew has its turns again; until then they are
// no other executor's.
func TestTurnSurvivesRestart(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 30*time.Second)
	h := &handler{log: b.Log(), room: 10, jobs: map[string]execution.Job{}}
	x, err := b.Serve("a", h)
	if err != nil {
		t.Fatal(err)
	}
	h.x = x
	if err := b.Runner().Start(ctx, turnJob("trc_1", "T")); err != nil {
		t.Fatal(err)
	}
	x.Close()
	c := serve(t, b, "c", 10)
	wantFault(t, b.Runner().Start(ctx, turnJob("trc_2", "T")), fault.Unavailable, "the executor with this turn's sandbox is not there")
	again := serve(t, b, "a", 10)
	if err := again.x.HoldTurn(ctx, "T"); err != nil {
		t.Fatal(err)
	}
	if err := b.Runner().Start(ctx, turnJob("trc_3", "T")); err != nil || !again.has("trc_3") || len(c.jobs) != 0 {
		t.Errorf("after the restart: %v", err)
	}
	again.x.renew()
	if e, err := b.turns.Get(ctx, turnKey("T")); err != nil || string(e.Value()) != "a" {
		t.Errorf("lease after its renewal: %v", err)
	}
	// Another executor got it while this one was away.
	if err := b.turns.Delete(ctx, turnKey("T")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.turns.Create(ctx, turnKey("T"), []byte("z")); err != nil {
		t.Fatal(err)
	}
	again.x.renew()
	if len(again.x.turns) != 0 {
		t.Error("a turn that another has is still held")
	}
}
