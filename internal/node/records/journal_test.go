package records_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/records"
	"github.com/atoll-run/atoll/test/atolltest"
)

// A sandbox's whole life reaches the records of gateways, and the executor's own after a restart.
func TestLife(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, nil)
		ctx := t.Context()
		sb := r.create("one")
		expires := sb.CreatedAt.Add(time.Hour)
		r.save(sb, func() {
			sb.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"*.example.com"}}
			sb.Permissions.Filesystem.Writable = []string{}
			sb.Mounts = []storage.Mount{{Slug: "team", Connection: "con_1", Kind: storage.S3, Path: "a", ReadOnly: true}}
			sb.ExpiresAt, sb.Limits.CPU, sb.ImageWarning = &expires, 2, "\"x\" is y"
		})
		r.charge(sb, time.Minute, 7)
		must(t, r.Contacted(ctx, sb, sb.MeteredAt, []string{"a.example.com", "b.example.com:443"}))
		endings := []sandbox.Ending{{From: sb.CreatedAt, Until: sb.CreatedAt.Add(time.Second), Reason: "é", Dimension: "sandbox_disk"}, {From: sb.CreatedAt, Reason: "now"}}
		must(t, r.SaveEndings(ctx, sb.ID, endings[:1]))
		must(t, r.SaveEndings(ctx, sb.ID, endings))
		r.save(sb, func() {
			sb.Stored = &sandbox.StoredCopy{State: "0123456789abcdef0123456789abcdef", Bytes: 5, Disk: 4, Checkpoint: true, Kernel: "k", Image: "i"}
			must(t, sb.FallAsleep(sandbox.Stored, "it rests"))
		})
		r.settled()
		want := *sb
		want.Endings = endings
		same(t, "record of gateways", r.recorded(sb.ID), &want)
		r.wantTotal(60, 7)
		if got := r.contacts(); !slices.Equal(got, []string{"a.example.com", "b.example.com:443"}) {
			t.Errorf("contacts %q", got)
		}
		for range 2 {
			r.crash()
			all, err := r.ListByExecutor(ctx, self)
			must(t, err)
			if len(all) != 1 {
				t.Fatalf("%d records", len(all))
			}
			same(t, "record of the executor", all[0], &want)
		}
		must(t, sb.Move(sandbox.Running, ""))
		sb.MeteredAt = sb.MeteredAt.Add(time.Hour)
		must(t, r.Wake(ctx, grant, sb))
		r.charge(sb, time.Second, 0)
		r.save(sb, func() { must(t, sb.Move(sandbox.Destroyed, "done")) })
		wantKind(t, "a destroyed sandbox is saved", r.Save(ctx, sb), fault.NotFound)
		r.settled()
		r.wantState("destroyed", sb.ID, sandbox.Destroyed)
		r.wantTotal(61, 7)
		if got, err := r.Get(ctx, "ten_1", sb.ID); err != nil || got.State != sandbox.Destroyed {
			t.Errorf("get: %+v, %v", got, err)
		}
		_, err := r.Get(ctx, "ten_2", sb.ID)
		wantKind(t, "another tenant's", err, fault.NotFound)
		r.crash()
		if all, err := r.ListByExecutor(ctx, self); err != nil || len(all) != 0 {
			t.Errorf("after its end: %v, %v", all, err)
		}
	})
}

// same compares records; times as the database has them.
func same(t *testing.T, what string, got, want *sandbox.Sandbox) {
	t.Helper()
	g, w := *got.Clone(), *want.Clone()
	for _, s := range []*sandbox.Sandbox{&g, &w} {
		s.Endings = slices.Clone(s.Endings)
		times := []*time.Time{&s.CreatedAt, &s.UsedAt, &s.MeteredAt}
		for i := range s.Endings {
			times = append(times, &s.Endings[i].From, &s.Endings[i].Until)
		}
		for _, at := range times {
			*at = at.UTC().Truncate(time.Microsecond)
		}
		if s.ExpiresAt != nil {
			s.ExpiresAt = new(s.ExpiresAt.UTC().Truncate(time.Microsecond))
		}
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s:\n %+v, want\n %+v", what, g, w)
	}
}

