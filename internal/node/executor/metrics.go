package executor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// How a take-over went.
const (
	takeoverResumed    = "resumed"    // the program went on, or its end was still to be heard
	takeoverEnded      = "ended"      // the journal had the program's end
	takeoverStarted    = "started"    // the program had not begun, and was started
	takeoverIdle       = "idle"       // no run: a turn keeps its sandbox
	takeoverFailed     = "failed"     // the run ended with a reason
	takeoverUnreadable = "unreadable" // not even the job was known
)

// metrics are the executions' figures. Labels are closed sets.
type metrics struct {
	executions *prometheus.CounterVec
	starts     *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	isolations *prometheus.CounterVec
	takeovers  *prometheus.CounterVec
	journalled prometheus.Counter
	cuts       prometheus.Counter
	spooled    prometheus.Counter
	turns      prometheus.Gauge
	saves      *prometheus.CounterVec
	dropped    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		executions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_executions_total", Help: "Executions that ended, by language, status and start: warm, cold, or none when nothing was run.",
		}, []string{"language", "status", "start"}),
		starts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_execution_starts_total", Help: "Executions that were run, by start (warm: their sandbox was ready before the request came) and the reason for it.",
		}, []string{"start", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "atoll_execution_seconds", Help: "Time from when an execution was taken on to its end.",
			Buckets: []float64{.002, .004, .008, .016, .032, .064, .125, .25, .5, 1, 4, 16, 60, 600, 3600},
		}, []string{"language"}),
		isolations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_execution_isolations_total", Help: "Executions that were run, by isolation: run (a kernel of their own) or key (one that others of their key had as well).",
		}, []string{"isolation"}),
		takeovers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_takeovers_total", Help: "Runs and sandboxes of turns that an earlier process left, by what became of them.",
		}, []string{"result"}),
		journalled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atoll_journal_bytes_total", Help: "Bytes written to the journals of runs.",
		}),
		cuts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atoll_journal_cuts_total", Help: "How often a journal was cut.",
		}),
		spooled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atoll_spool_bytes_total", Help: "Bytes of output that went to files, to be stored whole.",
		}),
		turns: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "atoll_turns", Help: "Turns that have a sandbox or a job.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atoll_jobs_dropped_total", Help: "Jobs that did not start because a gateway had concluded them as lost or cancelled.",
		}),
		saves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_thread_saves_total", Help: "Homes of threads after their programs had ended, by what came of them: saved or failed.",
		}, []string{"result"}),
	}
	for _, c := range []prometheus.Collector{m.executions, m.starts, m.duration, m.isolations, m.takeovers, m.journalled, m.cuts, m.spooled, m.turns, m.saves, m.dropped} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	m.zero()
	return m, nil
}

// zero has every figure there before it first happens, because a rate needs a first value.
func (m *metrics) zero() {
	for _, r := range execution.StartReasons {
		m.starts.WithLabelValues(string(r.Start()), string(r))
	}
	for _, language := range execution.Languages {
		m.duration.WithLabelValues(string(language))
		for _, status := range execution.Statuses {
			if status == execution.Running {
				continue // executions are counted when they end
			}
			for _, start := range []string{string(execution.StartWarm), string(execution.StartCold), "none"} {
				m.executions.WithLabelValues(string(language), string(status), start)
			}
		}
	}
	for _, isolation := range execution.Isolations {
		m.isolations.WithLabelValues(string(isolation))
	}
	for _, result := range []string{takeoverResumed, takeoverEnded, takeoverStarted, takeoverIdle, takeoverFailed, takeoverUnreadable} {
		m.takeovers.WithLabelValues(result)
	}
	for _, result := range []string{"saved", "failed"} {
		m.saves.WithLabelValues(result)
	}
}

func (m *metrics) ended(job *execution.Job, r *execution.Result, reason execution.StartReason, created time.Time) {
	start := string(r.Start)
	if start == "" {
		start = "none"
	} else {
		m.starts.WithLabelValues(start, string(reason)).Inc()
		if r.Isolation != "" {
			m.isolations.WithLabelValues(string(r.Isolation)).Inc()
		}
	}
	m.executions.WithLabelValues(string(job.Language), string(r.Status), start).Inc()
	m.duration.WithLabelValues(string(job.Language)).Observe(r.CompletedAt.Sub(created).Seconds())
}
