package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

func TestFollow(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "pro")
	next := make(chan struct{})
	w.Executor.Program("count", func(r *gatewaytest.Run) int {
		for i := range 10 {
			r.Print(execution.Stdout, fmt.Sprintf("%d\n", i))
			<-next
		}
		return 0
	})
	e, err := w.Execute(t.Context(), p, gatewaytest.Request("count"), streamed)
	if err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	done, err := w.Follow(t.Context(), e, 1, func(events []execution.Event) error {
		for _, ev := range events {
			seqs = append(seqs, ev.Seq)
			next <- struct{}{} // live: the program waits until its line is here
		}
		return nil
	})
	if err != nil || done.Status != execution.Success || string(done.Stdout) != "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n" {
		t.Fatalf("it ended as %+v, %v", done, err)
	}
	if len(seqs) != 10 || seqs[0] != 2 || seqs[9] != 11 {
		t.Errorf("seqs %v", seqs)
	}
	for after, want := range map[int64]int{1: 10, 5: 6, 10: 1, 11: 0, 12: 0} {
		n := 0
		again, err := w.Follow(t.Context(), done, after, func(events []execution.Event) error { n += len(events); return nil })
		if err != nil || n != want || again.Status != execution.Success || string(again.Stdout) != string(done.Stdout) {
			t.Errorf("after %d: %d events, %+v, %v", after, n, again, err)
		}
	}
	gone := errors.New("gone")
	if _, err := w.Follow(t.Context(), done, 1, func([]execution.Event) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("a reader who has gone: %v", err)
	}
}

