package sandboxes

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
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
	a := &copyAllowance{h: to}
	defer a.end() // once what a failed copy left is removed
	var failed error
	err = to.guest.Adopt(ctx, name, func(ctx context.Context, at string) error {
		bytes, failed = to.copyInto(ctx, a, from, at)
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
func (h *Handle) copyInto(ctx context.Context, a *copyAllowance, from disk.Place, at string) (bytes int64, err error) {
	into, ok := h.live.HostPath(at)
	if !ok {
		return 0, errNotOnDisk
	}
	a.ctx = ctx
	c, err := h.m.cfg.Engine.FolderCopier(a.more)
	if err != nil {
		return 0, err
	}
	if _, bytes, err = c.Copy(ctx, from, into, daemonclient.Adopted); err != nil {
		return 0, err
	}
	return bytes, a.check()
}

// copyAllowance is what the host may write into a sandbox for one copy.
type copyAllowance struct {
	h        *Handle
	ctx      context.Context
	granted  int64 // bytes; of entry.copying.granted
	bound    int64 // bytes that the copy may take; 0 before it was measured
	measured bool
}

// more grants the next part of a copy that has taken so many bytes. The sandbox's files
// are measured unless the copy is small against what is left to them: there may be many.
func (a *copyAllowance) more(spent int64) (most int64, err error) {
	h := a.h
	if err := h.stopped(); err != nil {
		return 0, err
	}
	if err := h.m.cfg.AdmitDisk(); err != nil {
		return 0, err
	}
	most = spent + growthAllowance
	if limit := h.sb.Disk; limit > 0 && (a.measured || !a.small(most, limit)) {
		if !a.measured {
			free, err := a.free()
			if err != nil {
				return 0, err
			}
			// What the copy has written until now is among the files: at most granted bytes,
			// perhaps less.
			a.bound, a.measured = a.granted+free, true
		}
		if spent > a.bound {
			return 0, a.refusal()
		}
		most = min(most, a.bound)
	}
	a.grant(most)
	return most, nil
}

// small reports whether a copy of so many bytes fits for sure, by when the sandbox's files
// were measured last: they have taken less than half of what was left to them since then.
func (a *copyAllowance) small(bytes, limit int64) bool {
	a.h.m.mu.Lock()
	defer a.h.m.mu.Unlock()
	used, granted := a.h.e.diskUsed, a.h.e.copying.granted-a.granted
	return used > 0 && bytes+granted < (limit-used)/2
}

// check refuses a copy that is complete and takes more than there may be. Its own figures
// are not exact, and programs may have written meanwhile.
func (a *copyAllowance) check() error {
	if !a.measured {
		return nil
	}
	free, err := a.free()
	if err == nil && free < 0 {
		err = a.refusal()
	}
	return err
}

// free measures how many bytes are left to the sandbox's files, less than 0 for too many.
func (a *copyAllowance) free() (int64, error) {
	limit := a.h.sb.Disk
	used, err := a.h.live.Measure(a.ctx, limit)
	if errors.Is(err, disk.ErrOverLimit) {
		return min(limit-used, -1), nil
	}
	return limit - used, err
}

func (a *copyAllowance) refusal() error {
	return fault.Limit("sandbox_disk", time.Time{}, "sandbox %q: its files would take more than %s of disk. Delete some files", a.h.sb.Name, runtime.FormatBytes(a.h.sb.Disk))
}

// grant records that the copy may write up to so many bytes.
func (a *copyAllowance) grant(bytes int64) {
	if bytes == a.granted {
		return // a refused copy wrote nothing, so it must not pass for a change: see watch.check
	}
	a.h.m.mu.Lock()
	defer a.h.m.mu.Unlock()
	c := &a.h.e.copying
	c.granted += bytes - a.granted
	c.changes++
	a.granted = bytes
}

// end is called when the copy is part of the sandbox, or removed.
func (a *copyAllowance) end() {
	a.h.m.mu.Lock()
	if a.h.e.diskUsed > 0 {
		a.h.e.diskUsed += a.granted
	}
	a.h.m.mu.Unlock()
	a.grant(0)
}