// The executor dies at each point of the way of an event; no charge is lost or doubled.
func TestKillPoints(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, nil)
		sb := r.create("one")
		r.settled()
		seconds, bytes := 0.0, int64(0)
		work := func() {
			r.charge(sb, 10*time.Second, 3)
			seconds, bytes = seconds+10, bytes+3
			must(t, r.Contacted(t.Context(), sb, sb.MeteredAt, []string{fmt.Sprintf("host-%v", seconds)}))
			r.save(sb, func() { sb.Detail = fmt.Sprint(seconds) })
		}
		check := func(what string) {
			t.Helper()
			r.settled()
			r.wantTotal(seconds, bytes)
			if got := r.recorded(sb.ID); got.Detail != fmt.Sprint(seconds) {
				t.Errorf("%s: detail %q", what, got.Detail)
			}
			if hosts := r.contacts(); len(hosts) != int(seconds/10) {
				t.Errorf("%s: contacts %q", what, hosts)
			}
		}

		r.link.set(func() { r.link.away = true })
		work()
		r.crash() // after the write, before the event is sent
		work()
		r.crash()
		r.link.set(func() { r.link.away = false })
		check("unsent")

		for n := range 3 { // after an event was applied, before the executor hears it
			copied := ""
			r.link.set(func() {
				left := n
				r.link.after = func(uint64) error {
					if left--; left < 0 && copied == "" {
						copied = r.copy()
					}
					if copied != "" {
						return errors.New("killed")
					}
					return nil
				}
			})
			work()
			atolltest.Until(t, 30*time.Second, "an event arrives", func() bool {
				r.link.mu.Lock()
				defer r.link.mu.Unlock()
				return copied != ""
			})
			r.link.set(func() { r.link.after = nil; r.link.away = true })
			r.end()
			_ = r.Close(expired())
			r.link.set(func() { r.link.away = false })
			// Changes after the copy are in the old folder.
			later := r.dir
			r.dir = copied
			r.open()
			r.settled()
			r.stop()
			r.dir = later // the folder as the process left it sends all of it once more
			r.open()
			check("answer lost")
		}
	})
}

// A gateway that dies after it applied an event gets it again.
func TestRedelivery(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, nil)
		fails := map[uint64]int{}
		r.link.set(func() {
			r.link.after = func(seq uint64) error {
				if fails[seq]++; fails[seq] < 3 {
					return errors.New("the gateway died before it acknowledged the event")
				}
				return nil
			}
		})
		sb := r.create("one")
		for range 3 {
			r.charge(sb, time.Minute, 1)
			must(t, r.Contacted(t.Context(), sb, sb.MeteredAt, []string{"h"}))
		}
		r.save(sb, func() { must(t, sb.Move(sandbox.Lost, "gone")) })
		r.settled()
		r.wantTotal(180, 3)
		if n := len(r.contacts()); n != 3 {
			t.Errorf("%d contacts", n)
		}
		r.wantState("lost", sb.ID, sandbox.Lost)
		if r.log.has("are missing") || r.log.has("new journal;") {
			t.Error("a gap was reported")
		}
	})
}

