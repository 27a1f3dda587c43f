package sandboxtest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
)

func snapshot(change func(*sandbox.Snapshot)) *sandbox.Snapshot {
	sn := &sandbox.Snapshot{
		ID: sandbox.NewSnapshotID(), Tenant: "ten_1", Environment: "env_1", Key: "key_1", Executor: "exe_1",
		Sandbox: runtime.NewID(), Session: "s", Name: "default", Image: "default", Limits: runtime.DefaultLimits(),
		SleepAfter: time.Minute, Stored: sandbox.StoredCopy{Bytes: 10},
	}
	if change != nil {
		change(sn)
	}
	return sn
}

// finish makes a snapshot that is found.
func finish(t *testing.T, o Opened, change func(*sandbox.Snapshot)) *sandbox.Snapshot {
	t.Helper()
	sn := snapshot(change)
	must(t, o.Snapshots.Begin(t.Context(), sn, sandbox.SnapshotQuota{}))
	sn.Stored.State = "state of " + string(sn.ID)
	must(t, o.Snapshots.Finish(t.Context(), sn, 0, sandbox.SnapshotQuota{}))
	return sn
}

func testSnapshot(t *testing.T, o Opened) {
	ctx := t.Context()
	sn := snapshot(func(sn *sandbox.Snapshot) {
		sn.Mounts = []storage.Mount{{Slug: "team", Connection: "con_1", Kind: storage.Volume, Path: "a/b", ReadOnly: true}}
		sn.ImageAlias, sn.Connected, sn.Env, sn.Detail = "node:22", true, map[string]string{"A": "b"}, "why"
		sn.DiskLimit = 3 << 20
		sn.Own = sandbox.Size{CPU: 0.5, Memory: 1 << 28, Disk: 1 << 21}
		sn.Permissions.Filesystem.Writable = []string{"/tmp"}
		sn.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"example.com"}}
	})
	_, err := o.Snapshots.Begun(ctx, sn.ID)
	wantKind(t, "one that was not begun", err, fault.NotFound, "")
	must(t, o.Snapshots.Begin(ctx, sn, sandbox.SnapshotQuota{}))
	begun, err := o.Snapshots.Begun(ctx, sn.ID)
	must(t, err)
	if begun.Tenant != sn.Tenant || begun.Environment != sn.Environment || begun.Key != sn.Key || begun.Executor != sn.Executor || begun.Sandbox != sn.Sandbox || begun.Env != nil {
		t.Errorf("begun: %+v", begun)
	}
	_, err = o.Snapshots.Get(ctx, sn.Tenant, sn.Environment, sn.ID)
	wantKind(t, "one that is being made", err, fault.NotFound, "")
	wantKind(t, "deleting it", o.Snapshots.Delete(ctx, sn.Tenant, sn.Environment, sn.ID), fault.NotFound, "")
	sn.Stored = sandbox.StoredCopy{State: "a state", Bytes: 7, Disk: 2, Checkpoint: true, Kernel: "k", Image: "i"}
	must(t, o.Snapshots.Finish(ctx, sn, time.Hour, sandbox.SnapshotQuota{}))
	if sn.ExpiresAt == nil || sn.ExpiresAt.Sub(sn.CreatedAt) != time.Hour {
		t.Errorf("it was made at %v and expires at %v", sn.CreatedAt, sn.ExpiresAt)
	}
	got, err := o.Snapshots.Get(ctx, sn.Tenant, sn.Environment, sn.ID)
	must(t, err)
	if !got.ExpiresAt.Equal(*sn.ExpiresAt) || !got.CreatedAt.Equal(sn.CreatedAt) {
		t.Errorf("got %+v, want %+v", got, sn)
	}
	got.ExpiresAt, got.CreatedAt = sn.ExpiresAt, sn.CreatedAt
	if !got.Permissions.Equal(sn.Permissions) {
		t.Errorf("got %+v, want %+v", got.Permissions, sn.Permissions)
	}
	got.Permissions = sn.Permissions
	if !reflect.DeepEqual(got, sn) {
		t.Errorf("got %+v, want %+v", got, sn)
	}
	_, err = o.Snapshots.Begun(ctx, sn.ID)
	wantKind(t, "a finished one in progress", err, fault.NotFound, "")
	wantKind(t, "finished twice", o.Snapshots.Finish(ctx, sn, 0, sandbox.SnapshotQuota{}), fault.Conflict, "")
	must(t, o.Snapshots.Abandon(ctx, sn.ID))
	must(t, o.Snapshots.AbandonAll(ctx, sn.Executor))
	_, err = o.Snapshots.Get(ctx, sn.Tenant, sn.Environment, sn.ID)
	must(t, err)

	for _, abandon := range []func(*sandbox.Snapshot) error{
		func(sn *sandbox.Snapshot) error { return o.Snapshots.Abandon(ctx, sn.ID) },
		func(sn *sandbox.Snapshot) error { return o.Snapshots.AbandonAll(ctx, sn.Executor) },
	} {
		half := snapshot(nil)
		must(t, o.Snapshots.Begin(ctx, half, sandbox.SnapshotQuota{}))
		must(t, abandon(half))
		wantKind(t, "an abandoned one", o.Snapshots.Finish(ctx, half, 0, sandbox.SnapshotQuota{}), fault.Conflict, "")
	}
	elsewhere := snapshot(func(sn *sandbox.Snapshot) { sn.Executor = "exe_2" })
	must(t, o.Snapshots.Begin(ctx, elsewhere, sandbox.SnapshotQuota{}))
	must(t, o.Snapshots.AbandonAll(ctx, "exe_1"))
	must(t, o.Snapshots.Finish(ctx, elsewhere, 0, sandbox.SnapshotQuota{}))
}

