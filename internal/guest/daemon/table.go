package daemon

import (
	"math"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

const (
	maxRunning = 256
	maxEnded   = 256
)

// table holds the processes that are not forgotten.
type table struct {
	mu      sync.Mutex // taken before a process's
	all     map[string]*process
	order   []*process // guarded by mu; the oldest first
	running int        // guarded by mu
	cost    int        // guarded by mu; of all rings
}

func (t *table) get(id string) (*process, error) {
	t.mu.Lock()
	p := t.all[id]
	t.mu.Unlock()
	if p != nil && p.begun() {
		return p, nil
	}
	return nil, refuse(proto.Missing, "there is no process %q", id)
}

func (t *table) list() []proto.Process {
	t.mu.Lock()
	all := slices.Clone(t.order)
	t.mu.Unlock()
	list := make([]proto.Process, 0, len(all))
	for _, p := range all {
		if p.begun() {
			list = append(list, p.about())
		}
	}
	return list
}

// begin makes room for a process under an id. It returns the one that has it.
func (t *table) begin(p *process) (is *process, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.all[p.id]; q != nil {
		return q, nil
	}
	if t.running >= maxRunning {
		return nil, refuse(proto.Limited, "%d processes run in this sandbox, as many as it can look after: end one", maxRunning)
	}
	t.all[p.id] = p
	t.order = append(t.order, p)
	t.running++
	return p, nil
}

// failed takes a process away that could not be started.
func (t *table) failed(p *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.remove(p)
}

// ended notes the end of a process, and forgets those that ended long ago.
func (t *table) ended(*process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	for i := 0; len(t.order)-t.running > maxEnded && i < len(t.order); {
		if p := t.order[i]; p.hasEnded() {
			t.remove(p)
		} else {
			i++
		}
	}
}

func (t *table) remove(p *process) {
	delete(t.all, p.id)
	t.order = slices.DeleteFunc(t.order, func(q *process) bool { return p == q })
	p.mu.Lock()
	defer p.mu.Unlock()
	t.cost -= p.ring.cost
	p.ring.cost, p.forgotten = 0, true
}

func (t *table) forget(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.all[id]
	switch {
	case p == nil:
		return nil
	case !p.hasEnded():
		return refuse(proto.Exists, "process %q runs; kill it first", id)
	}
	t.remove(p)
	return nil
}

// grew notes that a ring grew, and drops the oldest output where there is too much
// of it in all: of processes that have ended, then of the one that has most.
func (t *table) grew(by int) {
	if by == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cost += by
	for i := 0; t.cost > ringsSize && i < len(t.order); i++ {
		if p := t.order[i]; p.hasEnded() {
			t.cost -= p.trim(0)
		}
	}
	for t.cost > ringsSize {
		var most *process
		var cost int
		for _, p := range t.order {
			if c := p.cost(); c > cost {
				most, cost = p, c
			}
		}
		fallen := 0
		if most != nil {
			fallen = most.trim(cost / 2)
		}
		if t.cost -= fallen; fallen == 0 {
			return // all that is left is being followed, and will not grow
		}
	}
}

// everything is a place behind all output.
const everything = math.MaxInt64
