package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// callSeries are what a client does from when the pool is full: so many calls one after
// the other, each by a curl of its own or over one connection.
var callSeries = []series{
	{calls: 20, what: "curls", call: (*rig.Server).Curl},
	{calls: 100, what: "curls", call: (*rig.Server).Curl},
	{
		calls: 100, what: "calls over one connection", call: (*rig.Server).Execute,
		must: [2]*report.Bound{report.AtMost(0.6), report.AtMost(6)}, aim: [2]*report.Bound{report.AtMost(0.3), report.AtMost(2)},
	},
}

// series of calls; bounds are of the p50 and the p99.
type series struct {
	calls     int
	what      string
	call      func(*rig.Server, context.Context, rig.Program) (time.Duration, error)
	must, aim [2]*report.Bound
}

// callRounds is how often each series is measured. A series that finds the pool as the
// one before has left it finds what demand has taught it.
const callRounds = 6

// calls measures calls that come one after the other without a pause: each from a process
// and over a connection of its own, as scripts make them, and over one connection, as
// from an SDK. The bare interpreter runs as often, between the series.
func calls(ctx context.Context, b *bench) ([]report.Row, error) {
	var rows []report.Row
	for i := range callSeries {
		more, err := callsOf(ctx, b, &callSeries[i])
		if err != nil {
			return rows, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func callsOf(ctx context.Context, b *bench, c *series) (_ []report.Row, err error) {
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
		for range c.calls {
			took, err := c.call(s, ctx, pythonHello)
			if err != nil {
				return nil, err
			}
			*sample = append(*sample, took)
		}
		if err := s.Settle(ctx); err != nil {
			return nil, err
		}
		for range c.calls {
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
	for _, part := range []struct {
		name   string
		sample report.Sample
	}{{"the first", first}, {"later ones", later}} {
		for i, of := range []struct {
			name string
			p    float64
		}{{"p50", 50}, {"p99", 99}, {"worst", 100}} {
			row := p50Row(fmt.Sprintf("%d %s in a row, %s, %s", c.calls, c.what, part.name, of.name), part.sample, bare, "bare python, p50", nil, nil, "")
			row.Measured = report.Milliseconds(part.sample.Percentile(of.p))
			if i == 0 {
				row.Note = note
			}
			if i < len(c.must) {
				row.Must, row.Aim = c.must[i], c.aim[i]
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}
