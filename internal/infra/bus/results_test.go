package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/test/atolltest"
)

// results runs Results until the test ends, or until stop is called.
func results(t testing.TB, b *Bus, handle func(context.Context, execution.Result) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Results(ctx, handle) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Every result is handled until it is recorded, by one gateway or another.
func TestResults(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 2*ackWait)
		var mu sync.Mutex
		tries := map[string]int{}
		all := make(chan struct{})
		recorded := 0
		handle := func(_ context.Context, r execution.Result) error {
			mu.Lock()
			defer mu.Unlock()
			tries[r.TraceID]++
			if tries[r.TraceID] == 1 && len(r.TraceID)%2 == 0 {
				return errors.New("the store is away")
			}
			recorded++
			if recorded == 100 {
				close(all)
			}
			return nil
		}
		stop := results(t, b, handle)
		results(t, b, handle)
		for i := range 100 {
			if err := b.Log().Finish(ctx, done(fmt.Sprintf("trc_%d", i))); err != nil {
				t.Fatal(err)
			}
			if i == 50 {
				stop() // the other one goes on
			}
		}
		select {
		case <-all:
		case <-ctx.Done():
			t.Fatalf("%d recorded", recorded)
		}
	})
}

// What a waiting gateway has recorded is not handled again; what it has not,
// is.
func TestAwaited(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 30*time.Second)
		h := serve(t, b, "x1", 10)
		handled := make(chan string, 10)
		results(t, b, func(_ context.Context, r execution.Result) error {
			handled <- r.TraceID
			return nil
		})
		for _, recorded := range []bool{true, false} {
			id := fmt.Sprintf("trc_%v", recorded)
			w := b.Await(id)
			if err := b.Runner().Start(ctx, job(id)); err != nil {
				t.Fatal(err)
			}
			if err := h.end(ctx, done(id)); err != nil {
				t.Fatal(err)
			}
			if r := <-w.Result(); r.TraceID != id {
				t.Errorf("result %+v", r)
			}
			w.Close(recorded)
		}
		if id := <-handled; id != "trc_false" {
			t.Errorf("%s was handled", id)
		}
		select {
		case id := <-handled:
			t.Errorf("%s was handled", id)
		case <-time.After(100 * time.Millisecond):
		}
	})
}

// The server ends and comes back in the middle of everything.
func TestServerRestarts(t *testing.T) {
	s := startServer(t)
	gw := open(t, Config{URL: s.url(), Name: "gw"})
	ex := open(t, Config{URL: s.url(), Name: "ex"})
	ctx := deadline(t, 60*time.Second)
	h := serve(t, ex, "x1", 10)
	if err := h.x.HoldTurn(ctx, "T"); err != nil {
		t.Fatal(err)
	}
	var recorded atomic.Int64
	results(t, gw, func(context.Context, execution.Result) error { recorded.Add(1); return nil })
	w := gw.Await("trc_1")
	defer w.Close(true)
	if err := gw.Runner().Start(ctx, job("trc_1")); err != nil {
		t.Fatal(err)
	}
	const n = 400
	half := make(chan struct{})
	followed := make(chan error, 1)
	next := int64(2)
	go func() {
		_, err := gw.Log().Follow(ctx, "trc_1", 0, func(events []execution.Event) error {
			for _, e := range events {
				if e.Seq != next {
					return fmt.Errorf("event %d after %d", e.Seq, next-1)
				}
				if next == n/2 {
					close(half)
				}
				next++
			}
			return nil
		})
		followed <- err
	}()
	written := make(chan error, 1)
	go func() {
		pace := time.NewTicker(2 * time.Millisecond) // of a program that writes on while its bus dies
		defer pace.Stop()
		for i := int64(2); i <= n+1; i++ {
			if err := ex.Log().Append("trc_1", []execution.Event{line(i)}); err != nil {
				written <- err
				return
			}
			<-pace.C
		}
		written <- h.end(ctx, execution.Result{TraceID: "trc_1", LastSeq: n + 1})
	}()
	<-half
	s.kill()
	atolltest.Until(t, 30*time.Second, "the gateway notices", func() bool { return gw.Ready() != nil })
	wantFault(t, gw.Runner().Start(ctx, job("trc_2")), 7, "cannot be reached")
	if _, err := gw.Runner().Alive(ctx, "trc_1"); err == nil {
		t.Error("alive, with no bus to ask")
	}
	s.start()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if r := <-w.Result(); r.LastSeq != n+1 || r.OutputTruncated {
		t.Errorf("result %+v", r)
	}
	if err := <-followed; err != nil || next != n+2 {
		t.Errorf("followed to %d of %d: %v", next, n+2, err)
	}
	atolltest.Until(t, 30*time.Second, "a turn's job starts", func() bool { return gw.Runner().Start(ctx, turnJob("trc_3", "T")) == nil })
	if err := h.end(ctx, done("trc_3")); err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, 30*time.Second, "a result is recorded after the restart", func() bool { return recorded.Load() >= 1 })
}

// An executor that gives no answer leaves the job's start unknown, which is
// not the same as not started.
func TestLostAnswer(t *testing.T) {
	b := embedded(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	release := make(chan struct{})
	h := serve(t, b, "x1", 10)
	h.starter = func(context.Context, execution.Job) error { cancel(); <-release; return nil }
	if err := b.Runner().Start(ctx, job("trc_1")); err != nil {
		t.Errorf("a job that an executor has: %v", err)
	}
	close(release)
	r := b.Runner()
	if err := r.Start(context.Background(), job("trc_1")); err != nil || h.starts != 1 {
		t.Errorf("the same job again: %v, %d starts", err, h.starts)
	}
	if err := h.end(context.Background(), done("trc_1")); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(context.Background(), job("trc_1")); err != nil || h.starts != 1 {
		t.Errorf("the same job after its end: %v, %d starts", err, h.starts)
	}
}

// Cancellation and end at the same time: each cancellation is answered at once.
func TestCancelRacesEnd(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 60*time.Second)
	h := serve(t, b, "x1", 10)
	for i := range 300 {
		id := fmt.Sprintf("trc_%d", i)
		if err := b.Runner().Start(ctx, job(id)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { _ = h.end(ctx, done(id)) })
		wg.Go(func() {
			if err := b.Runner().Cancel(ctx, id); err != nil {
				// The run was over for the executor, and its result not yet stored.
				wantFault(t, err, 4, "")
			}
		})
		wg.Wait()
		if d := time.Since(began); d > 10*time.Second {
			t.Fatalf("took %v", d)
		}
	}
}
