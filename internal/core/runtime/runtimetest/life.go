package runtimetest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// testLife: a sandbox is made, works, is listed, and is gone when destroyed.
func testLife(t *testing.T, f *fixture) {
	if f.runtime.Name() == "" {
		t.Error("the runtime has no name")
	}
	null := ownerOf(t, os.DevNull)
	b := f.create(t, func(s *runtime.Spec) { s.Labels = map[string]string{"pool": "a/python", "": "é\n"} })
	if got := b.run(t, "echo", "hello"); got != "[hello]\n" {
		t.Errorf("a program printed %q", got)
	}
	infos, err := f.runtime.List(t.Context())
	must(t, err)
	want := map[string]string{"pool": "a/python", "": "é\n"}
	if len(infos) != 1 || infos[0].ID != b.ID() || !infos[0].Alive || !maps.Equal(infos[0].Labels, want) {
		t.Errorf("List: %+v", infos)
	}
	if now := ownerOf(t, os.DevNull); now != null {
		t.Errorf("the machine's %s is given to uid %d", os.DevNull, now)
	}
	u, err := b.Usage(t.Context())
	must(t, err)
	if u.CPUSeconds <= 0 || u.Memory <= 0 || u.OOMKills != 0 {
		t.Errorf("usage of a live sandbox: %+v", u)
	}
	if _, err := f.runtime.Create(t.Context(), runtime.Spec{ID: b.ID(), Rootfs: f.Rootfs(t), Limits: Limits()}); err == nil {
		t.Error("a second sandbox of the same ID was made")
	} else if got := b.run(t, "echo"); got != "[]\n" {
		t.Errorf("after that, a program printed %q", got)
	}

	must(t, b.guest.Close())
	must(t, b.Destroy(t.Context()))
	await(t, "Done", b.Done())
	f.checkEmpty(t)
	must(t, b.Destroy(t.Context()))
	must(t, f.runtime.Destroy(t.Context(), b.ID()))
	must(t, f.runtime.Destroy(t.Context(), runtime.NewID()))
	if err := f.runtime.Destroy(t.Context(), "sb-../../etc"); err == nil {
		t.Error("Destroy takes a path for an ID")
	}
	if _, err := f.runtime.Open(t.Context(), b.ID()); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("Open of a destroyed sandbox: %v", err)
	}
	if after, err := b.Usage(t.Context()); err != nil || after.CPUSeconds < u.CPUSeconds {
		t.Errorf("usage after the end: %+v, %v; before it: %+v", after, err, u)
	}
}

// ownerOf returns the uid that a file belongs to.
func ownerOf(t testing.TB, path string) uint32 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return st.Uid
}

// testTakeOver: a sandbox with a program in it outlives the runtime that made
// it, and a new one goes on where that left off.
func testTakeOver(t *testing.T, f *fixture) {
	spec := f.spec(t)
	first, err := f.runtime.Create(t.Context(), spec)
	must(t, err)
	c, err := initclient.Dial(t.Context(), first.Channel())
	must(t, err)
	b := &box{Instance: first, guest: c}
	b.run(t, "write", "note", "kept")
	r := b.start(t, spec.Limits, "recall", "go")
	r.line(t)
	secret := r.out.String()
	must(t, c.Close())
	must(t, first.Detach())
	f.reopen(t)

	second, err := f.runtime.Open(t.Context(), spec.ID)
	must(t, err)
	b = f.adopt(t, second)
	if got := b.run(t, "read", "note"); got != "kept" {
		t.Errorf("a file holds %q", got)
	}
	out := newOutput()
	ended := make(chan ending, 1)
	go func() {
		res, err := b.guest.Attach(t.Context(), r.id, map[initclient.Stream]int64{initclient.Stdout: int64(len(secret))}, out.sink, nil)
		ended <- ending{res, err}
	}()
	b.run(t, "write", "go", "")
	e := (&running{end: ended}).wait(t)
	if e.err != nil || e.ExitCode != 0 || out.String() != secret {
		t.Errorf("the program ended with %+v and printed %q after %q", e, out, secret)
	}
}

