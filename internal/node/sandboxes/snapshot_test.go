package sandboxes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

func (m *machine) snapshot(p *tenant.Principal, session, name string) *sandbox.Snapshot {
	m.t.Helper()
	sn, err := m.Snapshot(m.t.Context(), p, session, name, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	return sn
}

// of makes a sandbox of a snapshot.
func (m *machine) of(p *tenant.Principal, name string, sn *sandbox.Snapshot, filesOnly bool) *sandbox.Sandbox {
	m.t.Helper()
	return m.ensure(p, "s", name, &sandbox.Spec{Snapshot: sn.ID, FilesOnly: filesOnly})
}

const whoIsIt = "cat /run/atoll/generation /etc/machine-id; hostname; od -An -N8 -tx8 /dev/urandom"

func TestASnapshotOutlivesItsSandbox(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "one", &sandbox.Spec{Env: map[string]string{"OWN": "kept"}})
	m.shell(p, "s", "one", sandboxtest.Program)
	was, ticks := m.told(p, "s", "one")
	m.shell(p, "s", "one", "mkdir ~/d; echo file >~/d/f; ln ~/d/f /home/user/same; ln -s d/f ~/link; chmod 640 ~/d/f; truncate -s 10G /tmp/hole")
	look := "cd ~; stat -c '%n %a %u %h %F' d d/f same link; readlink link; cat link; stat -c %s /tmp/hole"
	had := m.shell(p, "s", "one", look)
	running := m.snapshot(p, "s", "one")
	if !running.Stored.Checkpoint || running.Detail != "" || running.Name != "one" || running.Stored.Disk == 0 || running.ExpiresAt != nil {
		t.Errorf("%+v", running)
	}
	m.goesOn(p, "s", "one", was, ticks)
	if now := m.get(p, "s", "one"); now.State != sandbox.Running {
		t.Errorf("after a snapshot it is %s", now.State)
	}
	m.shell(p, "s", "one", "echo another >~/d/f")
	m.sleep(p, "s", "one")
	asleep := m.snapshot(p, "s", "one")
	if got := m.get(p, "s", "one"); got.Sleep != sandbox.OnDisk {
		t.Errorf("after a snapshot it sleeps in %q", got.Sleep)
	}
	if err := m.Destroy(t.Context(), p, "s", "one"); err != nil {
		t.Fatal(err)
	}
	m.restart()
	if list, next, err := m.records.ListSnapshots(t.Context(), p, "", 10); err != nil || next != "" || len(list) != 2 || list[0].ID != asleep.ID || list[1].ID != running.ID {
		t.Fatalf("snapshots are %v, %v", list, err)
	}
	seen := map[string]bool{}
	for name, sn := range map[string]*sandbox.Snapshot{"two": running, "three": running, "four": asleep} {
		sb := m.of(p, name, sn, false)
		if now, later := m.told(p, "s", name); now != was || later < ticks {
			t.Errorf("%s tells %q, %d; it was %q, %d", name, now, later, was, ticks)
		}
		m.findsItself(p, "s", name)
		want := had
		if sn == asleep {
			want = strings.Replace(had, "\nfile\n", "\nanother\n", 1)
		}
		if got := m.shell(p, "s", name, look); got != want {
			t.Errorf("%s has\n%s\nnot\n%s", name, got, want)
		}
		for i, word := range strings.Fields(m.shell(p, "s", name, whoIsIt)) {
			if seen[word] {
				t.Errorf("%s has %q as another does", name, word)
			}
			if seen[word] = true; i == 2 && word != string(sb.ID) {
				t.Errorf("the host %s is called %s", sb.ID, word)
			}
		}
		if got := m.shell(p, "s", name, "echo $OWN"); got != "kept" {
			t.Errorf("%s has the variable %q", name, got)
		}
	}
	files := m.of(p, "five", running, true)
	if got := m.shell(p, "s", "five", look+"; grep -lx python3 /proc/[0-9]*/comm | wc -l"); got != had+"\n0" {
		t.Errorf("with the files alone there is\n%s\nnot\n%s", got, had)
	}
	if files.Env["OWN"] != "kept" {
		t.Errorf("%+v", files)
	}
	if _, _, err := m.Ensure(t.Context(), p, "s", "five", &sandbox.Spec{Snapshot: running.ID}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a snapshot for one that is there: %v", err)
	}
}

// TestASnapshotBesideItsCopies: kernels for more copies get links to files of the
// sandbox soon after a fork, which does not disturb a snapshot of it.
func TestASnapshotBesideItsCopies(t *testing.T) {
	t.Parallel()
	m := startWith(t, nil, func(c *engine.Config) { c.Standby = 4 })
	p := m.caller("a")
	m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", "setsid python3 -c 'import os, time; heap = os.urandom(50 << 20); open(\"up\", \"w\"); time.sleep(1e6)' >/dev/null 2>&1 & until [ -e up ]; do sleep 0.05; done")
	m.sleep(p, "s", "one")
	for range 2 {
		if _, err := m.Fork(t.Context(), p, "s", "one", 2); err != nil {
			t.Fatal(err)
		}
		if sn := m.snapshot(p, "s", "one"); !sn.Stored.Checkpoint || sn.Detail != "" {
			t.Errorf("%+v", sn)
		}
	}
}

