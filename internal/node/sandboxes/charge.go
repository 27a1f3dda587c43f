package sandboxes

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// SourceSandbox is what the ledger calls the time of named sandboxes.
const SourceSandbox = "sandbox"

// charge puts the time that e's sandbox has run, up to now, on its tenant's bill.
// One that is not resident costs nothing. What cannot be written is charged next
// time. e is locked.
func (m *Manager) charge(ctx context.Context, e *entry, now time.Time) {
	sb := m.current(e)
	if !sb.Resident() {
		return
	}
	now = now.UTC().Truncate(time.Microsecond)
	seconds := now.Sub(sb.MeteredAt).Seconds()
	if seconds <= 0 {
		return
	}
	m.mu.Lock()
	live, carried := e.live, e.uncharged
	e.uncharged = 0
	m.mu.Unlock()
	entry := usage.Entry{
		TraceID: string(sb.ID), Tenant: sb.Tenant, Key: sb.Key, Source: SourceSandbox,
		Seconds: seconds, CPU: sb.Limits.CPU, Memory: sb.Limits.Memory, Standing: true, At: now,
	}
	entry.BytesOut = carried
	if live != nil {
		traffic := live.Traffic()
		entry.BytesOut += traffic.BytesOut
		m.recordTraffic(ctx, e, sb, traffic, now)
	}
	entry.Credits = m.cfg.Prices.Credits(entry)
	if err := m.cfg.Store.Meter(ctx, sb.ID, now, entry); err != nil {
		m.mu.Lock()
		e.uncharged += entry.BytesOut
		m.mu.Unlock()
		m.cfg.Log.WarnContext(ctx, "cannot charge for a named sandbox yet", "sandbox_id", string(sb.ID), "error", err)
		return
	}
	sb.MeteredAt = now
	m.publish(e, sb)
}
