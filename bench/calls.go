package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// callSeries are how many calls a client makes one after the other, each by a curl of
// its own, from when the pool is full.
var callSeries = []int{20, 100}

// callRounds is how often each series is measured. A series that finds the pool as the
// one before has left it finds what demand has taught it.
const callRounds = 6

// calls measures calls that come one after the other without a pause, each from a
// process and over a connection of its own, as scripts make them. The bare interpreter
// runs as often, between the series.
func calls(ctx context.Context, b *bench) ([]report.Row, error) {
	var rows []report.Row
	for _, n := range callSeries {
		more, err := callsOf(ctx, b, n)
		if err != nil {
			return rows, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func callsOf(ctx context.Context, b *bench, n int) (_ []report.Row, err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if _, err := s.Execute(ctx, pythonHello); err != nil { // for the page cache
		return nil, err
	}
	before, err := s.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	var first, later, bare report.Sample
	for i := range max(2, b.count(10*callRounds)/10) {
		if err := s.Settle(ctx); err != nil {
			return nil, err
		}
		sample := &later
		if i == 0 {
			sample = &first
		}
		for range n {
			took, err := s.Curl(ctx, pythonHello)
			if err != nil {
				return nil, err
			}
			*sample = append(*sample, took)
		}
		if err := s.Settle(ctx); err != nil {
			return nil, err
		}
		for range n {
			took, err := b.rig.RunBare(ctx, pythonHello)
			if err != nil {
				return nil, err
			}
			bare = append(bare, took)
		}
	}
	note, err := missNote(ctx, s, before)
	if err != nil {
		return nil, err
	}
	var rows []report.Row
	for _, series := range []struct {
		name   string
		sample report.Sample
	}{{"the first", first}, {"later ones", later}} {
		p50 := p50Row(fmt.Sprintf("%d curls in a row, %s, p50", n, series.name), series.sample, bare, "bare python, p50", nil, nil, note)
		worst := p50
		worst.Case, worst.Note = fmt.Sprintf("%d curls in a row, %s, worst", n, series.name), ""
		worst.Measured = report.Milliseconds(series.sample.Percentile(100))
		rows = append(rows, p50, worst)
	}
	return rows, nil
}
