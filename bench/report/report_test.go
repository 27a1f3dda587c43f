package report

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make(Sample, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100-i) * time.Millisecond // 1 to 100 ms, unsorted
	}
	for _, c := range []struct {
		sample Sample
		p      float64
		want   time.Duration
	}{
		{nil, 50, 0},
		{Sample{7}, 50, 7},
		{Sample{7}, 99, 7},
		{Sample{3, 1}, 50, 1},
		{Sample{3, 1, 2}, 50, 2},
		{Sample{4, 3, 1, 2}, 50, 2},
		{Sample{4, 3, 1, 2}, 51, 3},
		{hundred, 50, 50 * time.Millisecond},
		{hundred, 95, 95 * time.Millisecond},
		{hundred, 99, 99 * time.Millisecond},
		{hundred, 100, 100 * time.Millisecond},
		{hundred, 0.1, time.Millisecond},
	} {
		if got := c.sample.Percentile(c.p); got != c.want {
			t.Errorf("p%g of %d = %v, want %v", c.p, len(c.sample), got, c.want)
		}
	}
	if hundred[0] != 100*time.Millisecond {
		t.Error("Percentile changed the sample's order")
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name string
		row  Row
		want Verdict
	}{
		{"aim", Row{Measured: 2, Baseline: 10, Must: AtMost(0.5), Aim: AtMost(0.2)}, Aimed},
		{"must", Row{Measured: 5, Baseline: 10, Must: AtMost(0.5), Aim: AtMost(0.2)}, Passed},
		{"missed", Row{Measured: 5.1, Baseline: 10, Must: AtMost(0.5), Aim: AtMost(0.2)}, Missed},
		{"floor", Row{Measured: 20, Baseline: 10, Must: AtLeast(1), Aim: AtLeast(2)}, Aimed},
		{"below the floor", Row{Measured: 9, Baseline: 10, Must: AtLeast(1)}, Missed},
		{"no baseline", Row{Measured: 19, Must: AtMost(20), Aim: AtMost(10)}, Passed},
		{"no aim", Row{Measured: 6000, Must: AtLeast(5000)}, Passed},
		{"information", Row{Measured: 6000, Baseline: 3}, Info},
		{"error", Row{Measured: 0, Must: AtMost(1), Err: "no server"}, Failed},
	} {
		if got := c.row.Judge().Verdict; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if r := (Row{Measured: 5, Baseline: 10}).Judge().Ratio; r != 0.5 {
		t.Errorf("ratio = %v", r)
	}
}

func TestReport(t *testing.T) {
	r := &Report{
		Started: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Took: 90 * time.Second,
		Machine: Machine{CPU: "AMD EPYC 9754 128-Core Processor", Cores: 2, Kernel: "6.12"},
		Rows: []Row{
			Row{Case: "warm", Unit: "ms", Measured: 2.5, Baseline: 10, BaselineName: "bare", Must: AtMost(0.5), Aim: AtMost(0.2),
				Sample: Sample{2500 * time.Microsecond}.Summary()}.Judge(),
			Row{Case: "layer", Unit: "requests/s", Measured: 12345.6, Must: AtLeast(5000)}.Judge(),
			Row{Case: "a|b", Unit: "ms", Err: "broken\npipe", Must: AtMost(1)}.Judge(),
		},
	}
	dir := t.TempDir()
	path, err := r.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := dir + "/2026-05-04-2x-amd-epyc-9754-128-core.md"; path != want {
		t.Errorf("path = %s, want %s", path, want)
	}
	md, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| warm | 2.50 ms | 10.0 ms (bare) | 0.250× | ≤ 0.5× | ≤ 0.2× | passes |",
		"| layer | 12346 requests/s |  |  | ≥ 5000 requests/s |  | passes |",
		`| a\|b |  |  |  | ≤ 1.00 ms |  | FAILED |`,
		"- warm: p50 2.50, p95 2.50, p99 2.50 ms of 1",
	} {
		if !strings.Contains(string(md), want) {
			t.Errorf("the report lacks %q:\n%s", want, md)
		}
	}
	data, err := os.ReadFile(strings.TrimSuffix(path, ".md") + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(data, &back); err != nil || len(back.Rows) != 3 || back.Rows[0].Ratio != 0.25 {
		t.Errorf("JSON: %v, %+v", err, back)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "a|b failed: broken") {
		t.Errorf("text: %v\n%s", err, text.String())
	}
	if r.Count(Passed) != 2 || r.Count(Failed) != 1 {
		t.Errorf("%d passed, %d failed", r.Count(Passed), r.Count(Failed))
	}
}
