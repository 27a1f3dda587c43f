package sandboxes

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// growthAllowance is how much a sandbox that is at its bound may write before it is stopped
// again: who deletes files needs some room.
const growthAllowance = 4 << 20

// idleCPU is the processor time after which a sandbox may have written something.
const idleCPU = 20 * time.Millisecond

// watch keeps the files of a sandbox, and its memory where nothing else does, within
// their bounds. When files outgrow theirs, all its programs are ended, and those it starts then as soon as the files grow
// further; so it stays usable, for deleting them. It is used by one goroutine at a
// time.
type watch struct {
	live        Live // the rest belongs to this one
	files       disk.Watch
	cpu         float64 // seconds, when it was looked last
	diskShort   bool    // the server was short of disk then
	bound       int64   // bytes; 0 for none
	repeats     int     // how often it was stopped without having shrunk
	silentSince int     // uses until it was silent, its programs ended; -1 for never
}

// watchLimits looks at a sandbox's files, unless that is under way. m.mu is held.
func (m *Manager) watchLimits(ctx context.Context, e *entry) {
	if e.watching || e.live == nil || e.sb.State != sandbox.Running {
		return
	}
	e.watching = true
	live, sb, busy := e.live, e.sb, e.users > 0
	m.background.Go(func() {
		copies := func() hostCopies {
			m.mu.Lock()
			defer m.mu.Unlock()
			return e.copying
		}
		was := e.watch.files.Used()
		m.checkFileServer(e, live)
		if why := e.watch.check(ctx, live, sb, busy, m.cfg.AdmitDisk() != nil, copies); why != nil {
			m.stop(ctx, e, live, why)
		}
		m.mu.Lock()
		if used := e.watch.files.Used(); used != was {
			e.diskUsed = used
		}
		e.watching = false
		m.mu.Unlock()
	})
}

// hostCopies are the folders that the host is copying into a sandbox at the moment. Its
// programs do not see them yet. Each copy holds the limit of the sandbox's files itself,
// so programs are not ended for what a copy has written.
type hostCopies struct {
	granted int64 // bytes that the copies may have written
	changes int   // counts changes of granted
}

// check is why a sandbox's programs must end; nil if they need not. While the
// server is short of disk none may grow.
func (w *watch) check(ctx context.Context, live Live, sb *sandbox.Sandbox, busy, short bool, copies func() hostCopies) error {
	if w.live != live { // it was made, taken over or woken: its processor time begins anew
		w.live, w.cpu, w.silentSince = live, 0, -1
		w.files.Dir, w.files.Measure = live.Folder(), live.Measure
	}
	u, err := live.Usage(ctx)
	if err != nil || !busy && u.CPUSeconds-w.cpu < idleCPU.Seconds() {
		return nil
	}
	w.cpu = u.CPUSeconds
	if u.Memory >= sb.Limits.Memory && relieve(ctx, live) != nil {
		return memoryLimit(sb)
	}
	if err := w.setBound(ctx, sb, short || w.files.CheckDisk() != nil); err != nil {
		return nil //nolint:nilerr // it has just ended
	}
	before := copies()
	limit := w.files.Limit
	if limit > 0 {
		w.files.Limit += before.granted
	}
	err = w.files.CheckFolder(ctx, time.Now())
	w.files.Limit = limit
	if !errors.Is(err, disk.ErrOverLimit) {
		return nil
	}
	if copies().changes != before.changes { // a copy wrote while the files were measured
		return nil
	}
	w.repeats++
	if sb.Disk > 0 && w.files.Limit >= sb.Disk {
		return fault.Limit("sandbox_disk", time.Time{}, "sandbox %q: its files take more than %s of disk; its programs were ended. Delete some files", sb.Name, runtime.FormatBytes(sb.Disk))
	}
	return fault.New(fault.Unavailable, "the server is low on disk space; the programs of sandbox %q were ended. Delete files, or try again later", sb.Name)
}

// relieve ends the largest programs of a sandbox.
func relieve(ctx context.Context, live Live) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return live.RelieveMemory(ctx)
}

// setBound says what bound the files have: the sandbox's own, and while the server is
// short of disk no more than there was when that began.
func (w *watch) setBound(ctx context.Context, sb *sandbox.Sandbox, short bool) error {
	f, bound := &w.files, w.bound
	switch {
	case !short:
		bound = sb.Disk
	case !w.diskShort:
		used, err := f.Remeasure(ctx, time.Now())
		if err != nil && !errors.Is(err, disk.ErrOverLimit) {
			return err
		}
		bound = minBound(sb.Disk, used+growthAllowance)
	}
	if shrunk := w.repeats > 0 && f.Used() <= bound; shrunk || bound != w.bound || short != w.diskShort {
		f.Limit = bound
		if w.repeats = 0; bound > 0 && f.Used() > bound { // and was stopped for it
			f.Limit, w.repeats = f.Used()+growthAllowance, 1
		}
	}
	w.bound, w.diskShort = bound, short
	return nil
}

// largestEnded says that the largest program of a sandbox was ended.
func largestEnded(sb *sandbox.Sandbox) error {
	return fault.Limit("memory", time.Time{}, "sandbox %q: memory limit of %s exceeded; the program that used the most was ended, the others continue", sb.Name, runtime.FormatBytes(sb.Limits.Memory))
}

// memoryLimit says that a sandbox's programs were ended for their memory.
func memoryLimit(sb *sandbox.Sandbox) error {
	return fault.Limit("memory", time.Time{}, "sandbox %q: memory limit of %s exceeded; its programs were ended", sb.Name, runtime.FormatBytes(sb.Limits.Memory))
}
