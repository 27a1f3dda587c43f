// Package sandboxtest is the suite that every sandbox.Store passes, and what tests of
// sleep have sandboxes run.
package sandboxtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Opened is an empty store, with the stores that it writes to as well.
type Opened struct {
	Store     sandbox.Store
	Snapshots sandbox.SnapshotStore
	Audit     audit.Store
	Usage     usage.Store
	// Delete deletes an environment of a tenant.
	Delete func(t *testing.T, tenant, environment string)
	// Tenant makes a tenant with a budget of a month, 0 for none.
	Tenant func(t *testing.T, tenant string, credits float64)
	// Keys makes a tenant with an environment, and keys of it; the last is revoked.
	Keys func(t *testing.T, tenant, environment string) []string
	// Age makes destroyed sandboxes, and what is noted of snapshots, look as if so
	// much time had passed since.
	Age func(t *testing.T, by time.Duration)
}

// Store runs the suite.
func Store(t *testing.T, open func(t *testing.T) Opened) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, o Opened)
	}{
		{"what is recorded is found again", testRecord},
		{"why programs were ended is found again", testEndings},
		{"one sandbox of a name", testName},
		{"one sandbox of a name, all at once", testNameRace},
		{"a name is free when its sandbox is destroyed", testDestroyed},
		{"no more sandboxes than the plan allows", testRoom},
		{"no more memory than the plan allows", testMemory},
		{"no more than the budget", testBudget},
		{"a budget is asked for by itself", testAfford},
		{"a sandbox is found whichever machine has it", testElsewhere},
		{"the keys of a sandbox are found", testHolders},
		{"an executor holds its own sandboxes", testHolds},
		{"what is another tenant's does not exist", testOthers},
		{"only what never was one is forgotten", testForget},
		{"time is charged once", testMeter},
		{"a call leaves a row and an entry", testCall},
		{"records of destroyed sandboxes go", testPurge},
		{"a snapshot is found once it is finished", testSnapshot},
		{"no more snapshots than the plan allows", testSnapshotRoom},
		{"what is another's snapshot does not exist", testSnapshotOthers},
		{"snapshots are listed newest first", testSnapshotPages},
		{"snapshots expire", testSnapshotExpiry},
		{"files without a record are litter", testLitter},
		{"a deleted environment leaves nothing behind", testBereft},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind, dimension string) {
	t.Helper()
	f, ok := err.(*fault.Error) //nolint:errorlint // stores return them as they are
	if !ok || f.Kind != kind || f.Dimension != dimension {
		t.Errorf("%s: %v, not of kind %d, dimension %q", what, err, kind, dimension)
	}
}

func draft(change func(*sandbox.Sandbox)) *sandbox.Sandbox {
	sb := &sandbox.Sandbox{
		ID: runtime.NewID(), Tenant: "ten_1", Environment: "env_1", Session: "s", Name: "default", Key: "key_1", Executor: "exe_1",
		Image: "default", Limits: runtime.DefaultLimits(), State: sandbox.Creating, SleepAfter: time.Minute,
	}
	if change != nil {
		change(sb)
	}
	return sb
}

func create(t *testing.T, o Opened, change func(*sandbox.Sandbox)) *sandbox.Sandbox {
	t.Helper()
	sb := draft(change)
	there, err := o.Store.Create(t.Context(), sb, sandbox.Quota{})
	must(t, err)
	if there != nil {
		t.Fatalf("there is one of this name: %s", there.ID)
	}
	return sb
}

// run has a sandbox run.
func run(t *testing.T, o Opened, sb *sandbox.Sandbox) *sandbox.Sandbox {
	t.Helper()
	sb.State = sandbox.Running
	must(t, o.Store.Save(t.Context(), sb))
	return sb
}

