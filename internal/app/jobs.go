package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/jobs"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

const (
	sealEvery   = 30 * time.Second
	expireEvery = time.Minute
	purgeEvery  = 10 * time.Minute
	purgeTime   = 5 * time.Minute // at most
	purgeBatch  = 1000
	sweepEvery  = time.Hour
)

// jobsModule runs durable jobs: it delivers webhooks, seals the audit trail and deletes expired data.
type jobsModule struct {
	*process
	identity  *identityModule
	records   *recordsModule
	files     *filesModule
	threads   *threadsModule
	snapshots *snapshotsModule
	webhooks  *webhooksModule
	gateway   *gatewayModule
	runs      *runsModule

	*jobs.Client
}

// Start implements module.Part.
func (m *jobsModule) Start(ctx context.Context, undo *module.Undo) (err error) {
	db, kept := m.records.db, m.snapshots.retention()
	trail := audit.NewSealer(db.Audit())
	delivered, err := countDeliveries(m.cfg.Registry)
	if err != nil {
		return err
	}
	m.Client, err = jobs.New(jobs.Config{
		DB: db.SQL(), Postgres: db.Postgres(), ID: m.identity.id, Log: m.log,
		Executions: db.Executions(), Deliver: m.deliver, Tell: m.tell, Observe: delivered,
		Periodic: []jobs.Periodic{
			{Name: "seal_audit", Every: sealEvery, Run: func(ctx context.Context) error {
				_, err := trail.Seal(ctx)
				return err
			}},
			{Name: "purge_audit", Every: purgeEvery, Timeout: purgeTime, Run: purge(db.Audit().Purge)},
			{Name: "purge_executions", Every: purgeEvery, Timeout: purgeTime, Run: func(ctx context.Context) error {
				_, err := m.gateway.Purge(ctx, m.cfg.Settings.KeepFor)
				return err
			}},
			{Name: "expire_responses", Every: expireEvery, Timeout: purgeTime, Run: m.runs.Expire},
			{Name: "expire_threads", Every: purgeEvery, Timeout: purgeTime, Run: m.threads.Expire},
			{Name: "sweep_threads", Every: sweepEvery, Timeout: sweepEvery, Run: m.threads.Sweep},
			{Name: "purge_sandboxes", Every: purgeEvery, Timeout: purgeTime, Run: purge(kept.Purge)},
			{Name: "expire_snapshots", Every: purgeEvery, Timeout: purgeTime, Run: purge(kept.Expire)},
			{Name: "sweep_snapshots", Every: sweepEvery, Timeout: sweepEvery, Run: kept.Sweep},
			{Name: "sweep_files", Every: purgeEvery, Timeout: purgeTime, Run: purge(m.files.Sweep)},
			{Name: "purge_keys", Every: purgeEvery, Timeout: purgeTime, Run: purge(func(ctx context.Context, most int) (int, error) {
				n, err := db.Executions().PurgeKeys(ctx, most)
				if err != nil || n == most {
					return n, err
				}
				more, err := db.Idempotency().Purge(ctx, most-n)
				return n + more, err
			})},
			{Name: "purge_usage", Every: purgeEvery, Timeout: purgeTime, Run: purge(func(ctx context.Context, most int) (int, error) {
				return db.Usage().Purge(ctx, m.cfg.Settings.KeepUsage, most)
			})},
		},
	})
	if err != nil {
		return err
	}
	if err := m.Client.Start(ctx); err != nil {
		return err
	}
	undo.Add(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return m.Stop(ctx)
	})
	return nil
}

// purge returns a job that deletes old records in batches, which delay other writes only briefly, until
// none are left.
func purge(some func(ctx context.Context, most int) (int, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			if n, err := some(ctx, purgeBatch); err != nil || n < purgeBatch {
				return err
			}
		}
	}
}

// countDeliveries returns what counts attempts at webhooks by their outcome.
func countDeliveries(reg prometheus.Registerer) (func(outcome string), error) {
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "atoll_webhook_attempts_total",
		Help: "Attempts to deliver a webhook: delivered, retried (it failed and is tried again), failed (for the last time).",
	}, []string{"outcome"})
	if err := reg.Register(counts); err != nil {
		return nil, err
	}
	for _, outcome := range jobs.Outcomes { // from the start, so that a first failure is an increase
		counts.WithLabelValues(outcome)
	}
	return func(outcome string) { counts.WithLabelValues(outcome).Inc() }, nil
}

// deliver makes one attempt at a webhook.
func (m *jobsModule) deliver(ctx context.Context, e *execution.Execution) (tried bool, err error) {
	ctx, span := trace.StartKind(ctx, "webhook.deliver", trace.Client, trace.String(trace.TraceID, e.TraceID))
	defer span.End()
	tried, err = m.webhooks.Deliver(ctx, e)
	span.Fail(err)
	return tried, err
}

// tell makes one attempt at a message about a session.
func (m *jobsModule) tell(ctx context.Context, t tenant.ID, id string, sealed []byte) (tried bool, err error) {
	n, err := m.records.db.OpenNotice(t, id, sealed)
	if err != nil {
		return false, err
	}
	ctx, span := trace.StartKind(ctx, "webhook.deliver", trace.Client)
	defer span.End()
	tried, err = m.webhooks.Tell(ctx, n)
	span.Fail(err)
	return tried, err
}
