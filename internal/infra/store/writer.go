package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/share"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Bounds of the writer.
const (
	maxBatch        = 256              // tasks in one transaction
	maxQueued       = 1024             // tasks that wait; a further one waits to wait
	batchTime       = 15 * time.Second // after which a transaction is given up
	postgresWriters = 4                // transactions at the same time
)

var errShut = fault.New(fault.Unavailable, "the server is shutting down; try again")

// task is something to be written in a transaction that others share. do may
// run several times, each time from the start: when the transaction fails,
// every task gets one of its own. A refusal that wrote nothing is the task's
// own affair; the error of do is for what spoils the transaction.
type task interface {
	// locks are the PostgreSQL advisory locks the task needs.
	locks() []int64
	// order is the order of tasks in a transaction. All transactions take the rows
	// they change in this order, so that they never wait for each other in a ring.
	order() string
	do(ctx context.Context, b *batch) error
}

// owned is a task of a tenant. A tenant has at most half of a batch waiting, so that another one's
// task is in the next batch or the one after, however many callers the first has. Tasks of the
// server itself, such as the ends of executions, are not counted.
type owned interface{ owner() string }

// newPlaces divides the places of a batch among tenants.
func newPlaces() *share.Pool {
	return share.NewPool("tenant_writes", "places in the database's queue", maxBatch)
}

// batch is one transaction of the writer.
type batch struct {
	*tx
	conn    *sql.Conn            // of PostgreSQL: the transaction's
	delayed pgx.Batch            // statements that are sent together
	running map[string]int       // executions per tenant, as far as they were counted
	used    map[usageDay]*daySum // to be added at the end
	charged map[chargeDay]*chargeSum
	agents  map[agentDay]*daySum
	spent   map[string]usage.Money // by tokens, to be added at the end
	kept    map[string]int64       // bytes per tenant without those in used, as far as they were asked for
	now     time.Time              // by the database's clock, once it was asked for
}

// pending is a task with its caller.
type pending struct {
	task  task
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
	pool   *pool
	places *share.Pool // of owned tasks
	queue  chan *pending
	turn   chan struct{} // of SQLite: full while a caller writes
	mu     sync.RWMutex  // held for reading while a task is put into the queue
	shut   bool          // guarded by mu
	wg     sync.WaitGroup
}

func startWriter(p *pool) *writer {
	w := &writer{pool: p, places: newPlaces(), queue: make(chan *pending, maxQueued)}
	if !p.postgres {
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
func (w *writer) write(ctx context.Context, t task) error {
	if o, ok := t.(owned); ok && o.owner() != "" {
		leave, err := w.places.Wait(ctx, o.owner(), 1)
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
	if !w.pool.postgres {
		ctx := context.Background() // no other task keeps it waiting for long
		return w.pool.transact(ctx, func(t *tx) error { return (&batch{tx: t}).do(ctx, work) })
	}
	ctx, cancel := context.WithTimeout(context.Background(), batchTime)
	defer cancel()
	return w.pool.transactOn(ctx, func(conn *sql.Conn, t *tx) error { return (&batch{tx: t, conn: conn}).do(ctx, work) })
}

func (b *batch) do(ctx context.Context, work []*pending) error {
	if err := b.lock(ctx, work); err != nil {
		return err
	}
	slices.SortStableFunc(work, func(a, b *pending) int { return cmp.Compare(a.task.order(), b.task.order()) })
	for _, p := range work {
		if err := guard(ctx, p.task, b); err != nil {
			return err
		}
	}
	if err := addDays(ctx, b); err != nil {
		return err
	}
	if err := addAgentDays(ctx, b); err != nil {
		return err
	}
	if err := addChargeDays(ctx, b); err != nil {
		return err
	}
	if err := addSpent(ctx, b); err != nil {
		return err
	}
	return b.flush(ctx)
}

// later executes a statement of which the caller only needs to know whether it
// failed. PostgreSQL gets such statements together, which saves the way there
// and back for each.
func (b *batch) later(ctx context.Context, query string, args ...any) error {
	if b.conn == nil {
		_, err := b.exec(ctx, query, args...)
		return err
	}
	if err := checkText(args); err != nil {
		return err
	}
	b.delayed.Queue(b.pool.numbered(query), args...)
	return nil
}

// flush executes what was to be executed later. Queries that may read it need
// it before.
func (b *batch) flush(ctx context.Context) error {
	if b.delayed.Len() == 0 {
		return nil
	}
	delayed := b.delayed
	b.delayed = pgx.Batch{}
	return b.conn.Raw(func(driver any) error {
		return driver.(*stdlib.Conn).Conn().SendBatch(ctx, &delayed).Close()
	})
}

// clock is the database's time, the same for a whole batch.
func (b *batch) clock(ctx context.Context) (time.Time, error) {
	if !b.now.IsZero() {
		return b.now, nil
	}
	var err error
	b.now, err = b.pool.clock(ctx, b)
	return b.now, err
}

// guard makes an error of a task's panic: all callers share the writer.
func guard(ctx context.Context, t task, b *batch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return t.do(ctx, b)
}

// lock takes the tasks' locks, in an order that all transactions keep.
func (b *batch) lock(ctx context.Context, work []*pending) error {
	if !b.pool.postgres {
		return nil // its one writer is the lock
	}
	var locks []int64
	for _, p := range work {
		locks = append(locks, p.task.locks()...)
	}
	slices.Sort(locks)
	for _, l := range slices.Compact(locks) {
		if err := b.later(ctx, `SELECT pg_advisory_xact_lock(?)`, l); err != nil {
			return err
		}
	}
	return b.flush(ctx)
}
