package executiontest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// wantLimit checks that an error is a named limit's and says something.
func wantLimit(t *testing.T, err error, dimension, msg string) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Exhausted || f.Dimension != dimension {
		t.Fatalf("got %v, want the limit %q", err, dimension)
	}
	if msg != "" && f.Msg != msg {
		t.Errorf("got  %q\nwant %q", f.Msg, msg)
	}
	return f
}

func testConcurrency(t *testing.T, o Opened) {
	a := execution.Admission{Concurrency: 5, Cause: errors.New("the plan")}
	var running []*execution.Execution
	for range 5 {
		e := New("a")
		_, err := o.Store.Admit(t.Context(), e, a)
		must(t, err)
		running = append(running, e)
	}
	refused := New("a")
	_, err := o.Store.Admit(t.Context(), refused, a)
	f := wantLimit(t, err, "concurrency", "concurrent execution limit reached (5/5).")
	if !f.ResetsAt.IsZero() {
		t.Errorf("it resets at %v", f.ResetsAt)
	}
	_, err = o.Store.Get(t.Context(), "a", refused.TraceID)
	wantKind(t, "who was refused", err, fault.NotFound)
	if _, err := o.Store.Admit(t.Context(), New("b"), a); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	end(t, o, running[2], execution.Failed)
	_, err = o.Store.Admit(t.Context(), refused, a)
	must(t, err)
	_, err = o.Store.Admit(t.Context(), New("a"), a)
	wantLimit(t, err, "concurrency", "")
	for range 3 { // a plan without a bound
		admit(t, o, "a")
	}
}

