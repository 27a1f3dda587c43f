// Package threadtest is the suite that every thread.Records passes, together
// with the execution.Store beside it: an execution uses its thread.
package threadtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/execution/executiontest"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/test/check"
)

// Opened is an empty store.
type Opened struct {
	Records    thread.Records
	Executions execution.Store
	// Age makes threads and leases look as if so much time had passed since.
	Age func(t *testing.T, by time.Duration)
}

// Records runs the suite.
func Records(t *testing.T, open func(t *testing.T) Opened) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, o Opened)
	}{
		{"an execution moves its thread on", testExecution},
		{"an end without a state leaves the thread as it was", testNoState},
		{"only the recorded end counts", testLateEnd},
		{"one execution of a thread at a time", testBusy},
		{"one execution of a thread at a time, all at once", testBusyRace},
		{"no update is lost", func(t *testing.T, o Opened) { Counting(t, o) }},
		{"a lease keeps others away", testLease},
		{"a lease that ran out is lost", testLostLease},
		{"no more threads than the plan allows", testRoom},
		{"pages, by id", testPages},
		{"deletion", testDelete},
		{"threads expire", testExpiry},
		{"litter stays listed until it is old", testLitter},
		{"what is another tenant's does not exist", testOthers},
		{"executions are found by their thread", testList},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

var (
	must     = check.Must
	wantKind = check.Kind
)

// begin admits an execution with a thread.
func begin(t *testing.T, o Opened, tenant, id string) *execution.Execution {
	t.Helper()
	e := on(tenant, id)
	_, err := o.Executions.Admit(t.Context(), e, execution.Admission{})
	must(t, err)
	return e
}

func on(tenant, id string) *execution.Execution {
	return executiontest.New(tenant, func(e *execution.Execution) { e.Thread = id })
}

// end records the end of an execution; state is what was saved, "-" for nothing.
func end(t *testing.T, o Opened, e *execution.Execution, state string) {
	t.Helper()
	r := execution.Result{TraceID: e.TraceID, Status: execution.Success}
	if state != "-" {
		r.Thread = &execution.ThreadState{State: state, Bytes: 10, Files: 2}
	}
	_, _, err := o.Executions.Conclude(t.Context(), r, executiontest.Follow(0))
	must(t, err)
}

// save makes a thread with a state.
func save(t *testing.T, o Opened, tenant, id, state string) {
	t.Helper()
	end(t, o, begin(t, o, tenant, id), state)
}

func stateOf(t *testing.T, o Opened, tenant, id string) string {
	t.Helper()
	got, err := o.Records.Thread(t.Context(), tenant, id)
	must(t, err)
	return got.State
}

func testExecution(t *testing.T, o Opened) {
	e := begin(t, o, "a", "t")
	if e.ThreadState != "" {
		t.Errorf("a new thread has the state %q", e.ThreadState)
	}
	_, err := o.Records.Thread(t.Context(), "a", "t")
	wantKind(t, "a thread that was never saved", err, fault.NotFound)
	end(t, o, e, "s1")
	got, err := o.Records.Thread(t.Context(), "a", "t")
	must(t, err)
	if got.Tenant != "a" || got.ID != "t" || got.State != "s1" || got.Bytes != 10 || got.Files != 2 || got.CreatedAt.IsZero() || got.UpdatedAt.IsZero() || got.ExpiresAt != nil {
		t.Errorf("saved %+v", got)
	}
	e = begin(t, o, "a", "t")
	if e.ThreadState != "s1" {
		t.Errorf("the next execution begins with %q", e.ThreadState)
	}
	end(t, o, e, "s2")
	if s := stateOf(t, o, "a", "t"); s != "s2" {
		t.Errorf("the state is %q", s)
	}
	record, err := o.Executions.Get(t.Context(), "a", e.TraceID)
	must(t, err)
	if record.Thread != "t" {
		t.Errorf("the record has the thread %q", record.Thread)
	}
}

func testNoState(t *testing.T, o Opened) {
	save(t, o, "a", "t", "s1")
	end(t, o, begin(t, o, "a", "t"), "-")
	if s := stateOf(t, o, "a", "t"); s != "s1" {
		t.Errorf("the state is %q", s)
	}
	end(t, o, begin(t, o, "a", "new"), "-")
	_, err := o.Records.Thread(t.Context(), "a", "new")
	wantKind(t, "a thread that was never saved", err, fault.NotFound)
}

func testLateEnd(t *testing.T, o Opened) {
	save(t, o, "a", "t", "s1")
	e := begin(t, o, "a", "t")
	end(t, o, e, "-")
	end(t, o, e, "late") // an executor that was taken for lost
	if s := stateOf(t, o, "a", "t"); s != "s1" {
		t.Errorf("the state is %q", s)
	}
}

func testBusy(t *testing.T, o Opened) {
	e := begin(t, o, "a", "t")
	_, err := o.Executions.Admit(t.Context(), on("a", "t"), execution.Admission{})
	wantKind(t, "a second execution", err, fault.Conflict)
	_, err = o.Records.Lease(t.Context(), "a", "t", "x", time.Minute, 0)
	wantKind(t, "an edit", err, fault.Conflict)
	wantKind(t, "deletion", o.Records.DeleteThread(t.Context(), "a", "t"), fault.Conflict)
	begin(t, o, "a", "u")
	begin(t, o, "b", "t")
	begin(t, o, "a", "")
	begin(t, o, "a", "")
	end(t, o, e, "-")
	begin(t, o, "a", "t")
}

func testBusyRace(t *testing.T, o Opened) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var admitted []*execution.Execution
	for range 20 {
		wg.Go(func() {
			e := on("a", "t")
			_, err := o.Executions.Admit(t.Context(), e, execution.Admission{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				admitted = append(admitted, e)
			} else if fault.KindOf(err) != fault.Conflict {
				t.Error(err)
			}
		})
		wg.Go(func() {
			token := execution.NewTraceID()
			_, err := o.Records.Lease(t.Context(), "a", "u", token, time.Minute, 0)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				admitted = append(admitted, &execution.Execution{Thread: "u"})
			} else if fault.KindOf(err) != fault.Conflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, e := range admitted {
		count[e.Thread]++
	}
	if count["t"] != 1 || count["u"] != 1 {
		t.Errorf("at the same time: %v", count)
	}
}

// Counting has executions and edits count in one thread, through stores of one
// database: each begins in the state that the one before has left.
func Counting(t *testing.T, stores ...Opened) {
	const workers, each = 4, 25
	count := func(state string) (n int) {
		_, _ = fmt.Sscanf(state, "%d", &n) // a new thread has none
		return n
	}
	step := func(o Opened, edit bool) (n int, err error) {
		if edit {
			token := execution.NewTraceID()
			was, err := o.Records.Lease(t.Context(), "a", "t", token, time.Minute, 0)
			if err != nil {
				return 0, err
			}
			n = count(was.State) + 1
			return n, o.Records.Commit(t.Context(), "a", "t", token, execution.ThreadState{State: fmt.Sprint(n)})
		}
		e := on("a", "t")
		if _, err := o.Executions.Admit(t.Context(), e, execution.Admission{}); err != nil {
			return 0, err
		}
		n = count(e.ThreadState) + 1
		end(t, o, e, fmt.Sprint(n))
		return n, nil
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var seen []int
	for i := range workers {
		wg.Go(func() {
			for done := 0; done < each; {
				n, err := step(stores[i%len(stores)], i == 0)
				if err != nil && fault.KindOf(err) == fault.Conflict {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				done++
				mu.Lock()
				seen = append(seen, n)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(seen)
	for i, n := range seen {
		if n != i+1 {
			t.Fatalf("an update was lost: %v", seen)
		}
	}
	if got := stateOf(t, stores[0], "a", "t"); got != fmt.Sprint(workers*each) {
		t.Errorf("the thread is in state %s", got)
	}
}

func testLease(t *testing.T, o Opened) {
	save(t, o, "a", "t", "s1")
	got, err := o.Records.Lease(t.Context(), "a", "t", "x", time.Minute, 0)
	must(t, err)
	if got.State != "s1" || got.UpdatedAt.IsZero() {
		t.Errorf("leased %+v", got)
	}
	_, err = o.Executions.Admit(t.Context(), on("a", "t"), execution.Admission{})
	wantKind(t, "an execution meanwhile", err, fault.Conflict)
	_, err = o.Records.Lease(t.Context(), "a", "t", "y", time.Minute, 0)
	wantKind(t, "another edit meanwhile", err, fault.Conflict)
	must(t, o.Records.Extend(t.Context(), "a", "t", "x", time.Minute))
	wantKind(t, "another's lease", o.Records.Extend(t.Context(), "a", "t", "y", time.Minute), fault.Conflict)
	wantKind(t, "another's commit", o.Records.Commit(t.Context(), "a", "t", "y", execution.ThreadState{State: "no"}), fault.Conflict)
	must(t, o.Records.Release(t.Context(), "a", "t", "y"))
	must(t, o.Records.Commit(t.Context(), "a", "t", "x", execution.ThreadState{State: "s2", Bytes: 7, Files: 1}))
	wantKind(t, "a second commit", o.Records.Commit(t.Context(), "a", "t", "x", execution.ThreadState{State: "no"}), fault.Conflict)
	if s := stateOf(t, o, "a", "t"); s != "s2" {
		t.Errorf("the state is %q", s)
	}

	got, err = o.Records.Lease(t.Context(), "a", "new", "x", time.Minute, 0)
	must(t, err)
	if got.State != "" || !got.UpdatedAt.IsZero() {
		t.Errorf("a new one: %+v", got)
	}
	must(t, o.Records.Release(t.Context(), "a", "new", "x"))
	begin(t, o, "a", "new")
	_, err = o.Records.Thread(t.Context(), "a", "new")
	wantKind(t, "one that was released before it was saved", err, fault.NotFound)
}

func testLostLease(t *testing.T, o Opened) {
	save(t, o, "a", "t", "s1")
	_, err := o.Records.Lease(t.Context(), "a", "t", "x", time.Minute, 0)
	must(t, err)
	o.Age(t, 2*time.Minute)
	e := begin(t, o, "a", "t")
	wantKind(t, "a commit after the time", o.Records.Commit(t.Context(), "a", "t", "x", execution.ThreadState{State: "no"}), fault.Conflict)
	wantKind(t, "extending after the time", o.Records.Extend(t.Context(), "a", "t", "x", time.Minute), fault.Conflict)
	end(t, o, e, "s2")
	if s := stateOf(t, o, "a", "t"); s != "s2" {
		t.Errorf("the state is %q", s)
	}
}

func testRoom(t *testing.T, o Opened) {
	save(t, o, "a", "t1", "s")
	save(t, o, "a", "t2", "s")
	save(t, o, "b", "t3", "s")
	few := execution.Admission{Threads: 2}
	_, err := o.Executions.Admit(t.Context(), on("a", "t3"), few)
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Exhausted || f.Dimension != "threads" {
		t.Errorf("a third thread: %v", err)
	}
	_, err = o.Records.Lease(t.Context(), "a", "t3", "x", time.Minute, 2)
	wantKind(t, "a third thread by an edit", err, fault.Exhausted)
	_, err = o.Executions.Admit(t.Context(), on("a", "t2"), few)
	must(t, err)
	must(t, o.Records.DeleteThread(t.Context(), "a", "t1"))
	_, err = o.Records.Lease(t.Context(), "a", "t4", "x", time.Minute, 2)
	must(t, err)
	_, err = o.Records.Lease(t.Context(), "a", "t5", "y", time.Minute, 2)
	wantKind(t, "a third thread beside one that is being made", err, fault.Exhausted)
	must(t, o.Records.Release(t.Context(), "a", "t4", "x"))
	_, err = o.Executions.Admit(t.Context(), on("a", "t3"), few)
	must(t, err)
}

func testPages(t *testing.T, o Opened) {
	for _, id := range []string{"b-1", "a", "b-3", "b-2", "B", "c"} {
		save(t, o, "a", id, "s")
	}
	save(t, o, "other", "b-9", "s")
	var got []string
	f := thread.Filter{Tenant: "a", Prefix: "b", Limit: 2}
	for {
		page, next, err := o.Records.Threads(t.Context(), f)
		must(t, err)
		for _, th := range page {
			got = append(got, th.ID)
		}
		if next == "" {
			break
		}
		f.Cursor = next
	}
	if want := []string{"b-1", "b-2", "b-3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	page, next, err := o.Records.Threads(t.Context(), thread.Filter{Tenant: "a", Limit: 100})
	must(t, err)
	if len(page) != 6 || next != "" {
		t.Errorf("%d threads, next %q", len(page), next)
	}
	_, _, err = o.Records.Threads(t.Context(), thread.Filter{Tenant: "other", Cursor: f.Cursor, Limit: 1})
	wantKind(t, "another list's cursor", err, fault.Invalid)
	for _, limit := range []int{0, 101} {
		_, _, err = o.Records.Threads(t.Context(), thread.Filter{Tenant: "a", Limit: limit})
		wantKind(t, fmt.Sprint("a limit of ", limit), err, fault.Invalid)
	}
}

func testDelete(t *testing.T, o Opened) {
	save(t, o, "a", "t", "s1")
	must(t, o.Records.DeleteThread(t.Context(), "a", "t"))
	_, err := o.Records.Thread(t.Context(), "a", "t")
	wantKind(t, "a deleted one", err, fault.NotFound)
	wantKind(t, "deleting it again", o.Records.DeleteThread(t.Context(), "a", "t"), fault.NotFound)
	if e := begin(t, o, "a", "t"); e.ThreadState != "" {
		t.Errorf("it comes back with %q", e.ThreadState)
	}
}

func testExpiry(t *testing.T, o Opened) {
	for _, id := range []string{"idle", "dated", "late", "busy"} {
		save(t, o, "a", id, "s")
	}
	soon, later := time.Now().Add(time.Minute), time.Now().Add(1000*time.Hour)
	must(t, o.Records.SetExpiry(t.Context(), "a", "dated", &soon))
	must(t, o.Records.SetExpiry(t.Context(), "a", "late", &later))
	wantKind(t, "no thread's expiry", o.Records.SetExpiry(t.Context(), "a", "none", &soon), fault.NotFound)
	n, err := o.Records.ExpireThreads(t.Context(), time.Hour, 100)
	if must(t, err); n != 0 {
		t.Errorf("%d went too early", n)
	}
	begin(t, o, "a", "busy")
	o.Age(t, 2*time.Hour)
	save(t, o, "a", "fresh", "s")
	n, err = o.Records.ExpireThreads(t.Context(), 0, 100)
	if must(t, err); n != 1 {
		t.Errorf("%d went by their own time", n)
	}
	n, err = o.Records.ExpireThreads(t.Context(), time.Hour, 100)
	if must(t, err); n != 1 {
		t.Errorf("%d went by being idle", n)
	}
	page, _, err := o.Records.Threads(t.Context(), thread.Filter{Tenant: "a", Limit: 10})
	must(t, err)
	var left []string
	for _, th := range page {
		left = append(left, th.ID)
	}
	if want := []string{"busy", "fresh", "late"}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	must(t, o.Records.SetExpiry(t.Context(), "a", "late", nil))
	if got, err := o.Records.Thread(t.Context(), "a", "late"); err != nil || got.ExpiresAt != nil {
		t.Errorf("an expiry taken back: %+v, %v", got, err)
	}
}

func testLitter(t *testing.T, o Opened) {
	littered := func() []string {
		all, err := o.Records.TenantsWithGarbage(t.Context())
		must(t, err)
		return all
	}
	begin(t, o, "c", "")
	if all := littered(); len(all) != 0 {
		t.Errorf("before there are threads: %v", all)
	}
	save(t, o, "a", "t", "s1")
	save(t, o, "a", "u", "s2")
	if all := littered(); !slices.Equal(all, []string{"a"}) {
		t.Errorf("littered are %v", all)
	}
	states, err := o.Records.ReferencedStates(t.Context(), "a")
	must(t, err)
	if slices.Sort(states); !slices.Equal(states, []string{"s1", "s2"}) {
		t.Errorf("states are %v", states)
	}
	must(t, o.Records.ClearGarbage(t.Context(), "a", time.Hour))
	if len(littered()) != 1 {
		t.Error("forgotten too early")
	}
	o.Age(t, 2*time.Hour)
	must(t, o.Records.ClearGarbage(t.Context(), "a", time.Hour))
	if all := littered(); len(all) != 0 {
		t.Errorf("littered are still %v", all)
	}
	must(t, o.Records.DeleteThread(t.Context(), "a", "t"))
	if len(littered()) != 1 {
		t.Error("a deletion leaves no litter")
	}
}

func testOthers(t *testing.T, o Opened) {
	save(t, o, "a", "t", "s1")
	_, err := o.Records.Thread(t.Context(), "b", "t")
	wantKind(t, "get", err, fault.NotFound)
	wantKind(t, "delete", o.Records.DeleteThread(t.Context(), "b", "t"), fault.NotFound)
	wantKind(t, "expire", o.Records.SetExpiry(t.Context(), "b", "t", nil), fault.NotFound)
	if e := begin(t, o, "b", "t"); e.ThreadState != "" {
		t.Errorf("another tenant's execution begins with %q", e.ThreadState)
	}
	if s := stateOf(t, o, "a", "t"); s != "s1" {
		t.Errorf("the state is %q", s)
	}
}

func testList(t *testing.T, o Opened) {
	save(t, o, "a", "t", "s1")
	save(t, o, "a", "t", "s2")
	save(t, o, "a", "u", "s3")
	begin(t, o, "a", "")
	page, _, err := o.Executions.List(t.Context(), execution.Filter{Tenant: "a", Thread: "t", Limit: 10})
	must(t, err)
	if len(page) != 2 || page[0].Thread != "t" || page[1].Thread != "t" {
		t.Errorf("%d executions of the thread", len(page))
	}
}
