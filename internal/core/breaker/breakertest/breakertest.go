// Package breakertest is the suite that every breaker.Store passes.
package breakertest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Store runs the suite. open returns an empty store.
func Store(t *testing.T, open func(t *testing.T) breaker.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s breaker.Store)
	}{
		{"the cap-th call passes, the next does not", testCap},
		{"a breach counts nothing", testBreachCountsNothing},
		{"zero is a kill switch", testKillSwitch},
		{"tenants and agents have their own", testOwn},
		{"windows are of UTC", testWindows},
		{"no overshoot with 200 calls at once", testRace},
		{"caps are kept", testCaps},
		{"a name with a NUL is refused", testNUL},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// count counts a call and returns the breach's dimension, empty if it passed.
func count(t *testing.T, s breaker.Store, tenant, agent string, caps breaker.Caps) breaker.Dimension {
	t.Helper()
	b, err := s.Count(t.Context(), tenant, agent, caps)
	if err != nil {
		t.Fatal(err)
	}
	if b == nil {
		return ""
	}
	return b.Dimension
}

func testCap(t *testing.T, s breaker.Store) {
	caps := breaker.Caps{TenantDaily: 5, AgentHourly: 3}
	for i := range 3 {
		if d := count(t, s, "a", "one", caps); d != "" {
			t.Fatalf("call %d: %s", i+1, d)
		}
	}
	if d := count(t, s, "a", "one", caps); d != breaker.AgentHourly {
		t.Errorf("the agent's 4th call: %q", d)
	}
	for i := range 2 {
		if d := count(t, s, "a", "two", caps); d != "" {
			t.Fatalf("call %d of another agent: %s", i+1, d)
		}
	}
	if d := count(t, s, "a", "two", caps); d != breaker.TenantDaily {
		t.Errorf("the tenant's 6th call: %q", d)
	}
	caps.TenantDaily, caps.AgentHourly = 7, 4
	if d := count(t, s, "a", "one", caps); d != "" {
		t.Errorf("after the caps were raised: %q", d)
	}
}

func testBreachCountsNothing(t *testing.T, s breaker.Store) {
	caps := breaker.Caps{TenantDaily: 3, AgentHourly: 1}
	count(t, s, "a", "one", caps)
	for range 5 {
		if d := count(t, s, "a", "one", caps); d != breaker.AgentHourly {
			t.Fatalf("got %q", d)
		}
	}
	for _, agent := range []string{"two", "three"} {
		if d := count(t, s, "a", agent, caps); d != "" {
			t.Errorf("refused calls were counted against the tenant: %s at %s", d, agent)
		}
	}
}

func testKillSwitch(t *testing.T, s breaker.Store) {
	if d := count(t, s, "a", "one", breaker.Caps{TenantDaily: 0, AgentHourly: 9}); d != breaker.TenantDaily {
		t.Errorf("got %q", d)
	}
	if d := count(t, s, "a", "one", breaker.Caps{TenantDaily: 9, AgentHourly: 0}); d != breaker.AgentHourly {
		t.Errorf("got %q", d)
	}
	if d := count(t, s, "a", "one", breaker.Caps{TenantDaily: 1, AgentHourly: 1}); d != "" {
		t.Errorf("the calls before were counted: %q", d)
	}
}

func testOwn(t *testing.T, s breaker.Store) {
	caps := breaker.Caps{TenantDaily: 1, AgentHourly: 1}
	for _, tenant := range []string{"a", "b", "'; DROP TABLE breaker_counts; --"} {
		if d := count(t, s, tenant, "one", caps); d != "" {
			t.Errorf("%s: %s", tenant, d)
		}
	}
	// An agent whose name is empty is not the tenant.
	if d := count(t, s, "c", "", caps); d != "" {
		t.Errorf("an agent without a name: %s", d)
	}
}

func testWindows(t *testing.T, s breaker.Store) {
	for _, c := range []struct {
		caps   breaker.Caps
		window time.Duration
	}{
		{breaker.Caps{AgentHourly: 1}, 24 * time.Hour},
		{breaker.Caps{TenantDaily: 1}, time.Hour},
	} {
		before := time.Now()
		b, err := s.Count(t.Context(), "a", "one", c.caps)
		if err != nil || b == nil {
			t.Fatalf("got %v, %v", b, err)
		}
		if b.ResetsAt.Location() != time.UTC || b.ResetsAt.Truncate(c.window) != b.ResetsAt {
			t.Errorf("%s resets at %v", b.Dimension, b.ResetsAt)
		}
		// The store's clock is this machine's here; the window may have just ended.
		if left := b.ResetsAt.Sub(before); left <= -time.Minute || left > c.window+time.Minute {
			t.Errorf("%s resets in %v", b.Dimension, left)
		}
	}
}

func testRace(t *testing.T, s breaker.Store) {
	caps := breaker.Caps{TenantDaily: 50, AgentHourly: 20}
	var passed [5]atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 200 {
		wg.Go(func() {
			<-start
			b, err := s.Count(t.Context(), "a", string(rune('a'+i%5)), caps)
			if err != nil {
				t.Error(err)
			} else if b == nil {
				passed[i%5].Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	total := int64(0)
	for i := range passed {
		n := passed[i].Load()
		if n > caps.AgentHourly {
			t.Errorf("agent %d had %d calls", i, n)
		}
		total += n
	}
	if total != caps.TenantDaily {
		t.Errorf("%d calls passed, not %d", total, caps.TenantDaily)
	}
}

func testCaps(t *testing.T, s breaker.Store) {
	got, err := s.Caps(t.Context())
	if err != nil || got != breaker.DefaultCaps() {
		t.Errorf("before they are set: %v, %v", got, err)
	}
	for _, want := range []breaker.Caps{{TenantDaily: 7, AgentHourly: 3}, {}} {
		before, after, err := s.ChangeCaps(t.Context(), "key_1", &want.TenantDaily, &want.AgentHourly)
		if err != nil || before != got || after != want {
			t.Errorf("got %v and %v, %v", before, after, err)
		}
		if got, err = s.Caps(t.Context()); err != nil || got != want {
			t.Errorf("got %v, %v", got, err)
		}
	}
	negative := int64(-1)
	if _, _, err := s.ChangeCaps(t.Context(), "key_1", &negative, nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a negative cap: %v", err)
	}
}

func testNUL(t *testing.T, s breaker.Store) {
	b, err := s.Count(t.Context(), "a", "on\x00e", breaker.DefaultCaps())
	if b != nil || fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v, %v", b, err)
	}
}
