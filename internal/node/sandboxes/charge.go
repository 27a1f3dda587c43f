package sandboxes

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// charge reports the time that e's sandbox has run, up to now, to the ledger. Other
// states cost nothing. If the report fails, the next one includes the same use. e is locked.
func (m *Manager) charge(ctx context.Context, e *entry, now time.Time) {
	sb := m.current(e)
	if !sb.Resident() {
		return
	}
	now = now.UTC().Truncate(time.Microsecond)
	if !now.After(sb.MeteredAt) {
		return
	}
	m.mu.Lock()
	live, bytesOut := e.live, e.uncharged
	e.uncharged = 0
	m.mu.Unlock()
	if live != nil {
		traffic := live.Traffic()
		bytesOut += traffic.BytesOut
		m.recordTraffic(ctx, e, sb, traffic, now)
	}
	if err := m.cfg.Ledger.Charge(ctx, sb, now, bytesOut); err != nil {
		m.mu.Lock()
		e.uncharged += bytesOut
		m.mu.Unlock()
		m.cfg.Log.WarnContext(ctx, "cannot charge for a named sandbox yet", "sandbox_id", string(sb.ID), "error", err)
		return
	}
	sb.MeteredAt = now
	m.publish(e, sb)
}

// maxOutbound limits the hosts that are kept while they cannot be reported.
const maxOutbound = 1024

// recordTraffic reports the hosts that e's sandbox has contacted or was refused. Hosts whose
// report fails are reported next time. e is locked.
func (m *Manager) recordTraffic(ctx context.Context, e *entry, sb *sandbox.Sandbox, t execution.Traffic, now time.Time) {
	for _, host := range t.Outbound() {
		if len(e.outbound) < maxOutbound && !slices.Contains(e.outbound, host) {
			e.outbound = append(e.outbound, host)
		}
	}
	if len(e.outbound) == 0 {
		return
	}
	if err := m.cfg.Ledger.Contacted(ctx, sb, now, e.outbound); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot record a sandbox's outbound connections yet", "sandbox_id", string(sb.ID), "error", err)
		return
	}
	e.outbound = nil
}
