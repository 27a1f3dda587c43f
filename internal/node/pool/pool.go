// Package pool keeps single-use items ready that take long to make: warm
// sandboxes, and standby kernels that become a fork or a sandbox that wakes.
//
// A key says which items can serve the same claim. One scheduler serves all keys
// of a pool, so that the machine does not make more items at once than it has
// processors for. Claims come first: an item that a claim waits for is made at
// once, and items are made ahead while claims leave time for that. How many of a
// kind are kept ready follows demand, within the pool's bounds.
package pool

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// ErrClosed is returned by claims after Close.
var ErrClosed = errors.New("pool is closed")

// ErrGone is returned by Config.Build when there can be no more items of a key. The
// pool then forgets the demand for the key.
var ErrGone = errors.New("no more items of this kind can be made")

// Item is what a pool holds. An item that implements interface{ Memory() int64 } tells
// how many bytes of memory it takes, 0 for not known.
type Item interface {
	// Done is closed when the item has died by itself; nil for one that cannot tell.
	Done() <-chan struct{}
	Destroy(ctx context.Context) error
}

// Config of a Pool. K is the key of a kind of item.
type Config[K comparable, I Item] struct {
	Name string // of the pool, in the log

	// Build makes an item for a use.
	Build func(ctx context.Context, key K, use Use) (I, error)

	// Next is how many of a kind are made for the next claims, the rest being Reserve; 0,
	// or nil, for all.
	Next func(K) int

	// Bounds on the items that are made at the same time.
	Builders int // ahead of claims, while some kind that is to be ready has none; 0 is 1
	Refill   int // ahead of claims otherwise; 0 is the same as Builders
	Rush     int // in all; less than Builders is the same as Builders

	// Bounds on what is kept ready of all kinds together, 0 for none. What Keep asks
	// for is kept in spite of them. Within them, the kind that was in demand longest
	// ago makes room.
	MaxItems  int
	MaxMemory int64         // bytes
	Memory    func(K) int64 // estimate of one item's bytes until one was made; nil for 0

	// RefillDelay is the time between a change of demand and the first item made ahead
	// after it: making one takes processor time from the program that was claimed for.
	// While claims follow each other within Burst, or a Hold lasts, that is put off
	// further, for MaxDelay at most, unless less than the part Urgent of a kind's target
	// is ready.
	RefillDelay, Burst, MaxDelay time.Duration
	Urgent                       float64

	// PeakTime is how long a target that demand has raised stays after demand last came
	// near it; 0 is 5 minutes.
	PeakTime time.Duration

	// RetryDelay is the time before the next attempt to make an item ahead after a
	// failure. It doubles with each further failure, up to 64 times.
	RetryDelay time.Duration

	Log     *slog.Logger
	Metrics Metrics[K] // may be nil

	// Undestroyed gets the items whose Destroy failed; nil leaves them.
	Undestroyed func(I, error)
}

// Use is what an item is made for.
type Use int

const (
	Next    Use = iota // a claim that comes: it is to answer as soon as can be
	Awaited            // a claim that waits: work that makes it answer sooner later is not worth its time
	Reserve            // a claim for which none is left that was made for it: it may take less memory instead
)

// Metrics is told what happens.
type Metrics[K comparable] interface {
	Claimed(key K, ready bool)
	Built(key K, took time.Duration, err error)
	Sized(key K, idle, target int)
}

// Pool holds items of several kinds. Its methods may be called concurrently.
type Pool[K comparable, I Item] struct {
	cfg    Config[K, I]
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup // builds, watches, destructions

	mu       sync.Mutex
	closed   bool              // guarded by mu
	kinds    map[K]*kind[K, I] // guarded by mu
	building int               // guarded by mu; over all kinds
	served   bool              // guarded by mu; an item was claimed
	timer    *time.Timer       // guarded by mu; calls wake
	pace     pace              // guarded by mu
}

// kind is the state of one key. Pool.mu guards it.
type kind[K comparable, I Item] struct {
	key  K
	kept bool // Keep was called, and Drop was not
	demand

	idle     []*entry[I] // those of the reserve last, oldest first
	waiters  []chan result[I]
	building int
	reserve  int   // of those being built
	memory   int64 // bytes of one item, as the last one measured
	light    int64 // bytes of one of the reserve, as the last one measured; 0 for not known
	made     bool  // an item was made
	failures int   // in a row
	retryAt  time.Time
}

type entry[I Item] struct {
	item    I
	use     Use
	claimed chan struct{} // closed when the entry leaves the idle list
}

type result[I Item] struct {
	item I
	use  Use
	err  error
}

// New returns an empty pool.
func New[K comparable, I Item](cfg Config[K, I]) *Pool[K, I] {
	if cfg.Next == nil {
		cfg.Next = func(K) int { return 0 }
	}
	cfg.Builders = max(cfg.Builders, 1)
	if cfg.Refill == 0 {
		cfg.Refill = cfg.Builders
	}
	cfg.Rush = max(cfg.Rush, cfg.Builders)
	if cfg.PeakTime == 0 {
		cfg.PeakTime = peakTime
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool[K, I]{cfg: cfg, ctx: ctx, cancel: cancel, kinds: map[K]*kind[K, I]{}}
	p.tasks.Go(p.decay)
	return p
}

// Keep has base items of a kind kept ready at all times, and up to limit under
// demand.
func (p *Pool[K, I]) Keep(key K, base, limit int) {
	p.change(key, func(k *kind[K, I]) { k.kept, k.base, k.limit = true, base, max(base, limit) })
}

// Want has n items of a kind kept ready, as far as the pool's bounds allow, until it
// is called with another number. limit is Keep's.
func (p *Pool[K, I]) Want(key K, n, limit int) {
	p.change(key, func(k *kind[K, I]) {
		k.wanted, k.limit = n, max(k.base, limit)
		k.last = time.Now()
		p.pace.claim = k.last
	})
}

// Expect has the pool prepare for n claims that may come soon, as if it had learned
// that from earlier ones. limit is Keep's.
func (p *Pool[K, I]) Expect(key K, n, limit int) {
	p.change(key, func(k *kind[K, I]) {
		k.limit = max(k.base, limit)
		k.expect(n, time.Now())
		p.pace.claim = k.last
	})
}

// Recall is Expect for claims of an earlier time, last: no kind that was in demand since
// makes room for them.
func (p *Pool[K, I]) Recall(key K, n, limit int, last time.Time) {
	p.change(key, func(k *kind[K, I]) {
		if k.last.After(last) {
			last = k.last
		}
		k.limit = max(k.base, limit)
		k.expect(n, time.Now())
		k.last = last
	})
}

// Full reports whether of every kind as many are ready as Keep asks for.
func (p *Pool[K, I]) Full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kinds {
		if len(k.idle) < k.base {
			return false
		}
	}
	return true
}

