package breaker

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Breakers counts calls and stops those beyond a cap.
type Breakers struct {
	store Store
	log   *slog.Logger
	calls *prometheus.CounterVec
}

// Outcomes of a call for the metric, besides the dimensions.
const (
	passed = "passed"
	failed = "failed"
)

// New returns Breakers over a store and registers their metrics.
func New(store Store, log *slog.Logger, reg prometheus.Registerer) (*Breakers, error) {
	b := &Breakers{store: store, log: log, calls: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "atoll_breaker_calls_total",
		Help: "Calls that the circuit breakers of execute_code let pass, stopped (by the breaker that did), or could not count.",
	}, []string{"outcome"})}
	for _, outcome := range []string{passed, failed, string(TenantDaily), string(AgentHourly)} {
		b.calls.WithLabelValues(outcome) // so that each is there before it first happens
	}
	if err := reg.Register(b.calls); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return b, nil
}

// Overrides are a tenant's caps; nil uses the installation's cap.
type Overrides struct{ TenantDaily, AgentHourly *int64 }

// Pass counts a call. It returns an Exhausted fault that names the breaker if a cap is reached. It
// returns an Unavailable fault if the store cannot count, because an uncounted call must not run.
func (b *Breakers) Pass(ctx context.Context, tenant, agent string, own Overrides) error {
	breach, err := b.count(ctx, tenant, agent, own)
	switch {
	case err != nil:
		b.calls.WithLabelValues(failed).Inc()
		return fault.Wrap(fault.Unavailable, err, "the circuit breakers cannot be read right now; nothing was run. Retry in a few seconds")
	case breach == nil:
		b.calls.WithLabelValues(passed).Inc()
		return nil
	}
	b.calls.WithLabelValues(string(breach.Dimension)).Inc()
	return breach.fault()
}

func (b *Breakers) count(ctx context.Context, tenant, agent string, own Overrides) (*Breach, error) {
	var caps Caps
	if own.TenantDaily == nil || own.AgentHourly == nil {
		// Asked for at every call, so that a change is in force at once everywhere.
		var err error
		if caps, err = b.store.Caps(ctx); err != nil {
			return nil, fmt.Errorf("read the caps: %w", err)
		}
	}
	if own.TenantDaily != nil {
		caps.TenantDaily = *own.TenantDaily
	}
	if own.AgentHourly != nil {
		caps.AgentHourly = *own.AgentHourly
	}
	breach, err := b.store.Count(ctx, tenant, agent, caps)
	if err != nil {
		return nil, fmt.Errorf("count a call: %w", err)
	}
	return breach, nil
}

func (b *Breach) fault() *fault.Error {
	at := b.ResetsAt.UTC()
	if b.Cap == 0 {
		return fault.Limit(string(b.Dimension), at, "the operator has disabled execute_code (%s is 0)", b.Dimension)
	}
	what := "the tenant's daily cap"
	if b.Dimension == AgentHourly {
		what = "the agent's hourly cap"
	}
	return fault.Limit(string(b.Dimension), at, "%s of %d calls is reached; please try again at %s UTC", what, b.Cap, at.Format("15:04"))
}

// Caps returns the installation's caps.
func (b *Breakers) Caps(ctx context.Context) (Caps, error) { return b.store.Caps(ctx) }

// Change sets the installation's caps on behalf of actor. The next call uses them; nil keeps a cap.
func (b *Breakers) Change(ctx context.Context, actor string, tenantDaily, agentHourly *int64) (Caps, error) {
	before, after, err := b.store.ChangeCaps(ctx, actor, tenantDaily, agentHourly)
	if err != nil {
		return Caps{}, err
	}
	b.log.WarnContext(ctx, "caps of execute_code changed", "tenant_daily", after.TenantDaily, "agent_hourly", after.AgentHourly,
		"tenant_daily_before", before.TenantDaily, "agent_hourly_before", before.AgentHourly)
	return after, nil
}
