package service

import (
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestLongWaits waits for a minute: until the other servers give up a lost one, for both ways to lose it,
// and until the bus delivers a killed server's results again. Meanwhile it runs other tests that mostly
// wait, one after the other. Each has its own servers.
func TestLongWaits(t *testing.T) {
	t.Parallel()
	var minutes sync.WaitGroup
	defer minutes.Wait()
	minutes.Go(func() { t.Run("stopped server", stoppedServer) })
	minutes.Go(func() { t.Run("killed server", killedBesideAnother) })
	minutes.Go(func() { t.Run("deleted tenant", deletedTenant) })
	t.Run("killed handoffs", killedHandoffs)
	t.Run("killed wait", killedWait)
	t.Run("session sandboxes", sessionSandboxes)
	t.Run("named tools", namedTools)
	t.Run("named skills", namedSkills)
	t.Run("named web", namedWeb)
	t.Run("traces", traces)
	t.Run("trail is bounded", trailIsBounded)
}

// stoppedServer stops one of three servers until every caller has an answer. When the server continues,
// it must not run the executions that it has reported as lost.
func stoppedServer(t *testing.T) {
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
	ran, lost, refused := 0, 0, 0
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
			if a.Status == http.StatusServiceUnavailable { // Atoll started nothing
				refused++
				return
			}
			a.Into(t, a.Status, &result)
			if result.Success && result.Stdout == "ran\n" {
				ran++
			} else {
				lost++
			}
		})
	}
	calls.Wait()
	t.Logf("%d ran, %d were lost, %d were refused", ran, lost, refused)
	if ran == 0 || lost == 0 {
		t.Fatal("want some executions on the running servers, and some on the stopped one")
	}

	goOn()
	if err := stopped.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	dropped := func(m atolltest.Metrics) int { return int(m.Sum("atoll_jobs_dropped_total")) }
	atolltest.Until(t, 3*time.Minute, "the server decides about every job that it has in hand", func() bool {
		return dropped(stopped.Metrics(t))-dropped(before) >= lost
	})
	after := stopped.Settle(t)
	started := func(m atolltest.Metrics) float64 { return m.Sum("atoll_execution_starts_total") }
	if n := started(after) - started(before); n != 0 {
		t.Errorf("it ran %v executions after their callers had been answered", n)
	}
}
