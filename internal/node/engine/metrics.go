package engine

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/node/pool"
	"github.com/atoll-run/atoll/internal/node/warm"
)

// metrics are the pool's figures. Labels are closed sets: images are the
// operator's, languages ours. The kinds of one image that differ in limits or
// variables are counted together.
type metrics struct {
	claims   *prometheus.CounterVec
	build    *prometheus.HistogramVec
	failures *prometheus.CounterVec
	idle     *prometheus.GaugeVec
	target   *prometheus.GaugeVec

	sharedClaims *prometheus.CounterVec
	sharedIdle   prometheus.Gauge

	mu    sync.Mutex
	sizes map[warm.Key]size // guarded by mu; by kind
	sums  map[warm.Key]size // guarded by mu; of an image's kinds of one sort
}

type size struct{ idle, target int }

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
		sizes: map[warm.Key]size{}, sums: map[warm.Key]size{},
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
		sharedClaims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_shared_kernel_claims_total", Help: "Executions in kernels that others of their key share, by whether one was there (hit) or had to be made (miss).",
		}, []string{"result"}),
		sharedIdle: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "atoll_shared_kernels_idle", Help: "Kernels that wait for the next execution of their key.",
		}),
	}
	for _, c := range []prometheus.Collector{m.claims, m.build, m.failures, m.idle, m.target, m.sharedClaims, m.sharedIdle} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	for _, result := range []string{"hit", "miss"} {
		m.sharedClaims.WithLabelValues(result)
	}
	return m, nil
}

// shared counts a claim of a kernel that executions of a key share.
func (m *metrics) shared(hit bool) {
	result := "miss"
	if hit {
		result = "hit"
	}
	m.sharedClaims.WithLabelValues(result).Inc()
}

// show has the figures of a kind exist before anything happens, so that a first claim
// or failure is seen as an increase.
func (m *metrics) show(k warm.Key) {
	l := labels(k)
	for _, result := range []string{"hit", "miss"} {
		m.claims.WithLabelValues(append(slices.Clone(l), result)...)
	}
	m.build.WithLabelValues(l...)
	m.failures.WithLabelValues(l...)
	m.idle.WithLabelValues(l...)
	m.target.WithLabelValues(l...)
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
	m.mu.Lock()
	defer m.mu.Unlock()
	plain := warm.Key{Image: k.Image, Language: k.Language, Preload: k.Preload} // what the labels tell apart
	sum, before := m.sums[plain], m.sizes[k]
	sum.idle += idle - before.idle
	sum.target += target - before.target
	m.sums[plain] = sum
	if m.sizes[k] = (size{idle, target}); idle == 0 && target == 0 {
		delete(m.sizes, k)
	}
	m.idle.WithLabelValues(labels(k)...).Set(float64(sum.idle))
	m.target.WithLabelValues(labels(k)...).Set(float64(sum.target))
}

// standbyMetrics are the figures of standby kernels, those of all keys together.
type standbyMetrics struct {
	claims       *prometheus.CounterVec
	build        prometheus.Histogram
	failures     prometheus.Counter
	idle, target prometheus.Gauge

	mu    sync.Mutex
	sizes map[compatKey]size // guarded by mu
	sum   size               // guarded by mu
}

func newStandbyMetrics(reg prometheus.Registerer) (*standbyMetrics, error) {
	m := &standbyMetrics{
		sizes: map[compatKey]size{},
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_standby_claims_total", Help: "Kernels claimed for sandboxes that wake and for forks, by whether one was ready (hit) or had to be started (miss).",
		}, []string{"result"}),
		build: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "atoll_standby_build_seconds", Help: "Time to start a standby kernel.",
			Buckets: []float64{.025, .05, .1, .2, .4, .8, 1.6, 3.2},
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atoll_standby_build_failures_total", Help: "Standby kernels that could not be started.",
		}),
		idle: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "atoll_standby_idle", Help: "Standby kernels that are ready.",
		}),
		target: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "atoll_standby_target", Help: "Standby kernels that sandboxes asleep on disk and recent forks ask for, before standby_kernels bounds them.",
		}),
	}
	for _, result := range []string{"hit", "miss"} {
		m.claims.WithLabelValues(result)
	}
	for _, c := range []prometheus.Collector{m.claims, m.build, m.failures, m.idle, m.target} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Claimed implements pool.Metrics.
func (m *standbyMetrics) Claimed(_ compatKey, hit bool) {
	if hit {
		m.claims.WithLabelValues("hit").Inc()
	} else {
		m.claims.WithLabelValues("miss").Inc()
	}
}

// Built implements pool.Metrics.
func (m *standbyMetrics) Built(_ compatKey, took time.Duration, err error) {
	switch {
	case err == nil:
		m.build.Observe(took.Seconds())
	case !errors.Is(err, pool.ErrGone):
		m.failures.Inc()
	}
}

// Sized implements pool.Metrics.
func (m *standbyMetrics) Sized(k compatKey, idle, target int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.sizes[k]
	m.sum.idle += idle - before.idle
	m.sum.target += target - before.target
	if m.sizes[k] = (size{idle, target}); idle == 0 && target == 0 {
		delete(m.sizes, k)
	}
	m.idle.Set(float64(m.sum.idle))
	m.target.Set(float64(m.sum.target))
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
