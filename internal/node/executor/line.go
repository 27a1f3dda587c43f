package executor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// line is where jobs wait for one of a number of slots. A slot that becomes free goes to
// the tenant that has fewest, and of those to the job that has waited longest. Beyond the
// places there are, some are left to tenants that have few: the jobs of others do not keep
// theirs out.
type line struct {
	slots, queue int

	mu      sync.Mutex
	places  int                    // guarded by mu: running or waiting jobs
	running int                    // guarded by mu
	tenants map[string]*lineTenant // guarded by mu: those with a place
	held    time.Duration          // guarded by mu: how long a slot is held, on average
	seq     int64                  // guarded by mu: of the last job that waited
}

// lineTenant is what a tenant has of a line. line.mu guards it.
type lineTenant struct {
	places, running int
	waiting         []*waiter // the longest first
}

type waiter struct {
	seq   int64
	ready chan struct{} // closed when it has its slot
}

func newLine(slots, queue int) *line {
	return &line{slots: slots, queue: queue, tenants: map[string]*lineTenant{}}
}

// enter takes a place, which leave gives back.
func (l *line) enter(tenant string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	has := 0
	if t := l.tenants[tenant]; t != nil {
		has = t.places
	}
	all := l.slots + l.queue
	left := all / 16 // to those that have few
	if l.places >= all && (l.places >= all+left || has >= max(1, left/4)) {
		full := fault.New(fault.Unavailable, "this server is at its limit of %d executions running and %d waiting; retry in a few seconds", l.slots, l.queue)
		full.RetryAfter = l.drains()
		return full
	}
	l.place(tenant)
	return nil
}

// Bounds of what a refused caller is asked to wait.
const (
	minRetry = time.Second
	maxRetry = time.Minute
)

// drains estimates how long the jobs that wait now take to get their slots. l.mu is held.
func (l *line) drains() time.Duration {
	waiting := max(0, l.places-l.running)
	return min(max(l.held*time.Duration(waiting)/time.Duration(max(1, l.slots)), minRetry), maxRetry)
}

// note averages over the last slots how long one was held. l.mu is held.
func (l *line) note(held time.Duration) {
	const weight = 16
	if l.held == 0 {
		l.held = held
		return
	}
	l.held += (held - l.held) / weight
}

// place counts a place. l.mu is held.
func (l *line) place(tenant string) *lineTenant {
	t := l.tenants[tenant]
	if t == nil {
		t = &lineTenant{}
		l.tenants[tenant] = t
	}
	t.places++
	l.places++
	return t
}

func (l *line) leave(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places--
	t := l.tenants[tenant]
	if t.places--; t.places == 0 {
		delete(l.tenants, tenant)
	}
}

// slot waits for a slot for a job that has a place; release gives it back.
func (l *line) slot(ctx context.Context, tenant string) (release func(), err error) {
	l.mu.Lock()
	t := l.tenants[tenant]
	l.seq++
	w := &waiter{l.seq, make(chan struct{})}
	t.waiting = append(t.waiting, w)
	l.grant()
	l.mu.Unlock()
	release = func() { l.release(t, 0) }
	select {
	case <-w.ready:
		began := time.Now()
		return func() { l.release(t, time.Since(began)) }, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(t.waiting, w)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // it has one
		release()
	}
	return nil, context.Cause(ctx)
}

// grant gives the slots that are free to jobs that wait. l.mu is held.
func (l *line) grant() {
	for l.running < l.slots {
		var next *lineTenant
		for _, t := range l.tenants {
			if len(t.waiting) > 0 && (next == nil || t.running < next.running || t.running == next.running && t.waiting[0].seq < next.waiting[0].seq) {
				next = t
			}
		}
		if next == nil {
			return
		}
		close(next.waiting[0].ready)
		next.waiting = slices.Delete(next.waiting, 0, 1)
		next.running++
		l.running++
	}
}

// release gives back a slot. held is how long its job had it; 0 if it had no job.
func (l *line) release(t *lineTenant, held time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held > 0 {
		l.note(held)
	}
	t.running--
	l.running--
	l.grant()
}

// force takes a place and a slot for a run that goes on already, also where there are none
// left; release gives them back.
func (l *line) force(tenant string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.place(tenant)
	t.running++
	l.running++
	return func() {
		l.release(t, 0)
		l.leave(tenant)
	}
}

// recent remembers the last ids it was told.
type recent struct {
	ids  map[string]bool
	ring []string
	next int
}

// remembered is how many ended jobs are known, for those that are sent twice.
const remembered = 4096

func (r *recent) has(id string) bool { return r.ids[id] }

func (r *recent) add(id string) {
	if r.ids == nil {
		r.ids, r.ring = map[string]bool{}, make([]string, remembered)
	}
	delete(r.ids, r.ring[r.next])
	r.ring[r.next], r.ids[id] = id, true
	r.next = (r.next + 1) % remembered
}
