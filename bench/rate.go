package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// perSecond is the rate of requests whose tail is measured.
const perSecond = 5

// rate measures latency at a steady rate. Requests begin on schedule whether or not
// earlier ones have ended. Their time runs from the schedule, so that a stall counts for
// all that it delays; what runs from the sending is without the client's own delay in
// waking up. The bare interpreter is measured before and after: between the requests it
// would disturb them.
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
	took, err := openLoop(ctx, b.count(300), time.Second/perSecond, func(ctx context.Context) error {
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
	var rows []report.Row
	for _, from := range []struct {
		name         string
		sample       report.Sample
		p50, p99     *report.Bound
		aim50, aim99 *report.Bound
	}{
		{"", took.due, report.AtMost(0.4), report.AtMost(1.2), report.AtMost(0.25), report.AtMost(0.6)},
		{", from the sending", took.sent, nil, nil, nil, nil},
	} {
		p50 := p50Row("the same at 5 requests/s"+from.name+", p50", from.sample, bare, "bare python, p50", from.p50, from.aim50, note)
		p99 := p50Row("the same at 5 requests/s"+from.name+", p99", from.sample, bare, "bare python, p50", from.p99, from.aim99, "")
		p99.Measured = p99.Sample.P99
		rows = append(rows, p50, p99)
	}
	return rows, nil
}

// latencies of calls, as long as they took from when they were due and from when they
// were made.
type latencies struct{ due, sent report.Sample }

// openLoop calls f n times, one call every interval. The first error is returned once
// all have ended.
func openLoop(ctx context.Context, n int, interval time.Duration, f func(context.Context) error) (latencies, error) {
	took := latencies{make(report.Sample, n), make(report.Sample, n)}
	errs := make([]error, n)
	var calls sync.WaitGroup
	begun := time.Now()
	for i := range n {
		due := begun.Add(time.Duration(i) * interval)
		if err := waitUntil(ctx, due); err != nil {
			calls.Wait()
			return latencies{}, err
		}
		calls.Go(func() {
			sent := time.Now()
			errs[i] = f(ctx)
			done := time.Now()
			took.due[i], took.sent[i] = done.Sub(due), done.Sub(sent)
		})
	}
	calls.Wait()
	return took, firstError(errs)
}

// waitUntil waits for a moment, the last of it in the kernel's timer: Go's scheduler waits
// in whole milliseconds, by which a call would be sent late that the server is measured by.
func waitUntil(ctx context.Context, at time.Time) error {
	const timers = 3 * time.Millisecond
	if err := wait(ctx, time.Until(at)-timers); err != nil {
		return err
	}
	t := unix.NsecToTimespec(max(time.Until(at), 0).Nanoseconds())
	if err := unix.Nanosleep(&t, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	return wait(ctx, time.Until(at)) // what a signal has cut off
}
