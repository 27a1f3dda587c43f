package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Task writes in a transaction that it shares with other tasks.
type Task interface {
	// Locks returns the PostgreSQL advisory locks that the task needs, see LockOf.
	Locks() []int64
	// Order places the task in its transaction. All transactions change rows in this order, which
	// prevents deadlocks.
	Order() string
	// Do writes. It may run several times, each time from the start: if the transaction fails,
	// each task gets a transaction to itself. Its error undoes the transaction. A task that is
	// refused, and has written nothing, keeps the refusal to itself and returns nil.
	Do(ctx context.Context, b *Batch) error
}

// owned is a task of a tenant. A tenant has at most half of a batch waiting, so that another one's
// task is in the next batch or the one after, however many callers the first has. Tasks of the
// server itself, such as the ends of executions, are not counted.
type owned interface{ Owner() string }

// Batch is a transaction of tasks.
type Batch struct {
	*Tx
	conn    *sql.Conn            // of PostgreSQL: the transaction's
	delayed pgx.Batch            // statements that are sent together
	values  map[reflect.Type]any // of Shared
	enders  []ender
	now     time.Time // by the database's clock, once it was asked for
}

// ender is a value of Shared that writes at the end of its batch.
type ender interface {
	End(ctx context.Context, b *Batch) error
}

// Shared returns the T that the tasks of a batch have in common. It is zero at the first call. If *T
// has a method End(context.Context, *Batch) error, the batch calls it after its last task.
func Shared[T any](b *Batch) *T {
	key := reflect.TypeFor[T]()
	if v, ok := b.values[key]; ok {
		return v.(*T)
	}
	if b.values == nil {
		b.values = map[reflect.Type]any{}
	}
	v := new(T)
	b.values[key] = v
	if e, ok := any(v).(ender); ok {
		b.enders = append(b.enders, e)
	}
	return v
}

func (b *Batch) do(ctx context.Context, work []*pending) error {
	if err := b.lock(ctx, work); err != nil {
		return err
	}
	slices.SortStableFunc(work, func(a, b *pending) int { return cmp.Compare(a.task.Order(), b.task.Order()) })
	for _, p := range work {
		if err := guard(ctx, p.task, b); err != nil {
			return err
		}
	}
	for _, e := range b.enders {
		if err := e.End(ctx, b); err != nil {
			return err
		}
	}
	return b.Flush(ctx)
}

// Later runs a statement whose result no task needs. PostgreSQL gets such statements together, which
// saves a round trip for each.
func (b *Batch) Later(ctx context.Context, query string, args ...any) error {
	if b.conn == nil {
		_, err := b.Exec(ctx, query, args...)
		return err
	}
	if err := CheckText(args); err != nil {
		return err
	}
	b.delayed.Queue(b.Pool.numbered(query), args...)
	return nil
}

// Flush runs the statements of Later. Call it before a query that may read their rows.
func (b *Batch) Flush(ctx context.Context) error {
	if b.delayed.Len() == 0 {
		return nil
	}
	delayed := b.delayed
	b.delayed = pgx.Batch{}
	return b.conn.Raw(func(driver any) error {
		return driver.(*stdlib.Conn).Conn().SendBatch(ctx, &delayed).Close()
	})
}

// Clock returns the time of the database at the first call. It is the same for the whole batch.
func (b *Batch) Clock(ctx context.Context) (time.Time, error) {
	if !b.now.IsZero() {
		return b.now, nil
	}
	var err error
	b.now, err = b.Pool.Clock(ctx, b)
	return b.now, err
}

// guard makes an error of a task's panic: all callers share the writer.
func guard(ctx context.Context, t Task, b *Batch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return t.Do(ctx, b)
}

// lock takes the tasks' locks, in an order that all transactions keep.
func (b *Batch) lock(ctx context.Context, work []*pending) error {
	if !b.Pool.Postgres {
		return nil // its one writer is the lock
	}
	var locks []int64
	for _, p := range work {
		locks = append(locks, p.task.Locks()...)
	}
	slices.Sort(locks)
	for _, l := range slices.Compact(locks) {
		if err := b.Later(ctx, `SELECT pg_advisory_xact_lock(?)`, l); err != nil {
			return err
		}
	}
	return b.Flush(ctx)
}
