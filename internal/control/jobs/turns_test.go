package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// A tenant whose receivers never answer leaves workers to the others, however
// many of its webhooks are due; and those it has are delivered in the end.
func TestSilentReceiverDelaysItsOwnTenantOnly(t *testing.T) {
	engines(t, func(t *testing.T, e *engine) {
		const silent, workers, due = "ten_silent", 8, 24
		block, begun := make(chan struct{}), make(chan struct{}, due)
		delivered, outcome := make(chan string, due), make(chan string, due+10)
		c := e.start(t, Config{
			Workers: workers,
			Deliver: func(ctx context.Context, x *execution.Execution) (bool, error) {
				if x.Tenant == silent {
					begun <- struct{}{}
					select {
					case <-block:
					case <-ctx.Done():
						return false, ctx.Err()
					}
				} else {
					delivered <- x.TraceID
				}
				return true, nil
			},
			Observe: func(s string) { outcome <- s },
		})
		for i := range due {
			if err := e.concludeOf(t.Context(), c, silent, fmt.Sprintf("trc_silent%d", i), "https://silent"); err != nil {
				t.Fatal(err)
			}
		}
		wait(t, begun, "attempt at the silent receiver")
		for i := range 5 {
			from := time.Now()
			if err := e.conclude(t.Context(), c, fmt.Sprintf("trc_%d", i), "https://x"); err != nil {
				t.Fatal(err)
			}
			wait(t, delivered, "delivery to the other tenant")
			if d := time.Since(from); d > 10*time.Second {
				t.Errorf("left after %s", d)
			}
			wait(t, outcome, "outcome")
		}
		if n := len(begun); n >= workers/2 {
			t.Errorf("%d of %d workers at the silent receiver", n+1, workers)
		}
		close(block)
		for range due {
			if s := wait(t, outcome, "outcome of the silent tenant's"); s != "delivered" {
				t.Error(s)
			}
		}
	})
}

func TestTurns(t *testing.T) {
	turns := turns{workers: 12}
	all := func(tenant string) (n int) {
		for turns.take(tenant) {
			n++
		}
		return n
	}
	if a, b := all("a"), all("b"); a != 4 || b != 3 {
		t.Errorf("%d and %d of 12", a, b)
	}
	for _, tenant := range []string{"c", "d", "e", "f"} {
		if all(tenant) == 0 {
			t.Errorf("none for %s", tenant)
		}
	}
	for tenant, n := range turns.under {
		for range n {
			turns.give(tenant)
		}
	}
	if turns.total != 0 || len(turns.under) != 0 {
		t.Errorf("%d are left: %v", turns.total, turns.under)
	}
}
