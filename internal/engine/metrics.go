package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/execution"
	"github.com/atoll-run/atoll/internal/warm"
)

// metrics are the pool's and the executions' figures. Labels are closed sets:
// images are the operator's, languages and statuses ours.
type metrics struct {
	claims     *prometheus.CounterVec
	build      *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	idle       *prometheus.GaugeVec
	target     *prometheus.GaugeVec
	executions *prometheus.CounterVec
	duration   *prometheus.HistogramVec
}

var poolLabels = []string{"image", "language", "preloads"}

func labels(k warm.Key) []string {
	preloads := "no"
	if k.Preload {
		preloads = "yes"
	}
	return []string{k.Image, string(k.Language), preloads}
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_pool_claims_total", Help: "Sandboxes claimed, by whether one was ready (hit) or had to be made (miss).",
		}, append(slices.Clone(poolLabels), "result")),
		build: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "atoll_pool_build_seconds", Help: "Time to make a warm sandbox.",
			Buckets: []float64{.025, .05, .1, .2, .4, .8, 1.6, 3.2, 6.4, 30, 120},
		}, poolLabels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_pool_build_failures_total", Help: "Warm sandboxes that could not be made.",
		}, poolLabels),
		idle: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "atoll_pool_idle", Help: "Warm sandboxes that are ready.",
		}, poolLabels),
		target: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "atoll_pool_target", Help: "Warm sandboxes that are to be kept ready, demand considered.",
		}, poolLabels),
		executions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_executions_total", Help: "Executions that ended, by language, status and whether a warm sandbox was ready.",
		}, []string{"language", "status", "warm"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "atoll_execution_seconds", Help: "Time from an execution's admission to its end.",
			Buckets: []float64{.002, .004, .008, .016, .032, .064, .125, .25, .5, 1, 4, 16, 60, 600, 3600},
		}, []string{"language"}),
	}
	for _, c := range []prometheus.Collector{m.claims, m.build, m.failures, m.idle, m.target, m.executions, m.duration} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Claimed implements pool.Metrics.
func (m *metrics) Claimed(k warm.Key, hit bool) {
	result := "miss"
	if hit {
		result = "hit"
	}
	m.claims.WithLabelValues(append(labels(k), result)...).Inc()
}

// Built implements pool.Metrics.
func (m *metrics) Built(k warm.Key, took time.Duration, err error) {
	if err != nil {
		m.failures.WithLabelValues(labels(k)...).Inc()
		return
	}
	m.build.WithLabelValues(labels(k)...).Observe(took.Seconds())
}

// Sized implements pool.Metrics.
func (m *metrics) Sized(k warm.Key, idle, target int) {
	m.idle.WithLabelValues(labels(k)...).Set(float64(idle))
	m.target.WithLabelValues(labels(k)...).Set(float64(target))
}

func (m *metrics) observe(e *execution.Execution) {
	hit := "no"
	if e.Warm {
		hit = "yes"
	}
	m.executions.WithLabelValues(string(e.Language), string(e.Status), hit).Inc()
	m.duration.WithLabelValues(string(e.Language)).Observe(e.Duration().Seconds())
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
