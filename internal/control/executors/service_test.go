package executors_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/remote/remotetest"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	node "github.com/atoll-run/atoll/internal/node/control"
)

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%s: %v, not of kind %d", what, err, kind)
	}
}

// badFields are changes of a record that no executor may report.
var badFields = map[string]func(*sandbox.Sandbox){
	"state":       func(sb *sandbox.Sandbox) { sb.State = "x" },
	"sleep":       func(sb *sandbox.Sandbox) { sb.Sleep = sandbox.OnDisk },
	"odd sleep":   func(sb *sandbox.Sandbox) { sb.State, sb.Sleep = sandbox.Sleeping, "x" },
	"no sleep":    func(sb *sandbox.Sandbox) { sb.State = sandbox.Sleeping },
	"no copy":     func(sb *sandbox.Sandbox) { sb.State, sb.Sleep = sandbox.Sleeping, sandbox.Stored },
	"no cores":    func(sb *sandbox.Sandbox) { sb.Limits.CPU = math.NaN() },
	"many cores":  func(sb *sandbox.Sandbox) { sb.Limits.CPU = 1e300 },
	"less memory": func(sb *sandbox.Sandbox) { sb.Limits.Memory = -1 << 60 },
	"more memory": func(sb *sandbox.Sandbox) { sb.Limits.Memory = 1 << 60 },
	"disk":        func(sb *sandbox.Sandbox) { sb.Disk = -1 },
	"other blob":  func(sb *sandbox.Sandbox) { sb.Stored = &sandbox.StoredCopy{State: "../ten_other/x"} },
	"no blob":     func(sb *sandbox.Sandbox) { sb.Stored = &sandbox.StoredCopy{} },
	"huge blob":   func(sb *sandbox.Sandbox) { sb.Stored = &sandbox.StoredCopy{State: "x", Bytes: 1 << 60} },
	"no revision": func(sb *sandbox.Sandbox) { sb.Revision = 0 },
	"revision":    func(sb *sandbox.Sandbox) { sb.Revision = math.MaxUint64 },
	"no time":     func(sb *sandbox.Sandbox) { sb.UsedAt = time.Time{} },
	"expiry":      func(sb *sandbox.Sandbox) { sb.ExpiresAt = new(time.Unix(0, 0)) },
}

