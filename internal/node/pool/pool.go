// Package pool keeps single-use things ready that take long to make: warm
// sandboxes, their interpreters already started.
//
// One scheduler serves all keys (image, language, preload set), so that the
// machine never makes more at once than it has processors for. A claim that
// finds nothing ready waits for the next one made for its key; claims come
// first, filling up comes after.
package pool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrClosed is returned by Claim after Close.
var ErrClosed = errors.New("pool is closed")

// Item is what a pool holds.
type Item interface {
	// Done is closed when the item has died by itself.
	Done() <-chan struct{}
	Destroy(ctx context.Context) error
}

// Config of a Pool. K names a kind of item.
type Config[K comparable, I Item] struct {
	// Build makes an item. When somebody waits for it, what would only make it
	// answer sooner later is not worth its time.
	Build    func(ctx context.Context, key K, awaited bool) (I, error)
	Builders int // items made at the same time, at least 1
	Rush     int // the same while someone waits for one, if more
	Most     int // items kept ready over all kinds, unless Keep asks for more of them; 0 for any number
	Log      *slog.Logger
	Metrics  Metrics[K] // may be nil

	// RefillDelay is how long after a claim its replacement is begun, unless
	// someone waits for it: making one would take processor time from the very
	// program that was just claimed for.
	RefillDelay time.Duration

	// RetryDelay is how long a kind whose last build failed is left alone when
	// nobody waits for it.
	RetryDelay time.Duration
}

// Metrics is told what happens.
type Metrics[K comparable] interface {
	Claimed(key K, hit bool)
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
}

type kind[K comparable, I Item] struct {
	key      K
	base     int // items kept ready without demand
	most     int // items kept ready at the most
	target   int // items kept ready now, between base and most
	idle     []*entry[I]
	waiters  []chan result[I] // each with room for one result
	building int
	notUntil time.Time // no filling up before
	lastMiss time.Time
	lastUse  time.Time // by a claim
	dropped  bool      // to be forgotten once nothing is built for it
}

type entry[I Item] struct {
	item    I
	claimed chan struct{} // closed when the entry leaves the idle list
}

type result[I Item] struct {
	item I
	err  error
}

// New returns an empty pool.
func New[K comparable, I Item](cfg Config[K, I]) *Pool[K, I] {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool[K, I]{cfg: cfg, ctx: ctx, cancel: cancel, kinds: map[K]*kind[K, I]{}}
	p.tasks.Go(p.settle)
	return p
}

// Keep asks for size items of a kind to be kept ready, and up to most under
// demand.
func (p *Pool[K, I]) Keep(key K, size, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kind(key)
	k.base, k.most, k.target, k.dropped = size, max(size, most), max(size, min(k.target, most)), false
	p.schedule()
}

// Drop forgets a kind and destroys what is ready of it. Those who wait for one
// are still served.
func (p *Pool[K, I]) Drop(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kinds[key]
	if k == nil {
		return
	}
	k.base, k.most, k.target, k.dropped = 0, 0, 0, true
	for _, e := range k.idle {
		close(e.claimed)
		p.destroy(e.item)
	}
	k.idle = nil
	p.report(k)
	p.forget(k)
}

// forget removes a dropped kind that nobody needs. p.mu is held.
func (p *Pool[K, I]) forget(k *kind[K, I]) {
	if k.dropped && k.building == 0 && len(k.waiters) == 0 && p.kinds[k.key] == k {
		delete(p.kinds, k.key)
	}
}

// kind returns the state of a key. p.mu is held.
func (p *Pool[K, I]) kind(key K) *kind[K, I] {
	k := p.kinds[key]
	if k == nil {
		k = &kind[K, I]{key: key}
		p.kinds[key] = k
	}
	return k
}

// Claim returns an item that belongs to the caller from then on, and whether it
// was ready at once.
func (p *Pool[K, I]) Claim(ctx context.Context, key K) (item I, hit bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return item, false, ErrClosed
	}
	k := p.kind(key)
	k.lastUse = time.Now()
	for len(k.idle) > 0 && len(k.waiters) == 0 {
		e := k.idle[0]
		k.idle = k.idle[1:]
		close(e.claimed)
		select {
		case <-e.item.Done():
			p.destroy(e.item)
			continue
		default:
		}
		p.report(k)
		p.mu.Unlock()
		p.note(key, true)
		time.AfterFunc(p.cfg.RefillDelay, p.wake)
		return e.item, true, nil
	}
	w := make(chan result[I], 1)
	k.waiters = append(k.waiters, w)
	if k.target < k.most {
		k.target++
	}
	k.lastMiss = k.lastUse
	p.report(k) // the target has risen, and dead items have gone
	p.schedule()
	p.mu.Unlock()
	p.note(key, false)

	select {
	case r := <-w:
		return r.item, false, r.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range k.waiters {
		if k.waiters[i] == w {
			k.waiters = append(k.waiters[:i], k.waiters[i+1:]...)
			return item, false, context.Cause(ctx)
		}
	}
	// It was served in the same moment; the next one in line may have it.
	if r := <-w; r.err == nil {
		p.offer(k, r.item)
	}
	return item, false, context.Cause(ctx)
}

func (p *Pool[K, I]) note(key K, hit bool) {
	if p.cfg.Metrics != nil {
		p.cfg.Metrics.Claimed(key, hit)
	}
}

