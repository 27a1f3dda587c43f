// Package runtest is the suite that every run.Store passes.
package runtest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/test/check"
)

// Opened is an empty store.
type Opened struct {
	Store run.Store
	Usage usage.Store
	// Age moves what the store has recorded into the past.
	Age func(t *testing.T, by time.Duration)
}

// Store runs the suite.
func Store(t *testing.T, open func(t *testing.T) Opened) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, o Opened)
	}{
		{"a log is as it was written", testLog},
		{"one lease at a time", testLease},
		{"a run waits until it is due", testWaits},
		{"runs of a restarted process", testAbandon},
		{"cancelling", testCancel},
		{"a tenant's limit", testLimit},
		{"deleting and expiring", testDelete},
		{"what is kept", testKept},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

const owner, other tenant.ID = "ten_00000000000000aa", "ten_00000000000000bb"

func request() *run.Request {
	return &run.Request{Models: []string{"m"}, Instructions: "be brief", Input: []model.Item{model.Text(model.User, "hello")}, Settings: []byte("{}")}
}

func at(seq int64, e run.Entry) run.Entry {
	e.Seq, e.At = seq, time.Now().UTC()
	return e
}

func newRun() *run.Run {
	return &run.Run{
		ID: run.NewID(), Tenant: owner, Key: "key_1", Environment: "env_1", Sandbox: "sbx", Keep: time.Hour,
		Status: run.InProgress, CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
	}
}

func create(t *testing.T, o Opened, holder string) (*run.Run, run.Lease) {
	t.Helper()
	r := newRun()
	lease, err := o.Store.Create(t.Context(), r, []run.Entry{at(1, run.Entry{Begun: request()})}, holder, 0, nil)
	must(t, err)
	return r, lease
}

var must = check.Must

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Fatalf("got %v, want kind %v", err, kind)
	}
}

var ended = run.Entry{Ended: &run.End{Status: run.Completed}}

func testLog(t *testing.T, o Opened) {
	ctx := t.Context()
	r, lease := create(t, o, "a")
	more := []run.Entry{at(2, run.Entry{Asked: &run.Asked{Step: 1, Try: 1, Model: "m"}}), at(3, run.Entry{Answered: &run.Answered{
		Answer: model.Answer{Items: []model.Item{model.Text(model.Assistant, "hello \x00 back")}, Stop: model.StopEnd}, Cost: model.Cost{Total: 7},
	}})}
	must(t, o.Store.Append(ctx, r.ID, lease, more))
	must(t, o.Store.Append(ctx, r.ID, lease, []run.Entry{at(4, ended)}))
	entries, err := o.Store.Log(ctx, r.ID)
	must(t, err)
	s := run.NewState(r.ID)
	for i := range entries {
		must(t, s.Apply(&entries[i]))
	}
	if s.End == nil || s.Cost.Total != 7 || s.Request.Instructions != "be brief" || s.Output[0].Message.Parts[0].Text != "hello \x00 back" {
		t.Errorf("got %+v", s)
	}
	got, err := o.Store.Run(ctx, owner, r.ID)
	must(t, err)
	if got.Status != run.Completed || got.Seq != 4 || got.EndedAt.IsZero() || got.Key != "key_1" || got.Keep != time.Hour || !got.CreatedAt.Equal(r.CreatedAt) {
		t.Errorf("got %+v", got)
	}
	_, err = o.Store.Run(ctx, other, r.ID)
	wantKind(t, err, fault.NotFound)
	// What has ended takes no more, and gaps nothing does.
	if err := o.Store.Append(ctx, r.ID, lease, []run.Entry{at(5, ended)}); !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("after the end: %v", err)
	}
	r, lease = create(t, o, "a")
	if err := o.Store.Append(ctx, r.ID, lease, []run.Entry{at(3, ended)}); !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("with a gap: %v", err)
	}
}

func claim(t *testing.T, o Opened, holder string) []run.Due {
	t.Helper()
	due, _, err := o.Store.Claim(t.Context(), holder, 10)
	must(t, err)
	return due
}

func testLease(t *testing.T, o Opened) {
	ctx := t.Context()
	r, lease := create(t, o, "a")
	if due := claim(t, o, "b"); len(due) != 0 {
		t.Fatalf("taken from who drives it: %+v", due)
	}
	o.Age(t, run.LeaseTime*2/3)
	must(t, o.Store.Renew(ctx, "a"))
	o.Age(t, run.LeaseTime*2/3)
	if due := claim(t, o, "b"); len(due) != 0 {
		t.Fatalf("taken in spite of its renewal: %+v", due)
	}
	o.Age(t, run.LeaseTime)
	due := claim(t, o, "b")
	if len(due) != 1 || due[0].Run.ID != r.ID || due[0].Lease.Epoch != lease.Epoch+1 || due[0].Lease.Holder != "b" {
		t.Fatalf("got %+v", due)
	}
	for name, err := range map[string]error{
		"append":  o.Store.Append(ctx, r.ID, lease, []run.Entry{at(2, ended)}),
		"release": o.Store.Release(ctx, r.ID, lease, time.Now()),
	} {
		if !errors.Is(err, run.ErrLeaseLost) {
			t.Errorf("%s under a lease that is lost: %v", name, err)
		}
	}
	must(t, o.Store.Append(ctx, r.ID, due[0].Lease, []run.Entry{at(2, ended)}))
	o.Age(t, time.Hour)
	if due := claim(t, o, "a"); len(due) != 0 {
		t.Errorf("a run that has ended was taken on: %+v", due)
	}
}

