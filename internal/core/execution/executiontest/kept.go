package executiontest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

const day = 24 * time.Hour

// keeps ends a new execution that keeps so many bytes.
func keeps(t *testing.T, o Opened, tenant string, bytes int64, ended time.Time) *execution.Execution {
	t.Helper()
	e := admit(t, o, tenant, func(e *execution.Execution) { e.CreatedAt = ended.Add(-time.Second) })
	got, _, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: execution.Success, CompletedAt: ended, Kept: bytes}, Follow(1))
	must(t, err)
	if got.Kept != bytes {
		t.Errorf("the record has %d bytes kept, not %d", got.Kept, bytes)
	}
	return got
}

func wantKept(t *testing.T, o Opened, tenant string, keep time.Duration, bytes int64) {
	t.Helper()
	k, err := o.Usage.Kept(t.Context(), tenant, keep)
	must(t, err)
	if k.Bytes != bytes || k.ResetsAt.IsZero() != (bytes == 0) {
		t.Errorf("%s keeps %d bytes until %v, want %d bytes", tenant, k.Bytes, k.ResetsAt, bytes)
	}
}

func testOutputs(t *testing.T, o Opened) {
	const keep = 3 * day
	cause := errors.New("the plan")
	alone := execution.Admission{Outputs: execution.OutputQuota{Max: 100, Keep: keep, Cause: cause}}
	counted := alone
	counted.Concurrency = 50
	try := func(tenant string, a execution.Admission) error {
		_, err := o.Store.Admit(t.Context(), New(tenant), a)
		return err
	}
	today := now().Truncate(day)
	keeps(t, o, "a", 1000, today.Add(-4*day)) // no part of its day is kept any more
	first := keeps(t, o, "a", 40, today.Add(-2*day+time.Hour))
	keeps(t, o, "a", 59, now())
	wantKept(t, o, "a", keep, 99)
	for _, a := range []execution.Admission{alone, counted} {
		must(t, try("a", a))
	}
	last := keeps(t, o, "a", 30, now()) // it may pass the bound
	for _, a := range []execution.Admission{alone, counted} {
		f := wantLimit(t, try("a", a), "outputs",
			"stored outputs use 129 B of 100 B (max_outputs). Delete executions and responses that you do not need, or wait until the oldest expire.")
		if want := today.Add(2 * day); !f.ResetsAt.Equal(want) || !errors.Is(f, cause) {
			t.Errorf("it resets at %v, not %v, because of %v", f.ResetsAt, want, f.Err)
		}
		must(t, try("b", a))
	}
	k, err := o.Usage.Kept(t.Context(), "a", keep)
	must(t, err)
	if !k.ResetsAt.Equal(today.Add(2 * day)) {
		t.Errorf("its use resets at %v", k.ResetsAt)
	}
	wantKept(t, o, "b", keep, 0)
	wantKept(t, o, "a", time.Hour, 89) // of today, whatever is left of it

	for range 2 { // what is deleted is taken off once
		must(t, o.Store.Delete(t.Context(), []string{last.TraceID, last.TraceID}))
		wantKept(t, o, "a", keep, 99)
	}
	must(t, try("a", counted))
	if n := calls(t, o, "a"); n != 4 {
		t.Errorf("the ledger has %d calls, not 4", n)
	}
	for within, want := range map[time.Duration]int64{100 * day: 4, 0: 2} { // deleted ones too
		if n, err := o.Usage.Recorded(t.Context(), "a", within); err != nil || n != want {
			t.Errorf("of %s %d calls are recorded, not %d: %v", within, n, want, err)
		}
	}
	// Retention takes off what goes.
	for _, e := range must1(o.Store.Expired(t.Context(), day, 10))(t) {
		must(t, o.Store.Delete(t.Context(), []string{e.TraceID}))
	}
	wantKept(t, o, "a", 100*day, 59)
	_, err = o.Store.Get(t.Context(), "a", first.TraceID)
	wantKind(t, "an expired execution", err, fault.NotFound)
}

// must1 fails the test for an error.
func must1[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// testOutputsRace ends executions of two tenants at the same time, and deletes others.
func testOutputsRace(t *testing.T, o Opened) {
	const n, keep = 20, 30 * day
	tenants := []string{"a", "b"}
	running, old := map[string][]*execution.Execution{}, map[string][]*execution.Execution{}
	for _, tenant := range tenants {
		for i := range n {
			running[tenant] = append(running[tenant], admit(t, o, tenant))
			old[tenant] = append(old[tenant], keeps(t, o, tenant, 1<<40, now().Add(-time.Duration(i%3)*day)))
		}
	}
	var wg sync.WaitGroup
	for _, tenant := range tenants {
		for i := range n {
			wg.Go(func() {
				r := execution.Result{TraceID: running[tenant][i].TraceID, Status: execution.Success, CompletedAt: now().Add(-time.Duration(i%3) * day), Kept: 1 << i}
				for range 2 { // the second is too late
					if _, _, err := o.Store.Conclude(t.Context(), r, Follow(1)); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				ids := []string{old[tenant][i].TraceID, old[tenant][(i+1)%n].TraceID}
				if i%2 == 1 {
					ids = ids[:1]
				}
				if err := o.Store.Delete(t.Context(), ids); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				a := execution.Admission{Concurrency: 1000, Outputs: execution.OutputQuota{Max: 1 << 50, Keep: keep}}
				if _, err := o.Store.Admit(t.Context(), New(tenant), a); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for _, tenant := range tenants {
		wantKept(t, o, tenant, keep, 1<<n-1)
	}
}
