package gateway

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/audit"
)

// Refused leaves the audit row of a call that never became an execution. It is
// not left while the database is away: nothing runs then either, and what is
// missing is counted and logged.
func (g *Gateway) Refused(ctx context.Context, row audit.Row) {
	if err := g.cfg.Trail.Append(context.WithoutCancel(ctx), row); err != nil {
		g.metrics.unaudited.WithLabelValues(row.Source).Inc()
		g.cfg.Logger.ErrorContext(ctx, "a refused call left no audit row", "trace_id", row.TraceID, "source", row.Source,
			"exit_status", row.ExitStatus, "tenant", row.Tenant, "error", err)
	}
}
