package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
)

// swollen is an instance whose memory is used up. It thaws if thaw is nil.
type swollen struct {
	runtime.Instance
	thaw error
}

func (swollen) Usage(context.Context) (runtime.Usage, error) { return runtime.Usage{Memory: 2}, nil }
func (swollen) Done() <-chan struct{}                        { return nil }
func (swollen) Freeze(context.Context) error                 { return nil }
func (i swollen) Thaw(context.Context) error                 { return i.thaw }

// TestPauseEndsRelief: no relief goes on or begins while a sandbox is frozen or written to
// disk, whether the guard or the manager began it.
func TestPauseEndsRelief(t *testing.T) {
	asked := make(chan struct{}, 1)
	a := &liveSandbox{inst: swollen{}, lock: make(chan struct{}, 1)}
	a.memory.inst, a.memory.limit = a.inst, 1
	a.memory.guest = func(ctx context.Context) (*daemonclient.Client, error) {
		asked <- struct{}{}
		<-ctx.Done() // a guest daemon that does not answer
		return nil, ctx.Err()
	}
	relief := func() <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- a.RelieveMemory(t.Context()) }() // as the manager does
		return ended
	}
	first := relief()
	<-asked
	second := relief() // waits for the first
	if err := a.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, ended := range []<-chan error{first, second, relief()} {
		if err := <-ended; err != nil {
			t.Errorf("a relief ended by a pause: %v", err)
		}
	}
	if len(asked) > 0 {
		t.Error("the guest daemon was asked while the guard was paused")
	}
	if err := a.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	third := relief()
	<-asked
	a.memory.pause()
	<-third
}

// slow is an instance whose reports of memory use take until ready to be set up.
type slow struct {
	swollen
	ready chan struct{}
}

func (i slow) ID() runtime.ID { return "sb" }

func (i slow) WatchMemory() (runtime.MemoryWatch, error) {
	<-i.ready
	return nil, errors.ErrUnsupported
}

// TestMemoryIsGuardedFromTheStart: programs are ended also while the kernel's reports are
// still being set up.
func TestMemoryIsGuardedFromTheStart(t *testing.T) {
	asked := make(chan struct{}, 1)
	inst := slow{ready: make(chan struct{})}
	g := memoryGuard{inst: inst, limit: 1, guest: func(context.Context) (*daemonclient.Client, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		return nil, errors.New("no guest daemon")
	}}
	g.start(func(string, ...any) {})
	<-asked
	close(inst.ready)
	g.stop()
}

// TestFailedThawKeepsThePause: a sandbox that cannot be thawed for a checkpoint is still
// frozen, so that its guest daemon does not answer.
func TestFailedThawKeepsThePause(t *testing.T) {
	failed := errors.New("it does not thaw")
	a := &liveSandbox{inst: swollen{thaw: failed}, lock: make(chan struct{}, 1)}
	if err := a.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.Checkpoint(t.Context()); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if !a.memory.paused {
		t.Error("the guard of a frozen sandbox is not paused")
	}
}