// Records that commands return and events overtake one another.
func TestNewerRecordWins(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, nil)
		ctx := t.Context()
		sb := r.create("one")
		r.settled()
		r.link.set(func() { r.link.away = true })
		older := *sb
		r.charge(sb, time.Minute, 1)
		r.save(sb, func() { must(t, sb.FallAsleep(sandbox.Frozen, "")) })
		asleep := *sb
		r.save(sb, func() { must(t, sb.Move(sandbox.Lost, "x")) })
		for _, s := range []*sandbox.Sandbox{&asleep, sb, &asleep, &older} {
			must(t, r.events.FoldRecord(ctx, self, s))
		}
		r.wantState("before its events", sb.ID, sandbox.Lost)
		r.link.set(func() { r.link.away = false })
		r.settled()
		r.wantState("after its events", sb.ID, sandbox.Lost)
		must(t, r.events.FoldRecord(ctx, self, &older))
		r.wantState("after an old answer", sb.ID, sandbox.Lost)
		r.wantTotal(60, 1)
		r.link.set(func() { r.link.away = true })
		r.save(sb, func() { must(t, sb.Move(sandbox.Destroyed, "")) })
		must(t, r.events.FoldRecord(ctx, self, sb))
		r.wantState("destroyed by an answer", sb.ID, sandbox.Destroyed)
		r.link.set(func() { r.link.away = false })
		r.settled()
		must(t, r.events.FoldRecord(ctx, self, &asleep))
		r.wantState("for ever", sb.ID, sandbox.Destroyed)

		other := r.create("two")
		wantKind(t, "the record of another executor", r.events.FoldRecord(ctx, "exe_2", other), fault.Forbidden)
		wantKind(t, "an unknown record", r.events.FoldRecord(ctx, self, &sandbox.Sandbox{ID: runtime.NewID(), State: sandbox.Lost, Revision: 1, UsedAt: time.Now()}), fault.NotFound)
		bad := other.Clone()
		bad.State = "odd"
		wantKind(t, "an odd record", r.events.FoldRecord(ctx, self, bad), fault.Invalid)
	})
}

// A name can be used again at once, and a quota is free at once, although gateways hear of the end of
// a sandbox later.
func TestReuseAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, nil)
		ctx := t.Context()
		r.link.set(func() { r.link.before = func(uint64) error { time.Sleep(100 * time.Millisecond); return nil } })
		tight := &sandbox.Grant{Tenant: "ten_1", Environment: "env_1", Key: "key_1"}
		tight.Plan.MaxSandboxes, tight.Plan.MaxSandboxMemory = 2, runtime.DefaultLimits().Memory
		ids := map[runtime.ID]bool{}
		for range 3 {
			sb := draft("again")
			there, err := r.Create(ctx, tight, sb)
			must(t, err)
			if there != nil || ids[sb.ID] {
				t.Fatalf("there is %+v", there)
			}
			ids[sb.ID] = true
			r.save(sb, func() { must(t, sb.Move(sandbox.Running, "")) })
			r.save(sb, func() { must(t, sb.Move(sandbox.Destroyed, "")) })
		}
		one, two := draft("one"), draft("two")
		_, err := r.Create(ctx, tight, one)
		must(t, err)
		r.save(one, func() { must(t, one.Move(sandbox.Running, "")) })
		time.Sleep(2100 * time.Millisecond) // else the sandboxes before would excuse a retry
		_, err = r.Create(ctx, tight, two)
		wantKind(t, "too much memory", err, fault.Exhausted)
		r.save(one, func() { must(t, one.FallAsleep(sandbox.OnDisk, "")) })
		_, err = r.Create(ctx, tight, two)
		must(t, err)
		r.save(two, func() { must(t, two.Move(sandbox.Running, "")) })
		r.save(two, func() { must(t, two.FallAsleep(sandbox.OnDisk, "")) })
		must(t, one.Move(sandbox.Running, ""))
		must(t, r.Wake(ctx, tight, one))
		r.settled()
		r.wantState("one", one.ID, sandbox.Running)
		r.wantState("two", two.ID, sandbox.Sleeping)

		// Another machine's sandbox of the name stays.
		foreign := draft("far")
		foreign.Executor = "exe_2"
		_, err = db.Sandboxes().Create(ctx, foreign, sandbox.Quota{})
		must(t, err)
		there, err := r.Create(ctx, grant, draft("far"))
		if err != nil || there == nil || there.ID != foreign.ID {
			t.Errorf("%v, %v", there, err)
		}
		if all, err := r.ListByExecutor(ctx, self); err != nil || len(all) != 2 {
			t.Errorf("%d records, %v", len(all), err)
		}
	})
}