// change changes the demand for a kind, and does what follows from that.
func (p *Pool[K, I]) change(key K, change func(*kind[K, I])) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	k := p.kind(key)
	change(k)
	p.trim(k)
	p.schedule()
}

// Drop forgets a kind and destroys what is ready of it. Claims that wait for one
// are still served.
func (p *Pool[K, I]) Drop(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kinds[key]
	if k == nil {
		return
	}
	k.kept, k.demand = false, demand{}
	p.trim(k)
}

// Replace keeps items of another kind ready in place of those of a kind, as many as its demand
// asks for, and destroys those that are ready. Claims that wait for one are still served.
func (p *Pool[K, I]) Replace(from, to K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.kinds[from]
	if p.closed || old == nil {
		return
	}
	k := p.kind(to)
	k.kept = k.kept || old.kept
	k.demand.add(old.demand)
	if !k.made {
		k.memory, k.light = old.memory, old.light
	}
	old.kept, old.demand = false, demand{}
	p.trim(old)
	p.trim(k)
	p.schedule()
}

// kind returns the state of a key. p.mu is held.
func (p *Pool[K, I]) kind(key K) *kind[K, I] {
	k := p.kinds[key]
	if k == nil {
		k = &kind[K, I]{key: key}
		if p.cfg.Memory != nil {
			k.memory = p.cfg.Memory(key)
		}
		p.kinds[key] = k
	}
	return k
}

// trim destroys what is ready of a kind beyond its target, and forgets a kind that
// there is no demand for. p.mu is held.
func (p *Pool[K, I]) trim(k *kind[K, I]) {
	for len(k.idle) > k.target() {
		p.evict(k)
	}
	p.report(k)
	if !k.kept && k.target() == 0 && k.building == 0 && len(k.waiters) == 0 && p.kinds[k.key] == k {
		delete(p.kinds, k.key)
	}
}

// evict destroys the oldest item that is ready of a kind, and of its reserve if there is
// any. p.mu is held.
func (p *Pool[K, I]) evict(k *kind[K, I]) {
	i := k.ready() % len(k.idle)
	e := k.idle[i]
	k.idle = slices.Delete(k.idle, i, i+1)
	close(e.claimed)
	p.destroy(e.item)
}

// destroy ends an item in the background; Close waits for it.
func (p *Pool[K, I]) destroy(item I) {
	p.tasks.Go(func() { p.end(item) })
}

// end destroys an item.
func (p *Pool[K, I]) end(item I) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := item.Destroy(ctx); err != nil {
		p.cfg.Log.Error("cannot destroy a pooled item", "pool", p.cfg.Name, "error", err)
		if p.cfg.Undestroyed != nil {
			p.cfg.Undestroyed(item, err)
		}
	}
}

// report tells a kind's size. p.mu is held.
func (p *Pool[K, I]) report(k *kind[K, I]) {
	if p.cfg.Metrics != nil {
		p.cfg.Metrics.Sized(k.key, len(k.idle), k.target())
	}
}

// Missing lists the kinds of which Keep asks for some and none was ever ready. Once a claim
// was answered nothing is missing: under load, claims take every item of a kind, or leave no
// builder for it, although the pool answers.
func (p *Pool[K, I]) Missing() []K {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served {
		return nil
	}
	var keys []K
	for _, k := range p.kinds {
		if k.missing() {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// ready is how many of the idle items are not of the reserve.
func (k *kind[K, I]) ready() int {
	i := slices.IndexFunc(k.idle, func(e *entry[I]) bool { return e.use == Reserve })
	if i < 0 {
		return len(k.idle)
	}
	return i
}

// bytes is what n items of a kind take. p.mu is held.
func (p *Pool[K, I]) bytes(k *kind[K, I], n int) int64 {
	next := p.cfg.Next(k.key)
	if next == 0 || n <= next || k.light == 0 {
		return int64(n) * k.memory
	}
	return int64(next)*k.memory + int64(n-next)*k.light
}

// missing reports whether a kind that is kept at all times was never ready.
func (k *kind[K, I]) missing() bool { return k.base > 0 && !k.made }

// Close refuses further claims, fails those that wait, destroys what is ready
// and waits until all of it is gone.
func (p *Pool[K, I]) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.tasks.Wait()
		return
	}
	p.closed = true
	p.cancel()
	if p.timer != nil {
		p.timer.Stop()
	}
	for _, k := range p.kinds {
		for _, w := range k.waiters {
			w <- result[I]{err: ErrClosed}
		}
		for _, e := range k.idle {
			close(e.claimed)
			p.destroy(e.item)
		}
		k.waiters, k.idle = nil, nil
	}
	p.mu.Unlock()
	p.tasks.Wait()
}
