package pool

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// item is a thing that takes a while to make.
type item struct {
	key       string
	number    int
	done      chan struct{}
	destroyed chan struct{}
}

func (i *item) Done() <-chan struct{} { return i.done }

func (i *item) Destroy(context.Context) error {
	close(i.destroyed) // twice panics: an item is destroyed once
	return nil
}

// maker makes items and counts.
type maker struct {
	takes time.Duration

	mu      sync.Mutex
	fail    error          // guarded by mu
	made    map[string]int // guarded by mu
	items   []*item        // guarded by mu
	now     int            // guarded by mu; being made
	most    int            // guarded by mu; made at the same time
	claims  map[bool]int   // guarded by mu; by whether they hit
	targets map[string]int // guarded by mu
	idle    map[string]int // guarded by mu
	sized   chan struct{}  // guarded by mu; closed, and replaced, when a size was told
}

func newMaker(takes time.Duration) *maker {
	return &maker{
		takes: takes, made: map[string]int{}, claims: map[bool]int{}, targets: map[string]int{},
		idle: map[string]int{}, sized: make(chan struct{}),
	}
}

func (m *maker) build(ctx context.Context, key string, _ Use) (*item, error) {
	m.mu.Lock()
	m.now++
	m.most = max(m.most, m.now)
	m.mu.Unlock()
	var err error
	select {
	case <-time.After(m.takes):
	case <-ctx.Done():
		err = ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now--
	if err == nil {
		err = m.fail
	}
	if err != nil {
		return nil, err
	}
	m.made[key]++
	i := &item{key: key, number: m.made[key], done: make(chan struct{}), destroyed: make(chan struct{})}
	m.items = append(m.items, i)
	return i, nil
}

func (m *maker) Claimed(_ string, hit bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims[hit]++
}

func (m *maker) Built(string, time.Duration, error) {}

func (m *maker) Sized(key string, idle, target int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle[key], m.targets[key] = idle, target
	close(m.sized)
	m.sized = make(chan struct{})
}

// ready waits until n of a kind are kept ready, and nothing else is under way.
func (m *maker) ready(t *testing.T, key string, n int) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		m.mu.Lock()
		idle, sized := m.idle[key], m.sized
		m.mu.Unlock()
		if idle == n {
			synctest.Wait()
			return
		}
		select {
		case <-sized:
		case <-late:
			t.Fatalf("%d of %s are ready, not %d", idle, key, n)
		}
	}
}

// alive counts the items that have not been destroyed.
func (m *maker) alive() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.items {
		select {
		case <-i.destroyed:
		default:
			n++
		}
	}
	return n
}

func (m *maker) count(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made[key]
}

// making returns how many items are being made, and how many at most were at
// the same time.
func (m *maker) making() (now, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now, m.most
}

func open(m *maker, builders int) *Pool[string, *item] {
	return New(Config[string, *item]{
		Build: m.build, Builders: builders, Log: slog.New(slog.DiscardHandler), Metrics: m,
		RefillDelay: 15 * time.Millisecond, RetryDelay: 5 * time.Second,
	})
}

const makeTime = 100 * time.Millisecond

func TestKeepFillsWithAsManyAtATimeAsThereAreBuilders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 2)
		defer p.Close()
		begun := time.Now()
		if p.Keep("a", 5, 20); !slices.Equal(p.Missing(), []string{"a"}) {
			t.Errorf("an empty pool misses %v", p.Missing())
		}
		m.ready(t, "a", 5)
		if _, most := m.making(); m.count("a") != 5 || most != 2 || len(p.Missing()) > 0 || time.Since(begun) != 3*makeTime {
			t.Errorf("%d items were made, %d at a time, in %v", m.count("a"), most, time.Since(begun))
		}
		time.Sleep(10 * time.Second)
		if m.count("a") != 5 {
			t.Errorf("a full pool has made %d items", m.count("a"))
		}
	})
}

func TestAHitIsInstantAndIsReplacedAfterTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 2)
		defer p.Close()
		p.Keep("a", 2, 8)
		m.ready(t, "a", 2)
		begun := time.Now()
		one, hit, err := p.Claim(t.Context(), "a")
		if err != nil || !hit || one.number != 1 || time.Since(begun) != 0 {
			t.Fatalf("the first claim got %+v, %v, %v after %v", one, hit, err, time.Since(begun))
		}
		defer one.Destroy(t.Context())
		time.Sleep(14 * time.Millisecond)
		synctest.Wait()
		if now, _ := m.making(); now != 0 {
			t.Error("the replacement is begun at once")
		}
		m.ready(t, "a", 2)
		if m.count("a") != 3 || time.Since(begun) != 15*time.Millisecond+makeTime {
			t.Errorf("%d items were made, the last after %v", m.count("a"), time.Since(begun))
		}
	})
}

func TestAMissIsServedBeforeFillingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 1)
		defer p.Close()
		p.Keep("other", 10, 10)
		synctest.Wait() // one of the other kind is being made
		begun := time.Now()
		it, hit, err := p.Claim(t.Context(), "a")
		if err != nil || hit {
			t.Fatalf("claim: %v, %v", hit, err)
		}
		defer it.Destroy(t.Context())
		if took := time.Since(begun); took != 2*makeTime {
			t.Errorf("the claim took %v", took)
		}
	})
}

func TestClaimsAreServedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 1)
		defer p.Close()
		var wait sync.WaitGroup
		for i := range 5 {
			wait.Go(func() {
				it, _, err := p.Claim(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				if it.number != i+1 {
					t.Errorf("claim %d got item %d", i+1, it.number)
				}
				it.Destroy(t.Context())
			})
			synctest.Wait() // it stands in line
		}
		wait.Wait()
	})
}

func TestDemandRaisesTheTargetAndCalmLowersIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 4)
		defer p.Close()
		p.Keep("a", 1, 3)
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				it, _, err := p.Claim(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				it.Destroy(t.Context())
			})
		}
		wait.Wait()
		m.ready(t, "a", 3)
		if got := m.alive(); got != 3 {
			t.Errorf("after a burst %d items are kept ready, want the most allowed", got)
		}
		time.Sleep(2 * peakTime)
		if got := m.alive(); got != 1 {
			t.Errorf("after a calm %d items are kept ready", got)
		}
	})
}

func TestAKindThatIsNotKeptComesAndGoesWithDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 4)
		defer p.Close()
		p.Keep("a", 0, 2)
		claim := func() (hit bool) {
			it, hit, err := p.Claim(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			it.Destroy(t.Context())
			m.ready(t, "a", 1)
			return hit
		}
		if claim() || !claim() || !claim() {
			t.Error("the first claim was served at once, or a later one was not")
		}
		time.Sleep(peakTime / 2)
		if got := m.alive(); got != 1 {
			t.Errorf("a while after the last claim %d are kept ready", got)
		}
		time.Sleep(peakTime)
		if got := m.alive(); got != 0 {
			t.Errorf("long after the last claim %d are kept ready", got)
		}
		claim()
		p.Drop("a")
		synctest.Wait()
		if got := m.alive(); got != 0 || len(p.kinds) != 0 {
			t.Errorf("%d of a dropped kind are left; there are %d kinds", got, len(p.kinds))
		}
		p.Keep("a", 0, 2)
		if claim() {
			t.Error("a dropped kind was ready")
		}
	})
}

func TestAllKindsTogetherAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := New(Config[string, *item]{Build: m.build, Builders: 4, MaxItems: 4, Log: slog.New(slog.DiscardHandler), Metrics: m})
		defer p.Close()
		p.Keep("kept", 2, 8)
		for _, key := range []string{"a", "b", "c", "d", "kept"} {
			p.Keep(key, min(len(key)/2, 2), 8)
			for range 3 {
				it, _, err := p.Claim(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				it.Destroy(t.Context())
			}
		}
		time.Sleep(10 * time.Second)
		if got := m.alive(); got > 6 {
			t.Errorf("%d are kept ready", got)
		}
		it, hit, err := p.Claim(t.Context(), "kept")
		if err != nil || !hit {
			t.Fatalf("what was to be kept was not ready: %v", err)
		}
		it.Destroy(t.Context())
	})
}

func TestADeadItemIsReplacedAndNeverClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 1)
		defer p.Close()
		p.Keep("a", 1, 1)
		m.ready(t, "a", 1)
		m.mu.Lock()
		dead := m.items[0]
		m.mu.Unlock()
		close(dead.done)
		// Not even in the moment before the pool has noticed.
		it, _, err := p.Claim(t.Context(), "a")
		if err != nil || it == dead {
			t.Fatalf("the claim got %+v, %v", it, err)
		}
		defer it.Destroy(t.Context())
		synctest.Wait()
		select {
		case <-dead.destroyed:
		default:
			t.Error("the dead item was not destroyed")
		}
		m.ready(t, "a", 1)
		if p.mu.Lock(); len(p.kinds["a"].idle) != 1 {
			t.Errorf("%d items are ready", len(p.kinds["a"].idle))
		}
		p.mu.Unlock()
	})
}

