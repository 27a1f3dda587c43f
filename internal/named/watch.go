package named

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/disk"
	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// slack is how much a sandbox that is at its bound may write before it is stopped
// again: who deletes files needs some room.
const slack = 4 << 20

// busyTime is the processor time after which a sandbox may have written something.
const busyTime = 20 * time.Millisecond

// watch keeps the files of a sandbox, and its memory where nothing else does, within
// their bounds. When files outgrow theirs, all its programs are ended, and those it starts then as soon as the files grow
// further; so it stays usable, for deleting them. It is used by one goroutine at a
// time.
type watch struct {
	files disk.Watch
	cpu   float64 // seconds, when it was looked last
	again int     // how often it was stopped without having shrunk
}

// watchFiles looks at a sandbox's files, unless that is under way. m.mu is held.
func (m *Manager) watchFiles(ctx context.Context, e *entry) {
	if e.looking || e.live == nil || e.sb.State != Running {
		return
	}
	e.looking = true
	live, sb, busy := e.live, e.sb, e.users > 0
	m.looks.Go(func() {
		if why := e.watch.look(ctx, live, sb, busy, m.cfg.Disk() != nil); why != nil {
			m.stop(ctx, e, live, why)
		}
		m.mu.Lock()
		e.looking = false
		m.mu.Unlock()
	})
}

// look is why a sandbox's programs must end; nil if they need not. While the
// server is short of disk none may grow.
func (w *watch) look(ctx context.Context, live Live, sb *Sandbox, busy, short bool) error {
	u, err := live.Usage(ctx)
	if err != nil || !busy && u.CPUSeconds-w.cpu < busyTime.Seconds() {
		return nil
	}
	w.cpu = u.CPUSeconds
	if u.Memory >= sb.Limits.Memory { // where its control group has not seen to it
		return fault.Limit("memory", time.Time{}, "sandbox %q: memory limit of %s exceeded; its programs were ended", sb.Name, sandbox.FormatBytes(sb.Limits.Memory))
	}
	if sb.Disk == 0 && !short {
		return nil
	}
	f := &w.files
	f.Dir = live.Folder()
	switch {
	case short && f.Most == 0 || short && f.Most > f.Used()+slack:
		if f.Most, err = disk.Measure(ctx, f.Dir, everything); err != nil {
			return nil //nolint:nilerr // it has just ended
		}
		f.Most += slack
	case f.Most < sb.Disk, !short && sb.Disk > 0 && f.Used() <= sb.Disk:
		f.Most, w.again = sb.Disk, 0
	}
	if err := f.Look(ctx, time.Now()); !errors.Is(err, disk.ErrMore) {
		return nil
	}
	used, err := disk.Measure(ctx, f.Dir, everything)
	if err != nil {
		return nil //nolint:nilerr // likewise
	}
	f.Most = used + slack
	w.again++
	if sb.Disk > 0 && used > sb.Disk {
		return fault.Limit("sandbox_disk", time.Time{}, "sandbox %q: its files take more than %s of disk; its programs were ended. Delete some files", sb.Name, sandbox.FormatBytes(sb.Disk))
	}
	return fault.New(fault.Unavailable, "the server is short of disk space; the programs of sandbox %q were ended. Delete files, or try again later", sb.Name)
}

// stopTime bounds ending the programs of a sandbox.
const stopTime = 5 * time.Second

// stop ends all programs of a sandbox. Where that did not help, the conversation
// with its attendant ends too, which may be what is writing.
func (m *Manager) stop(ctx context.Context, e *entry, live Live, why error) {
	m.mu.Lock()
	e.stops++
	e.stopped = why
	m.mu.Unlock()
	m.cfg.Log.InfoContext(ctx, "programs of a named sandbox ended", "sandbox_id", string(e.id), "reason", why)
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if e.watch.again > 1 {
		if err := live.Quiet(); err != nil {
			m.cfg.Log.WarnContext(ctx, "cannot end the conversation with a sandbox", "sandbox_id", string(e.id), "error", err)
		}
	}
	guest, err := live.Guest(ctx)
	if err != nil {
		return // it has ended, or the next look finds it again
	}
	all, err := guest.Processes(ctx)
	if err != nil {
		return
	}
	for _, p := range all {
		if p.Exit == nil {
			_ = guest.Kill(ctx, p.ID) // it may just have ended
		}
	}
}

// Stopped is why the sandbox's programs were ended since the use began; nil if they
// were not. Whoever sees one killed, or the conversation end, asks here first.
func (h *Handle) Stopped() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.e.stops == h.stops {
		return nil
	}
	return h.e.stopped
}
