package share

import "sync"

// Order picks the tenant that is served next: the one that was served least of late. A tenant
// that comes back after a pause does not catch up on what it left unused.
type Order struct {
	mu   sync.Mutex
	used map[string]float64 // guarded by mu
	now  float64            // guarded by mu: what the tenant last picked had used
}

// Next returns the tenant of those that wait that is served next; "" if none waits. Among equals
// it is the first one.
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

// Charge counts what serving a tenant cost.
func (o *Order) Charge(tenant string, cost float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.used == nil {
		o.used = map[string]float64{}
	}
	o.used[tenant] = o.of(tenant) + cost
}

// of is what a tenant has used. mu is held.
func (o *Order) of(tenant string) float64 { return max(o.now, o.used[tenant]) }

// Most returns the tenant that holds most of what is kept, such as bytes in a cache: it loses what it
// has not used for longest when something has to go. It is "" if nothing is held.
func Most(held map[string]int64) (most string) {
	for t, n := range held {
		if n > held[most] || n == held[most] && (most == "" || t < most) {
			most = t
		}
	}
	return most
}
