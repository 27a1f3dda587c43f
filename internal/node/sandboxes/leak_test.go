package sandboxes_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/atolltest"
)

// counts are what sandboxes of this machine, and of no other, take, by kind.
func (m *machine) counts() map[string]int {
	m.t.Helper()
	list := func(dir string) int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			m.t.Fatal(err)
		}
		return len(entries)
	}
	left, err := atolltest.Trace(m.dir).Find()
	if err != nil {
		m.t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(filepath.Join(m.dir, "state"), func(string, os.DirEntry, error) error { files++; return nil })
	if err != nil {
		m.t.Fatal(err)
	}
	return map[string]int{
		"descriptors": list("/proc/self/fd"), "mounts": len(left.Mounts), "processes": len(left.Processes), "control groups": len(left.Cgroups),
		"goroutines": runtime.NumGoroutine(), "files on disk": files,
	}
}

// TestNothingIsLeft: whatever becomes of sandboxes, what they took is given back.
func TestNothingIsLeft(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a", func(p *tenant.Principal) { p.Plan = tenant.Plan{Name: "one", MaxSandboxes: 2} })
	cycle := func() {
		m.ensure(p, "s", "destroyed", nil)
		lost := m.ensure(p, "s", "lost", nil)
		_, _, err := m.Ensure(t.Context(), p, "s", "refused", nil)
		refused(t, "a third", err, fault.Exhausted, "limit")
		for _, name := range []string{"destroyed", "lost"} {
			m.shell(p, "s", name, `mkdir -p a/b/c; ln -s /etc/passwd a/l; (sleep 1000 &) ; head -c 1000000 /dev/zero > a/b/big`)
		}
		h, err := m.Use(t.Context(), p, "s", "destroyed") // in use all the while
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if err := m.engine.Sandboxes().Remove(t.Context(), lost.ID); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"destroyed", "lost"} {
			if err := m.Destroy(t.Context(), p, "s", name); err != nil {
				t.Error(err)
			}
		}
		m.ensure(p, "s", "expired", &sandbox.Spec{Timeout: 50 * time.Millisecond})
		atolltest.Until(t, 20*time.Second, "its time is over", func() bool {
			list, err := m.List(t.Context(), p, "s")
			return err == nil && len(list) == 0
		})
	}
	cycle()
	before := m.counts()
	for range 3 {
		cycle()
	}
	var now map[string]int
	ok := func() bool {
		now = m.counts()
		for kind, n := range now {
			if n > before[kind] {
				return false
			}
		}
		return true
	}
	defer func() {
		if t.Failed() {
			t.Errorf("before: %v, now: %v", before, now)
		}
	}()
	atolltest.Until(t, 20*time.Second, "what was told to end has ended", ok)
}
