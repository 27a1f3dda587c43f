package pool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// openPaced opens a pool that makes one item at a time ahead, and waits for the end of
// a burst.
func openPaced(m *maker, change func(*Config[string, *item])) *Pool[string, *item] {
	cfg := Config[string, *item]{
		Build: m.build, Builders: 2, Refill: 1, Rush: 4, Log: slog.New(slog.DiscardHandler), Metrics: m,
		RefillDelay: 15 * time.Millisecond, Burst: 100 * time.Millisecond, MaxDelay: time.Second, Urgent: 0.25, RetryDelay: 5 * time.Second,
	}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

// size is what the pool has told of a kind.
func (m *maker) size(key string) (idle, target int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.idle[key], m.targets[key]
}

// sizes is how many of each kind are ready.
func (m *maker) sizes() (a, b, c, d int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.idle["a"], m.idle["b"], m.idle["c"], m.idle["d"]
}

// take claims one and destroys it.
func take(t *testing.T, p *Pool[string, *item], key string) (ready bool) {
	t.Helper()
	it, ready, err := p.Claim(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	it.Destroy(t.Context())
	return ready
}

func TestABurstWithoutAMissRaisesTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, nil)
		defer p.Close()
		p.Keep("a", 24, 120)
		m.ready(t, "a", 24)
		for i := range 20 {
			if !take(t, p, "a") {
				t.Fatalf("claim %d found nothing ready", i+1)
			}
			time.Sleep(20 * time.Millisecond)
		}
		m.ready(t, "a", 28) // one was replaced before the burst showed
		for i := range 28 { // half as long again
			if !take(t, p, "a") {
				t.Fatalf("claim %d of the second burst found nothing ready", i+1)
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(peakTime / 2)
		if got := m.alive(); got < 35 {
			t.Errorf("%d are kept ready for a third burst", got)
		}
		time.Sleep(2 * peakTime)
		if got := m.alive(); got != 24 {
			t.Errorf("%d are kept ready long after the bursts", got)
		}
	})
}

func TestASteadyRateRaisesNoTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, nil)
		defer p.Close()
		p.Keep("a", 4, 100)
		m.ready(t, "a", 4)
		for range 500 {
			if !take(t, p, "a") {
				t.Fatal("a claim found nothing ready")
			}
			time.Sleep(200 * time.Millisecond)
		}
		m.ready(t, "a", 4)
		if _, target := m.size("a"); target != 4 {
			t.Errorf("the target is %d", target)
		}
	})
}

func TestNothingIsMadeAheadDuringABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, nil)
		defer p.Close()
		p.Keep("a", 100, 100)
		m.ready(t, "a", 100)
		made := m.count("a")
		for range 20 { // 400 ms
			take(t, p, "a")
			time.Sleep(20 * time.Millisecond)
		}
		synctest.Wait()
		if now, _ := m.making(); now != 0 || m.count("a") > made+1 { // one before the burst showed
			t.Errorf("during a burst %d were made, and %d are being made", m.count("a")-made, now)
		}
		for range 50 { // another second: then it has been put off for long enough
			take(t, p, "a")
			time.Sleep(20 * time.Millisecond)
		}
		if got := m.count("a") - made; got == 0 || got > 5 {
			t.Errorf("during a long burst %d were made", got)
		}
		for range 15 { // less than a quarter is left
			take(t, p, "a")
			time.Sleep(20 * time.Millisecond)
		}
		if got := m.count("a") - made; got < 3 {
			t.Errorf("when little was left %d had been made", got)
		}
		begun := time.Now()
		m.ready(t, "a", 100)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("after the burst filling up took %v", took)
		}
	})
}

func TestAHoldPutsOffWhatIsMadeAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, nil)
		defer p.Close()
		p.Keep("a", 4, 4)
		m.ready(t, "a", 4)
		release := p.Hold()
		take(t, p, "a")
		time.Sleep(500 * time.Millisecond)
		if m.count("a") != 4 {
			t.Error("one was made ahead during a hold")
		}
		release()
		time.Sleep(makeTime)
		synctest.Wait()
		if m.count("a") != 5 {
			t.Error("none was made ahead after a hold")
		}
		defer p.Hold()()
		take(t, p, "a")
		time.Sleep(time.Second + makeTime)
		synctest.Wait()
		if m.count("a") != 6 {
			t.Error("a long hold has kept one from being made ahead")
		}
	})
}

