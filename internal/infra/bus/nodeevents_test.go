package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/test/atolltest"
)

// nodeEvents runs NodeEvents until the test ends, or until stop is called.
func nodeEvents(t testing.TB, b *Bus, handle func(ctx context.Context, executor string, seq uint64, event []byte) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.NodeEvents(ctx, handle) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	atolltest.Until(t, 20*time.Second, "the queue of events exists", func() bool {
		_, err := b.js.Consumer(context.Background(), b.names.nodeEventsStream, gatewaysConsumer)
		return err == nil
	})
	return stop
}

// send publishes an event as a journal does: again and again.
func send(t testing.TB, ctx context.Context, b *Bus, seq uint64) {
	t.Helper()
	for {
		try, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		err := b.NodeEventWriter().Publish(try, seq, fmt.Appendf(nil, "%s %d", b.cfg.Name, seq))
		cancel()
		if err == nil {
			return
		}
		if fault.KindOf(err) != fault.Unavailable {
			t.Errorf("publish: %v", err)
			return
		}
		if ctx.Err() != nil {
			t.Error("event", seq, "was not sent")
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// seen checks the order of events.
type seen struct {
	t       testing.TB
	mu      sync.Mutex
	last    map[string]uint64
	repeats int
	inside  atomic.Int32
}

func (s *seen) take(executor string, seq uint64, event []byte) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := fmt.Sprintf("%s %d", executor, seq); string(event) != want {
		s.t.Errorf("event %q, want %q", event, want)
	}
	switch last := s.last[executor]; {
	case seq == last+1:
		s.last[executor] = seq
	case seq <= last:
		s.repeats++
	default:
		s.t.Errorf("event %d of %s after %d", seq, executor, last)
	}
}

func (s *seen) all(n uint64, executors ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range executors {
		if s.last[x] != n {
			return false
		}
	}
	return true
}

func newSeen(t testing.TB) *seen { return &seen{t: t, last: map[string]uint64{}} }

// Events of each executor arrive in order, one at a time, at one gateway or another, also when
// applying them fails for a while.
func TestNodeEventsArriveInOrder(t *testing.T) {
	s := startServer(t)
	ctx := deadline(t, 60*time.Second)
	got := newSeen(t)
	var fails, first, second atomic.Int32
	handle := func(count *atomic.Int32) func(context.Context, string, uint64, []byte) error {
		return func(_ context.Context, executor string, seq uint64, event []byte) error {
			if got.inside.Add(1) > 1 {
				t.Error("two events at the same time")
			}
			defer got.inside.Add(-1)
			if seq%50 == 0 && fails.Add(1)%3 != 0 {
				return fault.New(fault.Unavailable, "the database is away")
			}
			count.Add(1)
			got.take(executor, seq, event)
			return nil
		}
	}
	gw1, gw2 := open(t, Config{URL: s.url(), Name: "gw_1", eventPause: 5 * time.Millisecond}), open(t, Config{URL: s.url(), Name: "gw_2", eventPause: 5 * time.Millisecond})
	stop := nodeEvents(t, gw1, handle(&first))
	nodeEvents(t, gw2, handle(&second))
	const n = 200
	names := []string{"exe_a", "exe_b", "exe_c"}
	var wg sync.WaitGroup
	for _, name := range names {
		b := open(t, Config{URL: s.url(), Name: name})
		wg.Go(func() {
			for i := uint64(1); i <= n; i++ {
				send(t, ctx, b, i)
				if i%20 == 0 {
					send(t, ctx, b, i) // an answer was lost
				}
			}
		})
	}
	atolltest.Until(t, 30*time.Second, "both gateways work", func() bool { return first.Load() > 5 && second.Load() > 5 })
	stop()
	wg.Wait()
	atolltest.Until(t, 30*time.Second, "all events are applied", func() bool { return got.all(n, names...) })
	if got.repeats > 0 {
		t.Errorf("%d events were repeated", got.repeats)
	}
	t.Logf("%d and %d events", first.Load(), second.Load())
}

// Events that cannot be applied do not stop others.
func TestNodeEventsAreDropped(t *testing.T) {
	s := startServer(t)
	b := open(t, Config{URL: s.url(), Name: "gw"})
	ctx := deadline(t, 30*time.Second)
	var applied atomic.Uint64
	kinds := []fault.Kind{fault.Invalid, fault.Forbidden, fault.NotFound}
	var tries sync.Map
	nodeEvents(t, b, func(_ context.Context, executor string, seq uint64, _ []byte) error {
		if seq < uint64(len(kinds)) {
			if _, again := tries.LoadOrStore(seq, true); again {
				t.Errorf("event %d comes again", seq)
			}
			return fmt.Errorf("fold: %w", fault.New(kinds[seq], "no"))
		}
		applied.Add(seq)
		return nil
	})
	for i := range kinds {
		send(t, ctx, b, uint64(i))
	}
	for _, m := range []*nats.Msg{
		{Subject: b.names.nodeEvents + "exe_x", Data: []byte("no number")},
		{Subject: b.names.nodeEvents + "exe_x", Header: nats.Header{eventSeq: {"-1"}}},
		{Subject: b.names.nodeEvents + "bad name!", Header: nats.Header{eventSeq: {"1"}}},
	} {
		if _, err := b.js.PublishMsg(ctx, m); err != nil {
			t.Log(err) // the server rejects it
		}
	}
	send(t, ctx, b, 7)
	atolltest.Until(t, 20*time.Second, "the event after them is applied", func() bool { return applied.Load() == 7 })
	if err := b.NodeEventWriter().Publish(ctx, 8, make([]byte, 2<<20)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a huge event: %v", err)
	}
}

// An event that a gateway held when it died comes to another one.
func TestNodeEventsOutliveAGateway(t *testing.T) {
	s := startServer(t)
	ctx := deadline(t, 60*time.Second)
	gw1, gw2 := open(t, Config{URL: s.url(), Name: "gw_1", eventWait: 500 * time.Millisecond}), open(t, Config{URL: s.url(), Name: "gw_2", eventWait: 500 * time.Millisecond})
	held, release := make(chan uint64, 1), make(chan struct{})
	defer close(release)
	nodeEvents(t, gw1, func(_ context.Context, _ string, seq uint64, _ []byte) error {
		select {
		case held <- seq:
		default:
		}
		<-release
		return errors.New("dead")
	})
	ex := open(t, Config{URL: s.url(), Name: "exe_a"})
	send(t, ctx, ex, 1)
	if seq := <-held; seq != 1 {
		t.Fatalf("event %d", seq)
	}
	gw1.ctl.Close() // and its connection with it
	got := newSeen(t)
	nodeEvents(t, gw2, func(_ context.Context, executor string, seq uint64, event []byte) error {
		got.take(executor, seq, event)
		return nil
	})
	for i := uint64(2); i <= 20; i++ {
		send(t, ctx, ex, i)
	}
	atolltest.Until(t, 40*time.Second, "the other gateway applies all", func() bool { return got.all(20, "exe_a") })
}

// Events survive a restart of NATS.
func TestNodeEventsOutliveTheServer(t *testing.T) {
	s := startServer(t)
	ctx := deadline(t, 90*time.Second)
	gw := open(t, Config{URL: s.url(), Name: "gw_1", eventWait: 300 * time.Millisecond, eventRetry: 50 * time.Millisecond})
	ex := open(t, Config{URL: s.url(), Name: "exe_a"})
	got := newSeen(t)
	half := make(chan struct{})
	var once sync.Once
	nodeEvents(t, gw, func(_ context.Context, executor string, seq uint64, event []byte) error {
		got.take(executor, seq, event)
		if seq == 100 {
			once.Do(func() { close(half) })
		}
		return nil
	})
	const n = 300
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := uint64(1); i <= n; i++ {
			send(t, ctx, ex, i)
		}
	}()
	<-half
	s.kill()
	time.Sleep(300 * time.Millisecond)
	s.start()
	<-done
	atolltest.Until(t, 60*time.Second, "all events are applied", func() bool { return got.all(n, "exe_a") })
	t.Logf("%d repeated", got.repeats)
}

// A gateway that starts without the bus, or loses its stream, recovers without a restart.
func TestNodeEventsWaitForTheServer(t *testing.T) {
	s := startServer(t)
	ctx := deadline(t, 60*time.Second)
	gw := open(t, Config{URL: s.url(), Name: "gw_1", eventRetry: 50 * time.Millisecond})
	ex := open(t, Config{URL: s.url(), Name: "exe_a"})
	s.kill()
	read, stop := context.WithCancel(ctx)
	got, ended := newSeen(t), make(chan error, 1)
	go func() {
		ended <- gw.NodeEvents(read, func(_ context.Context, executor string, seq uint64, event []byte) error {
			got.take(executor, seq, event)
			return nil
		})
	}()
	time.Sleep(100 * time.Millisecond)
	s.start()
	send(t, ctx, ex, 1)
	atolltest.Until(t, 30*time.Second, "the event is applied", func() bool { return got.all(1, "exe_a") })
	if err := ex.js.DeleteStream(ctx, ex.names.nodeEventsStream); err != nil {
		t.Fatal(err)
	}
	send(t, ctx, ex, 2)
	atolltest.Until(t, 40*time.Second, "the next event is applied", func() bool { return got.all(2, "exe_a") })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// An error that is no outage stops events for a while, not for good.
func TestNodeEventErrorIsNoEndlessLoop(t *testing.T) {
	r := &eventReader{}
	for i := range maxEventTries * 3 {
		if r.hopeless(1, fault.New(fault.Unavailable, "away")) || r.hopeless(1, context.Canceled) {
			t.Fatalf("an outage ends after %d tries", i)
		}
	}
	tries := 1
	for !r.hopeless(2, errors.New("a mistake")) {
		tries++
	}
	if tries != maxEventTries {
		t.Errorf("%d tries", tries)
	}
}

func BenchmarkNodeEvents(b *testing.B) {
	s := startServer(b)
	gw := open(b, Config{URL: s.url(), Name: "gw_1"})
	ex := open(b, Config{URL: s.url(), Name: "exe_a"})
	ctx := deadline(b, 5*time.Minute)
	var applied atomic.Int64
	done := make(chan struct{})
	nodeEvents(b, gw, func(context.Context, string, uint64, []byte) error {
		if applied.Add(1) == int64(b.N) {
			close(done)
		}
		return nil
	})
	b.ResetTimer()
	for i := range b.N {
		send(b, ctx, ex, uint64(i+1))
	}
	<-done
}