// TestRecords checks that the records of a sandbox decide about its identity, whatever its executor
// reports.
func TestRecords(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	records := node.Records{Client: w.client("exe_1")}
	grant, sb := w.grant(t, w.mine, "exe_1", time.Hour), w.create(t, w.mine, "exe_1", "a")
	got, err := records.Get(ctx, sb.Tenant, sb.ID)
	must(t, err)
	if got.Env["SECRET"] != "of ten_mine" || got.State != sandbox.Running || got.CreatedAt.IsZero() || !got.CreatedAt.Equal(sb.CreatedAt) {
		t.Errorf("got %+v", got)
	}
	forged := sb.Clone()
	forged.Environment, forged.Session, forged.Name, forged.Key, forged.Executor = "env_x", "x", "x", "key_x", "exe_2"
	forged.Env, forged.CreatedAt, forged.MeteredAt, forged.ImageAlias, forged.Own.CPU = map[string]string{"A": "b"}, time.Unix(1, 0), time.Now().Add(time.Hour), "x", 7
	forged.Detail, forged.ImageWarning, forged.UsedAt = strings.Repeat("é", 5000), strings.Repeat("x", 5000), time.Now().Add(1000*time.Hour)
	for what, change := range map[string]func() error{
		"wake": func() error {
			_, err := control.WakeSandbox.Do(ctx, w.wire("exe_1"), control.Placed{Pass: *pass(grant), Sandbox: *forged})
			return err
		},
		"answer": func() error { return w.events.FoldRecord(ctx, "exe_1", forged) },
		"event": func() error {
			whole, err := sandbox.EncodeRecord(forged) // with the names of all fields
			must(t, err)
			w.seq["exe_1"]++
			return w.events.Fold(ctx, "exe_1", w.seq["exe_1"], fmt.Appendf(nil, `{"journal":"jrn_exe_1","sandbox":%q,"save":%s}`, sb.ID, whole))
		},
	} {
		forged.Revision++
		if err := change(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		after, err := records.Get(ctx, sb.Tenant, sb.ID)
		must(t, err)
		if len(after.Detail) != 4096 || len(after.ImageWarning) != 4096 || after.UsedAt.After(time.Now().Add(time.Hour)) || after.Revision != forged.Revision {
			t.Errorf("%s: recorded %d bytes of detail, used at %s, revision %d", what, len(after.Detail), after.UsedAt, after.Revision)
		}
		if a, b := *after, *got; a.Tenant != b.Tenant || a.Environment != b.Environment || a.Session != b.Session || a.Name != b.Name || a.Key != b.Key || a.Executor != b.Executor ||
			a.Env["SECRET"] != b.Env["SECRET"] || !a.CreatedAt.Equal(b.CreatedAt) || !a.MeteredAt.Equal(b.MeteredAt) || a.ImageAlias != b.ImageAlias || a.Own != b.Own {
			t.Errorf("%s: recorded %+v", what, a)
		}
	}
	before, err := records.Get(ctx, sb.Tenant, sb.ID)
	must(t, err)
	for what, change := range badFields {
		bad := sb.Clone()
		bad.Revision = forged.Revision + 1
		change(bad)
		wantKind(t, "wake, "+what, records.Wake(ctx, grant, bad), fault.Invalid)
		wantKind(t, "answer, "+what, w.events.FoldRecord(ctx, "exe_1", bad), fault.Invalid)
		fresh := draft(w.mine, "exe_1", "b")
		change(fresh)
		_, err := records.Create(ctx, grant, fresh)
		wantKind(t, "create, "+what, err, fault.Invalid)
	}
	// Its record could be deleted, or its memory not be counted.
	for _, state := range []sandbox.State{sandbox.Creating, sandbox.Lost, sandbox.Destroyed} {
		bad := sb.Clone()
		bad.State, bad.Revision = state, forged.Revision+1
		wantKind(t, "wake and be "+string(state), records.Wake(ctx, grant, bad), fault.Invalid)
	}
	begun := sb.Clone()
	begun.State, begun.Revision = sandbox.Creating, forged.Revision+1
	wantKind(t, "an answer creates it again", w.events.FoldRecord(ctx, "exe_1", begun), fault.Invalid)
	wantKind(t, "an event creates it again", w.report(t, "exe_1", sandbox.Event{Sandbox: sb.ID, Save: begun}), fault.Invalid)
	must(t, w.report(t, "exe_1", sandbox.Event{Sandbox: sb.ID, Discard: true}))
	must(t, records.Delete(ctx, sb.ID))
	if after, err := records.Get(ctx, sb.Tenant, sb.ID); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("%v: recorded state %s, revision %d", err, after.State, after.Revision)
	}
}

// TestCreateAgain repeats a call whose answer was lost.
func TestCreateAgain(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	unavailable := fault.New(fault.Unavailable, "the answer was lost")
	failures := []error{unavailable}
	lossy := node.Records{Client: node.New(node.Config{Log: discard, Gateways: remotetest.Wire{Handlers: w.service.Handlers(), From: "exe_1", Failures: &failures, Lost: true}})}
	grant, sb := w.grant(t, w.mine, "exe_1", time.Hour), draft(w.mine, "exe_1", "a")
	if there, err := lossy.Create(ctx, grant, sb); err != nil || there != nil || sb.CreatedAt.IsZero() {
		t.Fatalf("%v, %v", there, err)
	}
	must(t, sb.Move(sandbox.Running, ""))
	failures = append(failures, unavailable)
	must(t, lossy.Wake(ctx, grant, sb))
	snapshots, sn := node.Snapshots(lossy), sandbox.SnapshotOf(sb)
	failures = append(failures, unavailable)
	must(t, snapshots.Begin(ctx, grant, sn))
	sn.Stored = sandbox.StoredCopy{State: "abc", Bytes: 3}
	failures = append(failures, unavailable)
	must(t, snapshots.Finish(ctx, grant, sn, time.Hour))
	if sn.CreatedAt.IsZero() || sn.ExpiresAt == nil {
		t.Errorf("finished: %+v", sn)
	}
	other := draft(w.mine, "exe_1", "a")
	if there, err := lossy.Create(ctx, grant, other); err != nil || there == nil || there.ID != sb.ID {
		t.Errorf("a second one of the name: %v, %v", there, err)
	}
}