func testRecord(t *testing.T, o Opened) {
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	sb := create(t, o, func(sb *sandbox.Sandbox) {
		sb.Session, sb.ImageAlias, sb.Disk, sb.Connected, sb.ExpiresAt, sb.SleepAfter = "of \"mine\" é", "node:22", 7<<30, true, &expires, -1*time.Microsecond
		sb.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"*.example.com"}}
		sb.Own = sandbox.Size{CPU: 0.5, Memory: 1 << 28, Disk: 1 << 33}
		sb.ImageWarning = "\"node:22\" runs another"
		sb.Env = map[string]string{"A": "secret enough", "B": ""}
		sb.Mounts = []storage.Mount{{Slug: "team", Connection: "con_1", Kind: storage.Volume, Path: "a/b"}, {Slug: "x", Connection: "con_2", Kind: storage.S3, ReadOnly: true}}
	})
	if age := time.Since(sb.CreatedAt); age < -time.Minute || age > time.Minute || !sb.UsedAt.Equal(sb.CreatedAt) || !sb.MeteredAt.Equal(sb.CreatedAt) {
		t.Errorf("times of a new sandbox: %+v", sb)
	}
	same(t, o, sb)
	sb.State, sb.Sleep, sb.Detail, sb.SleepAfter = sandbox.Sleeping, sandbox.OnDisk, "because", time.Hour
	sb.UsedAt, sb.ExpiresAt = sb.UsedAt.Add(time.Minute), nil
	sb.Permissions.Network, sb.Mounts = runtime.NetworkPolicy{}, sb.Mounts[1:]
	must(t, o.Store.Save(t.Context(), sb))
	same(t, o, sb)
}

func testEndings(t *testing.T, o Opened) {
	sb := run(t, o, create(t, o, nil))
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	for range 2 {
		sb.Endings = append(sb.Endings, sandbox.Ending{From: at, Until: at.Add(time.Second), Reason: "full \"of\" é", Dimension: "sandbox_disk"}, sandbox.Ending{From: at.Add(time.Minute), Until: at.Add(time.Hour), Reason: "short"})
		must(t, o.Store.SaveEndings(t.Context(), sb.ID, sb.Endings))
		same(t, o, sb)
	}
	gone := *sb
	gone.Endings = nil
	must(t, o.Store.Save(t.Context(), &gone)) // which is not what it records
	sb.Revision = gone.Revision
	same(t, o, sb)
	gone.State = sandbox.Destroyed
	must(t, o.Store.Save(t.Context(), &gone))
	wantKind(t, "one that is destroyed", o.Store.SaveEndings(t.Context(), sb.ID, nil), fault.NotFound, "")
}

// same looks for a sandbox in both ways.
func same(t *testing.T, o Opened, want *sandbox.Sandbox) {
	t.Helper()
	got, err := o.Store.Get(t.Context(), want.Tenant, want.ID)
	must(t, err)
	if a, b := fmt.Sprintf("%+v", deref(got)), fmt.Sprintf("%+v", deref(want)); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}
	held, err := o.Store.ListByExecutor(t.Context(), want.Executor)
	must(t, err)
	if len(held) != 1 || fmt.Sprintf("%+v", deref(held[0])) != fmt.Sprintf("%+v", deref(want)) {
		t.Errorf("held: %+v", held)
	}
}

// deref shows what a sandbox points at.
func deref(sb *sandbox.Sandbox) any {
	c, expires := *sb, ""
	if sb.ExpiresAt != nil {
		expires = sb.ExpiresAt.String()
	}
	var kept sandbox.StoredCopy
	if sb.Stored != nil {
		kept = *sb.Stored
	}
	c.ExpiresAt, c.Stored = nil, nil
	return []any{c, expires, kept}
}

func testName(t *testing.T, o Opened) {
	first := create(t, o, nil)
	there, err := o.Store.Create(t.Context(), draft(nil), sandbox.Quota{Sandboxes: 1})
	must(t, err)
	if there == nil || there.ID != first.ID {
		t.Errorf("a second sandbox of one name: %+v", there)
	}
	for _, other := range []func(*sandbox.Sandbox){
		func(sb *sandbox.Sandbox) { sb.Tenant = "ten_2" },
		func(sb *sandbox.Sandbox) { sb.Environment = "env_2" },
		func(sb *sandbox.Sandbox) { sb.Session = "S" },
		func(sb *sandbox.Sandbox) { sb.Name = "Default" },
	} {
		create(t, o, other)
	}
}

func testHolders(t *testing.T, o Opened) {
	keys := o.Keys(t, "ten_7", "env_7")
	o.Keys(t, "ten_8", "env_8")
	sb := create(t, o, func(sb *sandbox.Sandbox) { sb.Tenant, sb.Environment, sb.Key = "ten_7", "env_7", keys[0] })
	run(t, o, sb)
	owner, got, err := o.Store.Holders(t.Context(), sb.ID)
	must(t, err)
	if want := keys[:len(keys)-1]; owner != "ten_7" || len(got) != len(want) || got[0] != keys[0] || !slices.Contains(got, want[1]) {
		t.Errorf("%s has %v, want %v", owner, got, want)
	}
	sb.State = sandbox.Destroyed
	must(t, o.Store.Save(t.Context(), sb))
	for _, id := range []runtime.ID{sb.ID, runtime.NewID()} {
		if _, got, err := o.Store.Holders(t.Context(), id); err != nil || len(got) != 0 {
			t.Errorf("one that is not there has %v, %v", got, err)
		}
	}
}

