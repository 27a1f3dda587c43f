package runtimetest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// state is what the suite's program tells of itself: see probe's Live.
type state struct {
	Boot, Heap, Open, Deleted, Mapped, Pair, Pipe, Far, Random string
	Ticks, Wall                                                int64
}

const (
	livePort   = "4242"
	changePort = "4243" // for a client of this one its memory is changed before
)

// live starts the program that holds one of everything.
func (b *box) live(t *testing.T, dir, mib string, more ...string) (*running, state) {
	t.Helper()
	r := b.start(t, Limits(), append([]string{"live", dir, livePort, mib}, more...)...)
	r.line(t)
	s := b.query(t)
	if s.Boot == "" || s.Open != "open "+s.Boot || s.Deleted != "deleted "+s.Boot || s.Mapped != "mapped "+s.Boot || s.Pipe != s.Boot || s.Pair != "" {
		t.Fatalf("the program holds %+v", s)
	}
	return r, s
}

func (b *box) query(t *testing.T) (s state) {
	t.Helper()
	b.ask(t, &s, "query", livePort)
	return s
}

// same checks that a program is the one it was.
func (s state) same(t *testing.T, was state) {
	t.Helper()
	if s.Boot != was.Boot || s.Heap != was.Heap || s.Open != was.Open || s.Deleted != was.Deleted || s.Mapped != was.Mapped || s.Pipe != was.Pipe || s.Pair != "" {
		t.Errorf("the program holds %+v; it held %+v", s, was)
	}
	if s.Random == was.Random {
		t.Error("the kernel's random numbers repeat")
	}
	if off := time.Since(time.Unix(0, s.Wall)); off.Abs() > 5*time.Second {
		t.Errorf("its clock is off by %s", off)
	}
}

// testFreeze: a frozen sandbox does nothing, and goes on as if nothing had been.
func testFreeze(t *testing.T, f *fixture) {
	b := f.create(t)
	_, was := b.live(t, "/tmp", "1")
	b.start(t, Limits(), "spin", "2", "20s") // programs that call no kernel stop, too
	must(t, b.Thaw(t.Context()))             // it is not frozen
	for range 3 {
		must(t, b.Freeze(t.Context()))
		must(t, b.Freeze(t.Context()))
		unanswered := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := b.guest.Ping(ctx); err == nil {
				t.Error("a frozen sandbox answers")
			}
		}
		unanswered() // what was under way in its kernel ends meanwhile
		before, err := b.Usage(t.Context())
		must(t, err)
		unanswered()
		after, err := b.Usage(t.Context())
		must(t, err)
		if used := after.CPUSeconds - before.CPUSeconds; used > 0.02 {
			t.Errorf("a frozen sandbox has used %.3f s of processor time", used)
		}
		begun := time.Now()
		must(t, b.Thaw(t.Context()))
		must(t, b.guest.Ping(t.Context()))
		t.Logf("thaw to answer: %s", time.Since(begun))
		must(t, b.Thaw(t.Context()))
	}
	b.query(t).same(t, was)
	for begun := time.Now(); b.query(t).Ticks <= was.Ticks; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatal("its timers stand still")
		}
	}

	// The process that froze it dies; the next one thaws it.
	must(t, b.Freeze(t.Context()))
	must(t, b.guest.Close())
	b.guest = nil
	must(t, b.Detach())
	f.reopen(t)
	inst, err := f.runtime.Open(t.Context(), b.ID())
	must(t, err)
	must(t, inst.Thaw(t.Context()))
	b = f.adopt(t, inst)
	b.query(t).same(t, was)

	// What is frozen can be ended.
	must(t, b.Freeze(t.Context()))
	must(t, b.guest.Close())
	b.guest = nil
	must(t, b.Destroy(t.Context()))
	await(t, "Done", b.Done())
	f.checkEmpty(t)
}

// sleepy is a sandbox with a mount in which a program holds one of everything.
type sleepy struct {
	*box
	program *running
	was     state
	folder  string // mounted at shared, on the host
}

func (f *fixture) createSleepy(t *testing.T, mib string) *sleepy {
	t.Helper()
	s := &sleepy{folder: sharedFolder(t)}
	s.box = f.create(t, mount(s.folder))
	s.program, s.was = s.live(t, shared, mib)
	return s
}

func sharedFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shared")
	must(t, os.Mkdir(dir, 0o755))
	give(t, dir)
	return dir
}

func mount(folder string) func(*runtime.Spec) {
	return func(s *runtime.Spec) { s.Mounts = []runtime.Mount{{Source: folder, Target: shared, Writable: true}} }
}

// checkpoint writes a sandbox's state; its programs then are stopped.
func (s *sleepy) checkpoint(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "checkpoint")
	must(t, os.Mkdir(dir, 0o700))
	must(t, s.guest.Close())
	s.guest = nil
	begun := time.Now()
	must(t, s.Checkpoint(t.Context(), dir))
	t.Logf("checkpoint: %s", time.Since(begun))
	return dir
}

