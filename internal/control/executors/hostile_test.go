package executors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/remote/remotetest"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// victim names sandboxes of another executor, or unknown ones.
type victim struct {
	holder
	sandbox  *sandbox.Sandbox
	finished sandbox.SnapshotID
	begun    sandbox.SnapshotID
}

// attack is a call of an executor that was taken over.
type attack struct {
	name string
	in   any
}

// attacks are all calls about a victim that could read or change something.
func attacks(v victim, pass sandbox.Pass) []attack {
	sb, ref := *v.sandbox, control.Ref{Tenant: v.tenant, ID: v.sandbox.ID}
	sn := *sandbox.SnapshotOf(v.sandbox)
	created := *draft(v.holder, "exe_bad", "new")
	created.Env = nil // it does not know them
	return []attack{
		{string(control.CreateSandbox), control.Placed{Pass: pass, Sandbox: created}},
		{string(control.WakeSandbox), control.Placed{Pass: pass, Sandbox: sb}},
		{string(control.DeleteSandbox), sb.ID},
		{string(control.CheckBudget), v.tenant},
		{string(control.GetSandbox), ref},
		{string(control.RenewGrant), pass},
		{string(control.BeginSnapshot), control.NewSnapshot{Pass: pass, Snapshot: sn}},
		{string(control.FinishSnapshot), control.Finished{Tenant: v.tenant, Environment: v.environment, ID: v.begun, Stored: sandbox.StoredCopy{State: "hostile"}}},
		{string(control.FinishSnapshot), control.Finished{Tenant: v.tenant, Environment: v.environment, ID: v.finished, Stored: sandbox.StoredCopy{State: "abc"}}},
		{string(control.AbandonSnapshot), v.begun},
		{string(control.AbandonAllSnapshots), nil},
		{string(control.FindSnapshot), control.SnapshotRef{Pass: pass, ID: v.finished}},
		{string(control.MarkGarbage), v.tenant},
		{string(control.GetSnapshotKey), control.SnapshotKeyRequest{Tenant: v.tenant, Pass: pass}},
		{string(control.ReadSkill), control.Skill{Tenant: v.tenant, Skill: v.skill}},
		{string(control.ReadUpload), control.Upload{Tenant: v.tenant, File: v.file}},
		{string(control.ListSandboxes), nil},
		{string(control.ListWithoutEnv), nil},
		{string(control.ListOwnBuilds), nil},
	}
}

// answers are the answers to attacks, without the ids of the victim.
func answers(t *testing.T, w *world, executor string, v victim, pass sandbox.Pass) []string {
	t.Helper()
	var out []string
	for _, a := range attacks(v, pass) {
		var answer any
		err := w.wire(executor).Call(t.Context(), a.name, a.in, &answer)
		text := fmt.Sprintf("%s: %v, kind %d, %v", a.name, answer, fault.KindOf(err), err)
		for _, id := range []string{string(v.finished), string(v.begun), string(v.sandbox.ID)} {
			text = strings.ReplaceAll(text, id, "ID")
		}
		out = append(out, text)
	}
	return out
}

// recorded renders all records of a tenant's sandboxes and snapshots.
func recorded(t *testing.T, w *world, v victim) string {
	t.Helper()
	ctx := t.Context()
	all, err := w.db.Sandboxes().ListElsewhere(ctx, v.tenant, v.environment, "", "")
	must(t, err)
	snapshots, _, err := w.db.Snapshots().List(ctx, sandbox.SnapshotFilter{Tenant: v.tenant, Environment: v.environment, Limit: 100})
	must(t, err)
	begun, err := w.db.Snapshots().Begun(ctx, v.begun)
	must(t, err)
	garbage, err := w.db.Snapshots().TenantsWithGarbage(ctx)
	must(t, err)
	credits, err := w.db.Usage().Month(ctx, v.tenant)
	must(t, err)
	text, err := json.Marshal([]any{all, snapshots, begun, garbage, credits})
	must(t, err)
	return string(text)
}

