package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/share"
)

// Bounds of the writer.
const (
	maxBatch        = 256              // tasks in one transaction
	maxQueued       = 1024             // tasks that wait; a further one waits to wait
	batchTime       = 15 * time.Second // after which a transaction is given up
	postgresWriters = 4                // transactions at the same time
)

var errShut = fault.New(fault.Unavailable, "the server is shutting down; try again")

// newPlaces divides the places of a batch among tenants.
func newPlaces() *share.Pool {
	return share.NewPool("tenant_writes", "places in the database's queue", maxBatch)
}

// pending is a task with its caller.
type pending struct {
	task  Task
	ctx   context.Context
	taken atomic.Bool // by the writer, or by a caller who gives up
	done  chan error
}

// writer puts what waits into one transaction: under load the cost of a commit
// is shared by many, and a caller alone is served at once. SQLite has one
// connection that writes. A caller that finds it free writes itself, with whatever
// waits; to hand its task to another goroutine and wait for that would cost it two
// changes of threads. PostgreSQL works on a few transactions at a time.
type writer struct {
	pool   *Pool
	places *share.Pool // of owned tasks
	queue  chan *pending
	turn   chan struct{} // of SQLite: full while a caller writes
	mu     sync.RWMutex  // held for reading while a task is put into the queue
	shut   bool          // guarded by mu
	wg     sync.WaitGroup
}

func startWriter(p *Pool) *writer {
	w := &writer{pool: p, places: newPlaces(), queue: make(chan *pending, maxQueued)}
	if !p.Postgres {
		w.turn = make(chan struct{}, 1)
		return w
	}
	for range postgresWriters {
		w.wg.Go(w.run)
	}
	return w
}

// close writes what waits and returns.
func (w *writer) close() {
	w.mu.Lock()
	if !w.shut {
		w.shut = true
		close(w.queue)
	}
	w.mu.Unlock()
	if w.turn != nil {
		w.turn <- struct{}{}
		defer func() { <-w.turn }()
		w.run()
	}
	w.wg.Wait()
}

// write has a task written. When it returns ctx's error, nothing was; once a
// transaction has the task, ctx does not matter any more.
func (w *writer) write(ctx context.Context, t Task) error {
	if o, ok := t.(owned); ok && o.Owner() != "" {
		leave, err := w.places.Wait(ctx, o.Owner(), 1)
		if err != nil {
			return err
		}
		defer leave()
	}
	p := &pending{task: t, ctx: ctx, done: make(chan error, 1)}
	if err := w.put(p); err != nil {
		return err
	}
	select {
	case err := <-p.done:
		return err
	case w.turn <- struct{}{}: // never, on PostgreSQL
		w.lead(p)
		return <-p.done
	case <-ctx.Done():
		if p.taken.CompareAndSwap(false, true) {
			return context.Cause(ctx)
		}
		return <-p.done
	}
}

func (w *writer) put(p *pending) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.shut {
		return errShut
	}
	select {
	case w.queue <- p:
		return nil
	default:
	}
	for {
		select {
		case w.queue <- p:
			return nil
		case w.turn <- struct{}{}: // the callers of all that waits may have gone
			w.relieve()
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		}
	}
}

// relieve writes a batch of what waits, and gives the turn up.
func (w *writer) relieve() {
	defer func() { <-w.turn }()
	select {
	case first := <-w.queue: // put keeps it open
		w.batch(first)
	default:
	}
}

// lead writes what waits, until p is written, and gives the turn up: the caller of
// anything else that waits takes it.
func (w *writer) lead(p *pending) {
	defer func() { <-w.turn }()
	for len(p.done) == 0 {
		select {
		case first, open := <-w.queue:
			if !open {
				return // close writes what is left
			}
			w.batch(first)
		default:
			return
		}
	}
}

func (w *writer) run() {
	for first := range w.queue {
		w.batch(first)
	}
}

// batch writes first and what waits behind it.
func (w *writer) batch(first *pending) {
	if work := w.take(nil, first); len(work) > 0 {
		w.commit(work)
	}
}

// take adds what waits behind first, leaving out whose caller is gone.
func (w *writer) take(work []*pending, first *pending) []*pending {
	next, open := first, true
	for open {
		if next.ctx.Err() != nil {
			if next.taken.CompareAndSwap(false, true) {
				next.done <- context.Cause(next.ctx)
			}
		} else if next.taken.CompareAndSwap(false, true) {
			work = append(work, next)
		}
		if len(work) == maxBatch {
			break
		}
		select {
		case next, open = <-w.queue:
		default:
			return work
		}
	}
	return work
}

// commit writes tasks together, or each alone if that fails.
func (w *writer) commit(work []*pending) {
	err := w.together(work)
	if err == nil || len(work) == 1 || hopeless(err) {
		for _, p := range work {
			p.done <- err
		}
		return
	}
	for i := range work {
		work[i].done <- w.together(work[i : i+1])
	}
}

// hopeless reports whether trying again one by one is of no use, or not known
// to be safe, because the database is gone or too slow.
func hopeless(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || unreachable(err) && !deadlocked(err)
}

// together writes tasks in one transaction.
func (w *writer) together(work []*pending) error {
	if !w.pool.Postgres {
		ctx := context.Background() // no other task keeps it waiting for long
		return w.pool.Transact(ctx, func(t *Tx) error { return (&Batch{Tx: t}).do(ctx, work) })
	}
	ctx, cancel := context.WithTimeout(context.Background(), batchTime)
	defer cancel()
	return w.pool.transactOn(ctx, func(conn *sql.Conn, t *Tx) error { return (&Batch{Tx: t, conn: conn}).do(ctx, work) })
}