// TestClaimsInARowFindOneReadyInTheEnd has each claim come while the next item is being
// made ahead, and take it over.
func TestClaimsInARowFindOneReadyInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, func(c *Config[string, *item]) { c.Builders = 1 })
		defer p.Close()
		p.Keep("a", 0, 5)
		for range 10 {
			if take(t, p, "a") {
				if _, most := m.making(); most > 2 {
					t.Errorf("%d were made at once, not one awaited and one ahead", most)
				}
				return
			}
			time.Sleep(makeTime * 6 / 10) // with one made at a time, the next is not ready
		}
		t.Error("ten claims in a row found nothing ready")
	})
}

func TestWhatWasInDemandLongestAgoMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, func(c *Config[string, *item]) { c.MaxItems = 5 })
		defer p.Close()
		for _, key := range []string{"a", "b", "c"} {
			p.Want(key, 2, 5)
			time.Sleep(time.Second)
		}
		p.Expect("d", 2, 5)
		time.Sleep(10 * time.Second)
		for key, want := range map[string]int{"a": 0, "b": 1, "c": 2, "d": 2} {
			if idle, _ := m.size(key); idle != want {
				t.Errorf("%d of %s are kept ready instead of %d", idle, key, want)
			}
		}
		p.Want("c", 0, 5)
		time.Sleep(10 * time.Second)
		if a, b, c, d := m.sizes(); c != 0 || a+b != 3 || d != 2 {
			t.Errorf("when c was not wanted any more there were %d, %d, %d, %d", a, b, c, d)
		}
		time.Sleep(2 * peakTime)
		if a, b, c, d := m.sizes(); c != 0 || a+b != 4 || d != 0 {
			t.Errorf("when d was not claimed for long there were %d, %d, %d, %d", a, b, c, d)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.kinds) != 2 {
			t.Errorf("there are %d kinds", len(p.kinds))
		}
	})
}

func TestWhatIsRecalledTakesNoRoomFromNewerDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, func(c *Config[string, *item]) { c.MaxItems = 4 })
		defer p.Close()
		if p.Keep("kept", 2, 5); p.Full() {
			t.Error("the pool is full at once")
		}
		m.ready(t, "kept", 2)
		if !p.Full() {
			t.Error("the pool is not full with all that it is to keep")
		}
		began := time.Now()
		p.Expect("a", 1, 5)
		p.Recall("c", 1, 5, began.Add(-time.Minute))
		time.Sleep(time.Second)
		p.Recall("b", 1, 5, began.Add(-time.Hour))
		p.Recall("a", 1, 5, began.Add(-24*time.Hour))
		p.Recall("d", 1, 5, began.Add(-2*time.Hour))
		p.Recall("off", 1, 0, began)
		time.Sleep(10 * time.Second)
		if a, b, c, d := m.sizes(); a != 1 || b != 0 || c != 1 || d != 0 {
			t.Errorf("there are %d, %d, %d, %d in the room of two", a, b, c, d)
		}
		if made := m.count("off"); made != 0 {
			t.Errorf("%d were made of a kind of which none is kept", made)
		}
		time.Sleep(2 * peakTime)
		if a, _, c, _ := m.sizes(); a+c != 0 {
			t.Errorf("%d and %d are left that no claim followed", a, c)
		}
	})
}

// heavy is an item that tells its memory.
type heavy struct{ *item }

func (heavy) Memory() int64 { return 100 }

func TestMemoryBoundsWhatDemandAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := New(Config[string, heavy]{
			Build: func(ctx context.Context, key string, use Use) (heavy, error) {
				it, err := m.build(ctx, key, use)
				return heavy{it}, err
			},
			Builders: 1, Rush: 8, MaxMemory: 1000, Memory: func(string) int64 { return 10 }, Log: slog.New(slog.DiscardHandler), Metrics: m,
		})
		defer p.Close()
		p.Keep("kept", 4, 100)
		p.Keep("a", 0, 100)
		for range 50 {
			it, _, err := p.Claim(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			it.Destroy(t.Context())
		}
		time.Sleep(time.Minute)
		kept, _ := m.size("kept")
		if idle, target := m.size("a"); kept != 4 || idle < 5 || idle > 6 || target != idle {
			t.Errorf("in 1000 bytes there are %d and %d of 100 bytes each; the target is %d", kept, idle, target)
		}
	})
}

func TestWhatIsGoneIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, nil)
		defer p.Close()
		m.mu.Lock()
		m.fail = ErrGone
		m.mu.Unlock()
		p.Want("a", 2, 5)
		p.Expect("a", 2, 5)
		time.Sleep(time.Second)
		m.mu.Lock()
		m.fail = nil
		m.mu.Unlock()
		time.Sleep(time.Minute)
		p.mu.Lock()
		defer p.mu.Unlock()
		if m.count("a") != 0 || len(p.kinds) != 0 {
			t.Errorf("%d were made; there are %d kinds", m.count("a"), len(p.kinds))
		}
	})
}

func TestFailuresAreTriedAgainLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		var tries atomic.Int32
		p := openPaced(m, func(c *Config[string, *item]) {
			c.Builders = 1
			c.Build = func(context.Context, string, Use) (*item, error) {
				tries.Add(1)
				return nil, errors.New("no more room")
			}
		})
		p.Keep("a", 1, 1)
		time.Sleep(time.Hour)
		p.Close()
		if n := tries.Load(); n < 10 || n > 20 {
			t.Errorf("%d tries in an hour", n)
		}
	})
}

func TestAReservationIsServedOnceOrLeftToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, nil)
		defer p.Close()
		p.Keep("a", 1, 1)
		m.ready(t, "a", 1)
		one, err := p.Reserve("a")
		if err != nil || !one.Ready || !one.Kept {
			t.Fatalf("the first reservation is %+v, %v", one, err)
		}
		two, err := p.Reserve("a")
		if err != nil || two.Ready {
			t.Fatalf("the second reservation is %+v, %v", two, err)
		}
		one.Cancel()
		got, err := two.Item(t.Context())
		if err != nil || got.number != 1 {
			t.Fatalf("the second reservation got %+v, %v", got, err)
		}
		two.Cancel() // it is taken
		got.Destroy(t.Context())
	})
}

// Claims that follow each other within RefillDelay for long do not empty the pool, if
// items can be made as fast.
func TestSteadyClaimsDoNotPutOffWhatIsUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(8 * time.Millisecond)
		p := openPaced(m, nil)
		defer p.Close()
		p.Keep("a", 24, 24)
		m.ready(t, "a", 24)
		for i := range 500 {
			if !take(t, p, "a") {
				t.Fatalf("claim %d found nothing ready", i+1)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

func TestTheLastUrgentOneLeavesNoHasteToTheNextClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, nil)
		defer p.Close()
		p.Keep("a", 1, 1)
		m.ready(t, "a", 1)
		for i := range 3 {
			time.Sleep(10 * time.Second)
			take(t, p, "a")
			time.Sleep(14 * time.Millisecond) // RefillDelay is 15 ms
			synctest.Wait()
			if now, _ := m.making(); now != 0 {
				t.Fatalf("the refill after claim %d began with the claim", i+1)
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if now, _ := m.making(); now != 1 {
				t.Fatalf("%d are made 16 ms after claim %d", now, i+1)
			}
			m.ready(t, "a", 1)
		}
	})
}

func TestCancelAfterCloseDestroysWhatWasReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := openPaced(m, nil)
		p.Keep("a", 1, 1)
		m.ready(t, "a", 1)
		r, err := p.Reserve("a")
		if err != nil || !r.Ready {
			t.Fatalf("the reservation is %+v, %v", r, err)
		}
		p.Close()
		r.Cancel()
		if n := m.alive(); n != 0 {
			t.Errorf("%d items are left", n)
		}
	})
}

// TestTheReserve: so many of a kind as are claimed next are made for that, and claimed
// first; a replacement is made for what has been claimed.
func TestTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		var uses sync.Map // of items
		p := New(Config[string, *item]{
			Build: func(ctx context.Context, key string, use Use) (*item, error) {
				it, err := m.build(ctx, key, use)
				if err == nil {
					uses.Store(it, use)
				}
				return it, err
			},
			Builders: 2, Rush: 4, Next: func(string) int { return 2 }, RefillDelay: time.Second, Log: slog.New(slog.DiscardHandler), Metrics: m,
		})
		defer p.Close()
		claim := func(want Use) *item {
			t.Helper()
			it, _, err := p.Claim(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if use, _ := uses.Load(it); use != want {
				t.Errorf("claimed one that was made for use %v, not %v", use, want)
			}
			it.Destroy(t.Context())
			return it
		}
		p.Keep("a", 5, 5)
		time.Sleep(time.Minute)
		for _, want := range []Use{Next, Next, Reserve, Reserve, Reserve, Awaited} {
			claim(want)
		}
		time.Sleep(time.Minute)
		count := map[Use]int{}
		p.mu.Lock()
		for _, e := range p.kinds["a"].idle {
			count[e.use]++
		}
		p.mu.Unlock()
		if count[Next] != 2 || count[Reserve] != 3 {
			t.Errorf("ready again are %v", count)
		}
		claim(Next)
		time.Sleep(time.Minute)
		claim(Next)
		claim(Next)
		claim(Reserve)

		time.Sleep(time.Minute)
		p.Keep("a", 2, 2) // it is the reserve that goes
		claim(Next)
		time.Sleep(time.Minute)
		claim(Next)
		claim(Next)
	})
}