// hostile has a world in which exe_1 has a sandbox and snapshots of a tenant, and exe_bad a sandbox
// of another one.
func hostile(t *testing.T) (*world, victim, victim) {
	t.Helper()
	w, ctx := newWorld(t), t.Context()
	v := victim{holder: w.mine, sandbox: w.create(t, w.mine, "exe_1", "a")}
	for _, id := range []*sandbox.SnapshotID{&v.finished, &v.begun} {
		sn := sandbox.SnapshotOf(v.sandbox)
		*id, sn.Key, sn.Executor = sn.ID, v.key, "exe_1"
		must(t, w.db.Snapshots().Begin(ctx, sn, sandbox.SnapshotQuota{}))
		if id == &v.finished {
			sn.Stored.State = "abc"
			must(t, w.db.Snapshots().Finish(ctx, sn, 0, sandbox.SnapshotQuota{}))
		}
	}
	for _, id := range []string{w.mine.tenant, w.other.tenant} {
		must(t, w.db.Snapshots().ClearGarbage(ctx, id, 0))
	}
	w.create(t, w.other, "exe_bad", "mine")
	absent := victim{holder: holder{
		tenant: "ten_none", environment: "env_none", key: "key_none",
		skill: execution.SkillRef{Version: "skver_0123456789abcdef"}, file: execution.FileRef{ID: "file_0123456789abcdef"},
	}, finished: sandbox.NewSnapshotID(), begun: sandbox.NewSnapshotID()}
	absent.sandbox = draft(absent.holder, "exe_1", "a")
	absent.sandbox.State = sandbox.Running
	return w, v, absent
}

// TestHostile has an executor that was taken over try all calls about a sandbox of another executor.
// The service answers each as if the sandbox, tenant, snapshot or file did not exist.
func TestHostile(t *testing.T) {
	w, v, absent := hostile(t)
	before := recorded(t, w, v)
	nothing := sandbox.Pass{Tenant: absent.tenant, Environment: absent.environment, Key: absent.key}
	want := answers(t, w, "exe_bad", absent, nothing)
	job := execution.Job{Tenant: w.other.tenant, Skills: []execution.SkillRef{w.other.skill}, Files: []execution.FileRef{w.other.file}}
	job.ProveFiles(w.signer)
	named := pass(&sandbox.Grant{Tenant: v.tenant, Environment: v.environment, Key: v.key})
	tampered := *pass(w.grant(t, w.other, "exe_bad", time.Hour))
	tampered.Tenant, tampered.Environment, tampered.Key = v.tenant, v.environment, v.key
	later := *pass(w.grant(t, v.holder, "exe_bad", -time.Minute))
	later.ProofUntil = later.ProofUntil.Add(time.Hour)
	for name, p := range map[string]sandbox.Pass{
		"no proof":                  *named,
		"of another executor":       *pass(w.grant(t, v.holder, "exe_1", time.Hour)),
		"expired":                   *pass(w.grant(t, v.holder, "exe_bad", -time.Minute)),
		"expired, with a new time":  later,
		"of another grant":          tampered,
		"garbage":                   {Tenant: v.tenant, Environment: v.environment, Key: v.key, Proof: make([]byte, 16), ProofUntil: time.Now().Add(time.Hour)},
		"any environment":           {Tenant: v.tenant, Key: v.key},
		"any key":                   {Tenant: v.tenant, Environment: v.environment},
		"any tenant":                {},
		"its own, of another place": *pass(w.grant(t, w.other, "exe_bad", time.Hour)),
	} {
		target := v
		target.skill.Proof, target.file.Proof = job.Skills[0].Proof, job.Files[0].Proof
		got := answers(t, w, "exe_bad", target, p)
		for i := range got {
			if strings.HasPrefix(name, "its own") && slices.Contains([]string{string(control.CreateSandbox), string(control.RenewGrant), string(control.FindSnapshot)}, attacks(v, p)[i].name) {
				continue // which is its right
			}
			if !strings.Contains(got[i], string(control.ListSandboxes)) && got[i] != want[i] {
				t.Errorf("%s:\n got %s\nwant %s", name, got[i], want[i])
			}
			if strings.Contains(got[i], "of ten_mine") {
				t.Errorf("%s: it reads %s", name, got[i])
			}
		}
	}
	if after := recorded(t, w, v); after != before {
		t.Errorf("records changed:\n%s\n%s", before, after)
	}
}

