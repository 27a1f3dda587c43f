package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

// midpoint is a moment of a sandbox's start, at which what its name says was
// done.
type midpoint struct {
	name string
	at   time.Time
}

var timerLine = regexp.MustCompile(`Timeline (\S.*?) reached midpoint (.*) at \S+ \(unix nanos: (\d+)\)`)

// parseMidpoints reads the lines of gVisor's start-up timer in a log.
func parseMidpoints(log string) ([]midpoint, error) {
	var points []midpoint
	for _, m := range timerLine.FindAllStringSubmatch(log, -1) {
		ns, err := strconv.ParseInt(m[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("midpoint %s: %w", m[2], err)
		}
		name := m[2]
		if _, part, ok := strings.Cut(m[1], "/"); ok {
			name = part + ": " + name
		}
		points = append(points, midpoint{name, time.Unix(0, ns)})
	}
	return points, nil
}

// readMidpoints reads what the kernel of one sandbox has logged, in order of time, and
// removes it. The first is when its Go code runs.
func readMidpoints(dir string) ([]midpoint, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*", "runsc.log.*"))
	if err != nil {
		return nil, err
	}
	var points []midpoint
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		more, err := parseMidpoints(string(data))
		if err != nil {
			return nil, err
		}
		points = append(points, more...)
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("runsc logged no timer in %s", dir)
	}
	slices.SortStableFunc(points, func(a, b midpoint) int { return a.at.Compare(b.at) })
	points[0].name = "server prepared the sandbox, runsc started its kernel; " + points[0].name
	return points, nil
}

// step is something that was done in one run of what is profiled.
type step struct {
	name       string
	depth      int // below what it is a part of
	begin, end time.Time
}

// between are the steps from one midpoint to the next; the first only begins.
func between(points []midpoint) []step {
	var steps []step
	for i, p := range points[1:] {
		steps = append(steps, step{name: p.name, begin: points[i].at, end: p.at})
	}
	return steps
}

// stage is a step as it is in most runs: when it began, what it took, and the processor
// time that was used meanwhile.
type stage struct {
	name          string
	depth         int
	at, took, cpu time.Duration
}

// medianStages returns the medians of each step, in the order of the first run; one that
// some run lacks is left out. The same name may come twice. A run begins with its first
// step. used is the processor time that was used until a time.
func medianStages(runs [][]step, used func(time.Time) time.Duration) []stage {
	type key struct {
		name string
		nth  int
	}
	type samples struct {
		depth         int
		at, took, cpu report.Sample
	}
	all := map[key]*samples{}
	var order []key
	for i, run := range runs {
		seen := map[string]int{}
		for _, st := range run {
			k := key{st.name, seen[st.name]}
			seen[st.name]++
			if i == 0 {
				order = append(order, k)
				all[k] = &samples{depth: st.depth}
			}
			of := all[k]
			if of == nil {
				continue
			}
			of.at, of.took = append(of.at, st.begin.Sub(run[0].begin)), append(of.took, st.end.Sub(st.begin))
			of.cpu = append(of.cpu, used(st.end)-used(st.begin))
		}
	}
	var stages []stage
	for _, k := range order {
		if of := all[k]; len(of.took) == len(runs) {
			stages = append(stages, stage{k.name, of.depth, of.at.Percentile(50), of.took.Percentile(50), of.cpu.Percentile(50)})
		}
	}
	return stages
}

// writeStages writes a table of stages.
func writeStages(w io.Writer, stages []stage) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "begins at\ttakes\tCPU\t \n")
	for _, st := range stages {
		fmt.Fprintf(tw, "%.2f ms\t%.2f ms\t%.2f ms\t  %s%s\n",
			report.Milliseconds(st.at), report.Milliseconds(st.took), report.Milliseconds(st.cpu), strings.Repeat("  ", st.depth), st.name)
	}
	return tw.Flush()
}
