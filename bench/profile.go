package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// profile shows where the time of an execution, of making a sandbox and of waking one
// goes, by stage, with the processor time that sandboxes used meanwhile. The spans and
// the log that tell it cost time too.
func (b *bench) profile(ctx context.Context, w io.Writer) error {
	for _, part := range []struct {
		title string
		write func(context.Context, io.Writer) error
	}{
		{"An execution of print(1) in a warm sandbox", b.profileWarm},
		{"An execution for which a sandbox is made from nothing", b.profileMaking},
		{"The first call of a frozen sandbox", func(ctx context.Context, w io.Writer) error { return b.profileWake(ctx, w, 0) }},
		{"The first call of a sandbox with 16 MiB that sleeps on disk", func(ctx context.Context, w io.Writer) error { return b.profileWake(ctx, w, 16) }},
		{"The floor: the time without Atoll's own work", b.profileFloor},
	} {
		fmt.Fprintf(w, "%s\n\n", part.title)
		if err := part.write(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", part.title, err)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// profiled is a server that tells what it does, and what its sandboxes use.
type profiled struct {
	*pool
	spans *rig.Spans
	watch *rig.Watch
}

// traced starts one. Where its pool is empty it gets a sandbox, so that there is a
// control group to be read.
func (b *bench) traced(ctx context.Context, o rig.Options) (_ *profiled, err error) {
	p := &profiled{}
	if p.spans, err = rig.CollectSpans(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.end())
		}
	}()
	o.Args = append(o.Args, "--trace-endpoint="+p.spans.URL)
	s, err := b.rig.Serve(ctx, o)
	if err != nil {
		return nil, err
	}
	p.pool = &pool{Server: s}
	if o.PoolSize == 0 {
		if err := p.create(ctx, "default", nil); err != nil {
			return nil, err
		}
	}
	p.watch, err = s.WatchSandboxes()
	return p, err
}

// end stops it. Afterwards all of its spans are there.
func (p *profiled) end() error {
	var err error
	if p.watch != nil {
		err = p.watch.End()
		p.watch = nil
	}
	if p.pool != nil {
		err = errors.Join(err, p.Stop())
		p.pool = nil
	}
	return errors.Join(err, p.spans.Close())
}

// steps are those of the last calls of a client, whose times are given, with the spans
// below each.
func (p *profiled) steps(calls []step, with string) ([][]step, error) {
	traces, err := p.spans.With(with)
	if err != nil {
		return nil, err
	}
	if len(traces) < len(calls) {
		return nil, fmt.Errorf("%d calls left %d traces with %s", len(calls), len(traces), with)
	}
	runs := make([][]step, len(calls))
	for i, trace := range traces[len(traces)-len(calls):] {
		runs[i] = []step{calls[i]}
		for _, s := range trace {
			runs[i] = append(runs[i], step{s.Name, s.Depth + 1, s.Begin, s.End})
		}
	}
	return runs, nil
}

// call is the step of a client's call.
func call(f func() error) (step, error) {
	begun := time.Now()
	err := f()
	return step{name: "the client, from sending to having read the answer", begin: begun, end: time.Now()}, err
}

// profileWarm takes executions that find a sandbox in the pool.
func (b *bench) profileWarm(ctx context.Context, w io.Writer) (err error) {
	p, err := b.traced(ctx, rig.Options{PoolSize: 4, Image: pythonOnly})
	if err != nil {
		return err
	}
	watch, n := p.watch, b.count(50)
	calls, server, made, err := p.executions(ctx, n)
	over := time.Now()
	if err = errors.Join(err, p.end()); err != nil {
		return err
	}
	runs, err := p.steps(calls, "guest.run")
	if err != nil {
		return err
	}
	if err := writeStages(w, medianStages(runs, watch.UsedAt)); err != nil {
		return err
	}
	sandboxes := (watch.UsedAt(over) - watch.UsedAt(calls[0].begin)) / time.Duration(n)
	fmt.Fprintf(w, "\nMedians of %d, one each %s. CPU is that of all sandboxes while the stage lasts.\n", n, pace)
	fmt.Fprintf(w, "In all, an execution used %.1f ms of CPU in sandboxes, %.1f of them to make the next one and %.1f for this one and\nits end; the server used %.1f ms.\n",
		report.Milliseconds(sandboxes), report.Milliseconds(made), report.Milliseconds(sandboxes-made), report.Milliseconds(server/time.Duration(n)))
	return nil
}

// pace is time enough for the pool to be full again. To ask whether it is would cost the
// server more than an execution does.
const pace = 400 * time.Millisecond

// executions takes n of them, and returns the processor time that the server has used for
// all, and that a pooled sandbox has used once it is ready.
func (p *profiled) executions(ctx context.Context, n int) (calls []step, server, made time.Duration, err error) {
	const lead = 3 // for the page cache and the connection
	for i := range lead + n {
		if err := wait(ctx, pace); err != nil {
			return nil, 0, 0, err
		}
		if i == lead {
			if server, err = p.CPUSoFar(); err != nil {
				return nil, 0, 0, err
			}
		}
		c, err := call(func() error { _, err := p.Execute(ctx, pythonHello); return err })
		if err != nil {
			return nil, 0, 0, err
		}
		calls = append(calls, c)
	}
	if err := wait(ctx, pace); err != nil {
		return nil, 0, 0, err
	}
	used, err := p.CPUSoFar()
	if err != nil {
		return nil, 0, 0, err
	}
	if err := p.Settle(ctx); err != nil {
		return nil, 0, 0, err
	}
	all, err := p.Sandboxes()
	var each report.Sample
	for _, u := range all {
		each = append(each, u.CPU)
	}
	return calls[lead:], used - server, each.Percentile(50), err
}

// profileFloor takes what Atoll's executions are made of without Atoll.
func (b *bench) profileFloor(ctx context.Context, w io.Writer) (err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: 0})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	for _, part := range []struct {
		name string
		take func() (time.Duration, error)
	}{
		{"a request over HTTP that is refused for its key, and its answer", timed(func() error { return s.Reject(ctx, 401) })},
		{"the bare interpreter with print(1)", func() (time.Duration, error) { return b.rig.RunBare(ctx, pythonHello) }},
		{"Atoll's build of runsc with the same, a kernel from nothing", func() (time.Duration, error) { return b.rig.RunscDo(ctx, b.rig.Runsc(), pythonHello) }},
	} {
		took, err := times(b.count(50), paced(ctx, breath, part.take))
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Fprintf(w, "%7.2f ms  %s\n", report.Milliseconds(took.Percentile(50)), part.name)
	}
	fmt.Fprintf(w, "\nMedians of %d. docs/operate/benchmarks.md explains how to read them.\n", b.count(50))
	return nil
}
