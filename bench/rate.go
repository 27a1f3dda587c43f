package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// perSecond is the rate of requests whose tail is measured.
const perSecond = 5

// rate measures the tail at a steady rate. Requests begin on schedule whether
// or not earlier ones have ended, and their time runs from the schedule, so
// that a stall counts for all that it delays. The bare interpreter is measured
// before and after: between the requests it would disturb them.
func rate(ctx context.Context, b *bench) (_ []report.Row, err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	var bare report.Sample
	measureBare := func() error {
		for range b.count(50) {
			if err := wait(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			took, err := b.rig.RunBare(ctx, pythonHello)
			if err != nil {
				return err
			}
			bare = append(bare, took)
		}
		return s.Settle(ctx)
	}
	if _, err := s.Execute(ctx, pythonHello); err != nil { // for the connection
		return nil, err
	}
	if err := measureBare(); err != nil {
		return nil, err
	}
	before, err := s.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	sample, err := openLoop(ctx, b.count(300), time.Second/perSecond, func(ctx context.Context) error {
		_, err := s.Execute(ctx, pythonHello)
		return err
	})
	if err != nil {
		return nil, err
	}
	note, err := missNote(ctx, s, before)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.Settle(ctx), measureBare()); err != nil {
		return nil, err
	}
	row := p50Row("the same at 5 requests/s, p99", sample, bare, "bare python, p50", report.AtMost(2), report.AtMost(1), note)
	row.Measured = row.Sample.P99
	return []report.Row{row}, nil
}

// openLoop calls f n times, one call every interval, and returns how long after
// its time each was done. The first error is returned once all have ended.
func openLoop(ctx context.Context, n int, interval time.Duration, f func(context.Context) error) (report.Sample, error) {
	sample := make(report.Sample, n)
	errs := make([]error, n)
	var calls sync.WaitGroup
	begun := time.Now()
	for i := range n {
		due := begun.Add(time.Duration(i) * interval)
		if err := wait(ctx, time.Until(due)); err != nil {
			calls.Wait()
			return nil, err
		}
		calls.Go(func() {
			errs[i] = f(ctx)
			sample[i] = time.Since(due)
		})
	}
	calls.Wait()
	return sample, firstError(errs)
}