func testSnapshotRoom(t *testing.T, o Opened) {
	ctx := t.Context()
	room := sandbox.SnapshotQuota{Snapshots: 3, Bytes: 30}
	finish(t, o, nil)
	half := snapshot(nil) // which takes room, too
	must(t, o.Snapshots.Begin(ctx, half, room))
	wantKind(t, "too large", o.Snapshots.Begin(ctx, snapshot(func(sn *sandbox.Snapshot) { sn.Stored.Bytes = 11 }), room), fault.Exhausted, "snapshot_size")
	half.Stored.State, half.Stored.Bytes = "s", 21
	wantKind(t, "larger than it began", o.Snapshots.Finish(ctx, half, 0, room), fault.Exhausted, "snapshot_size")
	half.Stored.Bytes = 20
	must(t, o.Snapshots.Finish(ctx, half, 0, room))
	none := func(sn *sandbox.Snapshot) { sn.Stored.Bytes = 0 }
	must(t, o.Snapshots.Begin(ctx, snapshot(none), room))
	wantKind(t, "a fourth", o.Snapshots.Begin(ctx, snapshot(none), room), fault.Exhausted, "snapshots")
	must(t, o.Snapshots.Begin(ctx, snapshot(func(sn *sandbox.Snapshot) { sn.Tenant = "ten_2" }), room))
	must(t, o.Snapshots.Delete(ctx, half.Tenant, half.Environment, half.ID))
	must(t, o.Snapshots.Begin(ctx, snapshot(func(sn *sandbox.Snapshot) { sn.Stored.Bytes = 20 }), room))
}

func testSnapshotOthers(t *testing.T, o Opened) {
	ctx := t.Context()
	sn := finish(t, o, nil)
	for _, who := range [][2]string{{"ten_2", "env_1"}, {"ten_1", "env_2"}} {
		_, err := o.Snapshots.Get(ctx, who[0], who[1], sn.ID)
		wantKind(t, "another's", err, fault.NotFound, "")
		wantKind(t, "deleting another's", o.Snapshots.Delete(ctx, who[0], who[1], sn.ID), fault.NotFound, "")
		page, _, err := o.Snapshots.List(ctx, sandbox.SnapshotFilter{Tenant: who[0], Environment: who[1], Limit: 10})
		if err != nil || len(page) > 0 {
			t.Errorf("%v see %v, %v", who, page, err)
		}
	}
	must(t, o.Snapshots.Delete(ctx, sn.Tenant, sn.Environment, sn.ID))
	_, err := o.Snapshots.Get(ctx, sn.Tenant, sn.Environment, sn.ID)
	wantKind(t, "deleted", err, fault.NotFound, "")
}

func testSnapshotPages(t *testing.T, o Opened) {
	var want []sandbox.SnapshotID
	for range 5 {
		want = append([]sandbox.SnapshotID{finish(t, o, nil).ID}, want...)
	}
	must(t, o.Snapshots.Begin(t.Context(), snapshot(nil), sandbox.SnapshotQuota{})) // it is not listed
	f := sandbox.SnapshotFilter{Tenant: "ten_1", Environment: "env_1", Limit: 2}
	var got []sandbox.SnapshotID
	for {
		page, next, err := o.Snapshots.List(t.Context(), f)
		must(t, err)
		for _, sn := range page {
			got = append(got, sn.ID)
		}
		if next == "" {
			break
		}
		f.Cursor = next
	}
	if len(got) != 5 {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Errorf("%s is missing in %v", id, got)
		}
	}
	f.Environment = "env_2"
	_, _, err := o.Snapshots.List(t.Context(), f)
	wantKind(t, "another list's page", err, fault.Invalid, "")
	_, _, err = o.Snapshots.List(t.Context(), sandbox.SnapshotFilter{Tenant: "ten_1", Environment: "env_1", Limit: 101})
	wantKind(t, "a page of 101", err, fault.Invalid, "")
}

