package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// testPanic sees that a caller's mistake does not end the writer that all callers share.
func testPanic(t *testing.T, open opener) {
	db := open(t)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			e := storetest.Execution("a")
			if _, err := db.Executions().Admit(t.Context(), e, execution.Admission{}); err != nil {
				t.Error(err)
			}
			_, first, err := db.Executions().Conclude(t.Context(), storetest.Result(e), func(e *execution.Execution) execution.Consequences {
				if i%10 == 0 {
					panic("no")
				}
				return follow(e)
			})
			if bad := i%10 == 0; bad != (err != nil) || bad == first {
				t.Errorf("end %d: %v, %v", i, first, err)
			}
		})
	}
	wg.Wait()
}

// testClose closes the database under load: what was accepted is written,
// everything else is told so.
func testClose(t *testing.T, open func(t testing.TB) (*store.DB, func() *store.DB)) {
	db, again := open(t)
	var mu sync.Mutex
	admitted := map[string]bool{}
	var wg sync.WaitGroup
	begun := make(chan struct{})
	var once sync.Once
	for range 32 {
		wg.Go(func() {
			for {
				e := storetest.Execution("a")
				_, err := db.Executions().Admit(context.WithoutCancel(t.Context()), e, execution.Admission{})
				if err != nil {
					if fault.KindOf(err) != fault.Unavailable {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				admitted[e.TraceID] = true
				mu.Unlock()
				once.Do(func() { close(begun) })
			}
		})
	}
	<-begun
	must(t, db.Close())
	wg.Wait()
	db = again()
	defer db.Close()
	var n int
	must(t, db.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM executions`).Scan(&n))
	if n != len(admitted) {
		t.Errorf("%d were admitted, %d recorded", len(admitted), n)
	}
}

// testTwo works on one PostgreSQL with two stores, as two gateways do.
func testTwo(t *testing.T, one, two *store.DB) {
	both := []*store.DB{one, two}
	ctx := t.Context()
	t.Run("the first end counts", func(t *testing.T) {
		n := atolltest.Count(40, 400)
		all := make([]*execution.Execution, n)
		for i := range all {
			all[i] = storetest.Execution("ends")
			_, err := one.Executions().Admit(ctx, all[i], execution.Admission{})
			must(t, err)
		}
		var first atomic.Int64
		var wg sync.WaitGroup
		for _, db := range both {
			for _, i := range rand.Perm(n) {
				wg.Go(func() {
					_, won, err := db.Executions().Conclude(ctx, storetest.Result(all[i]), follow)
					if err != nil {
						t.Error(err)
					}
					if won {
						first.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if first.Load() != int64(n) {
			t.Errorf("%d ends of %d executions", first.Load(), n)
		}
		used, err := one.Usage().Month(ctx, "ends")
		if err != nil || fmt.Sprintf("%.3f", used) != fmt.Sprintf("%.3f", float64(n)/1000) {
			t.Errorf("used %v, %v", used, err)
		}
	})
	t.Run("no more run than the plan allows", func(t *testing.T) {
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				_, err := both[i%2].Executions().Admit(ctx, storetest.Execution("limit"), execution.Admission{Concurrency: 9})
				if err == nil {
					admitted.Add(1)
				} else if fault.KindOf(err) != fault.Exhausted {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if admitted.Load() != 9 {
			t.Errorf("%d were admitted", admitted.Load())
		}
	})
	t.Run("a key stands for one execution", func(t *testing.T) {
		for round := range 20 {
			var recorded atomic.Int64
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					earlier, err := both[i%2].Executions().Admit(ctx, storetest.Execution("keys"), execution.Admission{IdempotencyKey: fmt.Sprint(round)})
					if err != nil {
						t.Error(err)
					} else if earlier == nil {
						recorded.Add(1)
					}
				})
			}
			wg.Wait()
			if recorded.Load() != 1 {
				t.Errorf("%d were recorded", recorded.Load())
			}
		}
	})
	t.Run("no overshoot", func(t *testing.T) {
		var passed atomic.Int64
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				b, err := both[i%2].Breakers().Count(ctx, "breakers", fmt.Sprint(i%3), breaker.Caps{TenantDaily: 60, AgentHourly: 25})
				if err != nil {
					t.Error(err)
				} else if b == nil {
					passed.Add(1)
				}
			})
		}
		wg.Wait()
		if passed.Load() != 60 {
			t.Errorf("%d passed", passed.Load())
		}
	})
	t.Run("seals are one chain", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 20 {
					if err := both[i%2].Audit().Append(ctx, auditRow("seals")); err != nil {
						t.Error(err)
					}
					if err := sealAll(ctx, both[i%2], "seals"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		must(t, sealAll(ctx, one, "seals"))
		report, err := audit.NewSealer(two.Audit()).Verify(ctx, "seals", audit.Mark{})
		if err != nil || len(report.Problems) != 0 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}
