// Package usagetest is the suite that every usage.Store passes.
package usagetest

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// Opened is an empty store.
type Opened struct {
	Store usage.Store
	// Record makes an entry the way the product does: with the end of an
	// execution of the entry's tenant.
	Record func(ctx context.Context, e usage.Entry) error
	// Charge makes charges of a tenant the way the product does: with a step of a run.
	Charge func(ctx context.Context, tenant string, c ...usage.Charge) error
	// Budget makes a tenant with a budget in US dollars.
	Budget func(ctx context.Context, tenant string, dollars float64) error
}

// Store runs the suite.
func Store(t *testing.T, open func(t *testing.T) Opened) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, o Opened)
	}{
		{"adds up by day and source", testSummary},
		{"bounds are half open", testBounds},
		{"tenants have their own", testOwn},
		{"a month is the calendar's", testMonth},
		{"counts the calls of a trace", testCalls},
		{"what is old goes, its sums stay", testPurge},
		{"charges", testCharges},
		{"groups", testGroups},
		{"a budget in money", testBudget},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

const gib = 1 << 30

func record(t *testing.T, o Opened, entries ...usage.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := o.Record(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func summary(t *testing.T, o Opened, tenant string, since, before time.Time) []usage.Day {
	t.Helper()
	days, err := o.Store.Summary(t.Context(), tenant, since, before)
	if err != nil {
		t.Fatal(err)
	}
	return days
}

var monday = time.Date(2024, 2, 26, 0, 0, 0, 0, time.UTC)

func testSummary(t *testing.T, o Opened) {
	record(t, o,
		usage.Entry{Tenant: "a", Source: "execute", Seconds: 2, CPU: 2, Memory: gib / 2, Sessions: 1, Credits: 0.5, At: monday.Add(time.Hour)},
		usage.Entry{Tenant: "a", Source: "execute", Seconds: 4, CPU: 1, Memory: gib, BytesOut: 7, Sessions: 1, Credits: 0.25, At: monday.Add(24*time.Hour - time.Microsecond)},
		usage.Entry{Tenant: "a", Source: "execute_code", Seconds: 1, CPU: 1, Memory: gib, Credits: 1, At: monday.Add(2 * time.Hour)},
		usage.Entry{Tenant: "a", Source: "execute", Seconds: 8, CPU: 1, Memory: gib, Sessions: 1, Credits: 2, At: monday.AddDate(0, 0, 1)},
	)
	got := summary(t, o, "a", monday, monday.AddDate(0, 0, 7))
	want := []usage.Day{
		{Date: monday, Source: "execute", Calls: 2, Sessions: 2, Seconds: 6, CPUSeconds: 8, GiBSeconds: 5, BytesOut: 7, Credits: 0.75},
		{Date: monday, Source: "execute_code", Calls: 1, Seconds: 1, CPUSeconds: 1, GiBSeconds: 1, Credits: 1},
		{Date: monday.AddDate(0, 0, 1), Source: "execute", Calls: 1, Sessions: 1, Seconds: 8, CPUSeconds: 8, GiBSeconds: 8, Credits: 2},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d days: %+v", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
}

func testBounds(t *testing.T, o Opened) {
	record(t, o,
		usage.Entry{Tenant: "a", Source: "execute", Credits: 1, At: monday},
		usage.Entry{Tenant: "a", Source: "execute", Credits: 1, At: monday.Add(time.Hour)},
	)
	if got := summary(t, o, "a", monday, monday.Add(time.Hour)); len(got) != 1 || got[0].Calls != 1 {
		t.Errorf("got %+v", got)
	}
	if got := summary(t, o, "a", monday.Add(2*time.Hour), monday.Add(3*time.Hour)); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	// From within a day to within another, with a whole one between.
	record(t, o,
		usage.Entry{Tenant: "a", Source: "execute", Credits: 1, At: monday.Add(30 * time.Hour)},
		usage.Entry{Tenant: "a", Source: "execute", Credits: 1, At: monday.Add(31 * time.Hour)},
		usage.Entry{Tenant: "a", Source: "execute", Credits: 1, At: monday.Add(49 * time.Hour)},
	)
	for _, c := range []struct {
		since, before time.Duration // after monday
		want          []int64
	}{
		{time.Hour, 49 * time.Hour, []int64{1, 2}},
		{time.Hour, 50 * time.Hour, []int64{1, 2, 1}},
		{time.Microsecond, 24 * time.Hour, []int64{1}},
		{24 * time.Hour, 48 * time.Hour, []int64{2}},
		{31 * time.Hour, 48 * time.Hour, []int64{1}},
		{30*time.Hour + time.Microsecond, 49*time.Hour + time.Microsecond, []int64{1, 1}},
		{49 * time.Hour, 30 * time.Hour, nil},
	} {
		var got []int64
		for _, d := range summary(t, o, "a", monday.Add(c.since), monday.Add(c.before)) {
			got = append(got, d.Calls)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("from %v to %v: got %v, want %v", c.since, c.before, got, c.want)
		}
	}
}

func testOwn(t *testing.T, o Opened) {
	record(t, o, usage.Entry{Tenant: "a", Source: "execute", Credits: 1})
	now := time.Now()
	if got := summary(t, o, "b", now.Add(-time.Hour), now.Add(time.Hour)); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	if got, err := o.Store.Month(t.Context(), "b"); err != nil || got != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := o.Store.Month(t.Context(), "a' OR '1'='1"); err != nil || got != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func testMonth(t *testing.T, o Opened) {
	now := time.Now().UTC()
	start := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	record(t, o,
		usage.Entry{Tenant: "a", Source: "execute", Credits: 0.5, At: start},
		usage.Entry{Tenant: "a", Source: "execute_code", Credits: 0.125}, // at its execution's end
		usage.Entry{Tenant: "a", Source: "execute", Credits: 8, At: start.Add(-time.Microsecond)},
	)
	got, err := o.Store.Month(t.Context(), "a")
	if err != nil || math.Abs(got-0.625) > 1e-9 {
		t.Errorf("got %v, %v", got, err)
	}
}

func testPurge(t *testing.T, o Opened) {
	const day = 24 * time.Hour
	today := time.Now().UTC().Truncate(day)
	ago := func(days int, h time.Duration) time.Time { return today.Add(h - time.Duration(days)*day) }
	for _, tenant := range []string{"a", "b"} {
		for _, days := range []int{0, 69, 70, 71, 72} {
			record(t, o,
				usage.Entry{Tenant: tenant, Source: "execute", Seconds: 2, CPU: 1, Memory: gib, Credits: 1, At: ago(days, time.Hour)},
				usage.Entry{Tenant: tenant, Source: "execute", Seconds: 2, CPU: 1, Memory: gib, Credits: 1, At: ago(days, 3*time.Hour)},
			)
		}
	}
	// calls are those of a tenant on a day, from its second hour on and as a whole.
	calls := func(tenant string, days int) (part, whole int64) {
		for _, d := range summary(t, o, tenant, ago(days, 2*time.Hour), ago(days-1, 0)) {
			part += d.Calls
		}
		for _, d := range summary(t, o, tenant, ago(days, 0), ago(days-1, 0)) {
			whole += d.Calls
		}
		return part, whole
	}
	all := summary(t, o, "a", ago(80, 0), ago(-1, 0))
	month, err := o.Store.Month(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	purge := func(most, want int) {
		t.Helper()
		if n, err := o.Store.Purge(t.Context(), 70*day, most); err != nil || n != want {
			t.Errorf("%d entries went, want %d: %v", n, want, err)
		}
	}
	if part, whole := calls("a", 72); part != 1 || whole != 2 {
		t.Errorf("before: %d calls of %d", part, whole)
	}
	purge(3, 3) // all of a's oldest day, and half of the next
	if part, _ := calls("a", 71); part != 2 {
		t.Errorf("of a day that is half there: %d calls", part)
	}
	purge(100, 5)
	purge(100, 0)
	for _, tenant := range []string{"a", "b"} {
		for days, want := range map[int]int64{0: 1, 69: 1, 70: 1, 71: 2, 72: 2} {
			if part, whole := calls(tenant, days); part != want || whole != 2 {
				t.Errorf("%s, %d days ago: %d calls of %d, want %d of 2", tenant, days, part, whole, want)
			}
		}
	}
	if got := summary(t, o, "a", ago(80, 0), ago(-1, 0)); !slices.Equal(got, all) {
		t.Errorf("the days are %+v, and were %+v", got, all)
	}
	if got, err := o.Store.Month(t.Context(), "a"); err != nil || got != month {
		t.Errorf("the month is %v, and was %v: %v", got, month, err)
	}
}