func testHolds(t *testing.T, o Opened) {
	sb := run(t, o, create(t, o, nil))
	holds := func(want bool, executor, tenant, environment, key string) {
		t.Helper()
		if got, err := o.Store.Holds(t.Context(), executor, tenant, environment, key); err != nil || got != want {
			t.Errorf("%s holds a sandbox of %s, %q and %q: %v, %v", executor, tenant, environment, key, got, err)
		}
	}
	holds(true, "exe_1", "ten_1", "", "")
	holds(true, "exe_1", "ten_1", "env_1", "")
	holds(true, "exe_1", "ten_1", "env_1", "key_1")
	holds(true, "exe_1", "ten_1", "", "key_1")
	holds(false, "exe_2", "ten_1", "", "")
	holds(false, "exe_1", "ten_2", "", "")
	holds(false, "exe_1", "", "", "")
	holds(false, "exe_1", "ten_1", "env_2", "")
	holds(false, "exe_1", "ten_1", "env_1", "key_2")
	sb.State = sandbox.Destroyed
	must(t, o.Store.Save(t.Context(), sb))
	holds(false, "exe_1", "ten_1", "", "")
}

func testElsewhere(t *testing.T, o Opened) {
	here := create(t, o, nil)
	there := create(t, o, func(sb *sandbox.Sandbox) { sb.Name, sb.Executor = "there", "exe_2" })
	create(t, o, func(sb *sandbox.Sandbox) { sb.Name, sb.Session, sb.Executor = "far", "z", "exe_2" })
	gone := create(t, o, func(sb *sandbox.Sandbox) { sb.Name, sb.Executor = "gone", "exe_2" })
	gone.State = sandbox.Destroyed
	must(t, o.Store.Save(t.Context(), gone))
	create(t, o, func(sb *sandbox.Sandbox) { sb.Tenant, sb.Executor = "ten_2", "exe_2" })
	create(t, o, func(sb *sandbox.Sandbox) { sb.Environment, sb.Executor = "env_2", "exe_2" })

	found, err := o.Store.Find(t.Context(), "ten_1", "env_1", "s", "there")
	must(t, err)
	if found.ID != there.ID || found.Executor != "exe_2" {
		t.Errorf("found %s of %s", found.ID, found.Executor)
	}
	for _, missing := range [][4]string{{"ten_1", "env_1", "s", "gone"}, {"ten_1", "env_1", "x", "there"}, {"ten_1", "env_3", "s", "there"}, {"ten_3", "env_1", "s", "there"}} {
		_, err := o.Store.Find(t.Context(), missing[0], missing[1], missing[2], missing[3])
		wantKind(t, "find "+missing[3], err, fault.NotFound, "")
	}
	for _, want := range []*sandbox.Sandbox{here, there} {
		if executor, err := o.Store.Locate(t.Context(), want.ID); err != nil || executor != want.Executor {
			t.Errorf("%s is at %q, %v", want.Name, executor, err)
		}
	}
	_, err = o.Store.Locate(t.Context(), gone.ID)
	wantKind(t, "locate a destroyed one", err, fault.NotFound, "")
	for session, want := range map[string]string{"": "there far ", "s": "there ", "x": ""} {
		all, err := o.Store.ListElsewhere(t.Context(), "ten_1", "env_1", session, "exe_1")
		must(t, err)
		var names string
		for _, sb := range all {
			names += sb.Name + " "
		}
		if names != want {
			t.Errorf("of session %q there are %q, not %q", session, names, want)
		}
	}
}

func testNameRace(t *testing.T, o Opened) {
	var made, found sync.Map
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			sb := draft(nil)
			there, err := o.Store.Create(t.Context(), sb, sandbox.Quota{Sandboxes: 5})
			switch {
			case err != nil:
				t.Error(err)
			case there == nil:
				made.Store(sb.ID, true)
			default:
				found.Store(there.ID, true)
			}
		})
	}
	g.Wait()
	n := 0
	made.Range(func(id, _ any) bool {
		n++
		found.Delete(id)
		return true
	})
	found.Range(func(id, _ any) bool { n++; return true })
	if n != 1 {
		t.Error("not one sandbox was made")
	}
}

