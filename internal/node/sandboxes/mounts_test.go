package sandboxes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	volume "github.com/atoll-run/atoll/internal/node/volumes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// volumes is a machine that keeps volumes, and the folder of those of tenant a.
func volumes(t *testing.T, change func(*sandboxes.Config)) (m *machine, of string) {
	t.Helper()
	who, err := idmap.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m = startWith(t, change, func(c *engine.Config) { c.Volumes = volume.Store{Dir: dir, Owners: who} })
	t.Cleanup(func() {
		if at := mountedBelow(t, m.dir); len(at) > 1 { // the folder of the server itself
			t.Errorf("mounts are left: %v", at)
		}
	})
	return m, filepath.Join(dir, "ten_a")
}

// mountedBelow lists where something is mounted at a folder and below it.
func mountedBelow(t *testing.T, dir string) (at []string) {
	t.Helper()
	all, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		if f := strings.Fields(line); strings.HasPrefix(f[4], dir+"/") {
			at = append(at, f[4])
		}
	}
	return at
}

// grant is one of a volume that is called as its connection.
func grant(slug string, prefix storage.Path, readOnly bool) storage.Granted {
	return storage.Granted{
		Grant:      storage.Grant{Environment: "env_a", Prefix: prefix, ReadOnly: readOnly},
		Connection: storage.Connection{ID: "con_" + slug, Tenant: "ten_a", Slug: slug, Kind: storage.Volume},
	}
}

// to makes a grant one to a key.
func to(key string, g storage.Granted) storage.Granted {
	g.Grant.Environment, g.Grant.Key = "", key
	return g
}

func with(grants ...storage.Granted) func(*tenant.Principal) {
	return func(p *tenant.Principal) { p.Storage = grants }
}

func wrote(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s has %q, %v", path, got, err)
	}
}

