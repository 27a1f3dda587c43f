package sandboxes

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/guest/client"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// maxCopies is how many folders are copied by the host at the same time.
const maxCopies = 4

// errNotOnDisk says that something is not where the host keeps sandboxes' files.
var errNotOnDisk = errors.New("not among the sandbox's files on disk")

// CopyFolder implements sandbox.Handle: the host alone copies it. Through the kernels of
// both sandboxes a folder of many files takes ten times as long.
func (h *Handle) CopyFolder(ctx context.Context, path string, other sandbox.Handle, name string) (bytes int64, done bool, err error) {
	to, ok := other.(*Handle)
	if !ok || to.m != h.m { // on another machine
		return 0, false, nil
	}
	from, ok := h.copySource(path, to)
	if !ok {
		return 0, false, nil
	}
	if whole, err := h.guest.Whole(ctx, path); err != nil || !whole {
		return 0, false, ctx.Err()
	}
	select {
	case h.m.copySlots <- struct{}{}:
		defer func() { <-h.m.copySlots }()
	case <-ctx.Done():
		return 0, false, context.Cause(ctx)
	}
	var failed error
	err = to.guest.Adopt(ctx, name, func(ctx context.Context, at string) error {
		bytes, failed = to.copyInto(ctx, from, at)
		return failed
	})
	_, told := errors.AsType[*fault.Error](failed)
	switch {
	case err == nil:
		return bytes, true, nil
	case to.Stopped(ctx) != nil:
		return 0, false, to.Stopped(ctx)
	case ctx.Err() != nil, told, errors.Is(err, process.ErrGone):
		return 0, false, err
	}
	return 0, false, nil
}

// copySource is where the host has what h's sandbox has at a path, if the host may copy it.
func (h *Handle) copySource(path string, to *Handle) (disk.Place, bool) {
	if h.sb.Permissions.Restricts() || to.sb.Permissions.Restricts() { // the guest holds these
		return disk.Place{}, false
	}
	return h.live.HostPath(path)
}

// copyInto copies a folder into one of h's sandbox.
func (h *Handle) copyInto(ctx context.Context, from disk.Place, at string) (bytes int64, err error) {
	into, ok := h.live.HostPath(at)
	if !ok {
		return 0, errNotOnDisk
	}
	a := copyAllowance{h: h, ctx: ctx}
	c, err := h.m.cfg.Engine.FolderCopier(a.more)
	if err != nil {
		return 0, err
	}
	_, bytes, err = c.Copy(ctx, from, into, client.Adopted)
	return bytes, err
}

// copyAllowance is what the host may write into a sandbox.
type copyAllowance struct {
	h     *Handle
	ctx   context.Context
	bound int64 // once measured; of what may be spent
}

// more says up to which sum may be spent before it is asked again. The files are not
// measured for what is little: there may be many of them.
func (a *copyAllowance) more(spent int64) (most int64, err error) {
	h := a.h
	if err := h.stopped(); err != nil {
		return 0, err
	}
	if err := h.m.cfg.AdmitDisk(); err != nil {
		return 0, err
	}
	most = spent + growthAllowance
	limit := h.sb.Disk
	if limit <= 0 || spent < growthAllowance {
		return most, nil
	}
	if a.bound == 0 {
		used, err := h.live.Measure(a.ctx, limit)
		if err != nil && !errors.Is(err, disk.ErrOverLimit) {
			return 0, err
		}
		a.bound = max(spent+limit-used, 1) // most of what was spent is there
	}
	if spent > a.bound {
		return 0, fault.Limit("sandbox_disk", time.Time{}, "sandbox %q: its files would take more than %s of disk. Delete some files", h.sb.Name, runtime.FormatBytes(limit))
	}
	return min(most, a.bound), nil
}
