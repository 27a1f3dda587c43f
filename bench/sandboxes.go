package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// pool is the named sandboxes of one session.
type pool struct {
	*rig.Server
	rows []report.Row
}

const session = "bench"

// named measures named sandboxes as their callers see them, over HTTP.
func named(ctx context.Context, b *bench) (_ []report.Row, err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: 0, Args: []string{"--sandbox-frozen=1h"}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	p := &pool{Server: s}
	for _, part := range []func(context.Context, *bench) error{p.calls, p.context, p.preview, p.frozen, p.asleep, p.forks, p.transfers, p.sleepers} {
		if err := part(ctx, b); err != nil {
			return p.rows, err
		}
	}
	return p.rows, nil
}

// tool calls a tool of the session, and returns how long it took.
func (p *pool) tool(ctx context.Context, name string, in map[string]any) (time.Duration, error) {
	begun := time.Now()
	answer, err := p.Call(ctx, http.MethodPost, "/v1/sessions/"+session+"/tools/"+name, in)
	took := time.Since(begun)
	if err != nil {
		return took, fmt.Errorf("%s: %w", name, err)
	}
	var out struct {
		ExitCode int `json:"exit_code"`
	}
	if err := json.Unmarshal(answer, &out); err != nil || out.ExitCode != 0 {
		return took, fmt.Errorf("%s answered %.400s: %w", name, answer, err)
	}
	return took, nil
}

func (p *pool) shell(ctx context.Context, sandbox, command string) error {
	_, err := p.tool(ctx, "shell", map[string]any{"sandbox": sandbox, "command": command, "timeout_ms": 120_000})
	return err
}

func (p *pool) add(r report.Row) { p.rows = append(p.rows, r) }

// times takes n samples, after one that does not count.
func times(n int, f func() (time.Duration, error)) (report.Sample, error) {
	var all report.Sample
	for i := range n + 1 {
		took, err := f()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			all = append(all, took)
		}
	}
	return all, nil
}

// row is one of durations.
func row(name string, s report.Sample, must float64) report.Row {
	return report.Row{Case: name, Unit: "ms", Measured: report.Milliseconds(s.Percentile(50)), Sample: s.Summary(), Must: report.AtMost(must)}
}

// thinking is how long an agent takes between two commands, at the least.
const thinking = 50 * time.Millisecond

// paced has f wait first.
func paced(ctx context.Context, pause time.Duration, f func() (time.Duration, error)) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		if err := wait(ctx, pause); err != nil {
			return 0, err
		}
		return f()
	}
}

func (p *pool) calls(ctx context.Context, b *bench) error {
	n := b.count(300)
	shell := func() (time.Duration, error) {
		return p.tool(ctx, "shell", map[string]any{"command": "true"})
	}
	bare := func() (time.Duration, error) {
		begun := time.Now()
		err := exec.CommandContext(ctx, "sh", "-c", "true").Run()
		return time.Since(begun), err
	}
	for _, c := range []struct {
		name  string
		pause time.Duration
		must  *report.Bound
		note  string
	}{
		{"shell true in a running sandbox, p50", thinking, report.AtMost(3), fmt.Sprintf("a call every %s, as from an agent that thinks in between, and so the baseline", thinking)},
		{"the same, one after the other, p50", 0, nil, "no shell is ready yet when the next call comes"},
	} {
		did, err := times(n, paced(ctx, c.pause, shell))
		if err != nil {
			return err
		}
		base, err := times(n, paced(ctx, c.pause, bare))
		if err != nil {
			return err
		}
		p.add(report.Row{
			Case: c.name, Unit: "ms", Measured: report.Milliseconds(did.Percentile(50)), Sample: did.Summary(), Must: c.must, Note: c.note,
			Baseline: report.Milliseconds(base.Percentile(50)), BaselineName: "sh -c true, p50", BaselineSample: base.Summary(),
		})
	}
	if err := p.shell(ctx, "default", "head -c 4096 /dev/zero | tr '\\0' x > small"); err != nil {
		return err
	}
	read, err := times(n, func() (time.Duration, error) {
		return p.tool(ctx, "read_file", map[string]any{"path": "small"})
	})
	if err == nil {
		p.add(row("read_file of 4 KiB, p50", read, 1))
	}
	return err
}

func (p *pool) context(ctx context.Context, b *bench) error {
	took, err := times(b.count(300), func() (time.Duration, error) {
		begun := time.Now()
		_, err := p.Call(ctx, http.MethodPost, "/v1/sandboxes/default/contexts/python/run?session="+session, map[string]any{"code": "1+1"})
		return time.Since(begun), err
	})
	if err == nil {
		p.add(row("1+1 in a code context, p50", took, 1))
	}
	return err
}

