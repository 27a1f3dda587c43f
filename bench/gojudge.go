package main

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/bench/report"
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
	t, err := closedLoop(ctx, loadClients, loadLead, b.window(10*time.Second), func(ctx context.Context) error {
		_, err := j.Execute(ctx, pythonHello)
		return err
	})
	if err != nil {
		return nil, err
	}
	const kernel = "shares the host's kernel"
	return []report.Row{
		p50Row(name, judge, bare, "bare python, p50", nil, nil, kernel),
		{Case: "go-judge, sustained, 8 clients", Unit: "executions/s", Measured: t.perSecond(), Sample: t.each.Summary(), Note: kernel + "; " + t.note()},
	}, nil
}
