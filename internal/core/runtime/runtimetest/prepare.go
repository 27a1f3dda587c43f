package runtimetest

import (
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// testPrepare: a sandbox that waits for its state does not live, gets it as any
// other, and leaves nothing, whichever process gives it up.
func testPrepare(t *testing.T, f *fixture) {
	spec := f.spec(t)
	if !f.Driver.Checkpoint || f.NoMounts {
		if _, err := f.runtime.Prepare(t.Context(), spec); !f.Driver.Checkpoint && !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("Prepare without checkpoints: %v", err)
		}
		must(t, f.runtime.Destroy(t.Context(), spec.ID))
		f.checkEmpty(t)
		return
	}
	s := f.createSleepy(t, "1")
	dir := s.checkpoint(t)
	must(t, s.Destroy(t.Context()))

	spec.ID = s.ID()
	mount(s.folder)(&spec)
	p, err := f.runtime.Prepare(t.Context(), spec)
	must(t, err)
	if _, err := f.runtime.Open(t.Context(), spec.ID); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("a sandbox that waits for its state can be opened: %v", err)
	}
	inst, err := p.Restore(t.Context(), dir, nil)
	must(t, err)
	s.box = f.adopt(t, inst)
	s.query(t).same(t, s.was)
	must(t, s.guest.Close())
	s.guest = nil
	must(t, s.Destroy(t.Context()))
	f.checkEmpty(t)

	// There is no such state.
	spec.ID = runtime.NewID()
	p, err = f.runtime.Prepare(t.Context(), spec)
	must(t, err)
	if _, err := p.Restore(t.Context(), t.TempDir(), nil); err == nil {
		t.Error("restored from an empty folder")
	}
	f.checkEmpty(t)

	// It is given up, or its maker dies.
	spec.ID = runtime.NewID()
	p, err = f.runtime.Prepare(t.Context(), spec)
	must(t, err)
	must(t, p.Destroy(t.Context()))
	f.checkEmpty(t)
	spec.ID = runtime.NewID()
	_, err = f.runtime.Prepare(t.Context(), spec)
	must(t, err)
	f.reopen(t)
	must(t, f.runtime.Destroy(t.Context(), spec.ID))
	f.checkEmpty(t)
}
