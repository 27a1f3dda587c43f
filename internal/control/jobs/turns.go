package jobs

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Waits of a webhook whose tenant has no turn: they double, so that a tenant
// with thousands of them does not keep the queue busy with looking at them.
const (
	minTurnWait = 500 * time.Millisecond
	maxTurnWait = 16 * time.Second
)

// turns shares the workers of the queue among tenants, so that the receivers of
// one tenant, however slow, leave workers to those of the others.
type turns struct {
	workers int

	mu    sync.Mutex
	under map[string]int // guarded by mu: webhooks under way of each tenant that has any
	total int            // guarded by mu: their sum
}

// take reports whether a webhook of a tenant may be under way; if so, give ends
// it. A tenant may have one, and more up to half of the workers that are free:
// one tenant ends up with a third of them, two with a quarter each, and so on.
func (t *turns) take(tenant string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.under[tenant]
	if n > 0 && n >= (t.workers-t.total)/2 {
		return false
	}
	if t.under == nil {
		t.under = map[string]int{}
	}
	t.under[tenant] = n + 1
	t.total++
	return true
}

func (t *turns) give(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total--
	if t.under[tenant]--; t.under[tenant] == 0 {
		delete(t.under, tenant)
	}
}

// turnWait is how long a webhook waits that had no turn before, so often.
func turnWait(before int) time.Duration {
	d := min(minTurnWait<<min(before, 10), maxTurnWait)
	return d/2 + rand.N(d/2)
}