// testSleep: a sandbox with mounts sleeps and wakes as it was, twice, and is forked
// into copies of its mounts.
func testSleep(t *testing.T, f *fixture) {
	if !f.Driver.Checkpoint || f.NoMounts {
		return // testCheckpoint has seen it refused
	}
	s := f.createSleepy(t, "16")
	var dir string
	for range 2 {
		must(t, s.Freeze(t.Context()))
		dir = s.checkpoint(t)
		must(t, s.Destroy(t.Context()))
		f.checkEmpty(t)
		spec := f.spec(t)
		spec.ID = s.ID() // a sandbox that wakes is the one it was
		mount(s.folder)(&spec)
		s.box = f.wake(t, spec, dir)
		now := s.query(t)
		now.same(t, s.was)
		if now.Ticks <= s.was.Ticks {
			t.Error("its timers stand still")
		}
	}
	for range 2 {
		folder := filepath.Join(t.TempDir(), "copy")
		out, err := exec.CommandContext(t.Context(), "cp", "-a", s.folder, folder).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		spec := f.spec(t)
		mount(folder)(&spec)
		fork := f.wake(t, spec, dir)
		fork.query(t).same(t, s.was)
		fork.run(t, "write", shared+"/own", string(fork.ID()))
		if _, err := os.Stat(filepath.Join(s.folder, "own")); err == nil {
			t.Error("a fork writes to the first one's mount")
		}
	}
}

// testShared: sandboxes that share the memory of their programs take none for it, have what
// they write for themselves, and sleep and fork as others do.
func testShared(t *testing.T, f *fixture) {
	if !f.Driver.Checkpoint || f.NoMounts {
		return
	}
	s := f.createSleepy(t, "16")
	dir := s.checkpoint(t)
	must(t, s.Destroy(t.Context()))
	var all []*sleepy
	var used []int64 // bytes
	for i := range 4 {
		one := &sleepy{folder: filepath.Join(t.TempDir(), "copy")}
		out, err := exec.CommandContext(t.Context(), "cp", "-a", s.folder, one.folder).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		spec := f.spec(t)
		mount(one.folder)(&spec)
		one.box = f.restore(t, spec, dir, i > 0)
		all = append(all, one)
		u, err := one.Usage(t.Context())
		must(t, err)
		used = append(used, u.Memory)
	}
	for _, u := range used[1:] {
		if own := used[0]; own > 0 && u > own-12<<20 { // 0 without control groups
			t.Errorf("a sandbox that shares 16 MiB uses %d bytes; one that does not, %d", u, own)
		}
	}
	all = all[1:]
	must(t, os.RemoveAll(dir)) // it is theirs by now
	changed := all[0]
	changed.ask(t, &changed.was, "query", changePort)
	if changed.was.Heap == s.was.Heap {
		t.Error("the memory was not changed")
	}
	for _, one := range all[1:] {
		one.query(t).same(t, s.was)
	}
	all[1].was = s.was
	for _, one := range all[:2] {
		dir := one.checkpoint(t)
		must(t, one.Destroy(t.Context()))
		for _, share := range []bool{true, false} {
			spec := f.spec(t)
			mount(one.folder)(&spec)
			again := f.restore(t, spec, dir, share)
			again.query(t).same(t, one.was)
			must(t, again.guest.Close())
			again.guest = nil
			must(t, again.Destroy(t.Context()))
		}
	}
	all[2].query(t).same(t, s.was)
}

// wake restores a sandbox.
func (f *fixture) wake(t *testing.T, spec runtime.Spec, dir string) *box {
	t.Helper()
	return f.restore(t, spec, dir, false)
}

func (f *fixture) restore(t *testing.T, spec runtime.Spec, dir string, share bool) *box {
	t.Helper()
	begun := time.Now()
	inst, err := f.runtime.Restore(t.Context(), spec, dir, share)
	must(t, err)
	t.Logf("restore: %s", time.Since(begun))
	b := f.adopt(t, inst)
	t.Logf("restore to answer: %s", time.Since(begun))
	return b
}

// testResume: a sandbox whose state was written goes on, and does nothing before.
func testResume(t *testing.T, f *fixture) {
	if !f.Driver.Checkpoint || f.NoMounts {
		return
	}
	s := f.createSleepy(t, "1")
	dir := s.checkpoint(t)
	must(t, s.Detach())
	f.reopen(t)
	inst, err := f.runtime.Open(t.Context(), s.ID())
	must(t, err)
	must(t, inst.Resume(t.Context()))
	must(t, inst.Resume(t.Context())) // it goes on already
	s.box = f.adopt(t, inst)
	s.query(t).same(t, s.was)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		t.Errorf("the checkpoint holds %v, %v", entries, err)
	}
	s.checkpoint(t) // once more
	must(t, s.Destroy(t.Context()))
	f.checkEmpty(t)
}

// testUnsavable: a sandbox that cannot be written goes on, and says why it cannot.
func testUnsavable(t *testing.T, f *fixture) {
	if !f.Driver.Checkpoint || f.NoMounts {
		return
	}
	s := f.createSleepy(t, "1")
	must(t, os.Remove(filepath.Join(s.folder, "live-open"))) // behind its back
	dir := filepath.Join(t.TempDir(), "checkpoint")
	must(t, os.Mkdir(dir, 0o700))
	if res, _ := s.try(t, "read", shared+"/live-open"); res.ExitCode == 0 {
		t.Error("a file that is gone can be read")
	}
	err := s.Checkpoint(t.Context(), dir)
	var cannot *runtime.SaveError
	if !errors.As(err, &cannot) || !strings.Contains(cannot.Reason, "live-open") {
		t.Errorf("Checkpoint: %v", err)
	}
	t.Logf("%v", err)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("a checkpoint that failed left %v, %v", entries, err)
	}
	s.query(t).same(t, s.was)
}
