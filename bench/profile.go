package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// shown is the shortest stage with a line of its own.
const shown = 200 * time.Microsecond

// profile shows where the time of an execution goes when its sandbox is made
// from nothing: the wall-clock time of each stage, from the log of gVisor's
// start-up timer, and the CPU that a pooled sandbox has used. Writing that log
// costs time too, so the sum is larger than an execution's without it.
func (b *bench) profile(ctx context.Context, w io.Writer) (err error) {
	logs, runsc, err := b.loggingRunsc()
	if err != nil {
		return err
	}
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: 0, Args: []string{"--runsc=" + runsc}})
	if err != nil {
		return err
	}
	runs, perRun, err := b.profileRuns(ctx, s, logs)
	if err := errors.Join(err, s.Stop()); err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var at time.Duration
	fmt.Fprintf(tw, "at\ttook\t \n")
	for _, st := range medianStages(runs) {
		at += st.took
		if st.took >= shown {
			fmt.Fprintf(tw, "%.1f ms\t%.1f ms\t  %s\n", report.Milliseconds(at), report.Milliseconds(st.took), st.name)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nMedians of %d executions with an empty pool; stages below %s are left out.\n", len(runs), shown)
	fmt.Fprintf(w, "The whole machine used %.0f ms of CPU for each, client and the log included.\n", report.Milliseconds(perRun))
	plain, _, err := pooled(ctx, b, rig.Options{PoolSize: b.count(20), Image: pythonOnly}, false)
	if err == nil {
		fmt.Fprintf(w, "An idle pooled sandbox (plain Python): %.1f MB, %s.\n", plain.Measured, plain.Note)
	}
	return err
}

// loggingRunsc makes a stand-in for Atoll's runsc that has it log its timer,
// each command into a folder of its own below logs.
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

// profileRuns takes executions from nothing and returns the stages of each.
func (b *bench) profileRuns(ctx context.Context, s *rig.Server, logs string) (runs [][]midpoint, perRun time.Duration, err error) {
	for i := range 1 + b.count(30) {
		if err := wait(ctx, breath); err != nil {
			return nil, 0, err
		}
		before, err := rig.CPUTime()
		if err != nil {
			return nil, 0, err
		}
		begun := time.Now()
		took, err := s.Execute(ctx, pythonHello)
		if err != nil {
			return nil, 0, err
		}
		if err := wait(ctx, breath); err != nil { // for its sandbox to be destroyed
			return nil, 0, err
		}
		after, err := rig.CPUTime()
		if err != nil {
			return nil, 0, err
		}
		points, err := readMidpoints(logs)
		if err != nil {
			return nil, 0, err
		}
		if i == 0 {
			continue // for the page cache
		}
		points = append([]midpoint{{"", begun}}, points...)
		runs = append(runs, append(points, midpoint{"guest and interpreter started, program run, answer read", begun.Add(took)}))
		perRun += after - before
	}
	return runs, perRun / time.Duration(len(runs)), nil
}
