package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// calls is how calls of tools come into a SQLite database. One is on record when it
// stands in a log, a file beside the database, and what stands there is put into
// the database soon after, many in one transaction: that is shorter by an order of
// magnitude for whoever waits for it, and less work. Both outlive the process, and
// neither is safe from a loss of power before the system has written it out
// (synchronous=normal). Who reads what calls have left settles them first.
type calls struct {
	db   *DB
	log  *slog.Logger
	path string
	turn chan struct{} // held by who settles
	work chan struct{} // there is something to be settled
	end  chan struct{}
	wg   sync.WaitGroup

	once   sync.Once
	closed error // what came of it

	name  logName // as the database has it; whoever has the turn
	place int64   // the same

	mu      sync.Mutex
	file    *callLog // guarded by mu; nil when the database is closed
	waiting []logged // guarded by mu; what is in the log and not in the database yet
}

// logged is a call that stands in the log.
type logged struct {
	*call
	end int64 // where in the log it ends
}

const (
	callDelay  = 20 * time.Millisecond // for which calls wait for others
	callRetry  = time.Second
	maxWaiting = 1024 // calls that are not in the database, after which a further one waits for them
	maxSettled = 256  // calls in one transaction
	closeTime  = 10 * time.Second
	maxBehind  = 64 << 20 // bytes of them
	longLog    = 1 << 20  // bytes of a log that is begun anew as soon as it can be
)

// openCalls opens the log of a database. It returns nil where another process has
// it: this one then writes calls into the database itself.
func openCalls(ctx context.Context, db *DB, log *slog.Logger) (*calls, error) {
	c := &calls{db: db, log: log, path: db.path + "-calls", turn: make(chan struct{}, 1), work: make(chan struct{}, 1), end: make(chan struct{})}
	if err := c.reload(ctx); err != nil {
		return nil, err
	}
	var err error
	c.file, c.waiting, err = openCallLog(c.path, c.name, c.place)
	if errors.Is(err, errForeignLog) {
		aside := c.path + time.Now().UTC().Format(".20060102T150405.000000000")
		log.WarnContext(ctx, "a log of calls belongs to another database, and was put aside", "path", aside)
		if err = os.Rename(c.path, aside); err == nil {
			c.file, c.waiting, err = openCallLog(c.path, c.name, c.place)
		}
	}
	if errors.Is(err, errLogInUse) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(c.waiting) > 0 {
		log.InfoContext(ctx, "calls that an earlier process has left are put on record", "calls", len(c.waiting))
	}
	if err := errors.Join(c.settle(ctx), c.anew(0)); err != nil {
		return nil, errors.Join(err, c.file.close())
	}
	c.wg.Go(c.run)
	return c, nil
}

// reload reads how far the database has got.
func (c *calls) reload(ctx context.Context) error {
	var name []byte
	err := c.db.write.row(ctx, `SELECT name, place FROM call_log`).Scan(&name, &c.place)
	if err == nil && copy(c.name[:], name) != len(c.name) {
		err = fmt.Errorf("a name of %d bytes", len(name))
	}
	return err
}

// add puts a call on record.
func (c *calls) add(ctx context.Context, one *call) error {
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if len(data) > maxLogged {
		return c.db.writer.write(ctx, one)
	}
	for {
		added, err := c.put(one, data)
		if added || err != nil {
			return err
		}
		if err := c.settle(ctx); err != nil {
			return err
		}
	}
}

// put appends a call to the log, if there is room for it.
func (c *calls) put(one *call, data []byte) (added bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return false, errShut
	}
	if n := len(c.waiting); n >= maxWaiting || n > 0 && c.file.size-c.waiting[0].end > maxBehind {
		return false, nil
	}
	one.At = time.Now().UTC().Truncate(time.Microsecond) // in the order of the rows
	end, err := c.file.append(one.At, data)
	if err != nil {
		return false, err
	}
	c.waiting = append(c.waiting, logged{one, end})
	select {
	case c.work <- struct{}{}:
	default:
	}
	return true, nil
}

