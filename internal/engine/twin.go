package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/named"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// spareTime is how long kernels wait for somebody to want copies again.
	spareTime = 10 * time.Minute
	// spareDelay lets copies that were just made begin to work before others are
	// made ready.
	spareDelay = 100 * time.Millisecond
)

// twins are the kernels that wait for the memory of a sandbox that they are to be.
// A kernel takes longer to start than to be given its memory.
type twins struct {
	making sync.WaitGroup // of spares, and their end

	mu      sync.Mutex
	closed  bool                      // guarded by mu
	waiting map[sandbox.ID]*twin      // guarded by mu; also those that are spare
	spare   map[likeness][]sandbox.ID // guarded by mu; nobody has asked for these
	wanted  map[likeness]*time.Timer  // guarded by mu; ends the spares of a likeness
}

// twin is one of them.
type twin struct {
	kernel sandbox.Prepared
	like   likeness
}

// likeness is all that a kernel must have in common with the sandbox that it is to
// be a copy of.
type likeness struct {
	Image, Digest     string
	Limits            sandbox.Limits
	Connected, Traced bool
	Guest             uint64 // inode of the guest's image
	Mounts            string // what of whose storage
}

// mountsOf says what of its tenant's storage a recipe's sandbox has mounted.
func mountsOf(r named.Recipe) string {
	if len(r.Mounts) == 0 {
		return ""
	}
	text := fmt.Sprintf("%q", r.Tenant)
	for _, m := range r.Mounts {
		text += fmt.Sprintf(" %q %q %q %q %t", m.Slug, m.Connection, m.Kind, m.Path, m.ReadOnly)
	}
	return text
}

// likeness reads that of a sandbox's folder.
func (n Named) likeness(id sandbox.ID, r named.Recipe) (likeness, error) {
	like := likeness{Image: r.Image, Limits: r.Limits, Connected: r.Connected, Traced: r.Permissions.Process.Traced(), Mounts: mountsOf(r)}
	digest, err := os.ReadFile(filepath.Join(n.e.host.named(id), imageFile))
	if err != nil {
		return like, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(n.e.host.named(id), guestFile), &st); err != nil {
		return like, err
	}
	like.Digest, like.Guest = string(digest), st.Ino
	return like, nil
}

// Twin implements named.Engine.
func (n Named) Twin(ctx context.Context, from sandbox.ID, r named.Recipe) error {
	t := &n.e.twins
	t.mu.Lock()
	_, there := t.waiting[r.ID]
	t.mu.Unlock()
	if there {
		return nil // it was a spare
	}
	like, err := n.likeness(from, r)
	if err != nil {
		return fmt.Errorf("look at %s: %w", from, err)
	}
	return n.beget(ctx, from, r, like, false)
}

// beget makes the folders of a copy, and has a kernel wait in them.
func (n Named) beget(ctx context.Context, from sandbox.ID, r named.Recipe, like likeness, spare bool) (err error) {
	img, release, err := n.e.useImage(r.Image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	h, t := n.e.host, &n.e.twins
	src, dst := h.named(from), h.named(r.ID)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("prepare a copy of %s: %w", from, err), n.Remove(context.WithoutCancel(ctx), r.ID))
		}
	}()
	if err := os.MkdirAll(dst, 0o700); err != nil {
		return err
	}
	for _, name := range []string{guestFile, imageFile} {
		if err := os.Link(filepath.Join(src, name), filepath.Join(dst, name)); err != nil {
			return err
		}
	}
	kernel, err := n.prepare(ctx, r, img)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errors.Join(errors.New("the engine is closed"), kernel.Destroy(context.WithoutCancel(ctx)))
	}
	t.waiting[r.ID] = &twin{kernel, like}
	if spare {
		t.spare[like] = append(t.spare[like], r.ID)
	}
	return nil
}

// take returns the kernel that waits to be a sandbox; nil for none.
func (t *twins) take(id sandbox.ID) sandbox.Prepared {
	t.mu.Lock()
	defer t.mu.Unlock()
	tw := t.waiting[id]
	if tw == nil {
		return nil
	}
	delete(t.waiting, id)
	return tw.kernel
}

