package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// wakes takes samples of the first call of a sandbox that sleeps, beside a baseline.
func (p *pool) wakes(ctx context.Context, name string, sleep func() error, b baseline) (*compared, error) {
	return compare(b.count, func() (time.Duration, error) {
		if err := sleep(); err != nil {
			return 0, err
		}
		return p.tool(ctx, "glob", map[string]any{"sandbox": name, "pattern": "nothing"})
	}, b)
}

func (p *pool) frozen(ctx context.Context, b *bench) (err error) {
	if err := p.create(ctx, "frozen", map[string]any{"sleep_after_ms": 1000}); err != nil {
		return err
	}
	runsc := contain(ctx, b, 0)
	defer func() { err = errors.Join(err, runsc.end()) }()
	took, err := p.wakes(ctx, "frozen", func() error { return p.status(ctx, "frozen", "sleeping") }, runsc.resume(ctx, b.count(10)))
	if err == nil {
		r := took.row("waking a frozen sandbox, p50", 10)
		r.Note = "both until something inside has answered"
		p.add(r)
	}
	return err
}

func (p *pool) asleep(ctx context.Context, b *bench) error {
	if err := p.holds(ctx, b, 16, 100); err != nil {
		return err
	}
	return p.holds(ctx, b, 256, 500)
}

// holding starts a program that holds so many MiB of random memory.
func holding(mib int) string {
	return fmt.Sprintf(`python3 -c '
import os, time
held = os.urandom(%d << 20)
open("there", "w").close()
time.sleep(3600)' > /dev/null 2>&1 & until [ -e there ]; do sleep 0.05; done`, mib)
}

func (p *pool) holds(ctx context.Context, b *bench, mib int, must float64) (err error) {
	name := fmt.Sprintf("holds-%d", mib)
	if err := p.shell(ctx, name, holding(mib)); err != nil {
		return err
	}
	runsc := contain(ctx, b, mib)
	defer func() { err = errors.Join(err, runsc.end()) }()
	took, err := p.wakes(ctx, name, func() error {
		if err := p.sleep(ctx, name); err != nil {
			return err
		}
		return wait(ctx, stocked) // what sleeps on disk has done so for a while
	}, runsc.restore(ctx, b.count(10)))
	if err == nil {
		r := took.row(fmt.Sprintf("waking a sandbox with %d MiB from disk, p50", mib), must)
		r.Note = "both until something inside has answered; the baseline's program holds as much"
		p.add(r)
	}
	return err
}

func (p *pool) sleep(ctx context.Context, name string) error {
	_, err := p.Call(ctx, http.MethodPost, "/v1/sandboxes/"+name+"/sleep?session="+session, nil)
	return err
}

// stocked is time enough for kernels to wait for the next copies, and for what
// sleeps, which the server starts once some were made, or fell asleep.
const stocked = time.Second

const copies = 5

func (p *pool) forks(ctx context.Context, b *bench) (err error) {
	runsc := contain(ctx, b, 0)
	defer func() { err = errors.Join(err, runsc.end()) }()
	took, err := compare(b.count(10), func() (time.Duration, error) {
		if err := wait(ctx, stocked); err != nil {
			return 0, err
		}
		begun := time.Now()
		made, err := p.members(ctx, http.MethodPost, fmt.Sprintf("/v1/sandboxes/frozen/fork?count=%d&session=%s", copies, session))
		if err != nil {
			return 0, err
		}
		return time.Since(begun), p.remove(ctx, made)
	}, runsc.copy(ctx, b.count(10), copies))
	if err == nil {
		r := took.row(fmt.Sprintf("%d copies of a sandbox, p50", copies), 250)
		r.Note = "the baseline's until all have answered, restored at once"
		p.add(r)
	}
	return err
}