// TestPatience checks for how long the client repeats calls.
func TestPatience(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	sb := w.create(t, w.mine, "exe_1", "a")
	unavailable := fault.New(fault.Unavailable, "no gateway answers")
	var failures []error
	c := node.New(node.Config{Log: discard, Patience: time.Nanosecond, Gateways: remotetest.Wire{Handlers: w.service.Handlers(), From: "exe_1", Failures: &failures}})
	fail := func(n int) { failures = slices.Repeat([]error{unavailable}, n) }
	fail(1)
	wantKind(t, "without patience", node.Records{Client: c}.CheckBudget(ctx, "ten_mine"), fault.Unavailable)
	fail(3)
	if held, err := (node.Records{Client: c}).ListByExecutor(ctx, "exe_1"); err != nil || len(held) != 1 || held[0].ID != sb.ID {
		t.Errorf("a start does not wait: %v, %v", held, err)
	}
	fail(2)
	must(t, node.Snapshots{Client: c}.AbandonAll(ctx, "exe_1"))
	patient := node.New(node.Config{Log: discard, Gateways: remotetest.Wire{Handlers: w.service.Handlers(), From: "exe_1", Failures: &failures}})
	fail(2)
	must(t, node.Records{Client: patient}.CheckBudget(ctx, "ten_mine"))
	if len(failures) != 0 {
		t.Error("the call was not made")
	}
}

// TestQuota checks that the tenant's plan decides, not the grant that the executor shows.
func TestQuota(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	_, err := w.db.Tenants().ChangeTenant(ctx, w.mine.tenant, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) {
		v.Plan = "free"
		return nil, nil
	})
	must(t, err)
	grant, records := w.grant(t, w.mine, "exe_1", time.Hour), node.Records{Client: w.client("exe_1")}
	most := grant.Plan.MaxSandboxes
	if most <= 0 || most > 100 {
		t.Fatalf("the plan allows %d sandboxes", most)
	}
	grant.Plan.MaxSandboxes, grant.Plan.MaxSandboxMemory = 0, 0 // which the message does not contain
	for n := 0; ; n++ {
		sb := draft(w.mine, "exe_1", "n"+strings.Repeat("x", n))
		if _, err = records.Create(ctx, grant, sb); err != nil {
			break
		}
		if n > most {
			t.Fatal("no quota")
		}
		sb.State, sb.Sleep = sandbox.Sleeping, sandbox.OnDisk
		w.save(t, sb)
	}
	wantKind(t, "beyond the plan", err, fault.Exhausted)
}

func TestSnapshots(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	sb := w.create(t, w.mine, "exe_1", "a")
	snapshots, grant := node.Snapshots{Client: w.client("exe_1")}, w.grant(t, w.mine, "exe_1", time.Hour)
	sn := sandbox.SnapshotOf(sb)
	sn.Session, sn.Env, sn.Key, sn.Executor = "forged", map[string]string{"A": "b"}, "forged", "exe_2"
	must(t, snapshots.Begin(ctx, grant, sn))
	sn.Stored = sandbox.StoredCopy{State: "abc", Bytes: 3, Checkpoint: true, Kernel: "k"}
	must(t, snapshots.Finish(ctx, grant, sn, time.Hour))
	got, err := snapshots.Find(ctx, grant, sn.ID)
	must(t, err)
	if got.Session != "s" || got.Env["SECRET"] != "of ten_mine" || got.Key != w.mine.key || got.Executor != "exe_1" || got.Stored != sn.Stored || got.ExpiresAt == nil || !got.ExpiresAt.Equal(*sn.ExpiresAt) {
		t.Errorf("found %+v", got)
	}
	// A sandbox can end while its snapshot is stored.
	late := sandbox.SnapshotOf(sb)
	must(t, snapshots.Begin(ctx, grant, late))
	gone := *sb
	gone.State = sandbox.Destroyed
	w.save(t, &gone)
	late.Stored = sandbox.StoredCopy{State: "def"}
	must(t, snapshots.Finish(ctx, nil, late, 0))
	wantKind(t, "of a destroyed sandbox", snapshots.Begin(ctx, grant, sandbox.SnapshotOf(sb)), fault.NotFound)
	// A proof shows the snapshots of an environment without a sandbox in it.
	if _, err := (node.Snapshots{Client: w.client("exe_2")}).Find(ctx, w.grant(t, w.mine, "exe_2", time.Hour), sn.ID); err != nil {
		t.Error(err)
	}
}

