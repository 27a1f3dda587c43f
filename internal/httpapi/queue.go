package httpapi

import (
	"sync"

	"github.com/atoll-run/atoll/internal/execution"
)

// A queue holds at most this much output that its client has not read yet;
// beyond it the oldest goes.
const (
	maxQueued      = 10_000  // events
	maxQueuedBytes = 8 << 20 // of data
)

// queue carries output from a run, which never waits, to a client, who may be
// slow.
type queue struct {
	ready chan struct{} // has a token while there may be events

	mu     sync.Mutex
	events []Event // guarded by mu; the oldest is events[head]
	head   int     // guarded by mu
	bytes  int     // guarded by mu: data in events[head:]
	seq    int64   // guarded by mu: of the newest event
	lost   int64   // guarded by mu: events dropped
	closed bool    // guarded by mu: nobody reads any more
}

// newQueue returns a queue whose first event has seq 2; 1 is the status.
func newQueue() *queue { return &queue{ready: make(chan struct{}, 1), seq: 1} }

// output returns the function that adds output of stream.
func (q *queue) output(stream execution.Stream) func(data []byte) {
	name := string(stream)
	return func(data []byte) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.closed {
			return
		}
		q.seq++
		q.events = append(q.events, Event{Type: eventOutput, Stream: name, Data: string(data), Seq: q.seq})
		q.bytes += len(data)
		for len(q.events)-q.head > maxQueued || q.bytes > maxQueuedBytes {
			q.bytes -= len(q.events[q.head].Data)
			q.events[q.head] = Event{} // let its data go
			q.head++
			q.lost++
		}
		if q.head > maxQueued { // move what is left to the front, once in a while
			q.events = q.events[:copy(q.events, q.events[q.head:])]
			q.head = 0
		}
		select {
		case q.ready <- struct{}{}:
		default:
		}
	}
}

// take removes and returns all events.
func (q *queue) take() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.takeLocked()
}

func (q *queue) takeLocked() []Event {
	out := q.events[q.head:]
	q.events, q.head, q.bytes = nil, 0, 0
	return out
}

// takeOrKeepalive removes and returns all events, or makes a keepalive if
// there is none. Both under one lock: a keepalive's seq comes after all that
// was sent and before all that will be.
func (q *queue) takeOrKeepalive() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	if out := q.takeLocked(); len(out) > 0 {
		return out
	}
	q.seq++
	return []Event{{Type: eventKeepalive, Seq: q.seq}}
}

// next returns the next seq.
func (q *queue) next() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	return q.seq
}

// dropped returns how many events were dropped.
func (q *queue) dropped() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// close makes the queue forget what it holds and all that is still to come.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.events = true, nil
}
