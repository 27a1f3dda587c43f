package sandboxes

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/node/disk"
)

const (
	// stopTime bounds ending the programs of a sandbox.
	stopTime = 5 * time.Second
	// maxStops is how often a sandbox is stopped whose files grow and never shrink.
	maxStops = 16
	// maxEndings is how many times are remembered that programs were ended at, and
	// skew how far the clock of a sandbox may be off.
	maxEndings = 16
	// oomExitTime is how long a kernel may take to end that runs out of memory, and
	// oomGoneTime how long if the connection to its guest daemon is over: then it does end,
	// and a busy host frees its memory late.
	oomExitTime  = time.Second
	oomGoneTime  = 10 * time.Second
	maxClockSkew = time.Second
	// recordTime bounds recording why programs were ended.
	recordTime = 10 * time.Second
)

// stop ends all programs of a sandbox. If its files still grow, its guest daemon writes for
// a caller: then the connection to that is closed first. If they grow after that, while no
// caller could have started anything, the sandbox does not obey, and is ended.
func (m *Manager) stop(ctx context.Context, e *entry, live Live, why error) {
	w := &e.watch
	m.mu.Lock()
	e.stops++
	e.stopReason = why
	opens := e.opens
	e.endings = append(e.endings[max(0, len(e.endings)+1-maxEndings):], sandbox.NewEnding(why))
	m.mu.Unlock()
	defer m.saveEndings(context.WithoutCancel(ctx), e)
	if w.repeats > maxStops || w.repeats > 1 && w.silentSince == opens {
		m.forceEnd(ctx, e, live)
		return
	}
	m.cfg.Log.InfoContext(ctx, "programs of a named sandbox ended", "sandbox_id", string(e.id), "reason", why)
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	w.silentSince = -1
	if w.repeats <= 1 {
		if err := killAll(ctx, live); err != nil {
			m.cfg.Log.InfoContext(ctx, "cannot end the programs of a named sandbox", "sandbox_id", string(e.id), "error", err)
		}
		w.allowGrowth(ctx)
		return
	}
	if err := live.CloseGuest(); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot close the connection to a sandbox", "sandbox_id", string(e.id), "error", err)
	}
	m.mu.Lock()
	opens = e.opens // earlier uses have no connection left
	m.mu.Unlock()
	// One that cannot be told is given another try.
	if err := killAll(ctx, live); err == nil || w.repeats > 2 {
		w.silentSince = opens
	}
	w.allowGrowth(ctx)
}

// saveEndings notes that a stop of e's sandbox is over.
func (m *Manager) saveEndings(ctx context.Context, e *entry) {
	m.mu.Lock()
	e.endings[len(e.endings)-1].Until = time.Now().UTC() // only this goroutine stops it meanwhile
	all := slices.Clone(e.endings)
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if err := m.cfg.Records.SaveEndings(ctx, e.id, all); err != nil && fault.KindOf(err) != fault.NotFound { // it is no more
		m.cfg.Log.WarnContext(ctx, "cannot record why the programs of a named sandbox were stopped", "sandbox_id", string(e.id), "error", err)
	}
}

// allowGrowth lets a sandbox that was stopped keep what it has, and a little more.
func (w *watch) allowGrowth(ctx context.Context) {
	if w.repeats == 0 {
		return // it was not for its files
	}
	if used, err := w.files.Remeasure(ctx, time.Now()); err == nil || errors.Is(err, disk.ErrOverLimit) {
		w.files.Limit = max(w.bound, used) + growthAllowance
	}
}

// killAll ends the programs of a sandbox, by an older guest daemon only those that
// callers have started.
func killAll(ctx context.Context, live Live) error {
	guest, err := live.Guest(ctx)
	if err != nil {
		return err
	}
	if err = guest.KillAll(ctx); err == nil || fault.KindOf(err) != fault.Invalid {
		return err
	}
	all, err := guest.Processes(ctx)
	for _, p := range all {
		if p.Exit == nil {
			_ = guest.Kill(ctx, p.ID) // it may just have ended
		}
	}
	return err
}

// forceEnd ends a sandbox whose files grow whatever it is told. It is stopped first: what
// it takes when it stands still is what counts.
func (m *Manager) forceEnd(ctx context.Context, e *entry, live Live) {
	waiting, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if e.lock(waiting) != nil {
		return // it is being changed; the next look finds it again
	}
	defer e.unlock()
	m.mu.Lock()
	sb, here := e.sb, e.live == live && !e.removed
	m.mu.Unlock()
	if !here || hasEnded(live) {
		return
	}
	m.beginExclusive(e, true)
	defer m.endExclusive(e)
	if err := m.forceEndLocked(ctx, e, sb, live); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot stop a named sandbox whose files keep growing", "sandbox_id", string(e.id), "error", err)
	}
}

func (m *Manager) forceEndLocked(ctx context.Context, e *entry, sb *sandbox.Sandbox, live Live) error {
	freezing, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	w := &e.watch
	if err := live.Freeze(freezing); err == nil {
		used, err := w.files.Remeasure(ctx, time.Now())
		switch {
		case err != nil && !errors.Is(err, disk.ErrOverLimit):
			return errors.Join(err, live.Thaw(context.WithoutCancel(ctx)))
		case err == nil && used <= w.bound:
			return live.Thaw(context.WithoutCancel(ctx))
		}
	} // one that does not even stand still ends all the same
	why, dimension := "its files went on growing after its programs were ended, while the server was low on disk space", ""
	if sb.Disk > 0 && w.bound == sb.Disk {
		why, dimension = "its files took more than "+runtime.FormatBytes(sb.Disk)+" of disk, and went on growing after its programs were ended", "sandbox_disk"
	}
	told := fault.New(fault.Unavailable, "the sandbox %q was ended: %s", sb.Name, why)
	if dimension != "" {
		told = fault.Limit(dimension, time.Time{}, "the sandbox %q was ended: %s", sb.Name, why)
	}
	m.mu.Lock()
	e.stopReason = told
	m.mu.Unlock()
	return m.lose(context.WithoutCancel(ctx), e, why)
}

// Killed implements sandbox.Handle. The program may have ended before the use began.
func (h *Handle) Killed(ctx context.Context, exit process.Exit) error {
	if exit.OutOfMemory {
		return largestEnded(h.sb)
	}
	if !exit.Together {
		return nil // it ended otherwise
	}
	if why := h.Stopped(ctx); why != nil {
		return why
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	for _, s := range h.e.endings {
		if exit.At.After(s.From.Add(-maxClockSkew)) && (s.Until.IsZero() || exit.At.Before(s.Until.Add(maxClockSkew))) {
			return s.Err()
		}
	}
	return nil
}

// Stopped is why the sandbox's programs were ended since the use began; nil if they
// were not. A caller that sees one killed, or the connection end, asks here first.
func (h *Handle) Stopped(ctx context.Context) error {
	if why := h.stopped(); why != nil || !oomKilled(h.live) {
		return why
	}
	// The connection may end a little earlier than the kernel.
	if h.ends(ctx, oomExitTime) || isClosed(h.guest.Done()) && h.ends(ctx, oomGoneTime) {
		return memoryLimit(h.sb)
	}
	return h.stopped()
}

// ends reports whether the sandbox ends within a time.
func (h *Handle) ends(ctx context.Context, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-h.live.Done():
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (h *Handle) stopped() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.e.stops == h.stops {
		return nil
	}
	return h.e.stopReason
}