func testDestroyed(t *testing.T, o Opened) {
	sb := run(t, o, create(t, o, nil))
	sb.State, sb.Detail = sandbox.Destroyed, "it timed out"
	must(t, o.Store.Save(t.Context(), sb))
	got, err := o.Store.Get(t.Context(), sb.Tenant, sb.ID)
	must(t, err)
	if got.State != sandbox.Destroyed || got.Detail != sb.Detail {
		t.Errorf("recorded as %s, %q", got.State, got.Detail)
	}
	sb.State = sandbox.Running
	wantKind(t, "a destroyed one runs again", o.Store.Save(t.Context(), sb), fault.NotFound, "")
	create(t, o, nil)
	held, err := o.Store.ListByExecutor(t.Context(), "exe_1")
	must(t, err)
	if len(held) != 1 || held[0].ID == sb.ID {
		t.Errorf("held: %+v", held)
	}
}

func testRoom(t *testing.T, o Opened) {
	room := sandbox.Quota{Sandboxes: 2}
	sleeping := create(t, o, func(sb *sandbox.Sandbox) { sb.Name = "a" })
	sleeping.State, sleeping.Sleep, sleeping.Stored = sandbox.Sleeping, sandbox.Stored, &sandbox.StoredCopy{State: "asleep"}
	must(t, o.Store.Save(t.Context(), sleeping))
	create(t, o, func(sb *sandbox.Sandbox) { sb.Name = "b" })
	create(t, o, func(sb *sandbox.Sandbox) { sb.Tenant = "ten_2" })
	third := draft(func(sb *sandbox.Sandbox) { sb.Name = "c" })
	_, err := o.Store.Create(t.Context(), third, room)
	wantKind(t, "a third sandbox", err, fault.Exhausted, "sandboxes")
	sleeping.State, sleeping.Sleep = sandbox.Lost, ""
	must(t, o.Store.Save(t.Context(), sleeping))
	_, err = o.Store.Create(t.Context(), third, room)
	wantKind(t, "when one is lost", err, fault.Exhausted, "sandboxes")
	sleeping.State = sandbox.Destroyed
	must(t, o.Store.Save(t.Context(), sleeping))
	if _, err := o.Store.Create(t.Context(), third, room); err != nil {
		t.Errorf("when one is destroyed: %v", err)
	}
}

func testMemory(t *testing.T, o Opened) {
	memory := runtime.DefaultLimits().Memory
	room := sandbox.Quota{Memory: 2*memory + 1}
	a := run(t, o, create(t, o, func(sb *sandbox.Sandbox) { sb.Name = "a" }))
	create(t, o, func(sb *sandbox.Sandbox) { sb.Name = "b" })
	third := draft(func(sb *sandbox.Sandbox) { sb.Name = "c" })
	_, err := o.Store.Create(t.Context(), third, room)
	wantKind(t, "a third sandbox", err, fault.Exhausted, "sandbox_memory")
	a.State, a.Sleep = sandbox.Sleeping, sandbox.Frozen
	must(t, o.Store.Save(t.Context(), a))
	_, err = o.Store.Create(t.Context(), third, room)
	wantKind(t, "while one is frozen", err, fault.Exhausted, "sandbox_memory")
	a.Sleep = sandbox.OnDisk
	must(t, o.Store.Save(t.Context(), a))
	if _, err := o.Store.Create(t.Context(), third, room); err != nil {
		t.Errorf("while one is on disk: %v", err)
	}
	a.State, a.Sleep = sandbox.Running, ""
	wantKind(t, "one wakes", o.Store.Wake(t.Context(), a, room), fault.Exhausted, "sandbox_memory")
	got, err := o.Store.Get(t.Context(), a.Tenant, a.ID)
	must(t, err)
	if got.State != sandbox.Sleeping {
		t.Errorf("one that may not wake is %s", got.State)
	}
	room.Memory = 3 * memory
	a.MeteredAt = a.MeteredAt.Add(time.Second)
	must(t, o.Store.Wake(t.Context(), a, room))
	if got, err = o.Store.Get(t.Context(), a.Tenant, a.ID); err != nil || got.State != sandbox.Running || !got.MeteredAt.Equal(a.MeteredAt) {
		t.Errorf("woken: %+v, %v", got, err)
	}
	// It counts once: waking what is awake needs no more.
	must(t, o.Store.Wake(t.Context(), a, room))
}