func TestASandboxHasItsEnvironmentsVolumes(t *testing.T) {
	t.Parallel()
	m, of := volumes(t, nil)
	p := m.caller("a", with(grant("team", "", false), grant("fixed", "reports", true)))
	if err := os.MkdirAll(filepath.Join(of, "con_fixed", "reports"), 0o755); err != nil {
		t.Fatal(err)
	}
	who, err := idmap.Find()
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := who.UID.ToHost(runtime.UID)
	if err := os.Chown(filepath.Join(of, "con_fixed", "reports"), int(uid), -1); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"reports/q1": "first\n", "secret": "none of its business"} {
		if err := os.WriteFile(filepath.Join(of, "con_fixed", path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sb := m.ensure(p, "s", "one", nil)
	if got := strings.Join(storage.Labels(sb.Mounts), " "); got != "fixed/reports:ro team/:rw" {
		t.Errorf("it says that it has %s", got)
	}
	see := `ls /data /data/fixed; cat /data/fixed/q1; echo more >> /data/team/log && cat /data/team/log; touch /data/fixed/x || stat -c %U /data/team/log`
	const seen = "/data:\nfixed\nteam\n\n/data/fixed:\nq1\nfirst\n"
	if got := m.shell(p, "s", "one", see); !strings.HasPrefix(got, seen+"more\n") || !strings.Contains(got, "Read-only file system") {
		t.Errorf("it sees %q", got)
	}
	if at := mountedBelow(t, m.dir); len(at) > 1 {
		t.Errorf("the host still has %v mounted", at)
	}
	// Its programs, and what they have open, through every sleep and another server.
	m.shell(p, "s", "one", `setsid sh -c 'exec 5>>/data/team/held; cd /data/fixed; echo >/tmp/begun; while sleep 0.05; do [ -e /tmp/go ] && echo tick >&5; done' >/dev/null 2>&1 & until [ -e /tmp/begun ]; do sleep 0.05; done`)
	again := func(what string, n int) {
		t.Helper()
		want := seen + strings.Repeat("more\n", n)
		if got := m.shell(p, "s", "one", see); !strings.HasPrefix(got, want) {
			t.Errorf("%s it sees %q", what, got)
		}
	}
	m.sleep(p, "s", "one")
	again("woken from disk", 2)
	m.restart()
	again("taken over", 3)
	m.sleep(p, "s", "one")
	m.restart()
	again("taken over asleep and woken", 4)
	forks, err := m.Fork(t.Context(), p, "s", "one", 2)
	if err != nil {
		t.Fatal(err)
	}
	sn, err := m.Snapshot(t.Context(), p, "s", "one", 0)
	if err != nil || !sn.Stored.Checkpoint || sn.Stored.Bytes == 0 {
		t.Fatalf("snapshot: %+v, %v", sn, err)
	}
	m.ensure(p, "s", "of-snapshot", &sandbox.Spec{Snapshot: sn.ID})
	m.ensure(p, "s", "of-files", &sandbox.Spec{Snapshot: sn.ID, FilesOnly: true})
	for i, name := range []string{forks[0].Name, forks[1].Name, "of-snapshot", "of-files"} {
		if got := m.shell(p, "s", name, see); !strings.HasPrefix(got, seen+strings.Repeat("more\n", 5+i)) {
			t.Errorf("%s sees %q", name, got)
		}
	}
	// It is one volume, to which the held files of all of them belong.
	m.shell(p, "s", "of-snapshot", `touch /tmp/go; for i in $(seq 100); do [ -s /data/team/held ] && exit; sleep 0.1; done; exit 1`)
	wrote(t, filepath.Join(of, "con_team", "log"), strings.Repeat("more\n", 8))

	// What is in a volume is never a sandbox's.
	m.shell(p, "s", "one", `head -c 50M /dev/zero > /data/team/big; exec 6>/data/team/gone; rm /data/team/gone; head -c 50M /dev/zero >&6; setsid sleep 1000 >/dev/null 2>&1 &`)
	if u, err := m.Usage(t.Context(), p, "s", "one"); err != nil || u.Disk > 10<<20 {
		t.Errorf("it takes %d bytes of disk, %v", u.Disk, err)
	}
	for _, sb := range list(t, m, p) {
		if err := m.Destroy(t.Context(), p, "s", sb.Name); err != nil {
			t.Error(err)
		}
	}
	wrote(t, filepath.Join(of, "con_team", "log"), strings.Repeat("more\n", 8))
	wrote(t, filepath.Join(of, "con_fixed", "secret"), "none of its business")
	if info, err := os.Stat(filepath.Join(of, "con_team", "big")); err != nil || info.Size() != 50<<20 {
		t.Errorf("of what it wrote there is %v, %v", info, err)
	}
}

func list(t *testing.T, m *machine, p *tenant.Principal) []*sandbox.Sandbox {
	t.Helper()
	all, err := m.List(t.Context(), p, "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAVolumeThatChangedUnderASleeper: others may take away what a sandbox that
// sleeps had open in a volume. It goes on with its files.
func TestAVolumeThatChangedUnderASleeper(t *testing.T) {
	t.Parallel()
	m, of := volumes(t, nil)
	p := m.caller("a", with(grant("team", "", false)))
	m.ensure(p, "s", "one", nil)
	hold := `echo kept > kept; echo x > /data/team/held; setsid sh -c 'exec 5>>/data/team/held; exec sleep 1000' >/dev/null 2>&1 & until grep -q ^sleep /proc/[0-9]*/comm; do :; done; cat /proc/[0-9]*/comm | grep -c ^sleep`
	if got := m.shell(p, "s", "one", hold); got != "1" {
		t.Fatalf("it has %s programs", got)
	}
	// More in it, and more beside it, is nothing to mind.
	m.sleep(p, "s", "one")
	for name, text := range map[string]string{"held": "x\nand more\n", "beside": "new\n"} {
		if err := os.WriteFile(filepath.Join(of, "con_team", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.shell(p, "s", "one", `cat kept /data/team/held /data/team/beside; cat /proc/[0-9]*/comm | grep -c ^sleep`); got != "kept\nx\nand more\nnew\n1" {
		t.Errorf("woken, it says %q", got)
	}
	m.sleep(p, "s", "one")
	if err := os.Remove(filepath.Join(of, "con_team", "held")); err != nil {
		t.Fatal(err)
	}
	if got := m.shell(p, "s", "one", `cat kept; ls /data/team; cat /proc/[0-9]*/comm | grep -c ^sleep; true`); got != "kept\nbeside\n0" {
		t.Errorf("woken where what it had open is gone, it says %q", got)
	}
	if sb := m.get(p, "s", "one"); !strings.Contains(sb.Detail, "started anew with its files") || !strings.Contains(sb.Detail, "volume") {
		t.Errorf("its detail is %q", sb.Detail)
	}
}

// TestStorageIsTakenBack: what the environment, or the key that made a sandbox, may
// not see any more, the sandbox has not for long, whether it runs or sleeps.
func TestStorageIsTakenBack(t *testing.T) {
	t.Parallel()
	m, of := volumes(t, nil)
	p := m.caller("a", with(grant("team", "", false), grant("other", "", false)))
	other := m.second(p, func(*tenant.Key) {})
	const name = "one"
	writes := `echo kept > kept; setsid sh -c 'while echo x >> /data/team/log && sleep 0.05; do :; done' >/dev/null 2>&1 & until [ -s /data/team/log ]; do sleep 0.05; done; echo begun`
	for what, c := range map[string]struct {
		left   []storage.Granted
		revoke bool // the key that made it
		how    func()
		sees   string
	}{
		"while it runs":                 {left: []storage.Granted{grant("other", "", false)}, how: func() { m.Reauthorize(t.Context()) }, sees: "other"},
		"before the next use":           {left: []storage.Granted{grant("other", "", false)}, how: func() {}, sees: "other"},
		"asleep":                        {left: []storage.Granted{grant("other", "", false)}, how: func() { m.sleep(p, "s", name) }, sees: "other"},
		"while there is no server":      {left: []storage.Granted{grant("other", "", false)}, how: m.restart, sees: "other"},
		"narrowed to a folder":          {left: []storage.Granted{grant("other", "", false), grant("team", "log.d", false)}, how: func() { m.Reauthorize(t.Context()) }, sees: "other\nteam"},
		"no longer to be written":       {left: []storage.Granted{grant("other", "", false), grant("team", "", true)}, how: func() { m.Reauthorize(t.Context()) }, sees: "other\nteam"},
		"narrowed for the key alone":    {left: []storage.Granted{grant("other", "", false), grant("team", "", false), to("key_a", grant("team", "", true))}, how: func() { m.Reauthorize(t.Context()) }, sees: "other\nteam"},
		"granted to a key that is gone": {revoke: true, left: []storage.Granted{grant("other", "", false)}, how: func() { m.Reauthorize(t.Context()) }, sees: "other"},
	} {
		p.Storage = []storage.Granted{grant("team", "", false), grant("other", "", false)}
		m.callers[p.Key.ID] = p
		if c.revoke { // another key was granted no more than is left
			p.Storage = []storage.Granted{to("key_a", grant("team", "", false)), grant("other", "", false)}
		}
		other.Storage = p.Storage
		made := m.ensure(p, "s", name, nil)
		m.shell(p, "s", name, writes)
		m.shell(other, "s", name, "true")
		asleep := what == "asleep"
		if asleep {
			c.how()
		}
		now := *p // callers share what they were told: it is another one from now on
		now.Storage = c.left
		m.callers[p.Key.ID] = &now
		second := *other
		second.Storage = c.left
		m.callers[other.Key.ID] = &second
		by := &now
		if c.revoke {
			delete(m.callers, p.Key.ID)
			by = &second
		}
		if !asleep {
			c.how()
		}
		if what != "before the next use" {
			left, err := atolltest.Trace(m.dir).Find()
			if err != nil || len(left.Processes) > 0 { // they might write
				t.Errorf("%s: there are the processes %v, %v", what, left.Processes, err)
			}
		}
		if got := m.shell(by, "s", name, `ls /data; cat kept; touch /data/team/x 2>&1 | grep -o Read-only; cat /proc/[0-9]*/comm | grep -c ^sleep; true`); !strings.HasPrefix(got, c.sees+"\nkept\n") || !strings.HasSuffix(got, "\n0") || (!strings.Contains(got, "Read-only") && strings.HasSuffix(what, "written")) {
			t.Errorf("%s: it says %q", what, got)
		}
		sb := m.get(by, "s", name)
		if sb.ID != made.ID || !strings.Contains(sb.Detail, "started anew") || !strings.Contains(sb.Detail, "storage") || len(sb.Mounts) == 2 && sb.Mounts[1] == made.Mounts[1] {
			t.Errorf("%s: %s is %+v", what, made.ID, sb)
		}
		if err := m.Destroy(t.Context(), by, "s", name); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(of, "con_team")); err != nil {
			t.Fatal(err)
		}
	}
	m.callers[p.Key.ID] = p
}

// TestWhoUsesASandboxMaySeeItsStorage: keys of one environment share its sandboxes,
// not what one of them alone may see.
func TestWhoUsesASandboxMaySeeItsStorage(t *testing.T) {
	t.Parallel()
	m, _ := volumes(t, nil)
	wide := m.caller("a", with(grant("team", "", false)))
	narrow := m.second(wide, func(*tenant.Key) {})
	narrow.Storage = []storage.Granted{grant("team", "", false), to(narrow.Key.ID, grant("team", "reports", true))}
	made := m.ensure(wide, "s", "wide", nil)
	m.shell(wide, "s", "wide", `mkdir /data/team/reports; echo q1 > /data/team/reports/q1`)
	for what, use := range map[string]func() error{
		"use":      func() error { _, err := m.Use(t.Context(), narrow, "s", "wide"); return err },
		"fork":     func() error { _, err := m.Fork(t.Context(), narrow, "s", "wide", 1); return err },
		"snapshot": func() error { _, err := m.Snapshot(t.Context(), narrow, "s", "wide", 0); return err },
	} {
		refused(t, what, use(), fault.Forbidden, "team/:rw")
	}
	sn, err := m.Snapshot(t.Context(), wide, "s", "wide", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = m.Ensure(t.Context(), narrow, "s", "again", &sandbox.Spec{Snapshot: sn.ID})
	refused(t, "a snapshot's memory", err, fault.Conflict, "files_only")
	sees := func(p *tenant.Principal, name, want string) {
		t.Helper()
		if got := m.shell(p, "s", name, `cd /data/team && ls -R && ! touch x 2>/dev/null && echo fixed`); got != want {
			t.Errorf("%s sees %q", name, got)
		}
	}
	m.ensure(narrow, "s", "again", &sandbox.Spec{Snapshot: sn.ID, FilesOnly: true})
	sees(narrow, "again", ".:\nq1\nfixed")
	m.ensure(narrow, "s", "own", nil)
	sees(narrow, "own", ".:\nq1\nfixed")
	sees(wide, "own", ".:\nq1\nfixed")
	if got := m.shell(wide, "s", "wide", `cat /data/team/reports/q1`); got != "q1" {
		t.Errorf("the maker reads %q", got)
	}
	if sb := m.get(wide, "s", "wide"); sb.ID != made.ID || sb.Detail != "" {
		t.Errorf("what others wanted changed it: %+v", sb)
	}
	// When no valid key remains its programs stand still.
	m.shell(wide, "s", "wide", `setsid sh -c 'while echo x >> /data/team/log && sleep 0.05; do :; done' >/dev/null 2>&1 & until [ -s /data/team/log ]; do sleep 0.05; done`)
	delete(m.callers, wide.Key.ID)
	m.Reauthorize(t.Context())
	if sb := m.get(wide, "s", "wide"); sb.State != sandbox.Sleeping || !strings.Contains(sb.Detail, "revoked") {
		t.Errorf("without a valid key it is %+v", sb)
	}
	m.callers[wide.Key.ID] = wide
	m.shell(wide, "s", "wide", `cd /data/team; was=$(stat -c %s log); for i in $(seq 100); do [ $(stat -c %s log) -gt $was ] && exit; sleep 0.1; done; exit 1`)
}

// TestPermissionsHoldInVolumes: what an environment's rules forbid is forbidden where
// a volume is mounted, too, also once it was woken or started anew.
func TestPermissionsHoldInVolumes(t *testing.T) {
	t.Parallel()
	m, of := volumes(t, nil)
	p := m.caller("a", with(grant("team", "", false), grant("other", "", false)), func(p *tenant.Principal) {
		p.Environment.Permissions.Filesystem = runtime.FilesystemPolicy{ReadOnly: []string{"/data"}, Blocked: []string{"/data/team/secret"}}
	})
	who, err := idmap.Find()
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := who.UID.ToHost(runtime.UID)
	secret := filepath.Join(of, "con_team", "secret")
	if err := os.MkdirAll(secret, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secret, "f"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(of, "con_team"), secret, filepath.Join(secret, "f")} {
		if err := os.Chown(path, int(uid), -1); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(what string) {
		t.Helper()
		if got := m.shell(p, "s", "one", `touch /data/team/new 2>&1 | grep -o Read-only; cat /data/team/secret/f 2>&1 | grep -o denied; ls /data/team`); got != "Read-only\ndenied\nsecret" {
			t.Errorf("%s it says %q", what, got)
		}
	}
	m.ensure(p, "s", "one", nil)
	holds("made")
	m.sleep(p, "s", "one")
	holds("woken")
	p.Storage = p.Storage[:1]
	m.shell(p, "s", "one", "true")
	if sb := m.get(p, "s", "one"); !strings.Contains(sb.Detail, "started anew") {
		t.Errorf("its detail is %q", sb.Detail)
	}
	holds("started anew")
}

// TestOfWhatHasNoProcesses: a sandbox whose storage was taken back while it was not in use
// has files alone until its next use.
func TestOfWhatHasNoProcesses(t *testing.T) {
	t.Parallel()
	m, _ := volumes(t, nil)
	p := m.caller("a", with(grant("team", "", false)))
	m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", "echo kept > kept")
	now := *p
	now.Storage = nil
	m.callers[p.Key.ID] = &now
	m.Reauthorize(t.Context())
	if sb := m.get(p, "s", "one"); sb.State != sandbox.Sleeping || sb.Sleep != sandbox.OnDisk || len(sb.Mounts) > 0 || !strings.Contains(sb.Detail, "its programs were ended") {
		t.Errorf("taken back, it is %+v", sb)
	}
	_, err := m.Fork(t.Context(), &now, "s", "one", 1)
	refused(t, "a copy of its processes", err, fault.Conflict, "Wake it first")
	sn, err := m.Snapshot(t.Context(), &now, "s", "one", 0)
	if err != nil || sn.Stored.Checkpoint || !strings.Contains(sn.Detail, "files alone") {
		t.Fatalf("snapshot: %+v, %v", sn, err)
	}
	m.restart()
	m.ensure(&now, "s", "two", &sandbox.Spec{Snapshot: sn.ID, FilesOnly: true})
	for _, name := range []string{"one", "two"} {
		if got := m.shell(&now, "s", name, "cat kept; ls /data 2>/dev/null; true"); got != "kept" {
			t.Errorf("%s says %q", name, got)
		}
	}
}

// TestWhatASandboxWantsToSee: its maker may narrow it; there is one of a name.
func TestWhatASandboxWantsToSee(t *testing.T) {
	t.Parallel()
	m, of := volumes(t, nil)
	p := m.caller("a", with(grant("team", "", false), grant("other", "", false)))
	sub := func(entries ...string) *sandbox.Spec {
		t.Helper()
		paths, err := storage.ParseSubPaths(entries)
		if err != nil {
			t.Fatal(err)
		}
		return &sandbox.Spec{SubPaths: paths}
	}
	sb := m.ensure(p, "s", "one", sub("/data/team/a/b"))
	if got := strings.Join(storage.Labels(sb.Mounts), " "); got != "other/:rw team/a/b:rw" {
		t.Errorf("it has %s", got)
	}
	m.shell(p, "s", "one", `echo x > /data/team/f; ls /data/team/..`)
	wrote(t, filepath.Join(of, "con_team", "a", "b", "f"), "x\n")
	m.ensure(p, "s", "one", sub("/data/team/a/b"))
	m.ensure(p, "s", "one", &sandbox.Spec{})
	_, _, err := m.Ensure(t.Context(), p, "s", "one", sub("/data/team/a"))
	refused(t, "another path of one that exists", err, fault.Conflict, "team/a/b:rw")
	_, _, err = m.Ensure(t.Context(), p, "s", "two", sub("/data/nothing/a"))
	refused(t, "a connection that it has not", err, fault.Invalid, "nothing")
	if err := os.Symlink("/etc", filepath.Join(of, "con_team", "link")); err != nil {
		t.Fatal(err)
	}
	_, _, err = m.Ensure(t.Context(), p, "s", "two", sub("/data/team/link"))
	refused(t, "a link", err, fault.Invalid, "link")
	if all := list(t, m, p); len(all) != 1 {
		t.Errorf("there are %d sandboxes", len(all))
	}
	// Its folder is another now: it is not woken to see what is there.
	m.sleep(p, "s", "one")
	for _, move := range [][2]string{{"a", "was"}, {"link", "a"}} {
		if err := os.Rename(filepath.Join(of, "con_team", move[0]), filepath.Join(of, "con_team", move[1])); err != nil {
			t.Fatal(err)
		}
	}
	_, err = m.Use(t.Context(), p, "s", "one")
	refused(t, "a folder that became a link", err, fault.Unavailable, "link")
	if err := os.Rename(filepath.Join(of, "con_team", "a"), filepath.Join(of, "con_team", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(of, "con_team", "was"), filepath.Join(of, "con_team", "a")); err != nil {
		t.Fatal(err)
	}
	if got := m.shell(p, "s", "one", `cat /data/team/f`); got != "x" {
		t.Errorf("woken, it reads %q", got)
	}
}

// TestBucketsAreRefused: a sandbox that would outlive what serves them is not made.
func TestBucketsAreRefused(t *testing.T) {
	t.Parallel()
	m, _ := volumes(t, nil)
	bucket := grant("reports", "", false)
	bucket.Connection.Kind = storage.S3
	p := m.caller("a", with(grant("team", "", false), bucket))
	_, _, err := m.Ensure(t.Context(), p, "s", sandbox.Default, nil)
	refused(t, "a bucket", err, fault.Forbidden, `"reports"`)
	if all := list(t, m, p); len(all) != 0 {
		t.Errorf("there are %d sandboxes", len(all))
	}
}

// TestASweepLeavesVolumesAlone: a server that was killed while it made a sandbox has
// left a volume mounted in its folders.
func TestASweepLeavesVolumesAlone(t *testing.T) {
	t.Parallel()
	m, of := volumes(t, nil)
	p := m.caller("a", with(grant("team", "", false)))
	made := m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", `mkdir /data/team/d; echo x > /data/team/d/f`)
	m.close()
	disk := filepath.Join(m.dir, "state", engine.Server)
	for _, id := range []runtime.ID{made.ID, runtime.NewID(), runtime.NewID()} { // one that lives, an orphan, and one of which there is nothing else
		on := filepath.Join(disk, "mounts", string(id), "team")
		if err := os.MkdirAll(on, 0o711); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := unix.Mount(filepath.Join(of, "con_team"), on, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	orphans, err := os.ReadDir(filepath.Join(disk, "mounts"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(disk, engine.SandboxFolder, orphans[0].Name(), "files", "share", "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.open()
	if at := mountedBelow(t, m.dir); len(at) > 1 {
		t.Errorf("still mounted: %v", at)
	}
	if left, err := os.ReadDir(filepath.Join(disk, "mounts")); err != nil || len(left) > 0 {
		t.Errorf("folders are left: %v, %v", left, err)
	}
	wrote(t, filepath.Join(of, "con_team", "d", "f"), "x\n")
	if got := m.shell(p, "s", "one", `cat /data/team/d/f`); got != "x" {
		t.Errorf("the sandbox that lived reads %q", got)
	}
}
