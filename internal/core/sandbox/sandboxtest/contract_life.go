package sandboxtest

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func testLifecycle(s *suite) {
	for _, test := range []struct {
		name string
		run  func(*suite)
	}{
		{"made once and used again", testEnsure},
		{"one of a name however many ask for it", testEnsureRace},
		{"names", testNamesRefused},
		{"another tenant's is unknown", testUnknown},
		{"one on another machine", testOnAnotherMachine},
		{"sleep and wake", testSleep},
		{"forks", testFork},
		{"snapshots", testSnapshots},
		{"changed", testUpdate},
	} {
		s.Run(test.name, func(t *testing.T) { test.run(&suite{t, s.Rig}) })
	}
}

func testEnsure(s *suite) {
	p := s.caller("ensure")
	s.destroy(p)
	ctx := s.Context()
	sb := s.make(p, "builder", &sandbox.Spec{Image: s.Image, Env: map[string]string{"A": "ü"}})
	if sb.State != sandbox.Running || sb.Session != "s" || sb.Name != "builder" || sb.ImageAlias != s.Image || sb.Image != p.Image ||
		sb.Tenant != p.Tenant || sb.Environment != p.Environment || sb.Key != p.Key || !maps.Equal(sb.Env, map[string]string{"A": "ü"}) || time.Since(sb.CreatedAt) > time.Minute {
		s.Errorf("it is %+v", sb)
	}
	for what, spec := range map[string]*sandbox.Spec{"the same": {Image: s.Image}, "any image": {}, "any": nil} {
		if again, created, err := s.Node.Ensure(ctx, p, "s", "builder", spec); err != nil || created || again.ID != sb.ID {
			s.Errorf("%s: %+v, %v, %v", what, again, created, err)
		}
	}
	_, _, err := s.Node.Ensure(ctx, p, "s", "builder", &sandbox.Spec{Image: "no-such-image"})
	refused(s.T, "a missing image", err, fault.Invalid, "atoll image import")
	s.shell(p, "builder", `echo file > f; (sleep 1000 & echo $! > /tmp/pid)`)
	equal(s.T, "used again, by its id", s.shell(p, string(sb.ID), `cat f; kill -0 $(cat /tmp/pid) && echo alive; printf %s "$A" | od -An -tx1`), "file\nalive\n c3 bc")
	if u, err := s.Node.Usage(ctx, p, "s", "builder"); err != nil || u.Memory < 1<<20 || u.Disk == 0 {
		s.Errorf("it uses %+v, %v", u, err)
	}
	if got, err := s.Node.Get(ctx, p, "s", "builder"); err != nil || got.ID != sb.ID || got.UsedAt.Before(sb.UsedAt) {
		s.Errorf("got %+v, %v", got, err)
	}
	if ended, err := s.Node.Destroy(ctx, p, "s", "builder"); err != nil || ended.ID != sb.ID || ended.State != sandbox.Destroyed {
		s.Fatalf("%+v, %v", ended, err)
	}
	_, err = s.Node.Use(ctx, p, "s", "builder")
	refused(s.T, "a destroyed one", err, fault.NotFound, "no sandbox")
	_, err = s.Node.Destroy(ctx, p, "s", "builder")
	refused(s.T, "destroyed again", err, fault.NotFound, "no sandbox")
	if got, err := s.Node.Get(ctx, p, "", string(sb.ID)); err != nil || got.State != sandbox.Destroyed {
		s.Errorf("on record: %+v, %v", got, err)
	}
	if orphans, err := s.Machine.Orphans(ctx); err != nil || len(orphans) > 0 {
		s.Errorf("orphans: %v, %v", orphans, err)
	}
	if reaped, err := s.Machine.Reap(ctx); err != nil || len(reaped) > 0 {
		s.Errorf("reaped: %v, %v", reaped, err)
	}
	if anew := s.make(p, "builder", nil); anew.ID == sb.ID {
		s.Error("the new one is the old one")
	}
	equal(s.T, "a new one has", s.shell(p, "builder", "ls"), "")
}

