package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/image"
)

// connected measures what a network adds to making and claiming a sandbox: the
// processor time of the sandbox, its kernel's start included, and of the server,
// by turns with sandboxes without.
func connected(ctx context.Context, b *bench) (_ []report.Row, err error) {
	state, err := b.rig.Temp("connect")
	if err != nil {
		return nil, err
	}
	images, err := image.Open(filepath.Dir(filepath.Dir(b.rig.Image.File)))
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, engine.Config{
		Platform: engine.Platform{
			Runsc: b.rig.Runsc(), Guest: filepath.Join(b.rig.Bin, "atoll-guest"), State: state, Name: engine.NewName(), Log: slog.New(slog.DiscardHandler),
		},
		Images: images, Image: b.rig.Image.Name, Limits: runtime.DefaultLimits(), Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var cpu, wall [2]report.Sample
	policies := []runtime.NetworkPolicy{{}, {Mode: runtime.NetworkUnrestricted}}
	for i := range 1 + b.count(40) {
		for k, p := range policies {
			if err := wait(ctx, breath); err != nil {
				return nil, err
			}
			used, took, err := makeSandbox(ctx, e, b.rig.Image.Name, p)
			if err != nil {
				return nil, fmt.Errorf("a sandbox with the network %q: %w", p.Mode, err)
			}
			if i > 0 { // the first is for the page cache
				cpu[k], wall[k] = append(cpu[k], used), append(wall[k], took)
			}
		}
	}
	more := cpu[1].Summary().P50 - cpu[0].Summary().P50
	return []report.Row{
		{Case: "processor time that a network adds to a sandbox", Unit: "ms", Measured: more, Must: report.AtMost(10)},
		p50Row("making a sandbox with a network, processor time, p50", cpu[1], cpu[0], "without", nil, nil, ""),
		p50Row("the same, time until it is claimed, p50", wall[1], wall[0], "without", nil, nil, ""),
	}, nil
}

// makeSandbox makes, claims and ends one.
func makeSandbox(ctx context.Context, e *engine.Engine, img string, p runtime.NetworkPolicy) (cpu, wall time.Duration, err error) {
	before := ownCPU()
	begun := time.Now()
	c, _, err := e.Claim(ctx, &execution.Job{
		Language: execution.Bash, Image: img, Limits: runtime.DefaultLimits(), Permissions: runtime.Permissions{Network: p},
	})
	if err != nil {
		return 0, 0, err
	}
	wall = time.Since(begun)
	u, err := c.(interface {
		Usage(context.Context) (runtime.Usage, error)
	}).Usage(ctx)
	err = errors.Join(err, c.Destroy(context.WithoutCancel(ctx)))
	return ownCPU() - before + time.Duration(u.CPUSeconds*float64(time.Second)), wall, err
}

// ownCPU is the processor time of this process.
func ownCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail so
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
