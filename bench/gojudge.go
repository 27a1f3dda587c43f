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

// goJudge measures go-judge, which keeps containers ready and shares the host's
// kernel, with the same interpreter and in the same way as Atoll. Where it
// cannot be built or started, its row says so and nothing has failed.
func goJudge(ctx context.Context, b *bench) (_ []report.Row, err error) {
	const name = "go-judge, print(1), p50"
	j, err := b.rig.ServeJudge(ctx)
	if err != nil {
		return []report.Row{{Case: name, Note: "not measured: " + err.Error()}}, ctx.Err()
	}
	defer func() { err = errors.Join(err, j.Stop()) }()
	var judge, bare report.Sample
	for i := range 1 + b.count(100) {
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
		sandboxed, err := j.Execute(ctx, pythonHello)
		if err != nil {
			return nil, err
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
		unsandboxed, err := b.rig.RunBare(ctx, pythonHello)
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first is for the page cache
			judge, bare = append(judge, sandboxed), append(bare, unsandboxed)
		}
	}
	const kernel = "shares the host's kernel"
	rows := []report.Row{p50Row(name, judge, bare, "bare python, p50", nil, nil, kernel)}
	sustained, err := sharedKernels(ctx, b, j)
	return append(rows, sustained...), err
}

// sharedKernels measures how many executions a second there can be whose key lets them
// share kernels, beside go-judge, by turns.
func sharedKernels(ctx context.Context, b *bench, j *rig.Judge) (_ []report.Row, err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := s.ShareKernels(ctx); err != nil {
		return nil, err
	}
	var atoll, judge throughput
	for range loadRounds {
		for _, l := range []struct {
			sum *throughput
			f   func(context.Context, rig.Program) (time.Duration, error)
		}{{&atoll, s.Execute}, {&judge, j.Execute}} {
			got, err := closedLoop(ctx, loadClients, loadLead, b.window(30*time.Second)/loadRounds, func(ctx context.Context) error {
				_, err := l.f(ctx, pythonHello)
				return err
			})
			if err != nil {
				return nil, err
			}
			l.sum.add(got)
		}
	}
	grown, err := growth(ctx, b, s)
	if err != nil {
		return nil, err
	}
	return append([]report.Row{{
		Case: "sustained, 8 clients, isolation key", Unit: "executions/s", Measured: atoll.perSecond(), Sample: atoll.each.Summary(),
		Baseline: judge.perSecond(), BaselineSample: judge.each.Summary(), BaselineName: "go-judge, 8 clients",
		Must: report.AtLeast(1), Aim: report.AtLeast(1.5), Note: fmt.Sprintf("%s; go-judge shares the host's kernel, %s", atoll.note(), judge.note()),
	}}, grown...), nil
}

// growth measures what the server's memory grows by while executions of a key follow those
// that it has had, and while as many more follow these: the first also fill buffers that
// stay, such as those of NATS's blocks.
func growth(ctx context.Context, b *bench, s *rig.Server) (rows []report.Row, err error) {
	n := b.count(1000)
	before, err := s.RSS()
	if err != nil {
		return nil, err
	}
	for _, which := range []string{"more", "after these"} {
		if err := executions(ctx, s, n); err != nil {
			return nil, err
		}
		after, err := s.RSS()
		if err != nil {
			return nil, err
		}
		rows = append(rows, report.Row{
			Case: fmt.Sprintf("memory of the server, %d executions %s, isolation key", n, which), Unit: "MB", Measured: float64(after-before) / 1e6,
			Must: report.AtMost(8), Note: fmt.Sprintf("resident, from %.0f MB; after those of the row above", float64(before)/1e6),
		})
		before = after
	}
	return rows, nil
}

// executions has clients at the same time run a program n times.
func executions(ctx context.Context, s *rig.Server, n int) error {
	errs := make([]error, loadClients)
	var loops sync.WaitGroup
	for i := range errs {
		loops.Go(func() {
			for range n / loadClients {
				if _, errs[i] = s.Execute(ctx, pythonHello); errs[i] != nil {
					return
				}
			}
		})
	}
	loops.Wait()
	return firstError(errs)
}