func testBudget(t *testing.T, o Opened) {
	sb := run(t, o, create(t, o, nil))
	room := sandbox.Quota{Credits: 2}
	next := func(name string) error {
		_, err := o.Store.Create(t.Context(), draft(func(sb *sandbox.Sandbox) { sb.Name = name }), room)
		return err
	}
	must(t, next("a"))
	now := time.Now().UTC()
	must(t, o.Store.Meter(t.Context(), sb.ID, sb.MeteredAt.Add(time.Minute), usage.Entry{TraceID: string(sb.ID), Tenant: sb.Tenant, Source: "sandbox", Credits: 2, Standing: true, At: now}))
	wantKind(t, "beyond the budget", next("b"), fault.Exhausted, "monthly_credits")
	wantKind(t, "waking beyond it", o.Store.Wake(t.Context(), sb, room), fault.Exhausted, "monthly_credits")
}

func testAfford(t *testing.T, o Opened) {
	o.Tenant(t, "ten_1", 2)
	o.Tenant(t, "ten_2", 2)
	o.Tenant(t, "ten_3", 0)
	use := func(tenant string, credits float64) {
		t.Helper()
		n := string(runtime.NewID())
		must(t, o.Store.Record(t.Context(), audit.Row{TraceID: n, Tenant: tenant, Source: "shell", ExitStatus: audit.OK, Retention: 24 * time.Hour},
			usage.Entry{TraceID: n, Tenant: tenant, Source: "shell", Credits: credits, At: time.Now().UTC()}))
	}
	afford := func(tenant string) error { return o.Store.CheckBudget(t.Context(), tenant) }
	must(t, afford("ten_1"))
	use("ten_1", 1.5)
	must(t, afford("ten_1"))
	use("ten_1", 0.5)
	use("ten_3", 1e6)
	err := afford("ten_1")
	wantKind(t, "at the budget", err, fault.Exhausted, "monthly_credits")
	now := time.Now().UTC()
	if f, ok := errors.AsType[*fault.Error](err); ok && (!f.ResetsAt.After(now) || f.ResetsAt.After(now.AddDate(0, 1, 1)) || f.ResetsAt.UTC().Day() != 1) {
		t.Errorf("it resets at %s", f.ResetsAt)
	}
	must(t, afford("ten_2")) // has used nothing
	must(t, afford("ten_3")) // has no budget
	must(t, afford("none"))  // is none
}

func testOthers(t *testing.T, o Opened) {
	sb := create(t, o, nil)
	_, err := o.Store.Get(t.Context(), "ten_2", sb.ID)
	wantKind(t, "another tenant's", err, fault.NotFound, "")
	_, err = o.Store.Get(t.Context(), "ten_1", runtime.NewID())
	wantKind(t, "none", err, fault.NotFound, "")
	if held, err := o.Store.ListByExecutor(t.Context(), "exe_2"); err != nil || len(held) > 0 {
		t.Errorf("held by another executor: %v, %v", held, err)
	}
}

func testForget(t *testing.T, o Opened) {
	sb := create(t, o, nil)
	must(t, o.Store.Delete(t.Context(), sb.ID))
	_, err := o.Store.Get(t.Context(), sb.Tenant, sb.ID)
	wantKind(t, "forgotten", err, fault.NotFound, "")
	sb = run(t, o, create(t, o, nil))
	must(t, o.Store.Delete(t.Context(), sb.ID))
	_, err = o.Store.Get(t.Context(), sb.Tenant, sb.ID)
	must(t, err)
}