func TestCancel(t *testing.T) {
	w := gatewaytest.Open(t)
	p, other := w.Principal(t, "a", "pro"), w.Principal(t, "b", "pro")
	e, err := w.Execute(t.Context(), p, gatewaytest.Request("sleep"), streamed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Cancel(t.Context(), other.Tenant.ID, e.TraceID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("by another tenant: %v", err)
	}
	got, err := w.Cancel(t.Context(), p.Tenant.ID, e.TraceID)
	if err != nil || got.Status != execution.Cancelled || got.ExitCode != -1 || got.Error != "Cancelled by user" {
		t.Errorf("cancelled to %+v, %v", got, err)
	}
	if _, err := w.Cancel(t.Context(), p.Tenant.ID, e.TraceID); fault.KindOf(err) != fault.Conflict {
		t.Errorf("again: %v", err)
	}
	if trail := rows(t, w, p, e.TraceID); len(trail) != 1 || trail[0].ExitStatus != audit.Cancelled {
		t.Errorf("the trail is %+v", trail)
	}
}

// record puts an execution into the store that no executor ever gets.
func record(t *testing.T, w *gatewaytest.World, tenantID string, age time.Duration) *execution.Execution {
	t.Helper()
	e := &execution.Execution{
		TraceID: execution.NewTraceID(), Tenant: tenantID, Source: execution.SourceAPI, Delivery: execution.Streamed,
		Language: execution.Python, Status: execution.Running, CreatedAt: time.Now().Add(-age).UTC(), Timeout: time.Minute,
	}
	if _, err := w.DB.Executions().Admit(t.Context(), e, execution.Admission{}); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestCancelWhatNoExecutorHas(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "pro")
	e := record(t, w, p.Tenant.ID, time.Minute)
	got, err := w.Cancel(t.Context(), p.Tenant.ID, e.TraceID)
	if err != nil || got.Status != execution.Cancelled || got.Error != "Cancelled by user" {
		t.Errorf("cancelled to %+v, %v", got, err)
	}
	if e = ended(t, w, e); e.Status != execution.Cancelled {
		t.Errorf("a follower finds %+v", e)
	}
	mustNotStart(t, w, e)
}

// mustNotStart checks that an executor which was paused would drop a concluded job.
func mustNotStart(t *testing.T, w *gatewaytest.World, e *execution.Execution) {
	t.Helper()
	if may, err := w.Bus.Starts().Begin(t.Context(), e.TraceID); err != nil || may {
		t.Errorf("an executor may still start a %s execution: %v, %v", e.Status, may, err)
	}
}

func TestReconcile(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "pro")
	lost := record(t, w, p.Tenant.ID, time.Minute)
	alive, err := w.Execute(t.Context(), p, gatewaytest.Request("sleep"), streamed)
	if err != nil {
		t.Fatal(err)
	}
	w.Sweep(t.Context(), time.Now().Add(time.Second), time.Now())
	lost, err = w.Get(t.Context(), p.Tenant.ID, lost.TraceID)
	if err != nil || lost.Status != execution.Failed || lost.ExitCode != -1 || lost.NotStarted || lost.Error == "" {
		t.Errorf("lost: %+v, %v", lost, err)
	}
	if alive, err = w.Get(t.Context(), p.Tenant.ID, alive.TraceID); err != nil || alive.Status != execution.Running {
		t.Errorf("alive: %+v, %v", alive, err)
	}
	if e := ended(t, w, lost); e.Status != execution.Failed {
		t.Errorf("a follower finds %+v", e)
	}
	mustNotStart(t, w, lost)

	// The only executor knows all that was begun since a time: this was not.
	unbegun := record(t, w, p.Tenant.ID, 0)
	w.Sweep(t.Context(), time.Now().Add(time.Second), unbegun.CreatedAt.Add(-time.Second))
	if unbegun, err = w.Get(t.Context(), p.Tenant.ID, unbegun.TraceID); err != nil || unbegun.Status != execution.Failed || !unbegun.NotStarted {
		t.Errorf("not begun: %+v, %v", unbegun, err)
	}
	if _, err := w.Follow(t.Context(), unbegun, 1, func([]execution.Event) error { return nil }); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("who follows one that was not begun is told %v", err)
	}

	later := record(t, w, p.Tenant.ID, time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	began, end := time.Now(), make(chan error, 1)
	const grace = 300 * time.Millisecond
	go func() { end <- w.Reconcile(ctx, grace) }()
	if e := ended(t, w, later); e.Status != execution.Failed || time.Since(began) < grace {
		t.Errorf("after %s: %+v", time.Since(began), e)
	}
	mustNotStart(t, w, later)

	// An executor that begins one just before it is declared lost has the grace again.
	begun := record(t, w, p.Tenant.ID, time.Minute)
	began = time.Now()
	if may, err := w.Bus.Starts().Begin(t.Context(), begun.TraceID); err != nil || !may {
		t.Fatalf("begin: %v, %v", may, err)
	}
	if e := ended(t, w, begun); e.Status != execution.Failed || time.Since(began) < 2*grace {
		t.Errorf("begun, after %s: %+v", time.Since(began), e)
	}
	stop()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

func TestIdempotency(t *testing.T) {
	w := gatewaytest.Open(t)
	p, other := w.Principal(t, "a", "pro"), w.Principal(t, "b", "pro")
	var runs atomic.Int32
	goOn := make(chan struct{})
	w.Executor.Program("once", func(r *gatewaytest.Run) int {
		runs.Add(1)
		<-goOn
		r.Print(execution.Stdout, "ran\n")
		return 0
	})
	with := func(c gateway.Call) gateway.Call { c.IdempotencyKey = "key"; return c }
	first, err := w.Execute(t.Context(), p, gatewaytest.Request("once"), with(async))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		c := with([]gateway.Call{inline, streamed, async}[i%3])
		all.Go(func() {
			e, err := w.Execute(t.Context(), p, gatewaytest.Request("once"), c)
			if err != nil || e.TraceID != first.TraceID {
				t.Errorf("%s: %+v, %v", c.Delivery, e, err)
				return
			}
			if c.Delivery == execution.Streamed {
				e = ended(t, w, e)
			}
			if c.Delivery != execution.Async && (e.Status != execution.Success || string(e.Stdout) != "ran\n") {
				t.Errorf("%s: %+v", c.Delivery, e)
			}
		})
	}
	for name, req := range map[string]func(r *execution.Request){
		"code":     func(r *execution.Request) { r.Code = "print x" },
		"timeout":  func(r *execution.Request) { r.Timeout = time.Second },
		"language": func(r *execution.Request) { r.Language = execution.Bash },
		"variable": func(r *execution.Request) { r.Env = map[string]string{"A": "b"} },
		"metadata": func(r *execution.Request) { r.Metadata = map[string]string{"A": "b"} },
	} {
		changed := gatewaytest.Request("once")
		req(&changed)
		if _, err := w.Execute(t.Context(), p, changed, with(inline)); fault.KindOf(err) != fault.Conflict {
			t.Errorf("another %s: %v", name, err)
		}
	}
	time.AfterFunc(50*time.Millisecond, func() { close(goOn) })
	all.Wait()
	if e, err := w.Execute(t.Context(), p, gatewaytest.Request("once"), with(inline)); err != nil || e.TraceID != first.TraceID || string(e.Stdout) != "ran\n" {
		t.Errorf("after its end: %+v, %v", e, err)
	}
	if e, err := w.Execute(t.Context(), other, gatewaytest.Request("once"), with(inline)); err != nil || e.TraceID == first.TraceID {
		t.Errorf("another tenant: %+v, %v", e, err)
	}
	if n := runs.Load(); n != 2 {
		t.Errorf("it ran %d times", n)
	}
}

