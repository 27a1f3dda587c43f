package e2e

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestPoolReplacesTheDead kills pooled sandboxes from outside.
func TestPoolReplacesTheDead(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	before := s.Settle(t).Sum("atoll_pool_idle")
	dead := atolltest.Trace(s.Data).Sandboxes()
	for _, path := range dead {
		atolltest.KillSandbox(t, path)
	}
	atolltest.Until(t, 30*time.Second, "the dead sandboxes are gone", func() bool {
		return !slices.ContainsFunc(dead, func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		})
	})
	if m := s.Settle(t); m.Sum("atoll_pool_idle") < before {
		t.Errorf("%v sandboxes are pooled, %v were before", m.Sum("atoll_pool_idle"), before)
	}
	s.CheckHealthy(t)
}

// TestEnvironmentsInUseAreWarmAfterARestart restarts a server whose last executions were
// in an environment of its own kind.
func TestEnvironmentsInUseAreWarmAfterARestart(t *testing.T) {
	first := atolltest.Start(t, atolltest.Options{})
	admin := first.AdminKey(t)
	stays := first.Tenant(t, "warm", "enterprise")
	const base = "/v1/admin/tenants/warm"
	first.Must(t, admin, http.MethodPatch, base+"/environments/main", object{"limits": object{"memory": 600 << 20}}).Into(t, http.StatusOK, nil)
	var goes struct{ Key string }
	first.Must(t, admin, http.MethodPost, base+"/keys", object{"name": "goes", "environment": "main"}).Into(t, http.StatusCreated, &goes)
	start := func(s *atolltest.Server, key, language string) string {
		t.Helper()
		var r struct{ Start string }
		s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", object{"language": language, "code": "1"}).Into(t, http.StatusOK, &r)
		return r.Start
	}
	for key, language := range map[string]string{stays: atolltest.Python, goes.Key: atolltest.Node} {
		if got := start(first, key, language); got != "cold" {
			t.Errorf("the first execution in %s started %q", language, got)
		}
	}
	first.Must(t, admin, http.MethodDelete, base+"/keys/goes", nil).Into(t, http.StatusOK, nil)
	data := first.Keep(t)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	s := atolltest.Start(t, atolltest.Options{Data: data})
	plain := []string{"language=python", "preloads=no"}
	atolltest.Until(t, time.Minute, "the sandboxes of both environments are ready", func() bool {
		return s.Metrics(t).Sum("atoll_pool_idle", plain...) == 2
	})
	if n := s.Metrics(t).Sum("atoll_pool_target", "language=node"); n != 1 {
		t.Errorf("%v sandboxes are to be ready for Node.js, whose key was revoked", n)
	}
	if got := start(s, stays, atolltest.Python); got != "warm" {
		t.Errorf("the first execution after the restart started %q", got)
	}
	s.CheckHealthy(t)
	s.Settle(t)
}

// TestSandboxKilledUnderARun checks what a caller is told whose sandbox dies.
func TestSandboxKilledUnderARun(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=0"}})
	answer := make(chan *atolltest.Result, 1)
	go func() {
		r, err := s.Execute(t.Context(), atolltest.Program{Code: "import time\nprint('so far', flush=True)\ntime.sleep(60)"})
		if err != nil {
			t.Error(err)
		}
		answer <- r
	}()
	var running struct {
		Data []struct {
			TraceID string `json:"trace_id"`
		}
	}
	atolltest.Until(t, 20*time.Second, "it is on record", func() bool {
		s.Must(t, atolltest.Key, http.MethodGet, "/v1/executions?status=running", nil).Into(t, http.StatusOK, &running)
		return len(running.Data) == 1
	})
	events(t, s, http.MethodGet, "/v1/executions/"+running.Data[0].TraceID+"/output", nil, func(e event) {
		if e.Type != "output" {
			return
		}
		for _, path := range atolltest.Trace(s.Data).Sandboxes() {
			atolltest.KillSandbox(t, path)
		}
	})
	r := <-answer
	if r == nil || r.Status != http.StatusOK || r.Success || r.ExitCode != -1 || r.Reason() == "" || r.Stdout != "so far\n" {
		t.Errorf("want the output so far and no invented exit code, got %v", r)
	}
	s.CheckHealthy(t)
	s.Settle(t)
}