// TestHostileNeighbor checks an executor that has a sandbox of the same tenant in another
// environment, and one with a proof for a name that another executor's sandbox has.
func TestHostileNeighbor(t *testing.T) {
	w, v, _ := hostile(t)
	ctx := t.Context()
	next := holder{tenant: v.tenant, environment: "env_next"}
	environment(t, w.db, next.tenant, next.environment)
	next.key = key(t, w.db, next.tenant, next.environment)
	w.create(t, next, "exe_bad", "mine")
	before := recorded(t, w, v)
	c := w.wire("exe_bad")
	own := pass(w.grant(t, next, "exe_bad", time.Hour))
	crossed := *own
	crossed.Environment = v.environment
	if g, err := control.RenewGrant.Do(ctx, c, crossed); err == nil {
		t.Errorf("a grant of another environment: %+v", g)
	}
	if sn, err := control.FindSnapshot.Do(ctx, c, control.SnapshotRef{Pass: *own, ID: v.finished}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a snapshot of another environment: %+v, %v", sn, err)
	}
	if _, err := control.WakeSandbox.Do(ctx, c, control.Placed{Pass: *own, Sandbox: *v.sandbox}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("wake: %v", err)
	}
	if after := recorded(t, w, v); after != before {
		t.Errorf("records changed:\n%s\n%s", before, after)
	}
	// The holder of a proof learns where a sandbox is, and nothing that it contains.
	made, err := control.CreateSandbox.Do(ctx, c, control.Placed{Pass: *pass(w.grant(t, v.holder, "exe_bad", time.Hour)), Sandbox: *draft(v.holder, "exe_bad", "a")})
	must(t, err)
	if made.There == nil || made.There.ID != v.sandbox.ID || made.There.Executor != "exe_1" || made.There.Env != nil || made.There.Image != "" {
		t.Errorf("there is %+v", made.There)
	}
	// It cannot give a sandbox another identity than the proof's, or take over an id.
	stolen := *draft(v.holder, "exe_1", "new")
	stolen.Key, stolen.Tenant = w.other.key, w.other.tenant
	_, err = control.CreateSandbox.Do(ctx, c, control.Placed{Pass: *own, Sandbox: stolen})
	must(t, err)
	if sb, err := w.db.Sandboxes().Get(ctx, next.tenant, stolen.ID); err != nil || sb.Key != next.key || sb.Environment != next.environment || sb.Executor != "exe_bad" {
		t.Errorf("created %+v, %v", sb, err)
	}
	again := *draft(next, "exe_bad", "again")
	again.ID = v.sandbox.ID
	if _, err := control.CreateSandbox.Do(ctx, c, control.Placed{Pass: *own, Sandbox: again}); err == nil {
		t.Error("an id was used twice")
	}
	if owner, err := w.db.Sandboxes().Locate(ctx, v.sandbox.ID); err != nil || owner != "exe_1" {
		t.Errorf("the sandbox is at %s: %v", owner, err)
	}
}

// seeds are a valid message of each call.
func seeds(v victim, p sandbox.Pass) []attack {
	return append(attacks(v, p),
		attack{string(control.PutBuild), requirement.Build{Ref: "packages:a", State: requirement.Ready, Log: []string{"a"}, UpdatedAt: time.Now()}},
		attack{string(control.ListBuilds), "packages:a"}, attack{string(control.DeleteBuild), "packages:a"}, attack{string(control.ListWanted), nil}, attack{string(control.ListUsedImages), nil},
		attack{string(control.ThreadExists), control.Thread{Tenant: v.tenant, ID: "a"}}, attack{string(control.GetSandboxCA), control.KnownCA{Text: "a"}},
	)
}

