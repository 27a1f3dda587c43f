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
		{"absolute", Row{Measured: 19, Baseline: 30, Absolute: true, Must: AtMost(20), Aim: AtMost(10)}, Passed},
		{"absolute and missed", Row{Measured: 21, Baseline: 30, Absolute: true, Must: AtMost(20)}, Missed},
		{"an absolute floor", Row{Measured: 3000, Baseline: 9000, Absolute: true, Must: AtLeast(3000)}, Passed},
		{"nothing used", Row{Measured: 0, Must: AtMost(2)}, Passed},
		{"no aim", Row{Measured: 6000, Must: AtLeast(5000)}, Passed},
		{"information", Row{Measured: 6000, Baseline: 3}, Info},
		{"error", Row{Measured: 0, Must: AtMost(1), Err: "no server"}, Failed},
		{"no baseline to be had", Row{Measured: 1, Absolute: true, Must: AtMost(1), Err: "no runsc"}, Failed},
	} {
		if got := c.row.Judge().Verdict; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for _, absolute := range []bool{false, true} {
		if r := (Row{Measured: 5, Baseline: 10, Absolute: absolute}).Judge().Ratio; r != 0.5 {
			t.Errorf("ratio = %v, absolute %t", r, absolute)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0214: "0.021", 1: "1.00", 12.34: "12.3", 123.4: "123", -1: "-1.00", -0.5: "-0.500", -123.4: "-123"} {
		if got := number(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
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
			Row{Case: "wake", Unit: "ms", Measured: 90, Baseline: 200, BaselineName: "runsc restore", Absolute: true, Must: AtMost(100)}.Judge(),
			Row{Case: "alone", Unit: "ms", Measured: 9, BaselineName: "runsc resume", Absolute: true, Must: AtMost(10), Err: "no runsc"}.Judge(),
			Row{Case: "idle", Unit: "ms/s", Must: AtMost(2), Note: "as with one"}.Judge(),
			Row{Case: "peer", Note: "not measured"}.Judge(),
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
		"| wake | 90.0 ms | 200 ms (runsc restore) | 0.450× | ≤ 100 ms |  | passes |",
		"| alone | 9.00 ms | runsc resume |  | ≤ 10.0 ms |  | FAILED |",
		"| idle | 0 ms/s |  |  | ≤ 2.00 ms/s |  | passes |",
		"| peer |  |  |  |  |  | – |",
		"- alone: failed: no runsc",
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
	if err := json.Unmarshal(data, &back); err != nil || len(back.Rows) != len(r.Rows) || back.Rows[0].Ratio != 0.25 || !back.Rows[3].Absolute {
		t.Errorf("JSON: %v, %+v", err, back)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "a|b failed: broken") {
		t.Errorf("text: %v\n%s", err, text.String())
	}
	if r.Count(Passed) != 4 || r.Count(Failed) != 2 {
		t.Errorf("%d passed, %d failed", r.Count(Passed), r.Count(Failed))
	}
}