// report tells a kind's size. p.mu is held.
func (p *Pool[K, I]) report(k *kind[K, I]) {
	if p.cfg.Metrics != nil {
		p.cfg.Metrics.Sized(k.key, len(k.idle), k.target)
	}
}

func (p *Pool[K, I]) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule()
}

// schedule begins builds while there is a builder and a need. p.mu is held.
func (p *Pool[K, I]) schedule() {
	for !p.closed {
		k, awaited := p.neediest()
		most := max(1, p.cfg.Builders)
		if awaited {
			most = max(most, p.cfg.Rush)
		}
		if k == nil || p.building >= most {
			return
		}
		k.building++
		p.building++
		p.tasks.Go(func() { p.build(k, awaited) })
	}
}

// neediest returns the kind to build for next: the one with the most waiters
// unserved (awaited then), after that the one furthest below its target. p.mu is
// held.
func (p *Pool[K, I]) neediest() (best *kind[K, I], awaited bool) {
	var waiting, missing int
	now := time.Now()
	full := p.full()
	for _, k := range p.kinds {
		w := max(0, len(k.waiters)-k.building)
		target := k.target
		if full {
			target = k.base
		}
		m := target - len(k.idle) - k.building
		if now.Before(k.notUntil) {
			m = 0
		}
		if w > waiting || w == waiting && m > missing {
			best, waiting, missing = k, w, max(m, 0)
		}
	}
	return best, waiting > 0
}

// full reports whether no more may be kept ready than was asked for. p.mu is held.
func (p *Pool[K, I]) full() bool {
	if p.cfg.Most == 0 {
		return false
	}
	n := p.building
	for _, k := range p.kinds {
		n += len(k.idle)
	}
	return n >= p.cfg.Most
}

func (p *Pool[K, I]) build(k *kind[K, I], awaited bool) {
	begun := time.Now()
	item, err := p.cfg.Build(p.ctx, k.key, awaited)
	if p.cfg.Metrics != nil {
		p.cfg.Metrics.Built(k.key, time.Since(begun), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k.building--
	p.building--
	switch {
	case err != nil:
		k.notUntil = time.Now().Add(p.cfg.RetryDelay)
		if p.closed { // it says so, and what of it could not be taken back
			p.cfg.Log.Info("a warm sandbox was not made, as the server ends", "key", k.key, "error", err)
		} else {
			p.cfg.Log.Error("cannot make a warm sandbox", "key", k.key, "error", err)
			time.AfterFunc(p.cfg.RetryDelay, p.wake)
		}
		if len(k.waiters) > 0 {
			k.waiters[0] <- result[I]{err: err}
			k.waiters = k.waiters[1:]
		}
	case p.closed:
		p.destroy(item)
	default:
		k.notUntil = time.Time{}
		p.offer(k, item)
	}
	p.forget(k)
	p.schedule()
}

// offer gives an item to the first in line, or keeps it ready. p.mu is held.
func (p *Pool[K, I]) offer(k *kind[K, I], item I) {
	if p.closed {
		p.destroy(item)
		return
	}
	if len(k.waiters) > 0 {
		k.waiters[0] <- result[I]{item: item}
		k.waiters = k.waiters[1:]
		return
	}
	if len(k.idle) >= k.target {
		p.destroy(item)
		return
	}
	e := &entry[I]{item: item, claimed: make(chan struct{})}
	k.idle = append(k.idle, e)
	p.report(k)
	p.tasks.Go(func() { p.watch(k, e) })
}

// watch replaces an idle item that dies.
func (p *Pool[K, I]) watch(k *kind[K, I], e *entry[I]) {
	select {
	case <-e.claimed:
		return
	case <-e.item.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range k.idle {
		if k.idle[i] == e {
			k.idle = append(k.idle[:i], k.idle[i+1:]...)
			p.destroy(e.item)
			p.cfg.Log.Warn("a pooled sandbox died and is replaced", "key", k.key)
			p.report(k)
			p.schedule()
			return
		}
	}
}

// calm is how long a kind must not have missed before its target shrinks.
const calm = time.Minute

// linger is how long one is kept of a kind that nobody asked to keep, after it
// was claimed last.
const linger = 5 * time.Minute

// settle lets targets that demand has raised sink again.
func (p *Pool[K, I]) settle() {
	tick := time.NewTicker(calm / 4)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		for _, k := range p.kinds {
			least := k.base
			if time.Since(k.lastUse) < linger {
				least = max(least, min(k.most, 1))
			}
			if k.target > least && time.Since(k.lastMiss) > calm {
				k.target--
				if len(k.idle) > k.target {
					e := k.idle[0]
					k.idle = k.idle[1:]
					close(e.claimed)
					p.destroy(e.item)
				}
				p.report(k)
			}
		}
		p.mu.Unlock()
	}
}

// destroy ends an item in the background; Close waits for it.
func (p *Pool[K, I]) destroy(item I) {
	p.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := item.Destroy(ctx); err != nil {
			p.cfg.Log.Error("cannot destroy a pooled sandbox", "error", err)
		}
	})
}

// Filled reports whether every kept kind has something ready.
func (p *Pool[K, I]) Filled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kinds {
		if k.base > 0 && len(k.idle) == 0 {
			return false
		}
	}
	return true
}

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
