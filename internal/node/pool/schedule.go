package pool

import (
	"errors"
	"slices"
	"time"
)

// maxBackoff bounds how often Config.RetryDelay doubles.
const maxBackoff = 6

// pace says when items may be made ahead. Pool.mu guards it.
type pace struct {
	claim time.Time     // the last one, or other change of demand
	gap   time.Duration // between the last two claims
	since time.Time     // the first claim since an item was made ahead; zero for none
	holds int
}

func (c *pace) claimed(now time.Time) {
	c.gap = now.Sub(c.claim)
	c.claim = now
	if c.since.IsZero() {
		c.since = now
	}
}

// refillAt is when the next item of a kind may be made ahead. p.mu is held.
func (p *Pool[K, I]) refillAt(k *kind[K, I]) time.Time {
	c := &p.pace
	at := c.claim.Add(p.cfg.RefillDelay)
	switch {
	case c.since.IsZero():
		return at
	case p.urgent(k): // claims that follow each other within RefillDelay do not put it off
		return c.since.Add(p.cfg.RefillDelay)
	}
	latest := c.since.Add(max(p.cfg.MaxDelay, p.cfg.RefillDelay))
	switch {
	case c.holds > 0:
		return latest
	case c.gap < p.cfg.Burst:
		at = c.claim.Add(max(p.cfg.Burst, p.cfg.RefillDelay))
	}
	if at.After(latest) {
		at = latest
	}
	return at
}

// urgent reports whether so few of a kind are ready that more are made in spite of
// claims that follow each other. p.mu is held.
func (p *Pool[K, I]) urgent(k *kind[K, I]) bool {
	return float64(len(k.idle)) < p.cfg.Urgent*float64(k.target())
}

// wake schedules what was put off.
func (p *Pool[K, I]) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule()
}

// schedule begins builds while there is a builder and a need. p.mu is held.
func (p *Pool[K, I]) schedule() {
	for !p.closed {
		now := time.Now()
		if k := p.awaited(); k != nil {
			if p.building >= p.cfg.Rush {
				return
			}
			p.begin(k, true)
			continue
		}
		k, later := p.lacking(now)
		if k == nil {
			p.wakeAt(now, later)
			return
		}
		builders := p.cfg.Refill
		if p.anyEmpty() {
			builders = p.cfg.Builders
		}
		if p.ahead() >= builders || p.building >= p.cfg.Rush {
			return
		}
		if !p.makeRoom(k) {
			continue // then it lacks none any more
		}
		// While more of an urgent kind are lacking, the next one is not put off either.
		if !p.urgent(k) || k.coming()+1 >= k.target() {
			p.pace.since = time.Time{}
		}
		p.begin(k, false)
	}
}

// wakeAt has schedule called at a time; zero for no time. p.mu is held.
func (p *Pool[K, I]) wakeAt(now, at time.Time) {
	switch {
	case at.IsZero():
		return
	case p.timer == nil:
		p.timer = time.AfterFunc(at.Sub(now), p.wake)
	default:
		p.timer.Reset(at.Sub(now))
	}
}

// awaited returns the kind with the most claims that wait and that nothing is built
// for; nil for none. p.mu is held.
func (p *Pool[K, I]) awaited() (best *kind[K, I]) {
	var waiting int
	for _, k := range p.kinds {
		if w := len(k.waiters) - k.building; w > waiting {
			best, waiting = k, w
		}
	}
	return best
}

// lacking returns the kind that has the smallest part of its target and may be made
// ahead now; nil for none. later is then when one may be. p.mu is held.
func (p *Pool[K, I]) lacking(now time.Time) (best *kind[K, I], later time.Time) {
	var have, target int
	stock := p.stock()
	for _, k := range p.kinds {
		h, t := k.coming(), k.target()
		if h >= t || best != nil && (h*target > have*t || h*target == have*t && t-h <= target-have) {
			continue
		}
		if h >= k.base && !stock.room(p, k) {
			k.learned = min(k.learned, max(h, 0)) // what there is no room for is not aimed at
			p.report(k)
			continue
		}
		at := p.refillAt(k)
		if at.Before(k.retryAt) {
			at = k.retryAt
		}
		if at.After(now) {
			if later.IsZero() || at.Before(later) {
				later = at
			}
			continue
		}
		best, have, target = k, h, t
	}
	return best, later
}

// anyEmpty reports whether some kind has none ready, although some are to be. p.mu is
// held.
func (p *Pool[K, I]) anyEmpty() bool {
	for _, k := range p.kinds {
		if k.target() > 0 && len(k.idle) == 0 {
			return true
		}
	}
	return false
}

// ahead is how many items are being made that no claim waits for. A claim that comes
// while one is made ahead takes it over, and another may then be made ahead: otherwise
// claims that follow each other would take each item as it is made, and none would
// ever be ready. p.mu is held.
func (p *Pool[K, I]) ahead() (n int) {
	for _, k := range p.kinds {
		n += max(0, k.building-len(k.waiters))
	}
	return n
}

// coming is how many items of a kind are ready, or will be.
func (k *kind[K, I]) coming() int { return len(k.idle) + k.building - len(k.waiters) }

