// Package report turns measurements into figures, figures into verdicts, and
// those into a table for people and a JSON document for programs.
package report

import (
	"math"
	"slices"
	"time"
)

// Sample is a set of durations measured in the same way.
type Sample []time.Duration

// Percentile returns the nearest-rank percentile: the smallest value that at
// least p percent of the sample do not exceed. It is 0 for an empty sample;
// p is over 0 and at most 100.
func (s Sample) Percentile(p float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Summary is what is kept of a sample, in milliseconds.
type Summary struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
}

// Summary returns the sample's summary.
func (s Sample) Summary() *Summary {
	return &Summary{
		Count: len(s), P50: Milliseconds(s.Percentile(50)),
		P95: Milliseconds(s.Percentile(95)), P99: Milliseconds(s.Percentile(99)),
	}
}

// Milliseconds converts to milliseconds, keeping microseconds.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
