package gvisor_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/runtime/gvisor"
)

// answers reports whether process 1 of a sandbox does within a while.
func answers(t *testing.T, inst runtime.Instance, while time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	c, err := initclient.Dial(ctx, inst.Channel())
	if err != nil {
		return false
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return true
}

// A server can be killed between asking the kernel and noting that it has. gVisor
// counts pauses: one too many is for good, and one too few ends the kernel.
func TestAPauseThatWasNotNotedIsFoundOut(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, nil).(*gvisor.Runtime)
	t.Cleanup(func() { r.Close() })
	l := runtimetest.Limits()
	l.CPU = 1
	inst, err := r.Create(t.Context(), runtime.Spec{ID: runtime.NewID(), Rootfs: runtimetest.Image(t), Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	note := filepath.Join(dir, string(inst.ID()), "pause")
	for _, said := range []string{"changing", ""} {
		for _, before := range []func(context.Context) error{inst.Thaw, inst.Freeze} {
			for _, after := range []struct {
				does func(context.Context) error
				runs bool
			}{{inst.Freeze, false}, {inst.Thaw, true}} {
				if err := before(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(note, []byte(said), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := after.does(t.Context()); err != nil {
					t.Fatal(err)
				}
				while := 10 * time.Second
				if !after.runs {
					while = 300 * time.Millisecond
				}
				if got := answers(t, inst, while); got != after.runs {
					t.Fatalf("noted %q, process 1 answers: %v, want %v", said, got, after.runs)
				}
			}
		}
	}
	if err := inst.Thaw(t.Context()); err != nil || !answers(t, inst, 10*time.Second) {
		t.Errorf("it does not continue in the end: %v", err)
	}
}
