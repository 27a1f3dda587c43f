package usage_test

import (
	"math"
	"testing"

	"github.com/atoll-run/atoll/internal/core/usage"
)

func TestCredits(t *testing.T) {
	const GiB = 1 << 30
	for _, c := range []struct {
		name   string
		prices usage.Prices
		entry  usage.Entry
		want   float64
	}{
		{"the contract's credit", usage.DefaultPrices(), usage.Entry{Seconds: 60, CPU: 1, Memory: GiB}, 1},
		{"scales with each", usage.DefaultPrices(), usage.Entry{Seconds: 30, CPU: 4, Memory: 2 * GiB}, 1.5},
		{"nothing was run", usage.DefaultPrices(), usage.Entry{CPU: 4, Memory: GiB}, 0},
		{"calls and bytes", usage.Prices{Call: 0.25, GiBOut: 2}, usage.Entry{Seconds: 600, CPU: 1, Memory: GiB, BytesOut: GiB / 2}, 1.25},
		{"a price of its own", usage.Prices{Call: 0.25, Calls: map[string]float64{"web_search": 2}}, usage.Entry{Source: "web_search"}, 2},
		{"another's price", usage.Prices{Call: 0.25, Calls: map[string]float64{"web_search": 2}}, usage.Entry{Source: "shell"}, 0.25},
	} {
		if got := c.prices.Credits(c.entry); got != c.want {
			t.Errorf("%s: %g credits, want %g", c.name, got, c.want)
		}
	}
}

func TestMoney(t *testing.T) {
	const all = usage.Money(math.MaxInt64)
	for _, c := range []struct{ got, want usage.Money }{
		{usage.MoneyOf(0.03), 30_000_000_000},
		{usage.MoneyOf(1e300), all},
		{usage.Money(2).Plus(3), 5},
		{all.Plus(1), all},
		{all.Plus(-1), all - 1},
		{usage.Money(7).Times(3), 21},
		{usage.Money(7).Times(0), 0},
		{(all / 2).Times(3), all},
	} {
		if c.got != c.want {
			t.Errorf("got %d, want %d", c.got, c.want)
		}
	}
	if got := usage.MoneyOf(1.25).String(); got != "1.25" {
		t.Errorf("got %s", got)
	}
}
