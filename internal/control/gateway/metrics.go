package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// metrics are the gateway's figures. Labels come from closed sets: the
// statuses, the deliveries, the limits and the steps of an execution's life.
type metrics struct {
	ends      *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	unaudited *prometheus.CounterVec
	steps     *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_gateway_executions_total",
			Help: "Executions whose end this gateway recorded, by status and delivery.",
		}, []string{"status", "delivery"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_gateway_refused_total",
			Help: "Calls refused for a limit or for want of room, by which one.",
		}, []string{"dimension"}),
		unaudited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_gateway_unaudited_refusals_total",
			Help: "Refused calls that left no audit row because the database was away, by interface.",
		}, []string{"source"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "atoll_gateway_step_seconds",
			Help:    "Time of the steps around a run: admit, start, conclude.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 30},
		}, []string{"step"}),
	}
	for _, c := range []prometheus.Collector{m.ends, m.refusals, m.unaudited, m.steps} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	m.zero()
	return m, nil
}

// zero has every figure there before it first happens, because a rate needs a first value.
func (m *metrics) zero() {
	for _, source := range execution.Sources {
		m.unaudited.WithLabelValues(string(source))
	}
	for _, status := range execution.Statuses {
		if status == execution.Running {
			continue // executions are counted when they end
		}
		for _, delivery := range []execution.Delivery{execution.Inline, execution.Streamed, execution.Async} {
			m.ends.WithLabelValues(string(status), string(delivery))
		}
	}
	for _, dimension := range []string{
		capacity, tenant.DimensionConcurrency, tenant.DimensionStreaming, tenant.DimensionAsync, tenant.DimensionTimeout,
		tenant.DimensionCPU, tenant.DimensionMemory, "monthly_credits", "threads", tenant.DimensionOutputs,
	} {
		m.refusals.WithLabelValues(dimension)
	}
	for _, s := range []step{admitStep, startStep, concludeStep} {
		m.steps.WithLabelValues(s.label)
	}
}

// capacity is the dimension of a refusal for want of room, which is no limit of a plan.
const capacity = "capacity"

// step is a part of an execution's life outside its sandbox.
type step struct {
	label string // in metrics
	span  string
	kind  trace.Kind
}

var (
	admitStep    = step{"admit", "execution.admit", trace.Internal}
	startStep    = step{"start", "execution.start", trace.Producer}
	concludeStep = step{"conclude", "execution.conclude", trace.Internal}
)

// begin begins a step. The function it returns ends it.
func (m *metrics) begin(ctx context.Context, s step) (context.Context, func(error)) {
	h, began := m.steps.WithLabelValues(s.label), time.Now()
	ctx, span := trace.StartKind(ctx, s.span, s.kind)
	return ctx, func(err error) {
		h.Observe(time.Since(began).Seconds())
		span.Fail(err)
		span.End()
	}
}

func (m *metrics) concluded(e *execution.Execution) {
	m.ends.WithLabelValues(string(e.Status), string(e.Delivery)).Inc()
}

func (m *metrics) refused(f *fault.Error) {
	dimension := f.Dimension // given by our own code alone
	if dimension == "" {
		dimension = capacity
	}
	m.refusals.WithLabelValues(dimension).Inc()
}
