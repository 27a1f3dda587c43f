package engine

import (
	"context"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/node/executor"
)

const (
	// restMost is how long the end of a used sandbox is put off at most, and restCalm how
	// long no program must have run before it comes.
	restMost = time.Second
	restCalm = 5 * time.Millisecond

	// restTick is how often a used sandbox is looked at meanwhile. It is ended at once if
	// what its program has left takes more than restMemory, or more than the part restCPU of
	// a processor.
	restTick   = 300 * time.Millisecond
	restMemory = 64 << 20
	restCPU    = 0.05
)

// rests has the ends of used sandboxes wait for a moment in which no program runs, and then
// come one after the other. To end a sandbox takes some milliseconds of a processor, which
// a client whose calls follow one another at once would wait for each time.
type rests struct {
	most time.Duration // restMost
	turn chan struct{} // has a token while one ends that has waited

	mu      sync.Mutex
	running int           // guarded by mu; programs
	calm    time.Time     // guarded by mu; since when none runs
	idle    chan struct{} // guarded by mu; closed, and replaced, when the last program ends
}

func newRests() *rests {
	return &rests{most: restMost, turn: make(chan struct{}, 1), idle: make(chan struct{})}
}

// begin notes a program that runs until ended is called.
func (r *rests) begin() (ended func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.running--; r.running == 0 {
			r.calm = time.Now()
			close(r.idle)
			r.idle = make(chan struct{})
		}
	}
}

// quietIn is for how long a sandbox has to wait at least that may until late, and a channel
// that is closed when that may have changed.
func (r *rests) quietIn(late time.Time) (time.Duration, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := late
	if calm := r.calm.Add(restCalm); r.running == 0 && calm.Before(late) {
		at = calm
	}
	return max(0, time.Until(at)), r.idle
}

var _ executor.Rester = claimed{}

// Rest implements executor.Rester. A sandbox that came from the pool waits, while another
// one is not made in its place either.
func (c claimed) Rest(ctx context.Context) (done func()) {
	done = func() {}
	r := c.rests
	if r == nil {
		return done
	}
	late := time.Now().Add(r.most)
	tick := time.NewTicker(restTick)
	defer tick.Stop()
	wait := time.NewTimer(r.most)
	defer wait.Stop()
	turn, used := r.turn, -1.0
	for {
		var idle <-chan struct{}
		if turn == nil { // it is this one's
			var left time.Duration
			if left, idle = r.quietIn(late); left == 0 {
				return done
			}
			wait.Reset(left)
		}
		select {
		case turn <- struct{}{}:
			turn, done = nil, func() { <-r.turn }
		case <-idle:
		case <-wait.C:
			if turn != nil {
				return done
			}
		case <-tick.C:
			u, err := c.Usage(ctx)
			if err != nil || u.Memory > restMemory || used >= 0 && u.CPUSeconds-used > restCPU*restTick.Seconds() {
				return done
			}
			used = u.CPUSeconds
		case <-c.Done():
			return done
		case <-ctx.Done():
			return done
		}
	}
}