// stock is what is kept ready of all kinds, or will be; at least what Keep asks for.
type stock[K comparable, I Item] struct {
	items  int
	memory int64
	oldest *kind[K, I] // of those with more than their base ready, the one in demand longest ago; nil for none
}

// stock counts. p.mu is held.
func (p *Pool[K, I]) stock() (s stock[K, I]) {
	for _, k := range p.kinds {
		n := max(k.base, k.coming())
		s.items += n
		s.memory += p.bytes(k, n)
		if len(k.idle) > k.base && (s.oldest == nil || k.last.Before(s.oldest.last)) {
			s.oldest = k
		}
	}
	return s
}

// fits reports whether one more item of a kind is within the pool's bounds.
func (s stock[K, I]) fits(p *Pool[K, I], k *kind[K, I]) bool {
	c, n := &p.cfg, max(k.base, k.coming())
	more := p.bytes(k, n+1) - p.bytes(k, n)
	return (c.MaxItems == 0 || s.items < c.MaxItems) && (c.MaxMemory == 0 || s.memory+more <= c.MaxMemory)
}

// room reports whether one more item of a kind may be kept ready, in the place of
// items of a kind that was in demand longer ago if there is no other.
func (s stock[K, I]) room(p *Pool[K, I], k *kind[K, I]) bool {
	return s.fits(p, k) || s.oldest != nil && s.oldest.last.Before(k.last)
}

// makeRoom has kinds that were in demand longer ago than k make room for one item
// of it, and reports whether there is. p.mu is held.
func (p *Pool[K, I]) makeRoom(k *kind[K, I]) bool {
	for k.coming() >= k.base {
		s := p.stock()
		if s.fits(p, k) {
			break
		}
		if s.oldest == nil || !s.oldest.last.Before(k.last) {
			return false
		}
		p.evict(s.oldest)
		p.report(s.oldest)
	}
	return true
}

// begin starts a build. p.mu is held.
func (p *Pool[K, I]) begin(k *kind[K, I], awaited bool) {
	use, next := Next, p.cfg.Next(k.key)
	switch {
	case awaited:
		use = Awaited
	case next > 0 && k.ready()+k.building-k.reserve-len(k.waiters) >= next:
		use = Reserve
		k.reserve++
	}
	k.building++
	p.building++
	p.tasks.Go(func() { p.build(k, use) })
}

func (p *Pool[K, I]) build(k *kind[K, I], use Use) {
	begun := time.Now()
	item, err := p.cfg.Build(p.ctx, k.key, use)
	if p.cfg.Metrics != nil {
		p.cfg.Metrics.Built(k.key, time.Since(begun), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k.building--
	p.building--
	if use == Reserve {
		k.reserve--
	}
	switch {
	case err != nil:
		p.failed(k, err)
	case p.closed:
		p.destroy(item)
		return
	default:
		k.failures, k.retryAt, k.made = 0, time.Time{}, true
		k.replaced()
		if m, ok := any(item).(interface{ Memory() int64 }); ok && m.Memory() > 0 {
			if use == Reserve {
				k.light = m.Memory()
			} else {
				k.memory = m.Memory()
			}
		}
		p.offer(k, item, use)
	}
	p.schedule()
}

// failed deals with a build that failed: a claim that waits is told. p.mu is held.
func (p *Pool[K, I]) failed(k *kind[K, I], err error) {
	gone := errors.Is(err, ErrGone)
	switch {
	case p.closed: // the error says what could not be removed
		p.cfg.Log.Info("an item was not made, because the pool is being closed", "pool", p.cfg.Name, "key", k.key, "error", err)
	case !gone:
		p.cfg.Log.Error("cannot create a pool item", "pool", p.cfg.Name, "key", k.key, "error", err)
	}
	k.replaced() // it will not be
	k.retryAt = time.Now().Add(p.cfg.RetryDelay << min(k.failures, maxBackoff))
	k.failures++
	if gone {
		k.wanted, k.learned = 0, 0
	}
	if len(k.waiters) > 0 {
		k.waiters[0] <- result[I]{err: err}
		k.waiters = k.waiters[1:]
	}
	p.trim(k)
}

// offer gives an item to the claim that waits longest, or keeps it ready. p.mu is
// held.
func (p *Pool[K, I]) offer(k *kind[K, I], item I, use Use) {
	switch {
	case len(k.waiters) > 0:
		k.waiters[0] <- result[I]{item: item, use: use}
		k.waiters = k.waiters[1:]
		p.served = true
	case p.closed || len(k.idle) >= k.target():
		p.destroy(item)
	default:
		e := &entry[I]{item: item, use: use, claimed: make(chan struct{})}
		at := len(k.idle)
		if use != Reserve {
			at = k.ready()
		}
		k.idle = slices.Insert(k.idle, at, e)
		p.tasks.Go(func() { p.watch(k, e) })
	}
	p.trim(k)
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
			p.cfg.Log.Warn("a pooled item died; replacing it", "pool", p.cfg.Name, "key", k.key)
			p.report(k)
			p.schedule()
			return
		}
	}
}
