package executor

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// line is where jobs wait for one of a number of slots.
type line struct {
	slots  chan struct{} // one token per running job
	places chan struct{} // one token per running or waiting job
}

func newLine(slots, queue int) line {
	return line{slots: make(chan struct{}, slots), places: make(chan struct{}, slots+queue)}
}

// enter takes a place, which leave gives back.
func (l *line) enter() error {
	select {
	case l.places <- struct{}{}:
		return nil
	default:
		return fault.New(fault.Unavailable, "this server is at its limit of %d executions running and %d waiting; retry after a moment",
			cap(l.slots), cap(l.places)-cap(l.slots))
	}
}

func (l *line) leave() { <-l.places }

// slot waits for a slot; release gives it back.
func (l *line) slot(ctx context.Context) (release func(), err error) {
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// force takes a place and a slot for a run that goes on already, if there are
// any; release gives back what was taken.
func (l *line) force() (release func()) {
	var undo []chan struct{}
	for _, c := range []chan struct{}{l.places, l.slots} {
		select {
		case c <- struct{}{}:
			undo = append(undo, c)
		default:
		}
	}
	return func() {
		for _, c := range undo {
			<-c
		}
	}
}

// recent remembers the last ids it was told.
type recent struct {
	ids  map[string]bool
	ring []string
	next int
}

// remembered is how many ended jobs are known, for those that are sent twice.
const remembered = 4096

func (r *recent) has(id string) bool { return r.ids[id] }

func (r *recent) add(id string) {
	if r.ids == nil {
		r.ids, r.ring = map[string]bool{}, make([]string, remembered)
	}
	delete(r.ids, r.ring[r.next])
	r.ring[r.next], r.ids[id] = id, true
	r.next = (r.next + 1) % remembered
}