// TestGarbage sends messages in which values were replaced. A handler answers each, and leaves the
// sandboxes of other executors alone.
func TestGarbage(t *testing.T) {
	w, v, _ := hostile(t)
	before := recorded(t, w, v)
	r := rand.New(rand.NewPCG(1, 2))
	all := seeds(v, *pass(w.grant(t, w.other, "exe_bad", time.Hour)))
	if n := len(w.service.Handlers()); n != distinct(all) {
		t.Errorf("%d of %d handlers are attacked", distinct(all), n)
	}
	for range 3000 {
		a := all[r.IntN(len(all))]
		var tree any
		raw, err := remotetest.Encode(a.in)
		must(t, err)
		must(t, remotetest.Decode(raw, &tree))
		for range 1 + r.IntN(3) {
			tree = mutate(r, tree)
		}
		if raw, err = remotetest.Encode(tree); err != nil {
			continue // no message
		}
		send(t, w, a.name, raw)
	}
	if after := recorded(t, w, v); after != before {
		t.Errorf("records changed:\n%s\n%s", before, after)
	}
}

func distinct(all []attack) int {
	names := map[string]bool{}
	for _, a := range all {
		names[a.name] = true
	}
	return len(names)
}

// send has exe_bad send an encoded message. Its answer can be encoded.
func send(t *testing.T, w *world, name string, raw []byte) {
	t.Helper()
	out, err := w.service.Handlers()[name](t.Context(), "exe_bad", func(v any) error { return remotetest.Decode(raw, v) })
	if err == nil {
		_, err := remotetest.Encode(out)
		must(t, err)
	}
}

// odd returns values that no executor sends.
func odd() []any {
	return []any{
		nil, true, 0, -1, 1 << 62, uint64(1<<64 - 1), 1e300, "", "\x00", strings.Repeat("x", 5000), []byte{0xff}, []any{}, map[any]any{}, []any{nil, nil},
		map[any]any{"ID": nil, "Tenant": []any{}}, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "destroyed", "sleeping", "../../x",
	}
}

// mutate replaces, removes or repeats a value of a message.
func mutate(r *rand.Rand, tree any) any {
	switch v := tree.(type) {
	case map[any]any:
		if len(v) > 0 && r.IntN(4) > 0 {
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, fmt.Sprint(k))
			}
			slices.Sort(keys)
			k := keys[r.IntN(len(keys))]
			if r.IntN(10) == 0 {
				delete(v, k)
			} else {
				v[k] = mutate(r, v[k])
			}
			return v
		}
	case []any:
		if len(v) > 0 && r.IntN(4) > 0 {
			i := r.IntN(len(v))
			v[i] = mutate(r, v[i])
			return append(v, v[r.IntN(len(v))])
		}
	}
	values := odd()
	return values[r.IntN(len(values))]
}

// FuzzHandlers decodes arbitrary bytes as the message of any call.
func FuzzHandlers(f *testing.F) {
	w := newWorld(f)
	v := victim{holder: w.mine, sandbox: w.create(f, w.mine, "exe_1", "a"), finished: sandbox.NewSnapshotID(), begun: sandbox.NewSnapshotID()}
	w.create(f, w.other, "exe_bad", "mine")
	all := seeds(v, *pass(w.grant(f, w.other, "exe_bad", time.Hour)))
	for i, a := range all {
		raw, err := remotetest.Encode(a.in)
		must(f, err)
		f.Add(uint8(i), raw)
	}
	f.Fuzz(func(t *testing.T, call uint8, raw []byte) {
		if cbor.Wellformed(raw) != nil {
			return
		}
		send(t, w, all[int(call)%len(all)].name, raw)
		sb, err := w.db.Sandboxes().Get(context.Background(), v.tenant, v.sandbox.ID)
		must(t, err)
		if sb.State != sandbox.Running || sb.Executor != "exe_1" || sb.Detail != "" || !reflect.DeepEqual(sb.Env, v.sandbox.Env) {
			t.Fatalf("a sandbox changed: %+v", sb)
		}
	})
}