func testWaits(t *testing.T, o Opened) {
	r, lease := create(t, o, "a")
	must(t, o.Store.Release(t.Context(), r.ID, lease, time.Now().Add(time.Minute)))
	due, next, err := o.Store.Claim(t.Context(), "a", 10)
	must(t, err)
	if wait := time.Until(next); len(due) != 0 || wait < 50*time.Second || wait > 61*time.Second {
		t.Fatalf("got %+v, the next in %s", due, wait)
	}
	o.Age(t, time.Minute)
	if due := claim(t, o, "b"); len(due) != 1 {
		t.Errorf("got %+v", due)
	}
}

func testAbandon(t *testing.T, o Opened) {
	mine, _ := create(t, o, "a")
	create(t, o, "b")
	must(t, o.Store.Abandon(t.Context(), "a"))
	if due := claim(t, o, "a"); len(due) != 1 || due[0].Run.ID != mine.ID {
		t.Errorf("got %+v", due)
	}
}

func testCancel(t *testing.T, o Opened) {
	ctx := t.Context()
	r, lease := create(t, o, "a")
	wantKind(t, o.Store.Cancel(ctx, other, r.ID), fault.NotFound)
	must(t, o.Store.Cancel(ctx, owner, r.ID))
	if ids, err := o.Store.Cancelled(ctx, "a"); err != nil || !slices.Equal(ids, []run.ID{r.ID}) {
		t.Errorf("who drives it hears of %v, %v", ids, err)
	}
	// One that is given back meanwhile does not wait.
	must(t, o.Store.Release(ctx, r.ID, lease, time.Now().Add(time.Hour)))
	due := claim(t, o, "a")
	if len(due) != 1 || !due[0].Cancelled {
		t.Fatalf("got %+v", due)
	}
	must(t, o.Store.Append(ctx, r.ID, due[0].Lease, []run.Entry{at(2, ended)}))
	wantKind(t, o.Store.Cancel(ctx, owner, r.ID), fault.Conflict)
	// Nor does one that waits already.
	r, lease = create(t, o, "a")
	must(t, o.Store.Release(ctx, r.ID, lease, time.Now().Add(time.Hour)))
	must(t, o.Store.Cancel(ctx, owner, r.ID))
	if due := claim(t, o, "a"); len(due) != 1 || !due[0].Cancelled {
		t.Errorf("got %+v", due)
	}
}

func testLimit(t *testing.T, o Opened) {
	ctx := t.Context()
	cause := errors.New("the plan")
	begin := func(r *run.Run) (run.Lease, error) {
		return o.Store.Create(ctx, r, []run.Entry{at(1, run.Entry{Begun: request()})}, "a", 2, cause)
	}
	first := newRun()
	lease, err := begin(first)
	must(t, err)
	_, err = begin(newRun())
	must(t, err)
	_, err = begin(newRun())
	wantKind(t, err, fault.Exhausted)
	if !errors.Is(err, cause) {
		t.Errorf("%v has no cause", err)
	}
	theirs := newRun()
	theirs.Tenant = other
	_, err = begin(theirs)
	must(t, err)
	must(t, o.Store.Append(ctx, first.ID, lease, []run.Entry{at(2, ended)}))
	_, err = begin(newRun())
	must(t, err)
}

func hasSandbox(t *testing.T, o Opened, of tenant.ID, sandbox string, want bool) {
	t.Helper()
	if has, err := o.Store.HasSandbox(t.Context(), of, sandbox); err != nil || has != want {
		t.Errorf("a run of %s has the sandbox %q: %v, %v", of, sandbox, has, err)
	}
}

func testDelete(t *testing.T, o Opened) {
	ctx := t.Context()
	r := newRun()
	r.Sandbox = run.SandboxOf(r.ID)
	lease, err := o.Store.Create(ctx, r, []run.Entry{at(1, run.Entry{Begun: request()})}, "a", 0, nil)
	must(t, err)
	wantKind(t, o.Store.Delete(ctx, owner, r.ID), fault.Conflict)
	must(t, o.Store.Append(ctx, r.ID, lease, []run.Entry{at(2, ended)}))
	wantKind(t, o.Store.Delete(ctx, other, r.ID), fault.NotFound)
	hasSandbox(t, o, owner, r.Sandbox, true)
	hasSandbox(t, o, other, r.Sandbox, false)
	must(t, o.Store.Delete(ctx, owner, r.ID))
	hasSandbox(t, o, owner, r.Sandbox, false)
	_, err = o.Store.Run(ctx, owner, r.ID)
	wantKind(t, err, fault.NotFound)
	if entries, err := o.Store.Log(ctx, r.ID); err != nil || len(entries) != 0 {
		t.Errorf("its log has %d entries, %v", len(entries), err)
	}

	kept, lease := create(t, o, "a")
	must(t, o.Store.Append(ctx, kept.ID, lease, []run.Entry{at(2, ended)}))
	unkept := newRun()
	unkept.Keep = 0
	lease, err = o.Store.Create(ctx, unkept, []run.Entry{at(1, run.Entry{Begun: request()})}, "a", 0, nil)
	must(t, err)
	must(t, o.Store.Append(ctx, unkept.ID, lease, []run.Entry{at(2, ended)}))
	create(t, o, "a")
	for _, step := range []struct {
		age  time.Duration
		want []run.ID
	}{{0, nil}, {run.Unkept, []run.ID{unkept.ID}}, {time.Hour, []run.ID{kept.ID}}} {
		o.Age(t, step.age)
		gone, err := o.Store.Expire(ctx, 10)
		if err != nil || !slices.Equal(gone, step.want) {
			t.Errorf("after %s %v are gone, %v; want %v", step.age, gone, err, step.want)
		}
	}
}