// TestEmptyPool checks that a claim that finds nothing ready makes a sandbox.
func TestEmptyPool(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=0"}})
	s.CheckHealthy(t)
	m := s.Settle(t)
	if hits, misses := m.Sum("atoll_pool_claims_total", "result=hit"), m.Sum("atoll_pool_claims_total", "result=miss"); hits != 0 || misses != 2 {
		t.Errorf("%v hits and %v misses, want 0 and 2", hits, misses)
	}
	if n := len(atolltest.Trace(s.Data).Sandboxes()); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// TestCallsInARow checks that a series of calls without a pause is served from the
// pool as it is by default.
func TestCallsInARow(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=auto"}})
	plain := []string{"language=python", "preloads=no"}
	n := int(min(20, s.Metrics(t).Sum("atoll_pool_target", plain...)))
	atolltest.Until(t, time.Minute, "a sandbox is ready for each call", func() bool {
		return int(s.Metrics(t).Sum("atoll_pool_idle", plain...)) >= n // the whole pool takes longer to fill
	})
	for range n {
		s.Run(t, atolltest.Program{Code: "print(1)"})
	}
	if misses := s.Metrics(t).Sum("atoll_pool_claims_total", append(plain, "result=miss")...); misses != 0 {
		t.Errorf("%v of %d calls found nothing ready", misses, n)
	}
}

// TestBurst checks that 50 at once all succeed, with a pool far smaller.
func TestBurst(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=2"}})
	burst(t, s, atolltest.Count(50, 500))
	s.Settle(t)
}

// TestFullQueue checks that what no longer fits the queue is refused in a way
// that is safe to repeat.
func TestFullQueue(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_MAX_CONCURRENT=1", "ATOLL_MAX_QUEUE=1"}})
	answers := make(chan *atolltest.Result, 8)
	for range cap(answers) {
		go func() {
			r, err := s.Execute(t.Context(), atolltest.Program{Language: atolltest.Bash, Code: "sleep 1; echo ok"})
			if err != nil {
				t.Error(err)
			}
			answers <- r
		}()
	}
	served, refused := 0, 0
	for range cap(answers) {
		switch r := <-answers; {
		case r == nil:
		case r.Status == http.StatusOK && r.Stdout == "ok\n":
			served++
		case r.Status == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "" && r.Reason() == "service_unavailable" && r.Message != "":
			refused++
		default:
			t.Error(r)
		}
	}
	if served < 2 || served+refused != cap(answers) || refused == 0 {
		t.Errorf("%d were served and %d refused", served, refused)
	}
	s.CheckHealthy(t)
}

// TestPoolMetrics checks the figures that operators watch.
func TestPoolMetrics(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	s.Settle(t)
	s.Run(t, atolltest.Program{Code: "1"})
	s.Run(t, atolltest.Program{Language: atolltest.Bash, Code: "exit 3"})
	m := s.Settle(t)
	for _, c := range []struct {
		name   string
		labels []string
		least  float64
	}{
		{"atoll_pool_claims_total", []string{"result=hit", "language=python"}, 1},
		{"atoll_pool_claims_total", []string{"result=hit", "language=bash"}, 1},
		{"atoll_pool_build_seconds", []string{"language=python", "preloads=yes"}, 1},
		{"atoll_pool_build_seconds", []string{"language=python", "preloads=no"}, 2},
		{"atoll_pool_idle", []string{"language=node"}, 1},
		{"atoll_pool_target", []string{"language=node"}, 1},
		{"atoll_executions_total", []string{"status=success", "start=warm"}, 1},
		{"atoll_executions_total", []string{"status=failed", "language=bash"}, 1},
		{"atoll_execution_starts_total", []string{"start=warm", "reason=pooled"}, 1},
		{"atoll_execution_seconds", nil, 2},
		{"process_open_fds", nil, 1},
		{"go_goroutines", nil, 1},
	} {
		if got := m.Sum(c.name, c.labels...); got < c.least {
			t.Errorf("%s%v is %v, want at least %v", c.name, c.labels, got, c.least)
		}
	}
	for _, name := range []string{"atoll_pool_claims_total", "atoll_pool_build_failures_total"} {
		if !m.Has(name) {
			t.Errorf("there is no %s", name)
		}
	}
	if n := m.Sum("atoll_pool_build_failures_total"); n != 0 {
		t.Errorf("%v sandboxes could not be made\n%s", n, s.Log())
	}
}

// TestPreloadsOfTheReserve has all sandboxes with preloads that are ready run at the same
// time, those that share their memory among them: each program changes what it and a child
// have, and finds nothing of the others'.
func TestPreloadsOfTheReserve(t *testing.T) {
	next := 2 * runtime.NumCPU() // do not share
	ready := next + 3
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=" + strconv.Itoa(ready)}})
	for round := range 2 {
		atolltest.Until(t, 2*time.Minute, "all are ready, and those beyond the next share the memory of a checkpoint", func() bool {
			idle := int(s.Metrics(t).Sum("atoll_pool_idle", "language=python", "preloads=yes"))
			return idle >= ready && idle-sharing(t, s) == next
		})
		var runs sync.WaitGroup
		for n := range ready {
			runs.Go(func() {
				code := "n = " + strconv.Itoa(n) + `
import os, pandas
frame = pandas.DataFrame({"a": range(1000)})
pandas.mark = getattr(pandas, "mark", 0) + n
r, w = os.pipe()
if os.fork() == 0:
    frame["a"] += 1
    pandas.mark += 1
    os.write(w, f"{frame.a.sum()} {pandas.mark}".encode())
    os._exit(0)
os.wait()
print(frame.a.sum(), pandas.mark, os.read(r, 99).decode())`
				r, err := s.Execute(t.Context(), atolltest.Program{Code: code})
				want := fmt.Sprintf("499500 %d 500500 %d\n", n, n+1)
				if err != nil || r.Stdout != want || r.ExitCode != 0 {
					t.Errorf("%d of round %d: %+v, %v", n, round, r, err)
				}
			})
		}
		runs.Wait()
	}
	s.Settle(t)
}

// sharing is how many of a server's sandboxes have kernels that map a checkpoint's pages.
func sharing(t *testing.T, s *atolltest.Server) (n int) {
	t.Helper()
	left, err := atolltest.Trace(s.Data).Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left.Processes {
		pid, _, _ := strings.Cut(p, " ")
		maps, _ := os.ReadFile("/proc/" + pid + "/maps")
		line, _ := os.ReadFile("/proc/" + pid + "/cmdline") // that of helper processes is empty
		if len(line) > 0 && strings.Contains(string(maps), "/templates/") {
			n++
		}
	}
	return n
}
