package engine

import (
	"context"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/executor"
)

const (
	// restMost is how long the end of a used sandbox is put off at most, and restCalm how
	// long no program must have run before it comes.
	restMost = time.Second
	restCalm = 5 * time.Millisecond

	// A used sandbox is ended at once if its program has left more than restMemory, or what
	// it has left takes more than the part restCPU of a processor. That is looked at first
	// after restSoon, and then each restTick.
	restMemory = 64 << 20
	restCPU    = 0.1
	restSoon   = 100 * time.Millisecond
	restTick   = 300 * time.Millisecond

	// restRoom is how many bytes of memory used sandboxes may take together where nothing
	// bounds those that are ready.
	restRoom = 1 << 30
)

// rests has the ends of used sandboxes wait for a moment in which no program runs, and then
// come one after the other. To end a sandbox takes some milliseconds of a processor, which
// a client whose calls follow one another at once would wait for each time.
type rests struct {
	most time.Duration // restMost
	cpu  float64       // restCPU
	turn chan struct{} // has a token while one ends that has waited

	mu      sync.Mutex
	room    int64         // guarded by mu; bytes of memory that used sandboxes may still take
	running int           // guarded by mu; programs
	calm    time.Time     // guarded by mu; since when none runs
	idle    chan struct{} // guarded by mu; closed, and replaced, when the last program ends
}

// rest is what a claim knows of the end of its sandbox.
type rest struct{ may bool } // be put off: the program has ended by itself

// newRests bounds the memory of used sandboxes that wait, in bytes; 0 is restRoom.
func newRests(room int64) *rests {
	if room == 0 {
		room = restRoom
	}
	return &rests{most: restMost, cpu: restCPU, turn: make(chan struct{}, 1), room: room, idle: make(chan struct{})}
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

// take has a used sandbox of so many bytes wait, and reports whether there is room for it.
func (r *rests) take(memory int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if memory > r.room {
		return false
	}
	r.room -= memory
	return true
}

func (r *rests) give(memory int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room += memory
}

var _ executor.Rester = claimed{}

// Rest implements executor.Rester. A sandbox that came from the pool waits, while another
// one is not made in its place either.
func (c claimed) Rest(ctx context.Context) (done func()) {
	nothing := func() {}
	if c.rest == nil || !c.rest.may {
		return nothing
	}
	u, err := c.Usage(ctx)
	if err != nil || u.Memory == 0 || u.Memory > c.Memory()+restMemory || !c.rests.take(u.Memory) {
		return nothing // it is too large, or cannot be measured
	}
	if c.wait(ctx, u) {
		return func() { <-c.rests.turn; c.rests.give(u.Memory) }
	}
	return func() { c.rests.give(u.Memory) }
}

// wait returns when the sandbox is to be destroyed, and reports whether it has the turn.
func (c claimed) wait(ctx context.Context, before runtime.Usage) (turn bool) {
	r, looked, late := c.rests, time.Now(), time.Now().Add(c.rests.most)
	look, wait := time.NewTimer(restSoon), time.NewTimer(r.most)
	defer look.Stop()
	defer wait.Stop()
	take := r.turn
	for {
		var idle <-chan struct{}
		if turn {
			var left time.Duration
			if left, idle = r.quietIn(late); left == 0 {
				return true
			}
			wait.Reset(left)
		}
		select {
		case take <- struct{}{}:
			take, turn = nil, true
		case <-idle:
		case <-wait.C:
			if !turn {
				return false
			}
		case <-look.C:
			u, err := c.Usage(ctx)
			if err != nil || u.Memory > c.Memory()+restMemory || u.CPUSeconds-before.CPUSeconds > r.cpu*time.Since(looked).Seconds() {
				return turn
			}
			before, looked = u, time.Now()
			look.Reset(restTick)
		case <-c.Done():
			return turn
		case <-ctx.Done():
			return turn
		}
	}
}