// TestGrants checks whose grants an executor can renew.
func TestGrants(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	second := w.mine
	second.key = key(t, w.db, w.mine.tenant, w.mine.environment)
	ask := func(what, executor string, of holder, known *sandbox.Grant, want bool) {
		t.Helper()
		c := w.client(executor)
		if known != nil {
			_, _ = c.Node(machine{seen: func(*sandbox.Grant) {}}).Use(ctx, known, "s", "a")
		}
		g, err := c.Grant(ctx, of.tenant, of.key, of.environment)
		switch {
		case want && err != nil:
			t.Errorf("%s: %v", what, err)
		case want && (g.Key != of.key || !pass(g).Genuine(executor, w.signer)):
			t.Errorf("%s: %+v", what, g)
		case !want && fault.KindOf(err) != fault.Unauthorized:
			t.Errorf("%s: %v, %v", what, g, err)
		}
	}
	ask("nothing", "exe_1", w.mine, nil, false)
	ask("a proof", "exe_1", w.mine, w.grant(t, w.mine, "exe_1", time.Hour), true)
	ask("an expired proof", "exe_1", w.mine, w.grant(t, w.mine, "exe_1", -time.Hour), false)
	ask("the proof of another executor", "exe_2", w.mine, w.grant(t, w.mine, "exe_1", time.Hour), false)
	w.create(t, w.mine, "exe_1", "a")
	ask("the key of a sandbox", "exe_1", w.mine, nil, true)
	ask("another key", "exe_1", second, nil, false)
	ask("an expired proof of another key", "exe_1", second, w.grant(t, second, "exe_1", -time.Hour), true)
	ask("the sandbox of another executor", "exe_2", w.mine, nil, false)
	ask("another tenant's key", "exe_1", w.other, nil, false)
	proven := w.grant(t, second, "exe_1", time.Hour)
	for what, change := range map[string]func(*sandbox.Grant){
		"another tenant": func(g *sandbox.Grant) {
			g.Tenant, g.Environment, g.Key = w.other.tenant, w.other.environment, w.other.key
		},
		"another key":  func(g *sandbox.Grant) { g.Key = w.other.key },
		"a later time": func(g *sandbox.Grant) { g.ProofUntil = g.ProofUntil.Add(time.Hour) },
	} {
		forged := *proven
		change(&forged)
		if pass(&forged).Genuine("exe_1", w.signer) {
			t.Errorf("%s: the proof is accepted", what)
		}
	}
	must(t, w.db.Tenants().RevokeKey(ctx, second.tenant, second.key))
	ask("a revoked key", "exe_1", second, proven, false)
}

func pass(g *sandbox.Grant) *sandbox.Pass { p := g.Pass(); return &p }

// TestProven checks which grants reach a machine with a proof.
func TestProven(t *testing.T) {
	w := newWorld(t)
	grant, err := w.grants.Grant(t.Context(), w.mine.tenant, w.mine.key, w.mine.environment)
	must(t, err)
	var got *sandbox.Grant
	m := machine{seen: func(g *sandbox.Grant) { got = g }}
	n := executors.Proven(m, "exe_1", w.signer)
	_, _ = n.Use(t.Context(), grant, "s", "a")
	if p := pass(got); !p.Genuine("exe_1", w.signer) || p.Genuine("exe_2", w.signer) || grant.Proof != nil {
		t.Errorf("got %+v of %+v", p, grant)
	}
	if executors.Proven(m, "exe_1", nil).(machine).seen == nil {
		t.Error("a machine without proofs is not itself")
	}
}

