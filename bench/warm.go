package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// pair is a program measured in Atoll and bare, by turns.
type pair struct {
	name      string
	program   rig.Program
	every     int // measured in every n-th round
	must, aim *report.Bound

	atoll, bare report.Sample
}

// warm measures programs in warm sandboxes. Atoll and the bare interpreter take
// turns, so that what else goes on hits both, and each starts when the pool is
// full again and the machine quiet.
func warm(ctx context.Context, b *bench) (_ []report.Row, err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	pairs := []*pair{
		{name: "HTTP execute print(1), warm, p50", program: pythonHello, every: 1, must: report.AtMost(0.32), aim: report.AtMost(0.2)},
		{name: "import pandas and print its version, warm, p50", program: pandas, every: 2, must: report.AtMost(0.1), aim: report.AtMost(0.02)},
		{name: "Node.js console.log(1), warm, p50", program: nodeHello, every: 2, must: report.AtMost(0.3), aim: report.AtMost(0.1)},
		{name: "Bash echo 1, warm, p50", program: bashHello, every: 2},
	}
	for _, p := range pairs { // once for the page cache and the connection
		if err := p.round(ctx, b, s); err != nil {
			return nil, err
		}
		p.atoll, p.bare = nil, nil
	}
	before, err := s.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	for i := range b.count(100) {
		for _, p := range pairs {
			if i%p.every != 0 {
				continue
			}
			if err := p.round(ctx, b, s); err != nil {
				return nil, err
			}
		}
	}
	note, err := missNote(ctx, s, before)
	if err != nil {
		return nil, err
	}
	var rows []report.Row
	for _, p := range pairs {
		rows = append(rows, p.row(note))
	}
	return rows, nil
}

func (p *pair) round(ctx context.Context, b *bench, s *rig.Server) error {
	if err := s.Settle(ctx); err != nil {
		return err
	}
	took, err := s.Execute(ctx, p.program)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.atoll = append(p.atoll, took)
	if err := s.Settle(ctx); err != nil {
		return err
	}
	took, err = b.rig.RunBare(ctx, p.program)
	if err != nil {
		return fmt.Errorf("%s, bare: %w", p.name, err)
	}
	p.bare = append(p.bare, took)
	return nil
}

func (p *pair) row(note string) report.Row {
	return p50Row(p.name, p.atoll, p.bare, "bare "+string(p.program.Language)+", p50", p.must, p.aim, note)
}

// p50Row compares the medians of two samples.
func p50Row(name string, measured, baseline report.Sample, baselineName string, must, aim *report.Bound, note string) report.Row {
	return report.Row{
		Case: name, Unit: "ms", Must: must, Aim: aim, Note: note,
		Measured: report.Milliseconds(measured.Percentile(50)), Sample: measured.Summary(),
		Baseline: report.Milliseconds(baseline.Percentile(50)), BaselineSample: baseline.Summary(), BaselineName: baselineName,
	}
}

// missNote says how many claims since before found no warm sandbox.
func missNote(ctx context.Context, s *rig.Server, before rig.Metrics) (string, error) {
	after, err := s.Metrics(ctx)
	if err != nil {
		return "", err
	}
	misses := func(m rig.Metrics) float64 { return m.Sum("atoll_pool_claims_total", `result="miss"`) }
	all := func(m rig.Metrics) float64 { return m.Sum("atoll_pool_claims_total") }
	return fmt.Sprintf("%.0f of the run's %.0f claims found no warm sandbox", misses(after)-misses(before), all(after)-all(before)), nil
}
