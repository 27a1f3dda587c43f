package share

import "sync"

// Order picks the tenant to serve next: the one with the lowest recent cost. A tenant that returns
// after a pause gets no credit for the time that it was idle.
type Order struct {
	mu   sync.Mutex
	used map[string]float64 // guarded by mu
	now  float64            // guarded by mu: usage of the last picked tenant
}

// Next returns the waiting tenant to serve next, the first one among equals; "" if none waits.
func (o *Order) Next(waiting []string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(waiting) == 0 {
		return ""
	}
	next := waiting[0]
	for _, t := range waiting[1:] {
		if o.of(t) < o.of(next) {
			next = t
		}
	}
	o.now = max(o.now, o.of(next))
	for t, used := range o.used { // they are no different from new ones
		if used < o.now {
			delete(o.used, t)
		}
	}
	return next
}

// Charge adds the cost of serving a tenant.
func (o *Order) Charge(tenant string, cost float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.used == nil {
		o.used = map[string]float64{}
	}
	o.used[tenant] = o.of(tenant) + cost
}

// of returns the usage of a tenant. The caller holds mu.
func (o *Order) of(tenant string) float64 { return max(o.now, o.used[tenant]) }

// Most returns the tenant that holds the most, such as bytes in a cache, so that the caller can
// evict its oldest entries; "" if nothing is held.
func Most(held map[string]int64) (most string) {
	for t, n := range held {
		if n > held[most] || n == held[most] && (most == "" || t < most) {
			most = t
		}
	}
	return most
}
