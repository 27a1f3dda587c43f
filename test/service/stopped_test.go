package service

import (
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestAStoppedServerStartsNothingLate stops one of three servers until every caller has an
// answer. When it goes on, it must not run what callers were told is lost.
func TestAStoppedServerStartsNothingLate(t *testing.T) {
	t.Parallel()
	servers := together(t, 3, sharing(t))
	stopped := servers[2]
	for _, s := range servers {
		s.Settle(t)
	}
	before := stopped.Metrics(t)
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := sync.OnceFunc(func() {
		if err := stopped.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	})
	defer goOn()

	var mu sync.Mutex
	ran, lost := 0, 0
	var calls sync.WaitGroup
	for i := range 60 {
		calls.Go(func() {
			a, err := servers[i%2].Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "print('ran')", "timeout": 20}, nil)
			mu.Lock()
			defer mu.Unlock()
			var result struct {
				Success bool
				Stdout  string
			}
			if err != nil {
				t.Error(err)
				return
			}
			if a.Status == http.StatusOK {
				a.Into(t, http.StatusOK, &result)
			}
			if result.Success && result.Stdout == "ran\n" {
				ran++
			} else {
				lost++
			}
		})
	}
	calls.Wait()
	t.Logf("%d ran, %d were lost or refused", ran, lost)
	if ran == 0 {
		t.Error("the other servers ran nothing")
	}

	goOn()
	if err := stopped.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // for jobs that it has in hand
	after := stopped.Settle(t)
	started := func(m atolltest.Metrics) float64 { return m.Sum("atoll_execution_starts_total") }
	if n := started(after) - started(before); n != 0 {
		t.Errorf("it ran %v executions after their callers had been answered", n)
	}
	t.Logf("it dropped %v jobs", after.Sum("atoll_jobs_dropped_total")-before.Sum("atoll_jobs_dropped_total"))
}