// TestOneOutcome has executions end by themselves, by their time and by their
// caller at the same moment. How long they live follows how long a caller takes to cancel here:
// it grows where the caller came too late, and shrinks where it did not.
func TestOneOutcome(t *testing.T) {
	const races = 1000
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "enterprise")
	w.Executor.Program("brief", func(r *gatewaytest.Run) int {
		select {
		case <-time.After(around(r.Timeout)):
		case <-r.Context.Done():
		}
		return 0
	})
	var mu sync.Mutex
	life := 3 * time.Millisecond // guarded by mu, as is what follows
	outcomes := map[execution.Status]int{}
	w.Executor.Shorten(life)
	room := make(chan struct{}, 8)
	var all sync.WaitGroup
	for range races {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			mu.Lock()
			after := rand.N(life)
			mu.Unlock()
			e, err := w.Execute(t.Context(), p, gatewaytest.Request("brief"), streamed)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(after) // the load: its caller cancels at any moment
			cancelled, err := w.Cancel(t.Context(), p.Tenant.ID, e.TraceID)
			if err != nil && fault.KindOf(err) != fault.Conflict {
				t.Errorf("cancel: %v", err)
			}
			e = ended(t, w, e)
			if (e.Status == execution.Cancelled) != (cancelled != nil) {
				t.Errorf("%s, and cancelling said %v", e.Status, err)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[e.Status]++
			if e.Status == execution.Cancelled {
				life -= life / 8
			} else {
				life = min(life+life/8, time.Second)
			}
			w.Executor.Shorten(life)
		})
	}
	all.Wait()
	t.Logf("outcomes: %v", outcomes)
	if len(outcomes) != 3 {
		t.Errorf("some way to end never came first: %v", outcomes)
	}
	counted := map[string]int{}
	for cursor := ""; ; {
		page, next, err := w.DB.Audit().List(t.Context(), audit.Filter{Tenant: p.Tenant.ID, Limit: 1000, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			counted[r.TraceID]++
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(counted) != races {
		t.Errorf("%d executions have audit rows", len(counted))
	}
	for id, n := range counted {
		if n != 1 {
			t.Errorf("%s has %d audit rows", id, n)
		}
	}
}

// around is half of a time to one and a half of it.
func around(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// flaky is a store whose database is away for a while.
type flaky struct {
	execution.Store
	away atomic.Int32
}

func (f *flaky) Conclude(ctx context.Context, r execution.Result, follow func(*execution.Execution) execution.Consequences) (*execution.Execution, bool, error) {
	if f.away.Add(-1) >= 0 {
		return nil, false, fault.Wrap(fault.Unavailable, errors.New("connection refused"), "the database is away")
	}
	return f.Store.Conclude(ctx, r, follow)
}

func TestTheDatabaseIsAwayForAMoment(t *testing.T) {
	var store flaky
	w := gatewaytest.Open(t, func(c *gateway.Config) { store.Store = c.Store; c.Store = &store })
	p := w.Principal(t, "a", "pro")
	store.away.Store(3)
	e, err := w.Execute(t.Context(), p, gatewaytest.Request("print x"), inline)
	if err != nil || e.Status != execution.Success {
		t.Errorf("got %+v, %v", e, err)
	}
	if trail := rows(t, w, p, e.TraceID); len(trail) != 1 {
		t.Errorf("the trail is %+v", trail)
	}
}