func testSnapshotExpiry(t *testing.T, o Opened) {
	ctx := t.Context()
	kept := finish(t, o, nil)
	for range 3 {
		sn := snapshot(nil)
		must(t, o.Snapshots.Begin(ctx, sn, sandbox.SnapshotQuota{}))
		must(t, o.Snapshots.Finish(ctx, sn, time.Hour, sandbox.SnapshotQuota{}))
	}
	expire := func(most, want int) {
		t.Helper()
		if n, err := o.Snapshots.Expire(ctx, most); err != nil || n != want {
			t.Errorf("%d expired, %v; not %d", n, err, want)
		}
	}
	expire(10, 0)
	o.Age(t, 2*time.Hour)
	expire(2, 2)
	expire(2, 1)
	_, err := o.Snapshots.Get(ctx, kept.Tenant, kept.Environment, kept.ID)
	must(t, err)
}

func testLitter(t *testing.T, o Opened) {
	ctx := t.Context()
	littered := func(what string, want ...string) {
		t.Helper()
		got, err := o.Snapshots.TenantsWithGarbage(ctx)
		must(t, err)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: litter of %v, not %v", what, got, want)
		}
		for _, tenant := range got {
			must(t, o.Snapshots.ClearGarbage(ctx, tenant, 0))
		}
	}
	littered("at first")
	must(t, o.Snapshots.MarkGarbage(ctx, "ten_9"))
	must(t, o.Snapshots.ClearGarbage(ctx, "ten_9", time.Hour)) // too new to be forgotten
	littered("noted", "ten_9")
	sn := finish(t, o, nil)
	littered("begun", "ten_1")
	must(t, o.Snapshots.Delete(ctx, sn.Tenant, sn.Environment, sn.ID))
	littered("deleted", "ten_1")

	kept := finish(t, o, nil)
	sb := run(t, o, create(t, o, nil))
	littered("begun", "ten_1")
	save := func(state sandbox.State, sleep sandbox.Sleep, k *sandbox.StoredCopy) {
		t.Helper()
		sb.State, sb.Sleep, sb.Stored = state, sleep, k
		must(t, o.Store.Save(ctx, sb))
	}
	save(sandbox.Sleeping, sandbox.OnDisk, nil)
	littered("on disk")
	for i := range 2 {
		save(sandbox.Sleeping, sandbox.Stored, &sandbox.StoredCopy{State: fmt.Sprint("asleep-", i), Bytes: 1, Checkpoint: true, Kernel: "k", Image: "i"})
	}
	littered("stored anew", "ten_1")
	same(t, o, sb)
	states, err := o.Snapshots.ReferencedStates(ctx, "ten_1")
	slices.Sort(states)
	if want := []string{"asleep-1", kept.Stored.State}; err != nil || !slices.Equal(states, want) {
		t.Errorf("states are %v, %v; not %v", states, err, want)
	}
	save(sandbox.Sleeping, sandbox.Stored, sb.Stored)
	littered("saved again")
	save(sandbox.Running, "", nil)
	littered("woken", "ten_1")
	save(sandbox.Sleeping, sandbox.Stored, &sandbox.StoredCopy{State: "asleep-2"})
	save(sandbox.Destroyed, "", sb.Stored)
	littered("destroyed", "ten_1")
	if states, err = o.Snapshots.ReferencedStates(ctx, "ten_1"); err != nil || len(states) != 1 {
		t.Errorf("states are %v, %v", states, err)
	}
}

func testBereft(t *testing.T, o Opened) {
	ctx := t.Context()
	bereft := func(want ...runtime.ID) {
		t.Helper()
		if got, err := o.Store.ListWithoutEnvironment(ctx, "exe_1"); err != nil || !slices.Equal(got, want) {
			t.Errorf("bereft are %v, %v; not %v", got, err, want)
		}
	}
	mine := run(t, o, create(t, o, nil))
	run(t, o, create(t, o, func(sb *sandbox.Sandbox) { sb.Environment = "env_2" }))
	run(t, o, create(t, o, func(sb *sandbox.Sandbox) { sb.Name, sb.Executor = "elsewhere", "exe_2" }))
	gone, stays := finish(t, o, nil), finish(t, o, func(sn *sandbox.Snapshot) { sn.Environment = "env_2" })
	half := snapshot(nil)
	must(t, o.Snapshots.Begin(ctx, half, sandbox.SnapshotQuota{}))
	bereft()
	o.Delete(t, "ten_1", "env_1")
	bereft(mine.ID)
	must(t, o.Store.Save(ctx, mine))
	bereft(mine.ID)
	mine.State = sandbox.Destroyed
	must(t, o.Store.Save(ctx, mine))
	bereft()
	_, err := o.Snapshots.Get(ctx, gone.Tenant, gone.Environment, gone.ID)
	wantKind(t, "its snapshot", err, fault.NotFound, "")
	wantKind(t, "one that was being made", o.Snapshots.Finish(ctx, half, 0, sandbox.SnapshotQuota{}), fault.Conflict, "")
	_, err = o.Snapshots.Get(ctx, stays.Tenant, stays.Environment, stays.ID)
	must(t, err)
}