func TestMachine(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	c := w.client("exe_1")
	builds := node.Builds{Client: c}
	long := slices.Repeat([]string{strings.Repeat("x", 5000)}, 100)
	must(t, builds.Put(ctx, requirement.Build{Ref: "packages:a", Executor: "exe_2", Image: "i", State: requirement.Failed, Log: long, UpdatedAt: time.Now().AddDate(5, 0, 0)}))
	own, err := builds.Of(ctx, "exe_2")
	must(t, err)
	if len(own) != 1 || own[0].Executor != "exe_1" || len(own[0].Log) > requirement.MaxLines || len(own[0].Log[0]) > requirement.MaxLine || own[0].UpdatedAt.After(time.Now().Add(time.Hour)) {
		t.Errorf("builds: %+v", own)
	}
	wantKind(t, "an unknown state", builds.Put(ctx, requirement.Build{Ref: "packages:a", State: "x"}), fault.Invalid)
	wantKind(t, "retry", builds.Retry(ctx, "packages:a"), fault.Forbidden)
	must(t, node.Builds{Client: w.client("exe_2")}.Delete(ctx, "packages:a", "exe_1"))
	if all, err := builds.Builds(ctx, "packages:a"); err != nil || len(all) != 1 {
		t.Errorf("after another executor's delete: %v, %v", all, err)
	}
	must(t, builds.Delete(ctx, "packages:a", ""))
	for _, list := range []func() (int, error){
		func() (int, error) { all, err := builds.Wanted(ctx); return len(all), err },
		func() (int, error) { all, err := builds.UsedImages(ctx); return len(all), err },
		func() (int, error) { all, err := builds.Builds(ctx, "packages:a"); return len(all), err },
	} {
		if n, err := list(); n != 0 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}

	job := execution.Job{Tenant: w.mine.tenant, Skills: []execution.SkillRef{w.mine.skill}, Files: []execution.FileRef{w.mine.file}}
	job.ProveFiles(w.signer)
	files, err := c.SkillFiles(ctx, job.Tenant, job.Skills[0])
	if err != nil || len(files) != 3 || !strings.HasPrefix(files[0].Path, "/skills/report/") {
		t.Errorf("skill: %v, %v", files, err)
	}
	if data, err := c.Whole(ctx, job.Tenant, job.Files[0]); err != nil || string(data) != "file of ten_mine" {
		t.Errorf("file: %q, %v", data, err)
	}
	if exists, err := c.ThreadExists(ctx, "ten_mine", "thread"); exists || err != nil {
		t.Errorf("thread: %v, %v", exists, err)
	}

	ca, err := c.AwaitSandboxCA(ctx)
	if err != nil || ca.Stored {
		t.Errorf("no setting: %+v, %v", ca, err)
	}
	must(t, w.db.SetSetting(ctx, "sandbox_ca_bundle", "file:1", []byte("PEM"), tenant.PolicyEvent{Tenant: w.mine.tenant, Field: "setting/sandbox_ca_bundle"}))
	if ca, err = c.SandboxCA(ctx, "file:0"); err != nil || !ca.Stored || ca.Text != "file:1" || string(ca.Content) != "PEM" {
		t.Errorf("changed: %+v, %v", ca, err)
	}
	if ca, err = c.SandboxCA(ctx, "file:1"); err != nil || !ca.Stored || ca.Text != "file:1" || ca.Content != nil {
		t.Errorf("known: %+v, %v", ca, err)
	}

	if key, err := c.SnapshotKey(ctx, "ten_mine"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("the key of a tenant without a sandbox: %x, %v", key, err)
	}
	_, _ = c.Node(machine{seen: func(*sandbox.Grant) {}}).Use(ctx, w.grant(t, w.mine, "exe_1", time.Hour), "s", "a")
	key, err := c.SnapshotKey(ctx, "ten_mine")
	if err != nil || len(key) != 64 || !bytes.HasPrefix(key, []byte("ten_mine")) {
		t.Errorf("key: %x, %v", key, err)
	}
}
