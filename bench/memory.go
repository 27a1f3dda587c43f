package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// Pooled sandboxes are left alone before they are measured: two seconds after its start
// each gives back the memory that starting took. Then their CPU is measured for a while.
const (
	idleFor    = 3 * time.Second
	watchedFor = 10 * time.Second
)

// pythonOnly leaves plain Python as the only kind of sandbox.
var pythonOnly = rig.Variant{Languages: []execution.Language{execution.Python}, Preloads: []string{}}

// memory measures idle pooled sandboxes. The servers offer Python alone, so
// that pages are shared among no more sandboxes than the figure says; with
// preloads there are as many plain ones beside them, as there always are.
func memory(ctx context.Context, b *bench) ([]report.Row, error) {
	if len(b.rig.Image.Preloads) == 0 {
		return nil, errors.New("the image has no preloads, so their memory cannot be measured")
	}
	size := 20
	if b.quick {
		size = 5
	}
	plain, idle, err := pooled(ctx, b, rig.Options{PoolSize: size, Image: pythonOnly}, false)
	if err != nil {
		return nil, err
	}
	preloaded, _, err := pooled(ctx, b, rig.Options{PoolSize: size, Image: rig.Variant{Languages: pythonOnly.Languages}}, true)
	if err != nil {
		return []report.Row{plain}, err
	}
	plain.Must, plain.Aim = report.AtMost(10), report.AtMost(8)
	preloaded.Must, preloaded.Aim = report.AtMost(40), report.AtMost(18)
	plain.Case = fmt.Sprintf("idle pooled sandbox, plain Python, PSS of %d", size)
	preloaded.Case = fmt.Sprintf("idle pooled sandbox, with preloads, PSS of %d", size)
	return []report.Row{plain, preloaded, {
		Case: "CPU that an idle pooled sandbox uses", Unit: "% of one core",
		Measured: 100 * idle, Note: fmt.Sprintf("by the control groups of %d, over %s", size, b.window(watchedFor)),
		Must: report.AtMost(0.02),
	}}, nil
}

// pooled starts a server and measures its idle sandboxes, of the kind with
// preloads or without, and the share of a core that each uses.
func pooled(ctx context.Context, b *bench, o rig.Options, preloads bool) (row report.Row, idle float64, err error) {
	s, err := b.rig.Serve(ctx, o)
	if err != nil {
		return row, 0, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := wait(ctx, idleFor); err != nil {
		return row, 0, err
	}
	before, err := s.Sandboxes()
	if err != nil {
		return row, 0, err
	}
	begun := time.Now()
	if err := wait(ctx, b.window(watchedFor)); err != nil {
		return row, 0, err
	}
	sandboxes, err := s.Sandboxes()
	if err != nil {
		return row, 0, err
	}
	idle = float64(totalCPU(sandboxes)-totalCPU(before)) / float64(time.Since(begun)) / float64(len(sandboxes))
	kind := b.rig.Image.Name + "/" + string(execution.Python)
	if preloads {
		kind += "+preloads"
	}
	var pss int64
	var cpu time.Duration
	var count, processes, spaces int
	for _, u := range sandboxes {
		if u.Pool == kind {
			pss += u.PSS
			cpu += u.CPU
			processes += u.Processes
			spaces += u.Spaces
			count++
		}
	}
	if count != o.PoolSize {
		return row, 0, fmt.Errorf("there are %d idle sandboxes of %s instead of %d", count, kind, o.PoolSize)
	}
	return report.Row{
		Unit: "MB", Measured: float64(pss) / 1e6 / float64(count),
		Note: fmt.Sprintf("%.1f processes in %.1f address spaces, and %.0f ms of CPU so far, each", float64(processes)/float64(count), float64(spaces)/float64(count), report.Milliseconds(cpu)/float64(count)),
	}, idle, nil
}

func totalCPU(sandboxes []rig.Usage) (sum time.Duration) {
	for _, u := range sandboxes {
		sum += u.CPU
	}
	return sum
}
