package named

import (
	"context"
	"errors"
	"fmt"
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

// watch keeps the files of a sandbox within their bound. When they outgrow it, all
// its programs are ended, and those it starts then as soon as the files grow
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
		why := e.watch.look(ctx, live, sb.Disk, busy, m.cfg.Disk() != nil)
		if why != "" {
			m.stop(ctx, e, live, why)
		}
		m.mu.Lock()
		e.looking = false
		m.mu.Unlock()
	})
}

// look is why a sandbox must stop writing; "" if it need not. While the server is
// short of disk none may grow.
func (w *watch) look(ctx context.Context, live Live, bound int64, busy, short bool) string {
	if bound == 0 && !short {
		return ""
	}
	u, err := live.Usage(ctx)
	if err != nil || !busy && u.CPUSeconds-w.cpu < busyTime.Seconds() {
		return ""
	}
	w.cpu = u.CPUSeconds
	f := &w.files
	f.Dir = live.Folder()
	switch {
	case short && f.Most == 0 || short && f.Most > f.Used()+slack:
		if f.Most, err = disk.Measure(ctx, f.Dir, everything); err != nil {
			return ""
		}
		f.Most += slack
	case f.Most < bound, !short && bound > 0 && f.Used() <= bound:
		f.Most, w.again = bound, 0
	}
	if err := f.Look(ctx, time.Now()); !errors.Is(err, disk.ErrMore) {
		return ""
	}
	used, err := disk.Measure(ctx, f.Dir, everything)
	if err != nil {
		return ""
	}
	f.Most = used + slack
	w.again++
	if bound > 0 && used > bound {
		return fmt.Sprintf("its files take more than %s of disk; what was writing them was ended. Delete some", sandbox.FormatBytes(bound))
	}
	return "the server is short of disk space; what was writing was ended. Delete files, or try again later"
}

// stopTime bounds ending the programs of a sandbox.
const stopTime = 5 * time.Second

// stop ends all programs of a sandbox. Where that did not help, the conversation
// with its attendant ends too, which may be what is writing.
func (m *Manager) stop(ctx context.Context, e *entry, live Live, why string) {
	m.mu.Lock()
	e.stops++
	e.stopped = why
	m.mu.Unlock()
	m.cfg.Log.InfoContext(ctx, "named sandbox at its disk limit", "sandbox_id", string(e.id))
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

// Stopped is why programs of the sandbox were ended since the use began, as an
// Exhausted fault; nil if none were. Whoever sees one killed, or the conversation
// end, asks here first.
func (h *Handle) Stopped() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.e.stops == h.stops {
		return nil
	}
	return fault.Limit("sandbox_disk", time.Time{}, "sandbox %q: %s", h.Sandbox.Name, h.e.stopped)
}
