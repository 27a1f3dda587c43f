package usagetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/usage"
)

func charge(t *testing.T, o Opened, tenant string, c ...usage.Charge) {
	t.Helper()
	for i := range c {
		c[i].ID, c[i].Key = fmt.Sprint("run_1/", c[i].At.UnixMicro(), "/", i), "key_1"
	}
	if err := o.Charge(t.Context(), tenant, c...); err != nil {
		t.Fatal(err)
	}
}

func testCharges(t *testing.T, o Opened) {
	answer := func(at time.Time) usage.Charge {
		return usage.Charge{Kind: usage.Model, Name: "acme/large", Calls: 1, Cost: 500, At: at, Tokens: usage.Tokens{Input: 10, CacheRead: 4, CacheWrite: 3, Output: 5, Reasoning: 2, Estimated: 1}}
	}
	tool := usage.Charge{Kind: usage.Tool, Name: "sandbox", Calls: 2, At: monday}
	window := usage.Charge{Kind: usage.Window, Calls: 1, Cost: 30, At: monday}
	charge(t, o, "a", answer(monday), answer(monday.Add(23*time.Hour)), tool, window, answer(monday.AddDate(0, 0, 1)))
	charge(t, o, "b", answer(monday))
	record(t, o, usage.Entry{Tenant: "a", Source: "execute", Credits: 1, At: monday})
	of := func(day, n int) usage.Day {
		k := int64(n)
		return usage.Day{Date: monday.AddDate(0, 0, day), Source: "model", Name: "acme/large", Calls: k, Cost: usage.Money(500).Times(n), Tokens: usage.Tokens{Input: 10 * k, CacheRead: 4 * k, CacheWrite: 3 * k, Output: 5 * k, Reasoning: 2 * k, Estimated: k}}
	}
	first := []usage.Day{
		{Date: monday, Source: "execute", Calls: 1, Credits: 1}, of(0, 2),
		{Date: monday, Source: "sandbox_window", Calls: 1, Cost: 30}, {Date: monday, Source: "tool", Name: "sandbox", Calls: 2},
	}
	if got, want := summary(t, o, "a", monday, monday.AddDate(0, 0, 7)), append(slices.Clone(first), of(1, 1)); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// A part of a day, and the same once the lines of it are gone.
	if got := summary(t, o, "a", monday.Add(time.Hour), monday.AddDate(0, 0, 1)); !slices.Equal(got, []usage.Day{of(0, 1)}) {
		t.Errorf("got %+v", got)
	}
	// What a provider says may be absurd: a sum is all that Money holds at most.
	huge := usage.Charge{Kind: usage.Model, Name: "absurd", Calls: 1, Cost: math.MaxInt64 - 1, At: monday.AddDate(0, 0, 30)}
	for i := range 3 {
		huge.At = huge.At.Add(time.Hour)
		charge(t, o, "c", huge)
		whole := summary(t, o, "c", monday, monday.AddDate(0, 0, 60))
		part := summary(t, o, "c", monday.AddDate(0, 0, 30).Add(time.Minute), monday.AddDate(0, 0, 31))
		if want := huge.Cost.Plus(usage.Money(2 * i)); len(whole) != 1 || whole[0].Cost != want || len(part) != 1 || part[0].Cost != want {
			t.Errorf("%d absurd charges: %+v, %+v", i+1, whole, part)
		}
	}
	if n, err := o.Store.Purge(t.Context(), 24*time.Hour, 4); err != nil || n != 4 { // the entry, and three charges
		t.Errorf("%d went, %v", n, err)
	}
	if n, err := o.Store.Purge(t.Context(), 24*time.Hour, 100); err != nil || n != 6 {
		t.Errorf("%d went, %v", n, err)
	}
	if got := summary(t, o, "a", monday.Add(time.Hour), monday.AddDate(0, 0, 1)); !slices.Equal(got, first) {
		t.Errorf("got %+v", got)
	}
}

