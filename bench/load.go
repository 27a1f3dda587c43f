package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

const (
	loadClients = 8  // of Atoll
	loadLoops   = 4  // of runsc do
	burst       = 50 // requests at once
	loadLead    = 2 * time.Second
	loadRounds  = 3
)

// load measures how many executions a second there can be, each with a kernel
// of its own that nothing else uses, and what happens when many come at once.
func load(ctx context.Context, b *bench) (_ []report.Row, err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	window := b.window(30 * time.Second)
	var atoll, stock, lean throughput
	runsc := func(binary string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := b.rig.RunscDo(ctx, binary, pythonHello)
			return err
		}
	}
	loops := []struct {
		name    string
		clients int
		sum     *throughput
		f       func(context.Context) error
	}{
		{"atoll", loadClients, &atoll, func(ctx context.Context) error {
			_, err := s.Execute(ctx, pythonHello)
			return err
		}},
		{"runsc do", loadLoops, &stock, runsc(b.rig.Stock)},
		{"atoll-runsc do", loadLoops, &lean, runsc(b.rig.Runsc())},
	}
	// By turns: a machine that others share is not equally fast for minutes.
	for range loadRounds {
		for _, l := range loops {
			if err := s.Settle(ctx); err != nil {
				return nil, err
			}
			got, err := closedLoop(ctx, l.clients, loadLead, window/loadRounds, l.f)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
			l.sum.add(got)
		}
	}
	sustained := func(name string, baseline throughput, of string) report.Row {
		return report.Row{
			Case: name, Unit: "executions/s", Measured: atoll.perSecond(), Sample: atoll.each.Summary(),
			Baseline: baseline.perSecond(), BaselineSample: baseline.each.Summary(), BaselineName: fmt.Sprintf("%d loops of %s", loadLoops, of),
			Note: fmt.Sprintf("%s; baseline %s", atoll.note(), baseline.note()),
		}
	}
	official := sustained(fmt.Sprintf("sustained, %d clients, %s", loadClients, window), stock, "runsc do")
	official.Must, official.Aim = report.AtLeast(1.6), report.AtLeast(2.5)
	rows := []report.Row{official, sustained("the same beside Atoll's build of runsc", lean, "atoll-runsc do")}

	sample, err := bursts(ctx, b.count(5), s)
	if err != nil {
		return append(rows, report.Row{Case: "burst of 50 at once, p95", Err: err.Error()}), nil
	}
	return append(rows, report.Row{
		Case: "burst of 50 at once, all succeed, p95", Unit: "ms",
		Measured: report.Milliseconds(sample.Percentile(95)), Sample: sample.Summary(),
		Must: report.AtMost(burst / atoll.perSecond() * 1000), Note: "must reach 50 ÷ the sustained rate",
	}), nil
}

// bursts sends requests all at once, several times, each time with a full pool.
func bursts(ctx context.Context, times int, s *rig.Server) (report.Sample, error) {
	var all report.Sample
	for range times {
		if err := s.Settle(ctx); err != nil {
			return nil, err
		}
		sample := make(report.Sample, burst)
		errs := make([]error, burst)
		var calls sync.WaitGroup
		for i := range burst {
			calls.Go(func() { sample[i], errs[i] = s.Execute(ctx, pythonHello) })
		}
		calls.Wait()
		if err := firstError(errs); err != nil {
			return nil, err
		}
		all = append(all, sample...)
	}
	return all, nil
}