func testConcurrencyRace(t *testing.T, o Opened) {
	const limit = 7
	var mu sync.Mutex
	living, most := 0, 0
	var admitted, refused atomic.Int64
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			for range 10 {
				e := New("a")
				_, err := o.Store.Admit(t.Context(), e, execution.Admission{Concurrency: limit})
				if fault.KindOf(err) == fault.Exhausted && err != nil {
					refused.Add(1)
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				admitted.Add(1)
				mu.Lock()
				living++
				most = max(most, living)
				mu.Unlock()
				mu.Lock()
				living-- // no later than it ends
				mu.Unlock()
				if _, _, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: execution.Success}, Follow(0)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if most > limit || admitted.Load() == 0 {
		t.Errorf("%d at once, %d admitted, %d refused", most, admitted.Load(), refused.Load())
	}
	// Nothing is left counted.
	var held atomic.Int64
	for range 50 {
		wg.Go(func() {
			_, err := o.Store.Admit(t.Context(), New("a"), execution.Admission{Concurrency: limit})
			if err == nil {
				held.Add(1)
			} else if fault.KindOf(err) != fault.Exhausted {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if held.Load() != limit {
		t.Errorf("%d were admitted at once, not %d", held.Load(), limit)
	}
}

func testBudget(t *testing.T, o Opened) {
	a := execution.Admission{Credits: 2}
	for range 2 {
		e := New("a")
		_, err := o.Store.Admit(t.Context(), e, a)
		must(t, err)
		end(t, o, e, execution.Success)
	}
	_, err := o.Store.Admit(t.Context(), New("a"), a)
	f := wantLimit(t, err, "monthly_credits", "")
	start := time.Now().UTC()
	want := time.Date(start.Year(), start.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	if f.ResetsAt != want {
		t.Errorf("it resets at %v, not %v", f.ResetsAt, want)
	}
	if _, err := o.Store.Admit(t.Context(), New("b"), a); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := o.Store.Admit(t.Context(), New("a"), execution.Admission{Credits: 2.5}); err != nil {
		t.Errorf("a larger budget: %v", err)
	}
}

func testIdempotency(t *testing.T, o Opened) {
	ctx := t.Context()
	a := execution.Admission{IdempotencyKey: "k", IdempotencyBody: [32]byte{1}, Concurrency: 1}
	e := New("a")
	_, err := o.Store.Admit(ctx, e, a)
	must(t, err)
	again := New("a")
	earlier, err := o.Store.Admit(ctx, again, a) // also at the limit
	must(t, err)
	wantSame(t, earlier, e)
	_, err = o.Store.Get(ctx, "a", again.TraceID)
	wantKind(t, "the repetition", err, fault.NotFound)

	keyed, err := o.Store.Keyed(ctx, "a", "k")
	must(t, err)
	wantSame(t, keyed, e)
	for tenant, key := range map[string]string{"a": "another", "b": "k"} {
		_, err = o.Store.Keyed(ctx, tenant, key)
		wantKind(t, tenant+"'s "+key, err, fault.NotFound)
	}

	other := a
	other.IdempotencyBody = [32]byte{2}
	_, err = o.Store.Admit(ctx, New("a"), other)
	wantKind(t, "another body", err, fault.Conflict)
	if earlier, err := o.Store.Admit(ctx, New("b"), other); earlier != nil || err != nil {
		t.Errorf("another tenant: %v, %v", earlier, err)
	}
	end(t, o, e, execution.Success)
	earlier, err = o.Store.Admit(ctx, New("a"), a)
	must(t, err)
	if earlier == nil || earlier.TraceID != e.TraceID || earlier.Status != execution.Success {
		t.Errorf("after its end: %+v", earlier)
	}
	must(t, o.Store.Delete(ctx, []string{e.TraceID}))
	if earlier, err := o.Store.Admit(ctx, New("a"), other); earlier != nil || err != nil {
		t.Errorf("after it was deleted: %v, %v", earlier, err)
	}
}

func testIdempotencyDay(t *testing.T, o Opened) {
	ctx := t.Context()
	purge := func(most, want, left int) {
		t.Helper()
		n, err := o.Store.PurgeKeys(ctx, most)
		must(t, err)
		if have := o.AgeKeys(t, 0); n != want || have != left {
			t.Errorf("%d keys went and %d are left, want %d and %d", n, have, want, left)
		}
	}
	earlier := map[string]*execution.Execution{}
	for _, key := range []string{"k1", "k2", "k3"} {
		e := New("a")
		_, err := o.Store.Admit(ctx, e, execution.Admission{IdempotencyKey: key})
		must(t, err)
		earlier[key] = e
	}
	o.AgeKeys(t, 24*time.Hour-time.Minute)
	purge(10, 0, 3)
	got, err := o.Store.Admit(ctx, New("a"), execution.Admission{IdempotencyKey: "k1"})
	must(t, err)
	wantSame(t, got, earlier["k1"])
	o.AgeKeys(t, 2*time.Minute)
	if got, err := o.Store.Admit(ctx, New("a"), execution.Admission{IdempotencyKey: "k1"}); got != nil || err != nil {
		t.Errorf("after its day the key stands for %v, %v", got, err)
	}
	purge(1, 1, 2) // k1 has begun a new day
	purge(10, 1, 1)
	purge(10, 0, 1)
	if _, err := o.Store.Get(ctx, "a", earlier["k2"].TraceID); err != nil {
		t.Errorf("the execution went with its key: %v", err)
	}
}

func testIdempotencyRace(t *testing.T, o Opened) {
	for round := range 10 {
		var wg sync.WaitGroup
		var recorded atomic.Int64
		ids := make([]string, 20)
		for i := range ids {
			wg.Go(func() {
				e := New("a")
				earlier, err := o.Store.Admit(t.Context(), e, execution.Admission{IdempotencyKey: fmt.Sprint(round)})
				switch {
				case err != nil:
					t.Error(err)
				case earlier != nil:
					ids[i] = earlier.TraceID
				default:
					recorded.Add(1)
					ids[i] = e.TraceID
				}
			})
		}
		wg.Wait()
		if recorded.Load() != 1 {
			t.Errorf("%d were recorded", recorded.Load())
		}
		for _, id := range ids {
			if id != ids[0] {
				t.Errorf("%s and %s", id, ids[0])
			}
		}
	}
}
