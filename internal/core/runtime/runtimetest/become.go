package runtimetest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// testBecome: a sandbox that waits for its state can be given that of one of another
// name, whose mounts it then has, and is that one for all callers from then on.
func testBecome(t *testing.T, f *fixture) {
	if !f.Driver.Checkpoint || f.NoMounts {
		return // testPrepare has seen it refused
	}
	s := f.createSleepy(t, "1")
	dir := s.checkpoint(t)
	must(t, s.Destroy(t.Context()))
	empty, other := sharedFolder(t), sharedFolder(t)
	prepare := func() (runtime.ID, runtime.Prepared) {
		t.Helper()
		spec := f.spec(t)
		mount(empty)(&spec)
		p, err := f.runtime.Prepare(t.Context(), spec)
		must(t, err)
		return spec.ID, p
	}
	var mine runtime.Spec
	mount(s.folder)(&mine)
	born, p := prepare()
	if f.Rootfs(t).Tree != "" {
		if err := p.Become(s.ID(), mine.Mounts); !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("Become with a folder as root: %v", err)
		}
		must(t, p.Destroy(t.Context()))
		f.checkEmpty(t)
		return
	}
	must(t, p.Become(s.ID(), mine.Mounts))
	if _, err := f.runtime.Open(t.Context(), s.ID()); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("a sandbox that waits for its state can be opened: %v", err)
	}
	inst, err := p.Restore(t.Context(), dir, nil)
	must(t, err)
	s.box = f.adopt(t, inst)
	if inst.ID() != s.ID() {
		t.Errorf("it is %s, want %s", inst.ID(), s.ID())
	}
	s.query(t).same(t, s.was)
	s.run(t, "write", shared+"/own", "mine")
	if data, err := os.ReadFile(filepath.Join(s.folder, "own")); string(data) != "mine" {
		t.Errorf("what it wrote to its mount is %q, %v", data, err)
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("the folder that it was prepared with holds %v, %v", entries, err)
	}
	if _, err := f.runtime.Open(t.Context(), born); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("it can be opened as what it was prepared as: %v", err)
	}
	infos, err := f.runtime.List(t.Context())
	if must(t, err); len(infos) != 1 || infos[0].ID != s.ID() || !infos[0].Alive {
		t.Errorf("there are %+v", infos)
	}

	// The next process finds it, and all that is its own.
	must(t, s.guest.Close())
	s.guest = nil
	must(t, s.Detach())
	f.reopen(t)
	inst, err = f.runtime.Open(t.Context(), s.ID())
	must(t, err)
	s.box = f.adopt(t, inst)
	must(t, s.Freeze(t.Context()))
	must(t, s.Thaw(t.Context()))
	s.query(t).same(t, s.was)
	if u, err := s.Usage(t.Context()); err != nil || u.Memory == 0 || u.CPUSeconds == 0 {
		t.Errorf("it uses %+v, %v", u, err)
	}
	if holders, err := s.Holders(); err != nil || len(holders) != 1 {
		t.Errorf("its file server is %v, %v", holders, err)
	}
	if held, ok := s.Instance.(interface{ Check() error }); ok {
		must(t, held.Check())
	}

	// It sleeps again, and wakes as something else that was prepared.
	dir = s.checkpoint(t)
	must(t, s.Destroy(t.Context()))
	await(t, "Done", s.Done())
	f.checkEmpty(t)
	_, p = prepare()
	must(t, p.Become(s.ID(), mine.Mounts))
	inst, err = p.Restore(t.Context(), dir, nil)
	must(t, err)
	s.box = f.adopt(t, inst)
	s.query(t).same(t, s.was)
	must(t, s.guest.Close())
	s.guest = nil
	must(t, s.Detach())
	f.reopen(t) // a process that did not make it can end it
	must(t, f.runtime.Destroy(t.Context(), s.ID()))
	f.checkEmpty(t)

	// What it is not like, it cannot be.
	readOnly := mine.Mounts[0]
	readOnly.Writable = false
	for _, mounts := range [][]runtime.Mount{nil, {readOnly}, {mine.Mounts[0], mine.Mounts[0]}, {{Source: s.folder, Target: fixed, Writable: true}}, {{Source: filepath.Join(other, "none"), Target: shared, Writable: true}}} {
		_, p = prepare()
		if err := p.Become(s.ID(), mounts); err == nil {
			t.Errorf("it can be one with the mounts %+v", mounts)
		}
		must(t, p.Destroy(t.Context()))
	}

	// Its maker dies in the middle of it: it is still what it was prepared as.
	born, p = prepare()
	must(t, p.Become(s.ID(), mine.Mounts))
	f.reopen(t)
	must(t, f.runtime.Destroy(t.Context(), s.ID()))
	must(t, f.runtime.Destroy(t.Context(), born))
	f.checkEmpty(t)

	// There is no such state.
	_, p = prepare()
	must(t, p.Become(s.ID(), mine.Mounts))
	if _, err := p.Restore(t.Context(), t.TempDir(), nil); err == nil {
		t.Error("restored from an empty folder")
	}
	f.checkEmpty(t)
}
