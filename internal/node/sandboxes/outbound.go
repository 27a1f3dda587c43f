package sandboxes

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// maxOutbound bounds what is kept of a sandbox's traffic while it cannot be
// recorded.
const maxOutbound = 1024

// recordTraffic leaves an audit row of the hosts that e's sandbox has contacted, and
// of what it was refused, since the last one. What cannot be written is told next
// time. e is locked.
func (m *Manager) recordTraffic(ctx context.Context, e *entry, sb *sandbox.Sandbox, t execution.Traffic, now time.Time) {
	for _, host := range t.Outbound() {
		if len(e.outbound) < maxOutbound && !slices.Contains(e.outbound, host) {
			e.outbound = append(e.outbound, host)
		}
	}
	if len(e.outbound) == 0 {
		return
	}
	row := audit.Row{
		TraceID: string(sb.ID), Tenant: sb.Tenant, Key: sb.Key, Environment: sb.Environment, Source: SourceSandbox, SessionID: sb.Session,
		CodeSHA256: sha256.Sum256([]byte(sb.Name)), ExitStatus: audit.OK, DurationMS: now.Sub(sb.MeteredAt).Milliseconds(),
		OutboundHosts: e.outbound, Metadata: map[string]string{"sandbox_id": string(sb.ID)},
	}
	if err := m.cfg.Store.Record(ctx, row, usage.Entry{}); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot record a sandbox's outbound connections yet", "sandbox_id", string(sb.ID), "error", err)
		return
	}
	e.outbound = nil
}
