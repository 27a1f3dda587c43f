package executor

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Local runs programs on one's own machine: nothing is recorded or
// covered, and what runs does not outlive the process.
type Local struct {
	*Executor
	// Job has what a request does not say: image, limits, variables of the
	// environment, MaxOutput.
	Job execution.Job
}

// ExecuteFiles runs a program. It passes output to sink, which may be nil, and the files of
// req.Outputs to put. It returns an error only if no code ran, a *fault.Error if the caller may see
// the reason. Every end of a program, including by a limit, is an Execution. Cancelling ctx ends
// the run.
func (l *Local) ExecuteFiles(ctx context.Context, req execution.Request, sink execution.Sink,
	put func(execution.OutputFile, io.Reader) error,
) (*execution.Execution, error) {
	created := time.Now()
	job := l.Job
	job.TraceID, job.Code, job.Language, job.Timeout, job.Env = req.TraceID, req.Code, req.Language, req.Timeout, req.Env
	job.Input = req.Input
	job.StoreOutput = job.MaxOutput
	if err := l.line.enter(job.Tenant); err != nil {
		return nil, err
	}
	defer l.line.leave(job.Tenant)
	release, err := l.line.slot(ctx, job.Tenant)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the execution was given up before it started")
	}
	defer release()
	c, start, err := l.cfg.Sandboxes.Claim(ctx, &job)
	if err == nil {
		defer l.destroy(job.TraceID, c, false)
		err = c.Check()
	}
	if err != nil {
		if errors.As(err, new(*fault.Error)) {
			return nil, err
		}
		return nil, fault.Wrap(fault.Unavailable, err, "no sandbox could be made; nothing was run. Retry in a few seconds")
	}
	e := &execution.Execution{
		TraceID: req.TraceID, Language: req.Language, Metadata: req.Metadata, CreatedAt: created, Start: start.Start(),
	}
	t := &task{x: l.Executor, job: job}
	outcome, err := c.Run(ctx, t.program(rand.Uint64()|1, job.Timeout), func(s execution.Stream, p []byte) {
		collect(e, s, p, job.MaxOutput)
		if sink != nil {
			sink(s, p)
		}
	})
	if err != nil {
		return nil, execution.NotStarted(err)
	}
	end := decide(&job, outcome, context.Cause(ctx))
	e.Status, e.ExitCode, e.Error, e.PeakMemory, e.CompletedAt = end.Status, end.ExitCode, end.Error, end.PeakMemory, time.Now()
	e.StdoutBytes, e.StderrBytes = outcome.StdoutBytes, outcome.StderrBytes
	e.StdoutTruncated = outcome.StdoutBytes > int64(len(e.Stdout))
	e.StderrTruncated = outcome.StderrBytes > int64(len(e.Stderr))
	if from, ok := c.(Collector); ok && !outcome.Lost && len(req.Outputs) > 0 && ctx.Err() == nil {
		e.Files.Truncated, err = from.Collect(ctx, req.Outputs, func(f execution.OutputFile, r io.Reader) error {
			e.Files.Files = append(e.Files.Files, f)
			return put(f, r)
		})
		if err != nil {
			msg := "the files that the program gives back could not be had: " + err.Error()
			if e.Error != "" {
				msg = e.Error + "; " + msg
			}
			e.Error = msg
		}
	}
	return e, nil
}

// collect appends output up to the cut.
func collect(e *execution.Execution, s execution.Stream, p []byte, most int64) {
	buf := &e.Stdout
	if s == execution.Stderr {
		buf = &e.Stderr
	}
	if room := most - int64(len(*buf)); int64(len(p)) > room {
		p = p[:max(0, room)]
	}
	*buf = append(*buf, p...)
}
