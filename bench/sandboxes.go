package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
	"github.com/atoll-run/atoll/internal/core/execution"
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

// timed makes f say how long it took.
func timed(f func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		begun := time.Now()
		err := f()
		return time.Since(begun), err
	}
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
	bare := timed(func() error { return exec.CommandContext(ctx, "sh", "-c", "true").Run() })
	for _, c := range []struct {
		name  string
		pause time.Duration
		must  *report.Bound
		aim   *report.Bound
		note  string
	}{
		{"shell true in a running sandbox, p50", thinking, report.AtMost(3), nil, fmt.Sprintf("a call every %s, as from an agent that thinks in between, and so the baseline", thinking)},
		{"the same, one after the other, p50", 0, report.AtMost(6), report.AtMost(3), "no shell is ready yet when the next call comes"},
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
			Case: c.name, Unit: "ms", Measured: report.Milliseconds(did.Percentile(50)), Sample: did.Summary(), Must: c.must, Aim: c.aim, Note: c.note,
			Baseline: report.Milliseconds(base.Percentile(50)), BaselineName: "sh -c true, p50", BaselineSample: base.Summary(),
		})
	}
	if err := p.shell(ctx, "default", "head -c 4096 /dev/zero | tr '\\0' x > small"); err != nil {
		return err
	}
	dir, err := b.rig.Temp("small")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "small")
	if err := os.WriteFile(file, make([]byte, 4096), 0o600); err != nil {
		return err
	}
	read, err := compare(n, func() (time.Duration, error) {
		return p.tool(ctx, "read_file", map[string]any{"path": "small"})
	}, baseline{"cat, p50", n, timed(func() error {
		out, err := exec.CommandContext(ctx, "cat", file).Output()
		if err == nil && len(out) != 4096 {
			err = fmt.Errorf("cat wrote %d bytes", len(out))
		}
		return err
	})})
	if err == nil {
		p.add(read.row("read_file of 4 KiB, p50", 1))
	}
	return err
}

func (p *pool) context(ctx context.Context, b *bench) error {
	sum := rig.Program{Language: execution.Python, Code: "print(1+1)", Want: "2\n"}
	took, err := compare(b.count(300), timed(func() error {
		_, err := p.Call(ctx, http.MethodPost, "/v1/sandboxes/default/contexts/python/run?session="+session, map[string]any{"code": "1+1"})
		return err
	}), baseline{"bare python, p50", b.count(100), func() (time.Duration, error) { return b.rig.RunBare(ctx, sum) }})
	if err == nil {
		r := took.row("1+1 in a code context, p50", 1)
		r.Aim = report.AtMost(0.6)
		p.add(r)
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
