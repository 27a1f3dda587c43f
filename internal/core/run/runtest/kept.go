package runtest

import (
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// testKept has logs count for what their tenant keeps, from their end until they go.
func testKept(t *testing.T, o Opened) {
	ctx := t.Context()
	kept := func(of tenant.ID) int64 {
		t.Helper()
		k, err := o.Usage.Kept(ctx, of, 24*time.Hour)
		must(t, err)
		if k.ResetsAt.IsZero() != (k.Bytes == 0) {
			t.Errorf("%d bytes reset at %v", k.Bytes, k.ResetsAt)
		}
		return k.Bytes
	}
	begin := func(keep time.Duration) (*run.Run, run.Lease) {
		r := newRun()
		r.Keep = keep
		lease, err := o.Store.Create(ctx, r, []run.Entry{at(1, run.Entry{Begun: request()})}, "a", 0, nil)
		must(t, err)
		return r, lease
	}
	first, lease := begin(time.Hour)
	must(t, o.Store.Append(ctx, first.ID, lease, []run.Entry{at(2, run.Entry{Asked: &run.Asked{Step: 1, Try: 1, Model: "m"}})}))
	if n := kept(owner); n != 0 {
		t.Errorf("a run that has not ended counts %d bytes", n)
	}
	must(t, o.Store.Append(ctx, first.ID, lease, []run.Entry{at(3, ended)}))
	one := kept(owner)
	if one < 100 {
		t.Fatalf("its log counts %d bytes", one)
	}
	if err := o.Store.Append(ctx, first.ID, lease, []run.Entry{at(3, ended)}); err == nil || kept(owner) != one {
		t.Errorf("a second end: %v, %d bytes", err, kept(owner))
	}
	unkept, lease := begin(0)
	must(t, o.Store.Append(ctx, unkept.ID, lease, []run.Entry{at(2, ended)}))
	if n := kept(owner); n != one {
		t.Errorf("with one that is not kept there are %d bytes, want %d", n, one)
	}
	second, lease := begin(2 * time.Hour)
	must(t, o.Store.Append(ctx, second.ID, lease, []run.Entry{at(2, ended)}))
	both := kept(owner)
	if both <= one || kept(other) != 0 {
		t.Errorf("two count %d bytes, one %d; the other tenant has %d", both, one, kept(other))
	}

	must(t, o.Store.Delete(ctx, owner, first.ID))
	if err := o.Store.Delete(ctx, owner, first.ID); err == nil || kept(owner) != both-one {
		t.Errorf("deleted twice: %v, %d bytes, want %d", err, kept(owner), both-one)
	}
	o.Age(t, 2*time.Hour)
	for range 2 {
		_, err := o.Store.Expire(ctx, 10)
		must(t, err)
		if n := kept(owner); n != 0 {
			t.Errorf("%d bytes are left", n)
		}
	}
	days, err := o.Usage.Summary(ctx, owner, time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour))
	must(t, err)
	if len(days) != 0 {
		t.Errorf("what is kept is shown as use: %+v", days)
	}
}
