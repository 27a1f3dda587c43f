package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/disk"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/pool"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// fork is the kernel of a fork that is being made: a claim to a standby kernel, or,
// where those cannot become sandboxes, one that was started for it.
type fork struct {
	claim  *pool.Reservation[compatKey, *kernel]
	kernel runtime.Prepared
}

// PrepareFork implements sandboxes.Engine.
func (n Sandboxes) PrepareFork(ctx context.Context, from runtime.ID, r sandboxes.Recipe) (err error) {
	img, release, err := n.e.useImage(r.Image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	var f fork
	if f.claim, err = n.reserve(from, r, img); err == nil && f.claim == nil {
		f.kernel, err = n.prepareFork(ctx, from, r, img)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("prepare a fork of %s: %w", from, err), n.Remove(context.WithoutCancel(ctx), r.ID))
	}
	s := n.e.standby
	s.mu.Lock()
	closing := s.closing
	if !closing {
		s.forks[r.ID] = f
	}
	s.mu.Unlock()
	if closing {
		ctx := context.WithoutCancel(ctx)
		return errors.Join(errors.New("the engine is closed"), f.abandon(ctx), n.Remove(ctx, r.ID))
	}
	return nil
}

// prepareFork makes the folders of a fork, and starts a kernel in them.
func (n Sandboxes) prepareFork(ctx context.Context, from runtime.ID, r sandboxes.Recipe, img *image.Image) (runtime.Prepared, error) {
	src, dst := n.e.host.sandboxDir(from), n.e.host.sandboxDir(r.ID)
	if err := os.MkdirAll(dst, 0o700); err != nil {
		return nil, err
	}
	if err := linkParts(src, dst); err != nil {
		return nil, err
	}
	return n.prepare(ctx, r, img)
}

// takeFork returns the kernel of a fork; the zero fork for a sandbox that is none.
func (s *standby) takeFork(id runtime.ID) fork {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.forks[id]
	delete(s.forks, id)
	return f
}

// abandon gives up the kernel of a fork that is not made.
func (f fork) abandon(ctx context.Context) error {
	if f.claim != nil {
		f.claim.Cancel()
	}
	if f.kernel != nil {
		return f.kernel.Destroy(ctx)
	}
	return nil
}

// KeepStandby implements sandboxes.Engine.
func (n Sandboxes) KeepStandby(from runtime.ID, r sandboxes.Recipe, count int) {
	n.expect(from, r, count)
}

// Fork implements sandboxes.Engine. The checkpoint, which is only read, is linked. The
// folders of a fork that PrepareFork has begun may be there.
func (n Sandboxes) Fork(ctx context.Context, from, to runtime.ID) (err error) {
	if err := n.ForkFiles(ctx, from, to); err != nil {
		return err
	}
	src, dst := n.e.host.sandboxDir(from), n.e.host.sandboxDir(to)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy the checkpoint of %s: %w", from, err), os.RemoveAll(dst))
		}
	}()
	if err := linkFolder(filepath.Join(src, checkpointDir), filepath.Join(dst, checkpointNew)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dst, checkpointNew), filepath.Join(dst, checkpointDir))
}

// ForkFiles implements sandboxes.Engine.
func (n Sandboxes) ForkFiles(ctx context.Context, from, to runtime.ID) (err error) {
	src, dst := n.e.host.sandboxDir(from), n.e.host.sandboxDir(to)
	if err := os.MkdirAll(dst, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy the files of %s: %w", from, err), n.Remove(context.WithoutCancel(ctx), to))
		}
	}()
	if err := disk.MergeTree(ctx, filepath.Join(src, filesDir), filepath.Join(dst, filesDir)); err != nil {
		return err
	}
	return linkParts(src, dst)
}

// linkParts gives a sandbox's folder the record of what another one is made of, unless
// it has one.
func linkParts(src, dst string) error {
	for _, name := range []string{guestFile, imageFile, trustMark} {
		err := os.Link(filepath.Join(src, name), filepath.Join(dst, name))
		if errors.Is(err, fs.ErrExist) || name == trustMark && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func linkFolder(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
