package main

import (
	"fmt"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

// baseline is what figures are held against that have bounds of their own: it tells
// how fast the machine was when they were measured.
type baseline struct {
	name  string
	count int // of samples
	take  func() (time.Duration, error)
}

// compared is what was measured beside a baseline.
type compared struct {
	baseline
	measured, beside report.Sample
	failed           error // of the baseline
}

// rounds is how many turns two samples take at most: few enough that in the longer
// ones each call comes after others of its kind.
const rounds = 10

// compare takes n samples of something and those of its baseline by turns, after one
// of each that does not count. That the baseline fails is no reason to stop.
func compare(n int, take func() (time.Duration, error), b baseline) (*compared, error) {
	c := &compared{baseline: b}
	turns := min(rounds, n, b.count)
	if _, c.failed = b.take(); c.failed != nil {
		turns = 1
	}
	if _, err := take(); err != nil {
		return nil, err
	}
	for i := range turns {
		for range share(b.count, i, turns) {
			if c.failed != nil {
				break
			}
			var took time.Duration
			took, c.failed = b.take()
			c.beside = append(c.beside, took)
		}
		for range share(n, i, turns) {
			took, err := take()
			if err != nil {
				return nil, err
			}
			c.measured = append(c.measured, took)
		}
	}
	return c, nil
}

// share is how many of n the i-th of several turns has.
func share(n, i, turns int) int { return n*(i+1)/turns - n*i/turns }

// row is one of durations.
func (c *compared) row(name string, must float64) report.Row {
	return c.against(row(name, c.measured, must), func(s report.Sample) float64 { return report.Milliseconds(s.Percentile(50)) })
}

// against puts a row beside the baseline, whose figure is made as the row's was. The
// bounds of the row stay on what was measured.
func (c *compared) against(r report.Row, figure func(report.Sample) float64) report.Row {
	r.Absolute, r.BaselineName = true, c.name
	if c.failed != nil {
		r.Err = fmt.Sprintf("the baseline, %s: %s", c.name, c.failed)
		return r
	}
	r.Baseline, r.BaselineSample = figure(c.beside), c.beside.Summary()
	return r
}
