package gvisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/runtime/gvisor"
)

// asleep is a sandbox's checkpoint, and what there is to wake it with.
func asleep(t *testing.T) (r *gvisor.Runtime, state string, spec runtime.Spec, checkpoint string) {
	t.Helper()
	state, checkpoint = t.TempDir(), t.TempDir()
	r = open(t, state, nil).(*gvisor.Runtime)
	t.Cleanup(func() { r.Close() })
	l := runtimetest.Limits()
	l.CPU = 1
	spec = runtime.Spec{ID: runtime.NewID(), Rootfs: runtimetest.Image(t), Limits: l}
	inst, err := r.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(inst.Checkpoint(t.Context(), checkpoint), inst.Destroy(t.Context())); err != nil {
		t.Fatal(err)
	}
	return r, state, spec, checkpoint
}

// TestNothingRunsOfAMemoryThatIsNotWhole: while a memory is looked at, and if it
// turns out to be damaged, its programs do not run.
func TestNothingRunsOfAMemoryThatIsNotWhole(t *testing.T) {
	r, state, spec, checkpoint := asleep(t)
	ends := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(state, string(spec.ID), name), os.O_RDWR|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	damaged := errors.New("it is damaged")
	for _, found := range []error{damaged, nil} {
		p, err := r.Prepare(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		inst, err := p.Restore(t.Context(), checkpoint, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if c, err := initclient.Dial(ctx, runtime.Channel{ToGuest: ends("to-guest"), FromGuest: ends("from-guest")}); err == nil {
				t.Error("process 1 answers before its memory was found whole")
				c.Close()
			}
			return found
		})
		if !errors.Is(err, found) {
			t.Fatalf("restored from what was found to be %v: %v", found, err)
		}
		if found == nil {
			if !answers(t, inst, 10*time.Second) {
				t.Error("process 1 does not answer once its memory was found whole")
			}
			if err := inst.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if left, err := r.List(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("there is %v, %v", left, err)
		}
	}
}

// TestWhoLooksAtAMemoryIsWaitedFor, whatever the kernel does meanwhile.
func TestWhoLooksAtAMemoryIsWaitedFor(t *testing.T) {
	r, state, spec, checkpoint := asleep(t)
	if err := os.Truncate(filepath.Join(checkpoint, "checkpoint.img"), 100); err != nil {
		t.Fatal(err)
	}
	p, err := r.Prepare(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(state, string(spec.ID), "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(kernel)
	looked := false
	if _, err := p.Restore(t.Context(), checkpoint, func() error {
		for { // until it has failed
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(kernel), Events: unix.POLLIN}}, 30_000)
			if err == unix.EINTR {
				continue
			}
			if n != 1 || err != nil {
				t.Errorf("the kernel is there: %v", err)
			}
			break
		}
		looked = true
		return nil
	}); err == nil || !looked {
		t.Errorf("restored from half a file: %v, looked at: %v", err, looked)
	}
}
