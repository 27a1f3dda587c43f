package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/atoll-run/atoll/bench/rig"
)

// shown is the shortest stage of a sandbox's start with a line of its own.
const shown = 200 * time.Microsecond

// profileMaking takes executions with an empty pool. The stages of the sandbox's start are
// from the log of gVisor's start-up timer.
func (b *bench) profileMaking(ctx context.Context, w io.Writer) error {
	logs, runsc, err := b.loggingRunsc()
	if err != nil {
		return err
	}
	p, err := b.traced(ctx, rig.Options{PoolSize: 0, Args: []string{"--runsc=" + runsc}})
	if err != nil {
		return err
	}
	watch := p.watch
	calls, started, err := p.make(ctx, logs, 1+b.count(30))
	if err = errors.Join(err, p.end()); err != nil {
		return err
	}
	calls, started = calls[1:], started[1:] // the first is for the page cache
	traced, err := p.steps(calls, "guest.run")
	if err != nil {
		return err
	}
	var runs [][]step
	for i, spans := range traced {
		points := append([]midpoint{{at: calls[i].begin}}, started[i]...)
		for _, s := range spans {
			switch s.name {
			case "sandbox.claim":
				points = append(points, midpoint{"guest and interpreter started", s.end})
			case "guest.run":
				points = append(points, midpoint{"program run", s.end})
			}
		}
		points = append(points, midpoint{"answer recorded, sent and read", calls[i].end})
		slices.SortStableFunc(points, func(a, b midpoint) int { return a.at.Compare(b.at) })
		runs = append(runs, between(points))
	}
	stages := slices.DeleteFunc(medianStages(runs, watch.UsedAt), func(s stage) bool { return s.took < shown })
	if err := writeStages(w, stages); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nMedians of %d; stages below %s are left out. CPU is that of the sandbox, from its control group.\n", len(runs), shown)
	return err
}

// make takes executions from nothing, and returns when each was made and what its
// sandbox's start logged.
func (p *profiled) make(ctx context.Context, logs string, n int) (calls []step, started [][]midpoint, err error) {
	if _, err := readMidpoints(logs); err != nil { // of the sandbox that is there already
		return nil, nil, err
	}
	for range n {
		if err := wait(ctx, breath); err != nil {
			return nil, nil, err
		}
		c, err := call(func() error { _, err := p.Execute(ctx, pythonHello); return err })
		if err != nil {
			return nil, nil, err
		}
		if err := wait(ctx, breath); err != nil { // for its sandbox to be destroyed
			return nil, nil, err
		}
		points, err := readMidpoints(logs)
		if err != nil {
			return nil, nil, err
		}
		calls, started = append(calls, c), append(started, points)
	}
	return calls, started, nil
}

// loggingRunsc makes a stand-in for Atoll's runsc whose kernels log their timers, those
// that one process starts into a folder of its own below logs.
func (b *bench) loggingRunsc() (logs, runsc string, err error) {
	dir, err := b.rig.Temp("profile")
	if err != nil {
		return "", "", err
	}
	logs, runsc = filepath.Join(dir, "logs"), filepath.Join(dir, "atoll-runsc")
	if err := os.Mkdir(logs, 0o700); err != nil {
		return "", "", err
	}
	if err := os.Symlink(filepath.Join(b.rig.Bin, "gvisor-bin"), filepath.Join(dir, "gvisor-bin")); err != nil {
		return "", "", err
	}
	script := fmt.Sprintf("#!/bin/sh\nmkdir '%s'/$$ && exec '%s' --debug --debug-log='%s'/$$/ \"$@\"\n", logs, b.rig.Runsc(), logs)
	return logs, runsc, os.WriteFile(runsc, []byte(script), 0o755)
}
