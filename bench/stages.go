package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

// midpoint is a moment of a sandbox's start, at which what its name says was
// done.
type midpoint struct {
	name string
	at   time.Time
}

var (
	timerLine = regexp.MustCompile(`Timeline (\S.*?) reached midpoint (.*) at \S+ \(unix nanos: (\d+)\)`)
	runLog    = regexp.MustCompile(`^runsc\.log\.(\d{8}-\d{6}\.\d{6})\.run\.txt$`)
)

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

// readMidpoints reads what the commands of one sandbox have logged, in order of
// time, and removes it.
func readMidpoints(dir string) ([]midpoint, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*", "runsc.log.*"))
	if err != nil {
		return nil, err
	}
	var points []midpoint
	for _, path := range logs {
		if m := runLog.FindStringSubmatch(filepath.Base(path)); m != nil {
			at, err := time.ParseInLocation("20060102-150405.000000", m[1], time.Local)
			if err != nil {
				return nil, err
			}
			points = append(points, midpoint{"server received it, prepared the sandbox, started runsc", at})
		}
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
	return points, nil
}

// stage is the time that passed until its name was reached.
type stage struct {
	name string
	took time.Duration
}

// medianStages returns the median time of each stage, in the order of the first
// run; a stage that some run lacks is left out. The same name may come twice.
func medianStages(runs [][]midpoint) []stage {
	type key struct {
		name string
		nth  int
	}
	samples := map[key]report.Sample{}
	var order []key
	for i, run := range runs {
		seen := map[string]int{}
		for j, p := range run[1:] {
			k := key{p.name, seen[p.name]}
			seen[p.name]++
			if i == 0 {
				order = append(order, k)
			}
			samples[k] = append(samples[k], p.at.Sub(run[j].at))
		}
	}
	var stages []stage
	for _, k := range order {
		if len(samples[k]) == len(runs) {
			stages = append(stages, stage{k.name, samples[k].Percentile(50)})
		}
	}
	return stages
}