// A gateway records a creation and its answer is lost.
func TestCreationWithoutAnswer(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		gateway := &flaky{Records: newGateway(t, db, self)}
		r := newRig(t, db, func(c *records.Config) { c.Records = gateway })
		ctx := t.Context()
		gateway.lose = true
		lost := draft("one")
		_, err := r.Create(ctx, grant, lost)
		wantKind(t, "no answer", err, fault.Unavailable)
		gateway.lose = false
		sb := r.create("one") // as soon as the other one's record is deleted
		r.settled()
		if _, err := db.Sandboxes().Get(ctx, "ten_1", lost.ID); fault.KindOf(err) != fault.NotFound {
			t.Errorf("the record without an answer: %v", err)
		}
		r.wantState("the other one", sb.ID, sandbox.Running)

		// The executor dies before the answer.
		copied := ""
		gateway.late = func(call func() error) bool {
			must(t, call())
			copied = r.copy()
			return true
		}
		second := draft("two")
		r.link.set(func() { r.link.away = true })
		_, err = r.Create(ctx, grant, second)
		wantKind(t, "no answer", err, fault.Unavailable)
		gateway.late = nil
		r.end()
		_ = r.Close(expired())
		r.link.set(func() { r.link.away = false })
		r.dir = copied
		r.open()
		all, err := r.ListByExecutor(ctx, self)
		must(t, err)
		if len(all) != 2 || all[1].ID != second.ID || all[1].State != sandbox.Creating {
			t.Fatalf("listed: %+v", all)
		}
		gateway.lose = true // no gateway answers: an event says it
		must(t, r.Delete(ctx, second.ID))
		gateway.lose = false
		r.settled()
		if _, err := db.Sandboxes().Get(ctx, "ten_1", second.ID); fault.KindOf(err) != fault.NotFound {
			t.Errorf("the discarded record: %v", err)
		}
		must(t, r.Delete(ctx, sb.ID)) // which is not being created
		r.wantState("a running sandbox", sb.ID, sandbox.Running)
	})
}

// A gateway records that a sandbox wakes, and its answer is lost or late.
func TestWakeWithoutAnswer(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		gateway := &flaky{Records: newGateway(t, db, self)}
		r := newRig(t, db, func(c *records.Config) { c.Records = gateway })
		ctx := t.Context()
		sb := r.create("one")
		sleep := func() {
			r.charge(sb, time.Minute, 0)
			r.save(sb, func() { must(t, sb.FallAsleep(sandbox.OnDisk, "")) })
		}
		awake := func() *sandbox.Sandbox {
			next := sb.Clone()
			must(t, next.Move(sandbox.Running, ""))
			next.MeteredAt = next.MeteredAt.Add(time.Hour)
			return next
		}
		sleep()
		gateway.lose = true
		wantKind(t, "no answer", r.Wake(ctx, grant, awake()), fault.Unavailable)
		gateway.lose = false
		r.settled()
		r.wantState("without an answer", sb.ID, sandbox.Sleeping)

		var late func() error
		gateway.late = func(call func() error) bool { late = call; return true }
		wantKind(t, "no answer", r.Wake(ctx, grant, awake()), fault.Unavailable)
		gateway.late = nil
		r.settled()
		wantKind(t, "a late wake", late(), fault.NotFound)
		r.wantState("after a late wake", sb.ID, sandbox.Sleeping)

		copied := ""
		gateway.late = func(call func() error) bool { must(t, call()); copied = r.copy(); return true }
		r.link.set(func() { r.link.away = true })
		_ = r.Wake(ctx, grant, awake())
		gateway.late = nil
		r.end()
		_ = r.Close(expired())
		r.wantState("before the restart", sb.ID, sandbox.Running)
		r.link.set(func() { r.link.away = false })
		r.dir = copied
		r.open()
		r.settled()
		r.wantState("after the restart", sb.ID, sandbox.Sleeping)

		// Charges that are older than a wake arrive after it.
		next := awake()
		r.link.set(func() { r.link.away = true })
		must(t, r.Wake(ctx, grant, next))
		sb = next
		sleep()
		next = awake()
		must(t, r.Wake(ctx, grant, next))
		sb = next
		r.charge(sb, time.Second, 5)
		r.link.set(func() { r.link.away = false })
		r.settled()
		r.wantTotal(121, 5)
		full := &sandbox.Grant{Tenant: "ten_1", Environment: "env_1", Key: "key_1"}
		full.Plan.MaxSandboxMemory = 1
		r.save(sb, func() { must(t, sb.FallAsleep(sandbox.OnDisk, "")) })
		wantKind(t, "over the quota", r.Wake(ctx, full, awake()), fault.Exhausted)
		next = awake()
		must(t, r.Wake(ctx, grant, next))
		r.settled()
		r.wantState("at last", sb.ID, sandbox.Running)
	})
}