// testSuddenEnd: someone kills a sandbox's processes.
func testSuddenEnd(t *testing.T, f *fixture) {
	b := f.create(t)
	b.start(t, Limits(), "forever").line(t)
	for _, pid := range holders(t, filepath.Join(f.state, string(b.ID()))) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			t.Fatal(err)
		}
	}
	await(t, "Done", b.Done())
	infos, err := f.runtime.List(t.Context())
	must(t, err)
	if len(infos) != 1 || infos[0].Alive || infos[0].Labels["test"] != t.Name() {
		t.Errorf("List: %+v", infos)
	}
	if _, err := f.runtime.Open(t.Context(), b.ID()); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("Open of a dead sandbox: %v", err)
	}
	must(t, f.runtime.Destroy(t.Context(), b.ID()))
	must(t, f.runtime.Destroy(t.Context(), b.ID()))
	f.checkEmpty(t)
}

// testConcurrent: twenty at a time, which must not hinder each other.
func testConcurrent(t *testing.T, f *fixture) {
	const count = 20
	var wait sync.WaitGroup
	for range count {
		wait.Go(func() {
			spec := f.spec(t)
			inst, err := f.runtime.Create(t.Context(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() {
				if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}()
			c, err := initclient.Dial(t.Context(), inst.Channel())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			out := newOutput()
			if res, err := c.Run(t.Context(), program(spec.Limits, "echo", string(spec.ID)), out.sink); err != nil || res.ExitCode != 0 || !strings.Contains(out.String(), string(spec.ID)) {
				t.Errorf("%+v, %v: %q", res, err, out)
			}
		})
	}
	wait.Wait()
}

// testCheckpoint: a program's memory outlives its sandbox.
func testCheckpoint(t *testing.T, f *fixture) {
	b := f.create(t)
	dir := filepath.Join(t.TempDir(), "checkpoint")
	must(t, os.Mkdir(dir, 0o700))
	if !f.Driver.Checkpoint {
		if err := b.Checkpoint(t.Context(), dir); !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("Checkpoint: %v", err)
		}
		if inst, err := f.runtime.Restore(t.Context(), f.spec(t), dir, false); err == nil {
			must(t, inst.Destroy(t.Context()))
			t.Error("Restore works")
		} else if !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("Restore: %v", err)
		}
		if err := b.Resume(t.Context()); !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("Resume: %v", err)
		}
		if got := b.run(t, "echo", "alive"); got != "[alive]\n" {
			t.Errorf("after that, a program printed %q", got)
		}
		return
	}
	b.run(t, "write", "note", "kept")
	r := b.start(t, Limits(), "recall", "go")
	r.line(t)
	secret := r.out.String()
	must(t, b.guest.Close())
	b.guest = nil
	must(t, b.Checkpoint(t.Context(), dir))
	must(t, b.Destroy(t.Context()))
	await(t, "Done", b.Done())
	f.checkEmpty(t)

	// One checkpoint is good for many sandboxes.
	for _, share := range []bool{false, true, true} {
		inst, err := f.runtime.Restore(t.Context(), f.spec(t), dir, share)
		must(t, err)
		restored := f.adopt(t, inst)
		out := newOutput()
		ended := make(chan ending, 1)
		go func() {
			res, err := restored.guest.Attach(t.Context(), r.id, map[initclient.Stream]int64{initclient.Stdout: int64(len(secret))}, out.sink, nil)
			ended <- ending{res, err}
		}()
		if got := restored.run(t, "read", "note"); got != "kept" {
			t.Errorf("a file holds %q", got)
		}
		restored.run(t, "write", "go", "")
		if e := (&running{end: ended}).wait(t); e.err != nil || e.ExitCode != 0 || out.String() != secret {
			t.Errorf("the program ended with %+v and printed %q after %q", e, out, secret)
		}
	}
}