// isSpare reports whether a sandbox is one that nobody has asked for.
func (t *twins) isSpare(id sandbox.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ids := range t.spare {
		for _, other := range ids {
			if other == id {
				return true
			}
		}
	}
	return false
}

// Spare implements named.Engine.
func (n Named) Spare(from sandbox.ID, r named.Recipe) sandbox.ID {
	like, err := n.likeness(from, r)
	if err != nil {
		return sandbox.NewID()
	}
	t := &n.e.twins
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := t.spare[like]
	if len(ids) == 0 {
		return sandbox.NewID()
	}
	t.spare[like] = ids[1:]
	return ids[0]
}

// Stock implements named.Engine.
func (n Named) Stock(from sandbox.ID, r named.Recipe, count int) {
	count = min(count, n.e.cfg.Spares)
	like, err := n.likeness(from, r)
	if err != nil || count == 0 {
		return
	}
	t := &n.e.twins
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if timer := t.wanted[like]; timer != nil {
		timer.Reset(spareTime)
	} else {
		t.wanted[like] = time.AfterFunc(spareTime, func() { n.unstock(like) })
	}
	t.making.Go(func() { n.stock(from, r, like, count) })
}

// stock makes spares one after the other, until there are so many.
func (n Named) stock(from sandbox.ID, r named.Recipe, like likeness, count int) {
	ctx, t := n.e.background, &n.e.twins
	select {
	case <-time.After(spareDelay):
	case <-ctx.Done():
		return
	}
	for {
		t.mu.Lock()
		enough := t.closed || len(t.spare[like]) >= count
		var old sandbox.ID
		if !enough {
			old = t.surplus(like, n.e.cfg.Spares)
		}
		t.mu.Unlock()
		if enough || ctx.Err() != nil {
			return
		}
		if old != "" {
			n.discard(old)
		}
		r.ID = sandbox.NewID()
		err := n.beget(ctx, from, r, like, true)
		if errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			return // the sandbox was destroyed meanwhile
		}
		if err != nil {
			n.e.cfg.Log.Warn("cannot make kernels ready for copies of a sandbox", "sandbox_id", string(from), "error", err)
			return
		}
	}
}

// surplus takes one of the spares of other likenesses away where there are as many
// as may be. t.mu is held.
func (t *twins) surplus(like likeness, most int) sandbox.ID {
	count := 0
	var other likeness
	for l, ids := range t.spare {
		count += len(ids)
		if l != like && len(ids) > 0 {
			other = l
		}
	}
	ids := t.spare[other]
	if count < most || len(ids) == 0 {
		return ""
	}
	t.spare[other] = ids[1:]
	return ids[0]
}

// discard ends a kernel that waits and is no longer among the spares.
func (n Named) discard(id sandbox.ID) {
	if err := n.Remove(context.Background(), id); err != nil {
		n.e.cfg.Log.Warn("a kernel that waited is not gone altogether", "sandbox_id", string(id), "error", err)
	}
}

// unstock ends the spares of a likeness.
func (n Named) unstock(like likeness) {
	t := &n.e.twins
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	ids := t.spare[like]
	delete(t.spare, like)
	delete(t.wanted, like)
	t.making.Go(func() {
		for _, id := range ids {
			n.discard(id)
		}
	})
}

// closeTwins ends every kernel that waits.
func (n Named) closeTwins() error {
	t := &n.e.twins
	t.mu.Lock()
	t.closed = true
	var ids []sandbox.ID
	for id := range t.waiting {
		ids = append(ids, id)
	}
	for _, timer := range t.wanted {
		timer.Stop()
	}
	clear(t.spare)
	t.mu.Unlock()
	t.making.Wait()
	var errs []error
	for _, id := range ids {
		errs = append(errs, n.Remove(context.Background(), id))
	}
	return errors.Join(errs...)
}