func TestAFailureIsToldAndOthersWaitBeforeTheNextTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		full := errors.New("no more room")
		m.fail = full
		p := open(m, 2)
		defer p.Close()
		p.Keep("a", 1, 1)
		if _, _, err := p.Claim(t.Context(), "a"); !errors.Is(err, full) {
			t.Errorf("claim: %v", err)
		}
		m.mu.Lock()
		m.fail = nil
		m.mu.Unlock()
		// Someone who waits does not have to wait for the retry.
		begun := time.Now()
		it, _, err := p.Claim(t.Context(), "a")
		if err != nil || time.Since(begun) > 2*makeTime {
			t.Fatalf("claim: %v after %v", err, time.Since(begun))
		}
		it.Destroy(t.Context())
		m.ready(t, "a", 1)
		if len(p.Missing()) > 0 {
			t.Error("the pool is not filled again")
		}
	})
}

func TestAClaimThatGivesUpLeavesItsItemToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 1)
		defer p.Close()
		given := errors.New("given up")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(makeTime/2, func() { cancel(given) })
		if _, _, err := p.Claim(ctx, "a"); !errors.Is(err, given) {
			t.Errorf("claim: %v", err)
		}
		begun := time.Now()
		it, _, err := p.Claim(t.Context(), "a")
		if err != nil || it.number != 1 || time.Since(begun) != makeTime/2 {
			t.Errorf("the next claim got %+v, %v after %v", it, err, time.Since(begun))
		}
		it.Destroy(t.Context())
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 2)
		p.Keep("a", 3, 3)
		m.ready(t, "a", 3)
		waiting := make(chan error)
		go func() {
			_, _, err := p.Claim(t.Context(), "b")
			waiting <- err
		}()
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			p.Close()
			p.Close()
			close(closed)
		}()
		if err := <-waiting; !errors.Is(err, ErrClosed) {
			t.Errorf("a claim that waited: %v", err)
		}
		<-closed
		if got := m.alive(); got != 0 {
			t.Errorf("%d items are left", got)
		}
		if _, _, err := p.Claim(t.Context(), "a"); !errors.Is(err, ErrClosed) {
			t.Errorf("a claim afterwards: %v", err)
		}
	})
}

// TestManyClaimers is for the race detector: nothing is lost, nothing is given
// out twice.
func TestManyClaimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(time.Millisecond)
		p := open(m, 4)
		p.Keep("a", 4, 16)
		p.Keep("b", 0, 4)
		var mu sync.Mutex
		seen := map[*item]bool{}
		var wait sync.WaitGroup
		for i := range 300 {
			wait.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7+1)*10*time.Millisecond)
				defer cancel()
				it, _, err := p.Claim(ctx, []string{"a", "b"}[i%2])
				if err != nil {
					return // it gave up
				}
				mu.Lock()
				if seen[it] {
					t.Errorf("item %+v was given out twice", it)
				}
				seen[it] = true
				mu.Unlock()
				it.Destroy(t.Context())
			})
		}
		wait.Wait()
		p.Close()
		if got := m.alive(); got != 0 {
			t.Errorf("%d items are left", got)
		}
		if m.claims[true]+m.claims[false] != 300 || len(seen) == 0 {
			t.Errorf("claims: %v, items: %d", m.claims, len(seen))
		}
	})
}

// Claims that take every item, and every builder, do not make a pool that answers look as if
// it did not.
func TestAPoolThatAnswersMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 1)
		defer p.Close()
		p.Keep("a", 1, 20)
		p.Keep("b", 1, 20)
		if got := p.Missing(); len(got) != 2 {
			t.Errorf("an empty pool misses %v", got)
		}
		it, _, err := p.Claim(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		defer it.Destroy(t.Context())
		if got := p.Missing(); len(got) != 0 {
			t.Errorf("a pool that answered a claim misses %v", got)
		}
	})
}

func TestReplaceMovesDemandToAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(makeTime)
		p := open(m, 1)
		defer p.Close()
		p.Keep("old", 1, 4)
		p.Expect("old", 3, 4)
		m.ready(t, "old", 3)
		p.Replace("old", "new")
		m.ready(t, "new", 3)
		if old, n := m.count("old"), m.alive(); old != 3 || n != 3 {
			t.Errorf("%d items of the former kind were made, and %d of both are alive", old, n)
		}
		if len(p.kinds) != 1 {
			t.Errorf("the pool knows %d kinds", len(p.kinds))
		}
		p.Replace("unknown", "new")
		item, hit, err := p.Claim(t.Context(), "new")
		if err != nil || !hit || item.key != "new" {
			t.Fatalf("the claim got %+v, %t, %v", item, hit, err)
		}
		defer item.Destroy(t.Context())
		m.ready(t, "new", 3)
	})
}
