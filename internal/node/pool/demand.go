package pool

import "time"

const (
	// peakTime is Config.PeakTime where that is 0. A target then falls by an eighth, at
	// least by one, every decayTime.
	peakTime  = 5 * time.Minute
	decayTime = 15 * time.Second
)

// demand is how many items of a kind are to be kept ready, and why. Pool.mu guards it.
type demand struct {
	base   int // asked for by Keep
	limit  int // of all of it
	wanted int // asked for by Want

	learned int       // from claims
	peak    time.Time // when the claims last needed half of learned

	// lag is how many claims no item made since has replaced. So many items, kept
	// ready, would have served the claims without any made meanwhile.
	lag int

	last time.Time // of a claim, Want or Expect
}

func (d *demand) target() int { return max(d.base, min(max(d.wanted, d.learned), d.limit)) }

// add adds the demand for a kind that this one takes the place of.
func (d *demand) add(old demand) {
	d.base, d.limit, d.wanted = max(d.base, old.base), max(d.limit, old.limit), max(d.wanted, old.wanted)
	d.learned = max(d.learned, old.learned)
	if d.peak.Before(old.peak) {
		d.peak = old.peak
	}
	if d.last.Before(old.last) {
		d.last = old.last
	}
}

// claimed learns from a claim, after which so many items are left, less than 0 if
// claims wait. A burst of claims shows in lag long before it has used up what is
// ready, and half as much again is kept for the next. A claim that found nothing ready
// says that one more would have been of use.
func (d *demand) claimed(ready bool, left int, now time.Time) {
	d.lag = min(d.lag+1, max(1, d.target()-left)) // no more than is lacking
	need := d.lag + d.lag/2
	if !ready {
		need = max(need, d.target()+1)
	}
	d.expect(need, now)
}

// expect learns that so many items may be needed soon.
func (d *demand) expect(need int, now time.Time) {
	d.last = now
	need = min(need, d.limit)
	if 2*need >= d.learned {
		d.peak = now
	}
	d.learned = max(d.learned, need)
}

// replaced notes that an item was made.
func (d *demand) replaced() { d.lag = max(0, d.lag-1) }

// decay lowers what was learned, once demand has not come near it for a while, and
// reports whether it did.
func (d *demand) decay(now time.Time, after time.Duration) bool {
	if d.learned == 0 || now.Sub(d.peak) < after {
		return false
	}
	d.learned -= max(1, d.learned/8)
	if d.learned < d.base {
		d.learned = 0 // it means nothing any more
	}
	return true
}

// decay lowers the targets that demand has raised, until the pool is closed.
func (p *Pool[K, I]) decay() {
	tick := time.NewTicker(decayTime)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		now := time.Now()
		for _, k := range p.kinds {
			if k.demand.decay(now, p.cfg.PeakTime) {
				p.trim(k)
			}
		}
		p.schedule() // others may have room now
		p.mu.Unlock()
	}
}