func TestASnapshotWithoutMemorySaysSo(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "one", nil)
	// gVisor cannot write down a named pipe that is open and deleted.
	m.shell(p, "s", "one", "echo here >~/f; cd /tmp; mkfifo p; exec 3<>p; rm p; sleep 1000 <&3 >/dev/null 2>&1 & exec 3<&-; until grep -qx sleep /proc/[0-9]*/comm; do sleep 0.05; done")
	sn := m.snapshot(p, "s", "one")
	if sn.Stored.Checkpoint || !strings.Contains(sn.Detail, "files alone") {
		t.Fatalf("%+v", sn)
	}
	if got := m.shell(p, "s", "one", "grep -lx sleep /proc/[0-9]*/comm | wc -l"); got != "1" {
		t.Errorf("%s programs continue", got)
	}
	_, _, err := m.Ensure(t.Context(), p, "s", "two", &sandbox.Spec{Snapshot: sn.ID})
	refused(t, "its memory", err, fault.Conflict, "files alone; files_only")
	m.of(p, "two", sn, true)
	if got := m.shell(p, "s", "two", "cat ~/f"); got != "here" {
		t.Errorf("its file has %q", got)
	}
}

func TestSnapshotsAreTheirOwners(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a", func(p *tenant.Principal) {
		p.Plan = tenant.Plan{Name: "small", MaxSnapshots: 2, MaxSnapshotSize: 1 << 30}
	})
	ctx := t.Context()
	m.ensure(p, "s", "one", nil)
	sn := m.snapshot(p, "s", "one")
	for _, other := range []*tenant.Principal{m.caller("b"), m.caller("c", func(p *tenant.Principal) { p.Tenant.ID = "ten_a" })} {
		if list, _, err := m.records.ListSnapshots(ctx, other, "", 10); err != nil || len(list) > 0 {
			t.Errorf("others see %v, %v", list, err)
		}
		_, err := m.records.GetSnapshot(ctx, other, sn.ID)
		refused(t, "another's", err, fault.NotFound, "not found")
		refused(t, "deleting another's", m.records.DeleteSnapshot(ctx, other, sn.ID), fault.NotFound, "not found")
		_, _, err = m.Ensure(ctx, other, "s", "x", &sandbox.Spec{Snapshot: sn.ID})
		refused(t, "using another's", err, fault.NotFound, "not found")
		_, err = m.Snapshot(ctx, other, "s", "one", 0)
		refused(t, "a snapshot of another's", err, fault.NotFound, "")
	}
	_, err := m.records.GetSnapshot(ctx, p, "snap-x")
	refused(t, "no id", err, fault.NotFound, "not found")
	if second, err := m.Snapshot(ctx, p, "s", "one", time.Hour); err != nil || second.ExpiresAt == nil || second.ExpiresAt.Sub(second.CreatedAt) != time.Hour {
		t.Errorf("%+v, %v", second, err)
	}
	_, err = m.Snapshot(ctx, p, "s", "one", 0)
	refused(t, "a third", err, fault.Exhausted, "snapshot limit reached (2 of 2)")
	p.Plan.MaxSnapshots, p.Plan.MaxSnapshotSize = 0, 1<<20
	_, err = m.Snapshot(ctx, p, "s", "one", 0)
	refused(t, "too much", err, fault.Exhausted, "snapshot size limit")
	if err := m.records.DeleteSnapshot(ctx, p, sn.ID); err != nil {
		t.Error(err)
	}
	_, _, err = m.Ensure(ctx, p, "s", "x", &sandbox.Spec{Snapshot: sn.ID})
	refused(t, "a deleted one", err, fault.NotFound, "")
	_, _, err = m.Ensure(ctx, p, "s", "x", &sandbox.Spec{FilesOnly: true})
	refused(t, "files of nothing", err, fault.Invalid, "files_only")

	// What has changed since.
	p.Plan.MaxSnapshotSize = 0
	sn = m.snapshot(p, "s", "one")
	p.Environment.Permissions.Filesystem.Blocked = []string{"/var/tmp"}
	_, _, err = m.Ensure(ctx, p, "s", "x", &sandbox.Spec{Snapshot: sn.ID})
	refused(t, "with less permissions", err, fault.Conflict, "permissions of the environment")
	p.Environment.Permissions.Filesystem.Blocked = nil
	p.Plan.MaxMemory = 1 << 20
	_, _, err = m.Ensure(ctx, p, "s", "x", &sandbox.Spec{Snapshot: sn.ID})
	refused(t, "with a smaller plan", err, fault.Exhausted, "memory")
	p.Plan.MaxMemory, p.Plan.MaxSandboxDisk = 0, 1
	_, _, err = m.Ensure(ctx, p, "s", "x", &sandbox.Spec{Snapshot: sn.ID})
	refused(t, "with less disk", err, fault.Exhausted, "of disk")
}

func TestADamagedSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", "head -c 3000000 /dev/urandom >~/f")
	sn := m.snapshot(p, "s", "one")
	all := blobFiles(t, m)
	for what, damage := range map[string]func(path string, data []byte) error{
		"a byte is another":    func(path string, data []byte) error { data[len(data)/2] ^= 1; return os.WriteFile(path, data, 0o600) },
		"it is shorter":        func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)/2], 0o600) },
		"it is gone":           func(path string, _ []byte) error { return os.Remove(path) },
		"it is another's data": func(path string, _ []byte) error { return os.WriteFile(path, make([]byte, 4<<20), 0o600) },
	} {
		for _, path := range all {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(path, append([]byte(nil), data...)); err != nil {
				t.Fatal(err)
			}
			_, _, err = m.Ensure(t.Context(), p, "s", "two", &sandbox.Spec{Snapshot: sn.ID})
			refused(t, what+": "+filepath.Base(filepath.Dir(path)), err, fault.Conflict, "damaged or missing")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.of(p, "two", sn, false)
	if list, err := m.List(t.Context(), p, "s"); err != nil || len(list) != 2 {
		t.Errorf("there are %v, %v", list, err)
	}
}

func TestADeletedEnvironmentTakesItsSandboxesAlong(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	for _, err := range []error{
		m.db.Tenants().CreateTenant(t.Context(), tenant.Tenant{ID: p.Tenant.ID, Name: "a", Plan: "free", Tier: tenant.Standard, AuditDays: 30, CreatedAt: time.Now()}),
		m.db.Tenants().CreateEnvironment(t.Context(), tenant.Environment{ID: p.Environment.ID, Tenant: p.Tenant.ID, Name: "e", Image: atolltest.Image, Limits: p.Environment.Limits, CreatedAt: time.Now()}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	sb := m.ensure(p, "s", "one", nil)
	m.snapshot(p, "s", "one")
	if err := m.db.Tenants().DeleteEnvironment(t.Context(), p.Tenant.ID, p.Environment.ID); err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, time.Minute, "it is destroyed", func() bool {
		got, err := m.Get(t.Context(), p, "", string(sb.ID))
		return err == nil && got.State == sandbox.Destroyed && got.Detail == "its environment was deleted"
	})
	if list, _, err := m.records.ListSnapshots(t.Context(), p, "", 10); err != nil || len(list) > 0 {
		t.Errorf("snapshots are %v, %v", list, err)
	}
}

// blobFiles are the files of the blob store that hold what is kept.
func blobFiles(t *testing.T, m *machine) (all []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(m.dir, "blobs", "snapshots"), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && !strings.HasSuffix(path, ".attrs") {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) < 2 {
		t.Fatalf("the blob store has %v, %v", all, err)
	}
	return all
}

func TestASandboxOnDiskMovesToTheBlobStore(t *testing.T) {
	url := atolltest.S3(t)
	m := start(t, func(c *sandboxes.Config) {
		c.SleepAfter, c.KeepFrozen, c.KeepOnDisk = 300*time.Millisecond, 0, 300*time.Millisecond
	})
	m.close()
	m.blobs = url
	m.open()
	p := m.caller("a")
	sb := m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", sandboxtest.Program)
	was, ticks := m.told(p, "s", "one")
	stored := func() {
		t.Helper()
		atolltest.Until(t, time.Minute, "it is in the blob store", func() bool {
			_, err := os.Stat(filepath.Join(m.dir, "state", "server", "sandboxes", string(sb.ID)))
			return m.get(p, "s", "one").Sleep == sandbox.Stored && os.IsNotExist(err)
		})
	}
	for range 2 {
		stored()
		m.restart()
		ticks = m.goesOn(p, "s", "one", was, ticks)
		if got := m.get(p, "s", "one"); got.Stored != nil {
			t.Errorf("back, it is %+v", got)
		}
	}
	stored()
	sn := m.snapshot(p, "s", "one") // of what is stored, without bringing it back
	if got := m.get(p, "s", "one"); got.Sleep != sandbox.Stored || sn.Stored != *got.Stored {
		t.Errorf("snapshot %+v of %+v", sn, got)
	}
	forks, err := m.Fork(t.Context(), p, "s", "one", 1)
	if err != nil {
		t.Fatal(err)
	}
	m.of(p, "two", sn, false)
	for _, name := range []string{"one", forks[0].Name, "two"} {
		if now, _ := m.told(p, "s", name); now != was {
			t.Errorf("%s tells %q; it was %q", name, now, was)
		}
	}
	stored()
	if err := m.Destroy(t.Context(), p, "s", "one"); err != nil {
		t.Error(err)
	}
	if states, err := m.db.Snapshots().ReferencedStates(t.Context(), p.Tenant.ID); err != nil || len(states) == 0 || states[0] != sn.Stored.State {
		t.Errorf("states are %v, %v", states, err)
	}
}
