package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// breath is the pause after a sandbox was made from nothing, for what it left
// to be cleared away: Atoll does that after its answer, runsc before its end.
const breath = 150 * time.Millisecond

// cold measures executions for which nothing was ready, beside 'runsc do' on
// the same image, by turns. gVisor's own build is the baseline; Atoll's build
// of it, with a smaller kernel binary, is measured for information.
func cold(ctx context.Context, b *bench) (_ []report.Row, err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: 0})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	var atoll, stock, lean report.Sample
	turns := []struct {
		name   string
		sample *report.Sample
		run    func() (time.Duration, error)
	}{
		{"Atoll", &atoll, func() (time.Duration, error) { return s.Execute(ctx, pythonHello) }},
		{"runsc do", &stock, func() (time.Duration, error) { return b.rig.RunscDo(ctx, b.rig.Stock, pythonHello) }},
		{"atoll-runsc do", &lean, func() (time.Duration, error) { return b.rig.RunscDo(ctx, b.rig.Runsc(), pythonHello) }},
	}
	for i := range 1 + b.count(50) {
		for _, t := range turns {
			if err := wait(ctx, breath); err != nil {
				return nil, err
			}
			took, err := t.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			if i > 0 { // the first is for the page cache
				*t.sample = append(*t.sample, took)
			}
		}
	}
	m, err := s.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	if hits := m.Sum("atoll_pool_claims_total", `result="hit"`); hits > 0 {
		return nil, fmt.Errorf("%.0f executions found a warm sandbox in a pool of size 0", hits)
	}
	return []report.Row{
		p50Row("pool empty (cold) print(1), p50", atoll, stock, "runsc do, p50", report.AtMost(0.7), report.AtMost(0.5), ""),
		p50Row("the same beside Atoll's build of runsc", atoll, lean, "atoll-runsc do, p50", nil, nil, ""),
	}, nil
}