// A gateway records the revision of a wake, so that events from before it, which arrive later, do not
// replace it.
func TestWakeOvertakesEvents(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, nil)
		ctx := t.Context()
		sb := r.create("one")
		sleep := func() {
			r.charge(sb, time.Minute, 0)
			r.save(sb, func() { must(t, sb.FallAsleep(sandbox.OnDisk, "")) })
		}
		wake := func() {
			t.Helper()
			must(t, sb.Move(sandbox.Running, ""))
			must(t, r.Wake(ctx, grant, sb))
			if have := r.recorded(sb.ID); have.State != sandbox.Running || have.Revision != sb.Revision {
				t.Errorf("woken: %s in revision %d, want %d", have.State, have.Revision, sb.Revision)
			}
		}
		sleep()
		r.settled() // a fold before the wake
		asleep := sb.Clone()
		wake()
		must(t, r.events.FoldRecord(ctx, self, asleep)) // a late answer
		r.wantState("after an answer from before the wake", sb.ID, sandbox.Running)

		r.link.set(func() { r.link.away = true })
		sleep()
		asleep = sb.Clone()
		must(t, r.events.FoldRecord(ctx, self, asleep)) // an answer, and its event waits
		wake()
		r.link.set(func() { r.link.away = false })
		r.settled()
		r.wantState("after an event from before the wake", sb.ID, sandbox.Running)

		r.link.set(func() { r.link.away = true })
		sleep() // gateways have not heard of it at all
		wake()
		sleep()
		wake()
		r.link.set(func() { r.link.away = false })
		r.settled()
		r.wantState("after all events", sb.ID, sandbox.Running)
		if have := r.recorded(sb.ID); have.Revision != sb.Revision {
			t.Errorf("revision %d, want %d", have.Revision, sb.Revision)
		}
		r.save(sb, func() { must(t, sb.Move(sandbox.Destroyed, "")) })
		r.settled()
		r.wantState("at its end", sb.ID, sandbox.Destroyed)
		r.wantTotal(4*60, 0)
	})
}

// A lost journal is noticed: its records come from a gateway, and nothing is charged twice.
func TestLostJournal(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, nil)
		ctx := t.Context()
		sb := r.create("one")
		r.charge(sb, time.Minute, 1)
		r.settled()
		r.link.set(func() { r.link.away = true })
		r.charge(sb, time.Minute, 1)
		r.save(sb, func() { must(t, sb.FallAsleep(sandbox.Frozen, "")) })
		old := r.copy()
		r.end()
		_ = r.Close(expired())
		r.dir = filepath.Join(t.TempDir(), "new")
		r.link.set(func() { r.link.away = false })
		r.open()
		all, err := r.ListByExecutor(ctx, self)
		must(t, err)
		if len(all) != 1 || all[0].ID != sb.ID || all[0].State != sandbox.Running || all[0].Env["A"] != "b" {
			t.Fatalf("records %+v", all)
		}
		if !r.log.has("took records of sandboxes from a gateway") {
			t.Error("the log does not report it")
		}
		sb = all[0]
		r.charge(sb, 2*time.Minute, 2)
		r.save(sb, func() { must(t, sb.Move(sandbox.Lost, "its journal was lost")) })
		r.settled()
		r.wantTotal(180, 3)
		if !r.log.has("an executor began a new journal") {
			t.Error("gateways do not tell")
		}
		// Its events were on the bus all the time.
		r.stop()
		r.dir = old
		r.open()
		r.settled()
		r.wantTotal(180, 3)
		r.wantState("the newer journal wins", sb.ID, sandbox.Lost)
	})
}

