package httpapi

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/atoll-run/atoll/internal/core/ratelimit"
)

// metrics are the HTTP layer's own figures. Labels come from closed sets: the paths of the
// table, and the statuses that are sent, with 499 for a client that went away.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge

	connsClosed prometheus.Counter
	rateLimited *prometheus.CounterVec
	handler     http.Handler // of all figures
}

func newMetrics(reg *prometheus.Registry, log *slog.Logger) (*metrics, error) {
	m := &metrics{
		handler: promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_http_requests_total",
			Help: "HTTP requests answered, by route and status.",
		}, []string{"route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "atoll_http_request_duration_seconds",
			Help:    "Time from a request's headers to the end of its answer, by route.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 60, 600, 3600},
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "atoll_http_requests_in_flight",
			Help: "HTTP requests being answered now.",
		}),
		connsClosed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atoll_http_connections_closed_total",
			Help: "Connections without a key, or of a tenant that had more than half of all, that were closed to make room for others.",
		}),
		rateLimited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_http_rate_limited_total",
			Help: "Requests refused for a rate of the caller's plan.",
		}, []string{"dimension"}),
	}
	for _, dimension := range ratelimit.Dimensions() {
		m.rateLimited.WithLabelValues(dimension)
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.inFlight, m.connsClosed, m.rateLimited} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// route returns the function that counts an answer of that route. The statuses are those
// that are counted from zero, because a rate needs a first value.
func (m *metrics) route(label string, statuses ...int) func(status int, took time.Duration) {
	duration := m.duration.WithLabelValues(label)
	for _, status := range statuses {
		m.requests.WithLabelValues(label, strconv.Itoa(status))
	}
	return func(status int, took time.Duration) {
		m.requests.WithLabelValues(label, strconv.Itoa(status)).Inc()
		duration.Observe(took.Seconds())
	}
}
