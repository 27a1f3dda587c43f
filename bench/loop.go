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

// firstError returns the first error of a list, and how many there are. What
// was cancelled because of it comes after it.
func firstError(errs []error) error {
	var first error
	n := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		n++
		if first == nil || errors.Is(first, context.Canceled) {
			first = err
		}
	}
	if n > 1 {
		return fmt.Errorf("%d of %d failed, one of them: %w", n, len(errs), first)
	}
	return first
}

// throughput is what a closed loop achieved.
type throughput struct {
	each   report.Sample // durations of the calls counted
	window time.Duration // in which they were counted
	cpu    time.Duration // that the whole machine used meanwhile
}

func (t throughput) perSecond() float64 { return float64(len(t.each)) / t.window.Seconds() }

// add adds what another loop of the same kind achieved.
func (t *throughput) add(o throughput) {
	t.each = append(t.each, o.each...)
	t.window += o.window
	t.cpu += o.cpu
}

func (t throughput) note() string {
	return fmt.Sprintf("%.1f ms of CPU each, clients and all", report.Milliseconds(t.cpu)/float64(max(len(t.each), 1)))
}

// closedLoop keeps clients busy with f, one call after the other, and counts
// the calls that end within window. Before it, they run for lead without being
// counted. An error ends the loop.
func closedLoop(ctx context.Context, clients int, lead, window time.Duration, f func(context.Context) error) (throughput, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now().Add(lead)
	end := begin.Add(window)
	samples := make([]report.Sample, clients)
	errs := make([]error, clients)
	var loops sync.WaitGroup
	for i := range clients {
		loops.Go(func() {
			for errs[i] == nil && ctx.Err() == nil && time.Now().Before(end) {
				started := time.Now()
				if errs[i] = f(ctx); errs[i] != nil {
					cancel()
					return
				}
				if now := time.Now(); now.After(begin) && now.Before(end) {
					samples[i] = append(samples[i], now.Sub(started))
				}
			}
		})
	}
	var t throughput
	err := wait(ctx, time.Until(begin))
	var before, after time.Duration
	if err == nil {
		before, err = rig.CPUTime()
	}
	if err == nil {
		err = wait(ctx, time.Until(end))
	}
	if err == nil {
		after, err = rig.CPUTime()
	}
	loops.Wait()
	if failed := firstError(errs); failed != nil {
		return t, failed
	}
	if err != nil {
		return t, err
	}
	for _, s := range samples {
		t.each = append(t.each, s...)
	}
	t.window, t.cpu = window, after-before
	return t, nil
}