func testBudget(t *testing.T, o Opened) {
	if err := o.Budget(t.Context(), "a", 1.5); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	spend := func(at time.Time, n int) {
		charge(t, o, "a", usage.Charge{Kind: usage.Model, Name: fmt.Sprint("m", n), Calls: 1, Cost: usage.MoneyOf(0.75), At: at})
	}
	spend(month.Add(-time.Microsecond), 0)
	spend(month, 1)
	if err := o.Store.CheckCost(t.Context(), "a", usage.MoneyOf(0.7), 0); err != nil {
		t.Error(err)
	}
	f, ok := errors.AsType[*fault.Error](o.Store.CheckCost(t.Context(), "a", usage.MoneyOf(0.75), 0))
	if !ok || f.Kind != fault.Exhausted || f.Dimension != usage.DimensionCost || !f.ResetsAt.Equal(month.AddDate(0, 1, 0)) {
		t.Errorf("got %+v", f)
	}
	if err := o.Store.CheckCost(t.Context(), "a", 0, usage.MoneyOf(0.75)); err != nil {
		t.Errorf("what comes next uses the budget up: %v", err)
	}
	f, ok = errors.AsType[*fault.Error](o.Store.CheckCost(t.Context(), "a", 0, usage.MoneyOf(0.76)))
	if !ok || f.Kind != fault.Exhausted || f.Dimension != usage.DimensionCost {
		t.Errorf("for more than is left: %+v", f)
	}
	spend(now, 2)
	if _, ok := errors.AsType[*fault.Error](o.Store.CheckCost(t.Context(), "a", 0, 0)); !ok {
		t.Error("a budget that is used up is not refused")
	}
	if got, err := o.Store.MonthCost(t.Context(), "a"); err != nil || got != usage.MoneyOf(1.5) {
		t.Errorf("got %v, %v", got, err)
	}
	if err := o.Store.CheckCost(t.Context(), "another", usage.MoneyOf(1e6), usage.MoneyOf(1e6)); err != nil {
		t.Errorf("a tenant without a budget: %v", err)
	}
}

// testGroups checks that Groups sums charges and entries per agent and per session.
func testGroups(t *testing.T, o Opened) {
	of := func(agent, session string, at time.Time, cost usage.Money) usage.Charge {
		return usage.Charge{Kind: usage.Model, Name: "m", Calls: 1, Agent: agent, Session: session, At: at, Cost: cost, Tokens: usage.Tokens{Input: 2, Output: 3, Estimated: 5}}
	}
	const big = 1_000_000_000_000
	charge(t, o, "a", of("agt_1", "sess_1", monday, big), of("agt_1", "sess_2", monday.AddDate(0, 0, 1), 2*big), of("agt_2", "sess_3", monday, 5*big), of("", "", monday, 9*big))
	charge(t, o, "b", of("agt_1", "sess_1", monday, big))
	record(t, o, usage.Entry{Tenant: "a", Source: "response", Agent: "agt_1", Session: "sess_1", Seconds: 4, CPU: 2, Credits: 1.5, Sessions: 1, At: monday.Add(time.Hour)})
	tokens := func(n int64) usage.Tokens { return usage.Tokens{Input: 2 * n, Output: 3 * n, Estimated: 5 * n} }
	ran := usage.Day{Calls: 1, Sessions: 1, Seconds: 4, CPUSeconds: 8, Credits: 1.5}
	one := ran
	one.Tokens, one.Cost = tokens(1), big
	both := ran
	both.Tokens, both.Cost = tokens(2), 3*big
	second, third := usage.Day{Tokens: tokens(1), Cost: 2 * big}, usage.Day{Tokens: tokens(1), Cost: 5 * big}
	week := usage.GroupFilter{Tenant: "a", Since: monday.Add(time.Hour), Before: monday.AddDate(0, 0, 7)} // days count whole
	for what, test := range map[string]struct {
		change func(*usage.GroupFilter)
		want   []usage.Group
	}{
		"agents":     {func(*usage.GroupFilter) {}, []usage.Group{{Agent: "agt_2", Session: "", Day: third}, {Agent: "agt_1", Session: "", Day: both}}},
		"sessions":   {func(f *usage.GroupFilter) { f.Sessions = true }, []usage.Group{{Agent: "agt_2", Session: "sess_3", Day: third}, {Agent: "agt_1", Session: "sess_2", Day: second}, {Agent: "agt_1", Session: "sess_1", Day: one}}},
		"of one":     {func(f *usage.GroupFilter) { f.Sessions, f.Agent = true, "agt_2" }, []usage.Group{{Agent: "agt_2", Session: "sess_3", Day: third}}},
		"one itself": {func(f *usage.GroupFilter) { f.Sessions, f.Session = true, "sess_1" }, []usage.Group{{Agent: "agt_1", Session: "sess_1", Day: one}}},
		"a day":      {func(f *usage.GroupFilter) { f.Before = monday.Add(2 * time.Hour) }, []usage.Group{{Agent: "agt_2", Session: "", Day: third}, {Agent: "agt_1", Session: "", Day: one}}},
		"another":    {func(f *usage.GroupFilter) { f.Tenant = "c" }, nil},
	} {
		f := week
		test.change(&f)
		if got, err := o.Store.Groups(t.Context(), f); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got  %+v, %v\nwant %+v", what, got, err, test.want)
		}
	}
	// Sums of old days go, or each session would leave a row for good: three of a, and one of b.
	if n, err := o.Store.Purge(t.Context(), 24*time.Hour, 100); err != nil || n < 4 {
		t.Errorf("%d went, %v", n, err)
	}
	if got, err := o.Store.Groups(t.Context(), week); err != nil || len(got) > 0 {
		t.Errorf("after the purge: %+v, %v", got, err)
	}
}