func testMeter(t *testing.T, o Opened) {
	sb := run(t, o, create(t, o, nil))
	until := sb.MeteredAt.Add(90 * time.Second)
	e := usage.Entry{TraceID: string(sb.ID), Tenant: sb.Tenant, Key: sb.Key, Source: "sandbox", Seconds: 90, CPU: 2, Memory: 1 << 30, Credits: 3, Standing: true, At: time.Now().UTC()}
	for range 2 {
		must(t, o.Store.Meter(t.Context(), sb.ID, until, e))
	}
	got, err := o.Store.Get(t.Context(), sb.Tenant, sb.ID)
	must(t, err)
	if !got.MeteredAt.Equal(until) {
		t.Errorf("metered up to %s", got.MeteredAt)
	}
	days, err := o.Usage.Summary(t.Context(), sb.Tenant, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	must(t, err)
	var sum usage.Day
	for _, d := range days {
		sum.Calls, sum.Seconds, sum.CPUSeconds, sum.Credits = sum.Calls+d.Calls, sum.Seconds+d.Seconds, sum.CPUSeconds+d.CPUSeconds, sum.Credits+d.Credits
	}
	if sum.Calls != 0 || sum.Seconds != 90 || sum.CPUSeconds != 180 || sum.Credits != 3 {
		t.Errorf("in the ledger: %+v", sum)
	}
}

func testCall(t *testing.T, o Opened) {
	row := audit.Row{
		TraceID: "trc_1", Tenant: "ten_1", Key: "key_1", Environment: "env_1", Source: "shell", SessionID: "s", ExitStatus: audit.Error, ExitCode: 3,
		FailureReason: "a\x00b", Retention: 30 * 24 * time.Hour, CodeSHA256: [32]byte{1, 2},
	}
	must(t, o.Store.Record(t.Context(), row, usage.Entry{TraceID: "trc_1", Tenant: "ten_1", Key: "key_1", Source: "shell", Credits: 0.5, At: time.Now().UTC()}))
	rows, _, err := o.Audit.List(t.Context(), audit.Filter{Tenant: "ten_1", SessionID: "s", Limit: 10})
	must(t, err)
	if len(rows) != 1 || rows[0].Source != "shell" || rows[0].ExitCode != 3 || rows[0].CodeSHA256 != row.CodeSHA256 {
		t.Errorf("rows: %+v", rows)
	}
	if credits, err := o.Usage.Month(t.Context(), "ten_1"); err != nil || credits != 0.5 {
		t.Errorf("credits: %v, %v", credits, err)
	}
	// Whatever was said with a call, it is on record.
	odd := row
	odd.TraceID, odd.Agent, odd.SessionID, odd.OutboundHosts, odd.Metadata = "trc_odd", "\x00", "s\xff", []string{"\x00"}, map[string]string{"k": "\x00"}
	must(t, o.Store.Record(t.Context(), odd, usage.Entry{TraceID: "trc_odd", Tenant: "ten_1", Key: "key_1", Source: "shell", At: time.Now().UTC()}))
	rows, _, err = o.Audit.List(t.Context(), audit.Filter{Tenant: "ten_1", TraceID: "trc_odd", Limit: 10})
	must(t, err)
	if len(rows) != 1 || rows[0].Agent != "\ufffd" || rows[0].SessionID != "s\ufffd" || rows[0].OutboundHosts[0] != "\ufffd" || rows[0].Metadata["k"] != "\ufffd" {
		t.Errorf("rows: %+v", rows)
	}
	standing := row
	standing.TraceID, standing.Retention = "sb-0123456789abcdef", 0
	must(t, o.Store.Record(t.Context(), standing, usage.Entry{}))
	rows, _, err = o.Audit.List(t.Context(), audit.Filter{Tenant: "ten_1", TraceID: standing.TraceID, Limit: 10})
	must(t, err)
	if len(rows) != 1 || rows[0].Retention != audit.DefaultRetention {
		t.Errorf("rows: %+v", rows)
	}
	row.Retention = time.Hour // which no row can have
	if err := o.Store.Record(t.Context(), row, usage.Entry{TraceID: "trc_2", Tenant: "ten_1", Source: "shell", Credits: 1, At: time.Now().UTC()}); err == nil {
		t.Error("half a call was recorded")
	}
	if credits, err := o.Usage.Month(t.Context(), "ten_1"); err != nil || credits != 0.5 {
		t.Errorf("credits after that: %v, %v", credits, err)
	}
}

func testPurge(t *testing.T, o Opened) {
	gone := run(t, o, create(t, o, nil))
	gone.State = sandbox.Destroyed
	must(t, o.Store.Save(t.Context(), gone))
	kept := run(t, o, create(t, o, nil))
	for _, want := range []int{0, 1, 0} {
		n, err := o.Store.Purge(t.Context(), time.Hour, 10)
		must(t, err)
		if n != want {
			t.Errorf("%d records went, not %d", n, want)
		}
		if want == 0 {
			o.Age(t, 2*time.Hour)
		}
	}
	_, err := o.Store.Get(t.Context(), gone.Tenant, gone.ID)
	wantKind(t, "purged", err, fault.NotFound, "")
	_, err = o.Store.Get(t.Context(), kept.Tenant, kept.ID)
	must(t, err)
}