// The journal is bounded: charges stop first, and nothing is lost once the bus is back.
func TestFullJournal(t *testing.T) {
	r := newRig(t, storetest.SQLite(t), func(c *records.Config) { c.MaxEvents = 16 })
	ctx := t.Context()
	sb := r.create("one")
	r.settled()
	r.link.set(func() { r.link.away = true })
	refused, seconds := 0, 0.0
	for range 40 {
		until := sb.MeteredAt.Add(time.Second)
		if err := r.Charge(ctx, sb, until, 0); err != nil {
			wantKind(t, "charge", err, fault.Unavailable)
			refused++
			continue
		}
		sb.MeteredAt = until
		seconds++
	}
	if refused != 40-12 {
		t.Errorf("%d charges refused", refused)
	}
	wantKind(t, "contact", r.Contacted(ctx, sb, sb.MeteredAt, []string{"h"}), fault.Unavailable)
	_, err := r.Create(ctx, grant, draft("two"))
	wantKind(t, "create", err, fault.Unavailable)
	for i := range 100 { // which replace one another
		r.save(sb, func() { sb.Detail = fmt.Sprint(i) })
	}
	for i := range 10 {
		if err = r.SaveEndings(ctx, sb.ID, []sandbox.Ending{{From: time.Now(), Reason: fmt.Sprint(i)}}); err != nil {
			break
		}
		if err = r.Save(ctx, sb); err != nil {
			break
		}
	}
	wantKind(t, "a full journal", err, fault.Unavailable)
	if n := r.Status().Events; n != 16 {
		t.Errorf("%d events", n)
	}
	r.link.set(func() { r.link.away = false })
	r.settled()
	must(t, r.Save(ctx, sb))
	r.charge(sb, 28*time.Second, 0)
	r.settled()
	r.wantTotal(seconds+28, 0)
	if got := r.recorded(sb.ID); got.Detail != "99" {
		t.Errorf("detail %q", got.Detail)
	}
}

// The file does not grow for ever, with the bus or without it.
func TestFileIsCompacted(t *testing.T) {
	r := newRig(t, storetest.SQLite(t), nil)
	sb := r.create("one")
	size := func() int64 {
		info, err := os.Stat(filepath.Join(r.dir, "journal"))
		must(t, err)
		return info.Size()
	}
	r.link.set(func() { r.link.away = true })
	most := int64(0)
	for i := range 2500 {
		r.save(sb, func() { sb.Detail = fmt.Sprintf("%01000d", i) })
		most = max(most, size())
		if i%500 == 499 {
			atolltest.Until(t, 20*time.Second, "the file is compacted", func() bool { return size() < 1<<21 })
		}
	}
	r.link.set(func() { r.link.away = false })
	r.settled()
	r.crash()
	if got, ok := r.Record(sb.ID); !ok || got.Detail != fmt.Sprintf("%01000d", 2499) {
		t.Error("the record is not the last one")
	}
	if n := size(); n > 10_000 {
		t.Errorf("%d bytes after a restart, %d at most", n, most)
	}
}

// A second executor's folder and a newer version's are refused.
func TestForeignJournal(t *testing.T) {
	r := newRig(t, storetest.SQLite(t), nil)
	r.create("one")
	r.stop()
	_, err := records.Open(records.Config{Dir: r.dir, Executor: "exe_2", Records: r.inner, Publisher: r.link, Log: r.events.Log})
	if err == nil {
		t.Error("another executor's journal was opened")
	}
	if err := r.Save(t.Context(), draft("x")); err == nil {
		t.Error("a closed journal was written")
	}
}

// A closed journal refuses changes with a fault that callers can be shown.
func TestClosed(t *testing.T) {
	r := newRig(t, storetest.SQLite(t), nil)
	sb := r.create("one")
	r.stop()
	wantKind(t, "save", r.Save(context.Background(), sb), fault.Unavailable)
	wantKind(t, "charge", r.Charge(context.Background(), sb, sb.MeteredAt.Add(time.Second), 0), fault.Unavailable)
	r.dir = r.copy()
	r.open()
}
