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
)

// Fork implements named.Engine. The memory, which nobody writes to, is linked. The
// folders of one that Twin has begun are there.
func (n Named) Fork(ctx context.Context, from, to runtime.ID) (err error) {
	if err := n.ForkFiles(ctx, from, to); err != nil {
		return err
	}
	src, dst := n.e.host.named(from), n.e.host.named(to)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy the memory of %s: %w", from, err), os.RemoveAll(dst))
		}
	}()
	if err := linkFolder(filepath.Join(src, memoryDir), filepath.Join(dst, memoryNew)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dst, memoryNew), filepath.Join(dst, memoryDir))
}

// ForkFiles implements named.Engine.
func (n Named) ForkFiles(ctx context.Context, from, to runtime.ID) (err error) {
	src, dst := n.e.host.named(from), n.e.host.named(to)
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
	for _, name := range []string{guestFile, imageFile} {
		if err := os.Link(filepath.Join(src, name), filepath.Join(dst, name)); err != nil && !errors.Is(err, fs.ErrExist) {
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
