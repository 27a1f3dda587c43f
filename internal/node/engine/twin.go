package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// twins are the kernels that wait for copies of sandboxes which are being made.
type twins struct {
	mu      sync.Mutex
	closed  bool                 // guarded by mu
	waiting map[runtime.ID]*twin // guarded by mu
}

// twin is one of them: one that was started for the copy, or a spare.
type twin struct {
	kernel runtime.Prepared
	spare  *spare
}

// PrepareFork implements named.Engine.
func (n Named) PrepareFork(ctx context.Context, from runtime.ID, r sandboxes.Recipe) error {
	like, err := n.likeness(from, r)
	if err != nil {
		return fmt.Errorf("look at %s: %w", from, err)
	}
	tw := &twin{spare: n.spare(like)}
	if tw.spare == nil {
		if tw.kernel, err = n.beget(ctx, from, r); err != nil {
			return errors.Join(fmt.Errorf("prepare a copy of %s: %w", from, err), n.Remove(context.WithoutCancel(ctx), r.ID))
		}
	}
	t := &n.e.twins
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errors.Join(errors.New("the engine is closed"), n.giveUp(context.WithoutCancel(ctx), tw))
	}
	t.waiting[r.ID] = tw
	return nil
}

// beget makes the folders of a copy, and has a kernel wait in them.
func (n Named) beget(ctx context.Context, from runtime.ID, r sandboxes.Recipe) (_ runtime.Prepared, err error) {
	img, release, err := n.e.useImage(r.Image)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	src, dst := n.e.host.named(from), n.e.host.named(r.ID)
	if err := os.MkdirAll(dst, 0o700); err != nil {
		return nil, err
	}
	for _, name := range []string{guestFile, imageFile} {
		if err := os.Link(filepath.Join(src, name), filepath.Join(dst, name)); err != nil {
			return nil, err
		}
	}
	return n.prepare(ctx, r, img)
}

// take returns the kernel that waits to be a sandbox; nil for none.
func (t *twins) take(id runtime.ID) *twin {
	t.mu.Lock()
	defer t.mu.Unlock()
	tw := t.waiting[id]
	delete(t.waiting, id)
	return tw
}

// giveUp ends a kernel that nobody waits for.
func (n Named) giveUp(ctx context.Context, tw *twin) error {
	switch {
	case tw == nil:
		return nil
	case tw.spare != nil:
		return tw.spare.destroy(ctx)
	}
	return tw.kernel.Destroy(ctx)
}

// KeepStandby implements named.Engine.
func (n Named) KeepStandby(from runtime.ID, r sandboxes.Recipe, count int) {
	if like, err := n.likeness(from, r); err == nil {
		n.want(like, r, count)
	}
}

// closeTwins ends every kernel that waits.
func (n Named) closeTwins() error {
	t := &n.e.twins
	t.mu.Lock()
	t.closed = true
	var ids []runtime.ID
	for id := range t.waiting {
		ids = append(ids, id)
	}
	t.mu.Unlock()
	n.closeSpares()
	var errs []error
	for _, id := range ids {
		errs = append(errs, n.Remove(context.Background(), id))
	}
	return errors.Join(errs...)
}