func testEnsureRace(s *suite) {
	p := s.caller("race")
	s.destroy(p)
	var g sync.WaitGroup
	var mu sync.Mutex
	ids, made := map[runtime.ID]bool{}, 0
	for range 20 {
		g.Go(func() {
			sb, created, err := s.Node.Ensure(s.Context(), p, "s", sandbox.Default, &sandbox.Spec{})
			if err != nil {
				s.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[sb.ID] = true
			if created {
				made++
			}
		})
	}
	g.Wait()
	if len(ids) != 1 || made != 1 {
		s.Errorf("%d sandboxes, %d made", len(ids), made)
	}
}

func testNamesRefused(s *suite) {
	p := s.caller("names")
	for _, bad := range []string{"", "-a", "a b", "ä", strings.Repeat("a", 65), "a/b", "../x", "a\n", string(runtime.NewID())} {
		_, _, err := s.Node.Ensure(s.Context(), p, "s", bad, nil)
		refused(s.T, "the name "+bad, err, fault.Invalid, " name")
	}
	for _, bad := range []string{"", "a\x00", strings.Repeat("a", 129), "\xff"} {
		_, _, err := s.Node.Ensure(s.Context(), p, bad, "x", nil)
		refused(s.T, "the session "+bad, err, fault.Invalid, "session")
	}
	_, err := s.Node.List(s.Context(), &sandbox.Grant{}, "")
	refused(s.T, "a key without environment", err, fault.Forbidden, "no environment")
}

func testUnknown(s *suite) {
	ctx := s.Context()
	p := s.caller("owner")
	s.destroy(p)
	sb := s.make(p, "one", nil)
	if _, _, err := s.Node.Ensure(ctx, p, "s2", "two", nil); err != nil {
		s.Fatal(err)
	}
	for who, q := range map[string]*sandbox.Grant{
		"another tenant":      s.caller("stranger"),
		"another environment": s.caller("neighbour", func(q *tenant.Principal) { q.Tenant.ID = p.Tenant }),
	} {
		for _, name := range []string{"one", string(sb.ID), string(runtime.NewID())} {
			want := fmt.Sprintf("there is no sandbox %q", name) // the same for what there is and what there is not
			for what, call := range map[string]func() error{
				"uses":      func() error { _, err := s.Node.Use(ctx, q, "s", name); return err },
				"gets":      func() error { _, err := s.Node.Get(ctx, q, "s", name); return err },
				"changes":   func() error { _, err := s.Node.Update(ctx, q, "s", name, sandbox.Change{}); return err },
				"measures":  func() error { _, err := s.Node.Usage(ctx, q, "s", name); return err },
				"puts down": func() error { _, err := s.Node.Sleep(ctx, q, "s", name); return err },
				"forks":     func() error { _, err := s.Node.Fork(ctx, q, "s", name, 1); return err },
				"snapshots": func() error { _, err := s.Node.Snapshot(ctx, q, "s", name, 0); return err },
				"destroys":  func() error { _, err := s.Node.Destroy(ctx, q, "s", name); return err },
			} {
				err := call()
				refused(s.T, who+" "+what+" it", err, fault.NotFound, want)
				if e, ok := errors.AsType[*fault.Error](err); ok && e.Msg != want {
					s.Errorf("%s %s %s: it says %q, not %q", who, what, name, e.Msg, want)
				}
			}
		}
		if list, err := s.Node.List(ctx, q, ""); err != nil || len(list) > 0 {
			s.Errorf("%s sees %v, %v", who, list, err)
		}
	}
	_, err := s.Node.Reach(ctx, runtime.NewID())
	refused(s.T, "an id that there is not", err, fault.NotFound, "there is no sandbox")
	_, err = s.Node.Use(ctx, p, "s2", "one")
	refused(s.T, "another session", err, fault.NotFound, "there is no sandbox")
	names := func(session string) (names []string) {
		list, err := s.Node.List(ctx, p, session)
		if err != nil {
			s.Error(err)
		}
		for _, sb := range list {
			names = append(names, sb.Session+"/"+sb.Name)
		}
		return names
	}
	equalList(s.T, "a session's", names("s"), []string{"s/one"})
	equalList(s.T, "all", names(""), []string{"s/one", "s2/two"})
}

func testOnAnotherMachine(s *suite) {
	if s.Elsewhere == nil {
		s.Skip("it follows a sandbox to its machine")
	}
	p := s.caller("elsewhere")
	sb := &sandbox.Sandbox{
		ID: runtime.NewID(), Tenant: p.Tenant, Environment: p.Environment, Session: "s", Name: "far", Key: p.Key,
		Executor: "exe_far", Image: p.Image, Limits: p.Limits, State: sandbox.Running,
	}
	s.Elsewhere(s.T, sb, "exe_far")
	_, _, err := s.Node.Ensure(s.Context(), p, "s", "far", nil)
	if there, ok := errors.AsType[*sandbox.ElsewhereError](err); !ok || there.Executor != "exe_far" || there.Sandbox.ID != sb.ID {
		s.Errorf("got the error %v", err)
	}
	_, err = s.Node.Use(s.Context(), p, "s", "far")
	refused(s.T, "its use", err, fault.NotFound, "there is no sandbox")
}

func testSleep(s *suite) {
	ctx := s.Context()
	p := s.caller("sleep")
	s.destroy(p)
	sb := s.make(p, "x", nil)
	s.shell(p, "x", `echo kept > f; (while :; do date +%s%N > beat; sleep 0.05; done) >/dev/null 2>&1 &`)
	h := s.open(p, "x")
	_, err := s.Node.Sleep(ctx, p, "s", "x")
	refused(s.T, "one that is in use", err, fault.Conflict, "in use")
	h.Close()
	beats := `before=$(cat beat); for i in $(seq 100); do [ "$(cat beat)" != "$before" ] && cat f && exit; sleep 0.1; done; exit 1`
	for _, by := range []string{"Use", "Reach"} {
		got, err := s.Node.Sleep(ctx, p, "s", "x")
		if err != nil || got.State != sandbox.Sleeping || got.Sleep != sandbox.OnDisk {
			s.Fatalf("asleep: %+v, %v", got, err)
		}
		if u, err := s.Node.Usage(ctx, p, "s", "x"); err != nil || u.Memory != 0 {
			s.Errorf("asleep it uses %+v, %v", u, err)
		}
		if by == "Reach" {
			h, err := s.Node.Reach(ctx, sb.ID)
			if err != nil {
				s.Fatal(err)
			}
			h.Close()
		}
		equal(s.T, "woken by "+by, s.shell(p, "x", beats), "kept")
		if got, err := s.Node.Get(ctx, p, "s", "x"); err != nil || got.State != sandbox.Running || got.Detail != "" {
			s.Errorf("awake: %+v, %v", got, err)
		}
	}
}

func testFork(s *suite) {
	ctx := s.Context()
	p := s.caller("fork")
	s.destroy(p)
	sb := s.make(p, "x", &sandbox.Spec{Env: map[string]string{"A": "b"}})
	s.shell(p, "x", `echo kept > f; (while :; do date +%s%N > beat; sleep 0.05; done) >/dev/null 2>&1 & hostname > was`)
	for _, count := range []int{0, sandbox.MaxForks + 1} {
		_, err := s.Node.Fork(ctx, p, "s", "x", count)
		refused(s.T, fmt.Sprint(count), err, fault.Invalid, "1 to 50")
	}
	forks, err := s.Node.Fork(ctx, p, "s", "x", 2)
	if err != nil || len(forks) != 2 {
		s.Fatalf("%v, %v", forks, err)
	}
	beats := `before=$(cat beat); for i in $(seq 100); do [ "$(cat beat)" != "$before" ] && cat f && exit; sleep 0.1; done; exit 1`
	ids := map[runtime.ID]bool{sb.ID: true}
	for i, fork := range forks {
		if fork.Name != fmt.Sprintf("x-%d", i+1) || fork.State != sandbox.Running || fork.Env["A"] != "b" || ids[fork.ID] || fork.Session != "s" {
			s.Errorf("a fork is %+v", fork)
		}
		ids[fork.ID] = true
		equal(s.T, "its process runs on", s.shell(p, fork.Name, beats), "kept")
		equal(s.T, "it is another machine", s.shell(p, fork.Name, "[ $(hostname) != $(cat was) ] && echo other; echo mine > f"), "other")
	}
	equal(s.T, "the first continues", s.shell(p, "x", beats), "kept")
}

func testSnapshots(s *suite) {
	ctx := s.Context()
	p := s.caller("snapshot")
	s.destroy(p)
	s.make(p, "x", nil)
	s.shell(p, "x", `echo kept > f; (while :; do date +%s%N > beat; sleep 0.05; done) >/dev/null 2>&1 &`)
	_, err := s.Node.Snapshot(ctx, p, "s", "x", -1)
	refused(s.T, "kept for less than nothing", err, fault.Invalid, "keep")
	sn, err := s.Node.Snapshot(ctx, p, "s", "x", time.Hour)
	if err != nil || !sn.ID.Valid() || sn.Name != "x" || !sn.Stored.Checkpoint || sn.Stored.Bytes == 0 || sn.ExpiresAt == nil || time.Until(*sn.ExpiresAt) > time.Hour {
		s.Fatalf("%+v, %v", sn, err)
	}
	s.shell(p, "x", "echo later > f")
	_, _, err = s.Node.Ensure(ctx, p, "s", "x", &sandbox.Spec{Snapshot: sn.ID})
	refused(s.T, "for one that there is", err, fault.Conflict, "exists")
	s.make(p, "resumed", &sandbox.Spec{Snapshot: sn.ID})
	equal(s.T, "with its processes", s.shell(p, "resumed", `before=$(cat beat); for i in $(seq 100); do [ "$(cat beat)" != "$before" ] && cat f && exit; sleep 0.1; done; exit 1`), "kept")
	s.make(p, "files", &sandbox.Spec{Snapshot: sn.ID, FilesOnly: true})
	equal(s.T, "its files alone", s.shell(p, "files", `cat f; before=$(cat beat); sleep 0.3; [ "$(cat beat)" = "$before" ] && echo still`), "kept\nstill")
	_, _, err = s.Node.Ensure(ctx, p, "s", "none", &sandbox.Spec{Snapshot: sandbox.NewSnapshotID()})
	refused(s.T, "one that there is not", err, fault.NotFound, "not found")
	_, _, err = s.Node.Ensure(ctx, s.caller("snapshot-2"), "s", "none", &sandbox.Spec{Snapshot: sn.ID})
	refused(s.T, "another tenant's", err, fault.NotFound, "not found")
}

func testUpdate(s *suite) {
	ctx := s.Context()
	p := s.caller("update", func(p *tenant.Principal) { p.Plan.MaxSandboxLife = time.Hour })
	s.destroy(p)
	made := s.make(p, "x", &sandbox.Spec{Timeout: time.Minute, SleepAfter: 10 * time.Second})
	if made.ExpiresAt == nil || time.Until(*made.ExpiresAt) > time.Minute || made.SleepAfter != 10*time.Second {
		s.Errorf("made as %+v", made)
	}
	got, err := s.Node.Update(ctx, p, "s", "x", sandbox.Change{Timeout: new(30 * time.Minute), SleepAfter: new(-time.Second)})
	if err != nil || got.ExpiresAt == nil || time.Until(*got.ExpiresAt).Round(time.Minute) != 30*time.Minute || got.SleepAfter >= 0 {
		s.Errorf("changed to %+v, %v", got, err)
	}
	// Zero is a value: the longest life of the plan, and the server's default.
	got, err = s.Node.Update(ctx, p, "s", "x", sandbox.Change{Timeout: new(time.Duration(0)), SleepAfter: new(time.Duration(0))})
	if err != nil || got.ExpiresAt == nil || !got.ExpiresAt.Equal(got.CreatedAt.Add(time.Hour)) || got.SleepAfter <= 0 {
		s.Errorf("changed to %+v, %v", got, err)
	}
	if same, err := s.Node.Update(ctx, p, "s", "x", sandbox.Change{}); err != nil || !same.ExpiresAt.Equal(*got.ExpiresAt) || same.SleepAfter != got.SleepAfter {
		s.Errorf("no change: %+v, %v", same, err)
	}
	_, err = s.Node.Update(ctx, p, "s", "x", sandbox.Change{Timeout: new(2 * time.Hour)})
	refused(s.T, "longer than the plan allows", err, fault.Exhausted, "lives")
	_, err = s.Node.Update(ctx, p, "s", "x", sandbox.Change{Network: &runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted}})
	refused(s.T, "a network", err, fault.Conflict, "without a network")
}
