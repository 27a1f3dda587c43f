package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/atoll-run/atoll/bench/rig"
)

// profileWake takes first calls of a sandbox that sleeps: one that is frozen, or with so
// many MiB of memory on disk.
func (b *bench) profileWake(ctx context.Context, w io.Writer, mib int) error {
	p, err := b.traced(ctx, rig.Options{PoolSize: 0, Args: []string{"--sandbox-frozen=1h"}})
	if err != nil {
		return err
	}
	watch := p.watch
	calls, err := p.wakeUps(ctx, 1+b.count(20), mib)
	if err = errors.Join(err, p.end()); err != nil {
		return err
	}
	runs, err := p.steps(calls[1:], "sandbox.wake") // the first is for the page cache
	if err != nil {
		return err
	}
	if err := writeStages(w, medianStages(runs, watch.UsedAt)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nMedians of %d. CPU is that of all sandboxes while the stage lasts, kernels that are made ready included.\n", len(runs))
	return err
}

func (p *profiled) wakeUps(ctx context.Context, n, mib int) (calls []step, err error) {
	name, sleep := "sleeper", func() error { return p.status(ctx, "sleeper", "sleeping") }
	if mib == 0 {
		err = p.create(ctx, name, map[string]any{"sleep_after_ms": 1000})
	} else {
		err = p.shell(ctx, name, holding(mib))
		sleep = func() error { return errors.Join(p.sleep(ctx, name), wait(ctx, stocked)) }
	}
	for range n {
		if err == nil {
			err = sleep()
		}
		if err != nil {
			return nil, err
		}
		var c step
		c, err = call(func() error {
			_, err := p.tool(ctx, "glob", map[string]any{"sandbox": name, "pattern": "nothing"})
			return err
		})
		calls = append(calls, c)
	}
	return calls, err
}
