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
			{Date: "2026-11-25", Source: "model", Name: "acme/large", Calls: 2, InputTokens: 20, CacheReadTokens: 5, OutputTokens: 10, ReasoningTokens: 4, EstimatedTokens: 6, Cost: 0.00002},
			{Date: "2026-11-25", Source: "sandbox_window", Calls: 1, Cost: 0.03},
		},
		Totals: sdk.UsageAmounts{Calls: 3, Sessions: 3, Seconds: 1.5, Credits: 0.025, InputTokens: 20, CacheReadTokens: 5, OutputTokens: 10, ReasoningTokens: 4, EstimatedTokens: 6, Cost: 0.03002},
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
		"2026-11-25 model acme/large 2 20 5 0 10 4 6 0.000020 2026-11-25 sandbox_window - 1 0 0 0 0 0 0 0.030000 total - - - 20 5 0 10 4 6 0.030020",
		"this month: 0.0250 credits, no budget; $0.030020, of $50.000000; resets",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
}

// TestShowGroups: what agents and sessions used is a table with its cost.
func TestShowGroups(t *testing.T) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 1, ' ', 0)
	showGroups(w, &sdk.Usage{Groups: &[]sdk.UsageGroup{{AgentID: "agt_1", SessionID: "sess_1", Calls: 2, Seconds: 1.5, Credits: 0.25, InputTokens: 9, OutputTokens: 3, EstimatedTokens: 12, Cost: 0.5}}})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, "agt_1 sess_1 2 1.50 0.2500 9 3 12 0.500000") {
		t.Errorf("got %s", got)
	}
}

// TestShowActivity: a line says who ran what where, by the text where there is one.
func TestShowActivity(t *testing.T) {
	text := "\nprint('a')\nprint('b')"
	for want, e := range map[string]sdk.Activity{
		"ci|execute 0123456789ab|main|running":                             {KeyName: "ci", Source: "execute", ExecutedCodeHash: strings.Repeat("0123456789abcdef", 4), EnvironmentName: "main", Status: "running"},
		"key_1 agt_1 sess_1|run_code print('a')…|env_1|ok":                 {KeyID: "key_1", AgentID: "agt_1", SessionID: "sess_1", Source: "response", Tool: "run_code", Text: &text, EnvironmentID: "env_1", Status: "ok"},
		"ci support-7|execute_code |main sb-1|error: exited with status 1": {KeyName: "ci", AgentID: "support-7", SessionID: "42", Source: "execute_code", EnvironmentName: "main", SandboxID: "sb-1", Status: "error", FailureReason: "exited with status 1"},
	} {
		if got := strings.Join([]string{who(&e), what(&e), where(&e), status(&e)}, "|"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