// status waits until a sandbox has a status.
func (p *pool) status(ctx context.Context, name, want string) error {
	for {
		answer, err := p.Call(ctx, http.MethodGet, "/v1/sandboxes/"+name+"?session="+session, nil)
		if err != nil {
			return err
		}
		var sb struct{ Status string }
		if err := json.Unmarshal(answer, &sb); err != nil || sb.Status == want {
			return err
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (p *pool) create(ctx context.Context, name string, more map[string]any) error {
	in := map[string]any{"name": name, "session": session}
	for k, v := range more {
		in[k] = v
	}
	_, err := p.Call(ctx, http.MethodPost, "/v1/sandboxes", in)
	return err
}

// wakes takes samples of the first call of a sandbox that sleeps.
func (p *pool) wakes(ctx context.Context, n int, name string, sleep func() error) (report.Sample, error) {
	return times(n, func() (time.Duration, error) {
		if err := sleep(); err != nil {
			return 0, err
		}
		return p.tool(ctx, "glob", map[string]any{"sandbox": name, "pattern": "nothing"})
	})
}

func (p *pool) frozen(ctx context.Context, b *bench) error {
	if err := p.create(ctx, "frozen", map[string]any{"sleep_after_ms": 1000}); err != nil {
		return err
	}
	took, err := p.wakes(ctx, b.count(10), "frozen", func() error { return p.status(ctx, "frozen", "sleeping") })
	if err == nil {
		p.add(row("waking a frozen sandbox, p50", took, 10))
	}
	return err
}

func (p *pool) asleep(ctx context.Context, b *bench) error {
	for _, c := range []struct {
		mib  int
		must float64
	}{{16, 100}, {256, 500}} {
		name := fmt.Sprintf("holds-%d", c.mib)
		err := p.shell(ctx, name, fmt.Sprintf(`python3 -c '
import os, time
held = os.urandom(%d << 20)
open("there", "w").close()
time.sleep(3600)' > /dev/null 2>&1 & until [ -e there ]; do sleep 0.05; done`, c.mib))
		if err != nil {
			return err
		}
		took, err := p.wakes(ctx, b.count(10), name, func() error {
			if err := p.sleep(ctx, name); err != nil {
				return err
			}
			return wait(ctx, stocked) // what sleeps on disk has done so for a while
		})
		if err != nil {
			return err
		}
		p.add(row(fmt.Sprintf("waking a sandbox with %d MiB from disk, p50", c.mib), took, c.must))
	}
	return nil
}

func (p *pool) sleep(ctx context.Context, name string) error {
	_, err := p.Call(ctx, http.MethodPost, "/v1/sandboxes/"+name+"/sleep?session="+session, nil)
	return err
}

// stocked is time enough for kernels to wait for the next copies, and for what
// sleeps, which the server starts once some were made, or fell asleep.
const stocked = time.Second

func (p *pool) forks(ctx context.Context, b *bench) error {
	took, err := times(b.count(10), func() (time.Duration, error) {
		begun := time.Now()
		answer, err := p.Call(ctx, http.MethodPost, "/v1/sandboxes/frozen/fork?count=5&session="+session, nil)
		took := time.Since(begun)
		if err != nil {
			return took, err
		}
		var out struct {
			Data []struct {
				ID string `json:"sandbox_id"`
			}
		}
		if err := json.Unmarshal(answer, &out); err != nil {
			return took, err
		}
		for _, sb := range out.Data {
			if _, err := p.Call(ctx, http.MethodDelete, "/v1/sandboxes/"+sb.ID, nil); err != nil {
				return took, err
			}
		}
		return took, wait(ctx, stocked)
	})
	if err == nil {
		p.add(row("5 copies of a sandbox, p50", took, 250))
	}
	return err
}

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
	big, err := times(b.count(5), func() (time.Duration, error) {
		if err := p.shell(ctx, "target", "rm -rf big"); err != nil {
			return 0, err
		}
		return p.transfer(ctx, "big", "big")
	})
	if err != nil {
		return err
	}
	p.add(report.Row{
		Case: fmt.Sprintf("transfer of %d MB between sandboxes", size>>20), Unit: "MB/s", Must: report.AtLeast(300),
		Measured: float64(size) / 1e6 / big.Percentile(50).Seconds(), Sample: big.Summary(),
	})
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
