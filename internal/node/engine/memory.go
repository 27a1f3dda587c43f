package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
)

// memoryGuard ends the largest program of a sandbox when its memory is used up, before
// its control group's limit ends its kernel with all programs. The host's kernel says
// when to look, so a sandbox far below its limit costs nothing.
type memoryGuard struct {
	inst  runtime.Instance
	limit int64 // bytes
	guest func(context.Context) (*daemonclient.Client, error)
	ended atomic.Int64 // programs that it has ended

	relieving sync.Mutex // held while programs are being ended

	stopped context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	paused bool                    // guarded by mu
	cancel context.CancelCauseFunc // guarded by mu; of the relief under way, nil for none
	over   chan struct{}           // guarded by mu; closed when that has ended
}

// errPaused ends a relief: the sandbox is about to be frozen, or written to disk.
var errPaused = errors.New("the memory guard is paused")

const (
	// reliefTime bounds one relief. It is longer than a busy host takes to free memory.
	reliefTime = 10 * time.Second
	// freeTime is how long the memory of a program that was killed may take to be free,
	// and freePause how often that is looked at.
	freeTime  = time.Second
	freePause = 2 * time.Millisecond
	// setUpPause is how often use is looked at until the host's kernel reports it.
	setUpPause = 10 * time.Millisecond
)

// start watches until stop, or the sandbox's end. Where the host does not report memory
// use, there is nothing to do: relieve is called by the manager from time to time.
func (g *memoryGuard) start(log func(msg string, args ...any)) {
	ctx, cancel := context.WithCancel(context.Background())
	g.stopped, g.done = cancel, make(chan struct{})
	watcher, ok := g.inst.(runtime.MemoryWatcher)
	if !ok || g.limit <= 0 {
		close(g.done)
		return
	}
	go func() { // ends with stop, or the sandbox
		defer close(g.done)
		w, err := g.watch(ctx, watcher, log)
		if err != nil {
			if !errors.Is(err, errors.ErrUnsupported) {
				log("cannot watch the memory of a sandbox", "sandbox_id", string(g.inst.ID()), "error", err)
			}
			return
		}
		unhook := context.AfterFunc(ctx, func() { w.Close() })
		ended := make(chan struct{})
		go func() {
			select {
			case <-g.inst.Done():
				cancel()
			case <-ended:
			}
		}()
		for more := true; more; more = w.Wait() == nil && ctx.Err() == nil {
			g.look(ctx, log) // also for what was used before there were reports
		}
		close(ended)
		if unhook() {
			w.Close()
		}
	}()
}

// watch has the host's kernel report memory use. A program may take all there is before
// that has been set up, so use is looked at meanwhile.
func (g *memoryGuard) watch(ctx context.Context, watcher runtime.MemoryWatcher, log func(msg string, args ...any)) (runtime.MemoryWatch, error) {
	var w runtime.MemoryWatch
	var err error
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		w, err = watcher.WatchMemory()
	}()
	tick := time.NewTicker(setUpPause)
	defer tick.Stop()
	for {
		select {
		case <-ready:
			return w, err
		case <-tick.C:
			g.look(ctx, log)
		}
	}
}

// look ends programs if memory is used up.
func (g *memoryGuard) look(ctx context.Context, log func(msg string, args ...any)) {
	if ctx.Err() != nil {
		return
	}
	u, err := g.inst.Usage(ctx)
	if err != nil || u.Memory < g.limit {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reliefTime)
	defer cancel()
	if err := g.relieve(ctx); err != nil {
		log("cannot end the largest program of a sandbox", "sandbox_id", string(g.inst.ID()), "error", err)
	}
}

// relieve ends the largest program, and further ones until memory is below the limit. While
// the guard is paused it does nothing, and pause ends it: neither is an error.
func (g *memoryGuard) relieve(ctx context.Context) error {
	g.relieving.Lock()
	defer g.relieving.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	g.mu.Lock()
	if g.paused {
		g.mu.Unlock()
		return nil
	}
	g.cancel, g.over = cancel, over
	g.mu.Unlock()
	err := g.endLargest(ctx)
	if context.Cause(ctx) == errPaused {
		err = nil
	}
	g.mu.Lock()
	g.cancel = nil
	g.mu.Unlock()
	close(over)
	return err
}

// endLargest does relieve's work. g.relieving is held.
func (g *memoryGuard) endLargest(ctx context.Context) error {
	for ctx.Err() == nil {
		if g.freed(ctx, 0) {
			return nil
		}
		c, err := g.guest(ctx)
		if err != nil {
			return err
		}
		if _, err := c.EndLargest(ctx); err != nil {
			return fmt.Errorf("end the largest program: %w", err)
		}
		g.ended.Add(1)
		if g.freed(ctx, freeTime) {
			return nil
		}
	}
	return context.Cause(ctx)
}

// freed reports whether memory falls below the limit within a time.
func (g *memoryGuard) freed(ctx context.Context, within time.Duration) bool {
	for end := time.Now().Add(within); ; {
		u, err := g.inst.Usage(ctx)
		if err == nil && u.Memory < g.limit {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-g.inst.Done():
			return true // there is nothing left to end
		case <-time.After(freePause):
		}
	}
}

// pause has the guard leave the sandbox alone until resume: it is frozen, or being written
// to disk.
func (g *memoryGuard) pause() {
	g.mu.Lock()
	g.paused = true
	cancel, over := g.cancel, g.over
	g.mu.Unlock()
	if cancel != nil {
		cancel(errPaused)
		<-over
	}
}

func (g *memoryGuard) resume() {
	g.mu.Lock()
	g.paused = false
	g.mu.Unlock()
}

// stop ends the watch.
func (g *memoryGuard) stop() {
	g.stopped()
	<-g.done
}