// run settles what was put on record a while ago.
func (c *calls) run() {
	ctx := context.Background() // transactions of SQLite are short
	delay := callDelay
	var told bool
	for {
		select {
		case <-c.work:
		case <-c.end:
			return
		}
		select {
		case <-time.After(delay):
		case <-c.end:
			return
		}
		err := errors.Join(c.settle(ctx), c.anew(longLog))
		if delay = callDelay; err != nil {
			delay = callRetry
			select {
			case c.work <- struct{}{}:
			default:
			}
		}
		if err != nil && !told {
			c.log.WarnContext(ctx, "calls cannot be put into the database; they are kept in their log, and tried again", "path", c.path, "error", err)
		}
		told = err != nil
	}
}

// settle returns when all that was on record before it is in the database.
func (c *calls) settle(ctx context.Context) error {
	if c == nil || c.left() == 0 {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	for n := c.left(); n > 0; {
		c.mu.Lock()
		some := c.waiting[:min(len(c.waiting), maxSettled)]
		c.mu.Unlock()
		if err := c.commit(ctx, some); err != nil {
			return err
		}
		n -= len(some)
	}
	return nil
}

func (c *calls) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// commit puts calls into the database. One that it does not take, though it was
// checked, is only in the server's log from then on.
func (c *calls) commit(ctx context.Context, some []logged) error {
	err := c.move(ctx, some)
	if err == nil || !refusedByDatabase(err) {
		return err
	}
	for i := range some {
		err := c.move(ctx, some[i:i+1])
		if err != nil && refusedByDatabase(err) {
			c.log.ErrorContext(ctx, "the database does not take a call", "call", some[i].call, "error", err)
			err = c.move(ctx, []logged{{nil, some[i].end}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func refusedByDatabase(err error) bool {
	return violates(err, unique) || violates(err, check) || violates(err, foreign) || fault.KindOf(err) == fault.Invalid
}

// move writes calls and how far the database has got with them, and lets go of
// them.
func (c *calls) move(ctx context.Context, some []logged) error {
	c.mu.Lock()
	if c.file == nil {
		c.mu.Unlock()
		return errShut
	}
	name := c.file.name
	c.mu.Unlock()
	end := some[len(some)-1].end
	if err := c.db.writer.write(ctx, &moved{some, c.name, c.place, name, end}); err != nil {
		return err
	}
	c.name, c.place = name, end
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting = c.waiting[len(some):]; len(c.waiting) == 0 {
		c.waiting = nil
	}
	return nil
}

// anew begins the log anew when it has that many bytes, if all of it is settled.
func (c *calls) anew(size int64) error {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 || c.file.size < size {
		return nil
	}
	var name logName
	rand.Read(name[:])
	return c.file.anew(name, c.name)
}

// close settles what is left and closes the log. What cannot be settled is when it
// is opened again. It may be repeated.
func (c *calls) close() error {
	if c == nil {
		return nil
	}
	c.once.Do(func() { c.closed = c.shut() })
	return c.closed
}

func (c *calls) shut() error {
	close(c.end)
	c.wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := c.settle(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	file := c.file
	c.file = nil
	return errors.Join(err, file.close())
}

// moved is the task of calls that come from the log.
type moved struct {
	some  []logged
	name  logName // where the database is
	place int64
	to    logName // where it is then
	end   int64
}

func (t *moved) locks() []int64 { return nil }
func (t *moved) order() string  { return "c" }

func (t *moved) do(ctx context.Context, b *batch) error {
	n, err := b.exec(ctx, `UPDATE call_log SET name = ?, place = ? WHERE name = ? AND place = ?`, t.to[:], t.end, t.name[:], t.place)
	if err != nil {
		return err
	}
	if n != 1 {
		return errors.New("another process has put calls of this log into the database")
	}
	for _, one := range t.some {
		if one.call == nil {
			continue
		}
		if err := one.do(ctx, b); err != nil {
			return err
		}
	}
	return nil
}
