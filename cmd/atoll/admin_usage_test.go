package main

import (
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// TestShowUsage: what interfaces used and what responses cost are tables of their own.
func TestShowUsage(t *testing.T) {
	budget := 50.0
	u := &sdk.Usage{
		Days: []sdk.UsageDay{
			{Date: "2026-11-25", Source: "execute", Calls: 3, Sessions: 3, Seconds: 1.5, Credits: 0.025},
			{Date: "2026-11-25", Source: "model", Name: "acme/large", Calls: 2, InputTokens: 20, CacheReadTokens: 5, OutputTokens: 10, ReasoningTokens: 4, Cost: 0.00002},
			{Date: "2026-11-25", Source: "sandbox_window", Calls: 1, Cost: 0.03},
		},
		Totals: sdk.UsageAmounts{Calls: 3, Sessions: 3, Seconds: 1.5, Credits: 0.025, InputTokens: 20, CacheReadTokens: 5, OutputTokens: 10, ReasoningTokens: 4, Cost: 0.03002},
		Month:  sdk.UsageMonth{Credits: 0.025, Cost: 0.03002, CostBudget: &budget, ResetsAt: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)},
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 1, ' ', 0)
	showUsage(w, u)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"2026-11-25 execute 3 3 1.50 0.00 0.00 0 B 0.0250 total - 3 3 1.50",
		"2026-11-25 model acme/large 2 20 5 0 10 4 0.000020 2026-11-25 sandbox_window - 1 0 0 0 0 0 0.030000 total - - - 20 5 0 10 4 0.030020",
		"this month: 0.0250 credits, no budget; $0.030020, of $50.000000; starts anew",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
}
