package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

func (p *pool) transfers(ctx context.Context, b *bench) error {
	size := int64(1 << 30)
	if b.quick {
		size = 100 << 20
	}
	if err := p.shell(ctx, "default", fmt.Sprintf("head -c %d /dev/zero > big", size)); err != nil {
		return err
	}
	if err := p.create(ctx, "target", nil); err != nil {
		return err
	}
	// On the file system that has the server's data, and on its disk before anything is
	// measured: what is still to be written there would take from what is.
	dir, err := b.rig.Temp("big")
	if err != nil {
		return err
	}
	if err := exec.CommandContext(ctx, "sh", "-ec", fmt.Sprintf("cd %s; head -c %d /dev/zero > big; sync big", dir, size)).Run(); err != nil {
		return err
	}
	big, err := compare(b.count(5), func() (time.Duration, error) {
		if err := p.shell(ctx, "target", "rm -rf big"); err != nil {
			return 0, err
		}
		return p.transfer(ctx, "big", "big")
	}, baseline{"cp", b.count(3), func() (time.Duration, error) {
		if err := p.shell(ctx, "target", "rm -rf big"); err != nil {
			return 0, err
		}
		begun := time.Now()
		err := exec.CommandContext(ctx, "cp", filepath.Join(dir, "big"), filepath.Join(dir, "copy")).Run()
		return time.Since(begun), errors.Join(err, os.Remove(filepath.Join(dir, "copy")))
	}})
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		return err
	}
	speed := func(s report.Sample) float64 { return float64(size) / 1e6 / s.Percentile(50).Seconds() }
	p.add(big.against(report.Row{
		Case: fmt.Sprintf("transfer of %d MB between sandboxes", size>>20), Unit: "MB/s", Must: report.AtLeast(300),
		Measured: speed(big.measured), Sample: big.measured.Summary(),
	}, speed))
	return p.small(ctx, b)
}

func (p *pool) transfer(ctx context.Context, from, to string) (time.Duration, error) {
	return p.tool(ctx, "transfer", map[string]any{"from_sandbox": "default", "from_path": from, "to_sandbox": "target", "to_path": to, "recursive": true})
}

// small measures the transfer of small files, by turns with cp on the machine and in
// a sandbox. Each copy is another and all of them stay: ext4 makes files many times
// slower for half a minute where it has removed as many.
func (p *pool) small(ctx context.Context, b *bench) error {
	const many = `mkdir -p many && cd many && for d in $(seq 100); do mkdir -p $d && for f in $(seq 100); do echo $d $f > $d/$f; done; done`
	if err := p.shell(ctx, "default", many); err != nil {
		return err
	}
	dir, err := b.rig.Temp("many")
	if err != nil {
		return err
	}
	if err := exec.CommandContext(ctx, "sh", "-ec", "cd "+dir+"; "+many).Run(); err != nil {
		return err
	}
	var moved, bare, inner report.Sample
	for i := range b.count(5) + 1 { // the first does not count
		to := fmt.Sprintf("many-%d", i)
		took, err := p.transfer(ctx, "many", to)
		if err != nil {
			return err
		}
		begun := time.Now()
		if err := exec.CommandContext(ctx, "cp", "-r", filepath.Join(dir, "many"), filepath.Join(dir, to)).Run(); err != nil {
			return err
		}
		alone := time.Since(begun)
		inside, err := p.tool(ctx, "shell", map[string]any{"sandbox": "default", "command": "cp -r many " + to, "timeout_ms": 120_000})
		if err != nil {
			return err
		}
		if i > 0 {
			moved, bare, inner = append(moved, took), append(bare, alone), append(inner, inside)
		}
	}
	r := row("transfer of 10,000 small files, p50", moved, 3)
	r.Baseline, r.BaselineName, r.BaselineSample = report.Milliseconds(bare.Percentile(50)), "cp -r, p50", bare.Summary()
	p.add(r)
	r.Case, r.Must, r.Note = "the same", nil, "beside what gVisor's file system takes for the same files"
	r.Baseline, r.BaselineName, r.BaselineSample = report.Milliseconds(inner.Percentile(50)), "cp -r in a sandbox, p50", inner.Summary()
	p.add(r)
	return nil
}
