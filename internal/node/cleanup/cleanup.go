// Package cleanup removes or takes over, after a start, remains that could not be
// handled during it. One sandbox's remains never stop a start.
package cleanup

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Step names a kind of remains. It is a metric label, so the set is closed.
type Step string

// The steps that a start takes, and the ones that follow a sandbox's end.
const (
	Process  Step = "process"  // the folders of another process that has ended
	Sandbox  Step = "sandbox"  // the processes, control group and folders of a sandbox
	Mount    Step = "mount"    // what a sandbox had mounted on the host
	Folder   Step = "folder"   // a home or storage folder without a sandbox
	Output   Step = "output"   // an output file without a sandbox
	Takeover Step = "takeover" // a run, or a sandbox of a turn, that continues
	Job      Step = "job"      // an accepted job that had not started
	Named    Step = "named"    // a named sandbox that continues
	Home     Step = "home"     // a cached home directory of a thread
)

var steps = []Step{Process, Sandbox, Mount, Folder, Output, Takeover, Job, Named, Home}

const (
	// tryTime bounds the first try, which the start waits for.
	tryTime = 5 * time.Second
	// patience is how long failing tries may hold up one start altogether. After
	// that, the queue takes every further step without a first try.
	patience  = 20 * time.Second
	retryTime = 30 * time.Second
	retryMin  = time.Second
	retryMax  = time.Minute
)

// Queue retries failed steps in the background. A nil Queue only logs them.
type Queue struct {
	log      *slog.Logger
	failures *prometheus.CounterVec
	pending  prometheus.Gauge
	first    time.Duration // before the first retry

	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	worker sync.WaitGroup

	mu     sync.Mutex
	items  []*item       // guarded by mu
	spent  time.Duration // guarded by mu; on failing first tries
	added  chan struct{} // has a token when items changed
	closed bool          // guarded by mu
}

type item struct {
	step  Step
	name  string
	do    func(context.Context) error
	wait  time.Duration
	after time.Time
}

// New returns a Queue. reg may be nil; queues of one registry share their metrics.
func New(log *slog.Logger, reg prometheus.Registerer) (*Queue, error) {
	q := &Queue{log: log, first: retryMin, added: make(chan struct{}, 1)}
	q.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "atoll_cleanup_failures_total", Help: "Failed attempts to remove or take over remains of an earlier process or an ended sandbox, by step.",
	}, []string{"step"})
	q.pending = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "atoll_cleanup_pending", Help: "Remains that Atoll retries to remove or take over.",
	})
	if reg != nil {
		var err error
		if q.failures, err = register(reg, q.failures); err != nil {
			return nil, err
		}
		if q.pending, err = register(reg, q.pending); err != nil {
			return nil, err
		}
	}
	for _, s := range steps {
		q.failures.WithLabelValues(string(s))
	}
	q.ctx, q.stop = context.WithCancel(context.Background())
	q.worker.Go(q.run)
	return q, nil
}

func register[C prometheus.Collector](reg prometheus.Registerer, c C) (C, error) {
	err := reg.Register(c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if c, ok := known.ExistingCollector.(C); ok {
			return c, nil
		}
	}
	return c, err
}

// Try runs a step now and reports whether it succeeded. A failure is logged and
// counted, and the Queue retries the step until it succeeds.
func (q *Queue) Try(ctx context.Context, step Step, name string, do func(context.Context) error) bool {
	if q.impatient() {
		q.Later(step, name, context.DeadlineExceeded, do)
		return false
	}
	began := time.Now()
	tryCtx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	err := do(tryCtx)
	if err == nil {
		return true
	}
	if q != nil {
		q.mu.Lock()
		q.spent += time.Since(began)
		q.mu.Unlock()
	}
	q.Later(step, name, err, do)
	return false
}

func (q *Queue) impatient() bool {
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.spent > patience
}

// Later logs and counts a step that failed with err, and retries it in the background.
func (q *Queue) Later(step Step, name string, err error, do func(context.Context) error) {
	if q == nil {
		slog.Warn("cannot clean up", "step", string(step), "name", name, "error", err)
		return
	}
	q.failed(step, name, err)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.items = append(q.items, &item{step: step, name: name, do: do, wait: q.first, after: time.Now().Add(q.first)})
	q.pending.Inc()
	q.wake()
}

// Count logs and counts a failed step that something else retries.
func (q *Queue) Count(step Step, name string, err error) {
	if q != nil {
		q.failed(step, name, err)
	}
}

func (q *Queue) failed(step Step, name string, err error) {
	q.failures.WithLabelValues(string(step)).Inc()
	q.log.Warn("cannot clean up; retrying", "step", string(step), "name", name, "error", err)
}

func (q *Queue) wake() {
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// run retries items, one at a time, until Close.
func (q *Queue) run() {
	for {
		next, wait := q.next()
		if next != nil {
			q.retry(next)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-q.added:
		case <-q.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// next returns an item that is due, or how long to wait for one.
func (q *Queue) next() (*item, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait := retryMax
	if q.closed {
		return nil, wait
	}
	for _, it := range q.items {
		left := time.Until(it.after)
		if left <= 0 {
			return it, 0
		}
		wait = min(wait, left)
	}
	return nil, wait
}

func (q *Queue) retry(it *item) {
	ctx, cancel := context.WithTimeout(q.ctx, retryTime)
	defer cancel()
	err := it.do(ctx)
	if err != nil && q.ctx.Err() != nil {
		return // the next start finds it
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		it.wait = min(2*it.wait, retryMax)
		it.after = time.Now().Add(it.wait)
		q.failed(it.step, it.name, err)
		return
	}
	for i, other := range q.items {
		if other == it {
			q.items = append(q.items[:i], q.items[i+1:]...)
			q.pending.Dec()
			break
		}
	}
	q.log.Info("cleaned up after a retry", "step", string(it.step), "name", it.name)
}

// Close stops retrying. The next start finds the remains again.
func (q *Queue) Close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.closed = true
	q.pending.Sub(float64(len(q.items)))
	q.items = nil
	q.mu.Unlock()
	q.stop()
	q.worker.Wait()
}
