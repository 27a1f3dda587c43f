package usage_test

import (
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
