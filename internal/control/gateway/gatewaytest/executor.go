package gatewaytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/infra/bus"
)

// Program is what a job's code names by its first word. It returns its exit
// code; r.Context ends when the run is cancelled or its time is up.
type Program func(r *Run) int

// Executor runs Programs.
type Executor struct {
	t     testing.TB
	log   *bus.Log
	blobs *blob.Store
	on    *bus.Executor

	mu       sync.Mutex
	programs map[string]Program
	refuse   error
	timeout  time.Duration // of every job; 0 for its own
	runs     map[string]*Run

	endedTurns []string
	windows    map[string]bool // turns whose sandbox has a window
	all        sync.WaitGroup
}

// Run is one job.
type Run struct {
	execution.Job
	Context context.Context
	Args    string // of the code, after the program's name

	x      *Executor
	cancel context.CancelCauseFunc
	ended  chan struct{}
	seq    int64
	out    map[execution.Stream][]byte
	// Result may be set by a Program that ends in an unusual way.
	Result *execution.Result
}

var errCancelled = errors.New("cancelled")

func serve(t testing.TB, b *bus.Bus, blobs *blob.Store) *Executor {
	t.Helper()
	x := &Executor{t: t, log: b.Log(), blobs: blobs, runs: map[string]*Run{}, windows: map[string]bool{}, programs: map[string]Program{
		"print": func(r *Run) int { r.Print(execution.Stdout, r.Args+"\n"); return 0 },
		"exit": func(r *Run) (code int) {
			fmt.Sscan(r.Args, &code)
			return code
		},
		"sleep": func(r *Run) int { <-r.Context.Done(); return 0 },
	}}
	on, err := b.Serve("executor", x)
	if err != nil {
		t.Fatal(err)
	}
	x.on = on
	return x
}

func (x *Executor) close() {
	x.mu.Lock()
	for _, r := range x.runs {
		r.cancel(errCancelled)
	}
	x.mu.Unlock()
	x.all.Wait()
	x.on.Close()
}

// Program adds a program.
func (x *Executor) Program(name string, p Program) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.programs[name] = p
}

// Refuse has every job refused with err from now on; nil takes them again.
func (x *Executor) Refuse(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refuse = err
}

// Start implements bus.Handler.
func (x *Executor) Start(_ context.Context, job execution.Job) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refuse != nil {
		return x.refuse
	}
	name, args, _ := strings.Cut(job.Code, " ")
	p := x.programs[name]
	if p == nil {
		return fault.New(fault.Invalid, "no program %q", name)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &Run{
		Job: job, Args: args, Context: ctx, x: x, cancel: cancel, ended: make(chan struct{}),
		seq: 1, out: map[execution.Stream][]byte{},
	}
	if x.timeout > 0 {
		r.Timeout = x.timeout
	}
	x.runs[job.TraceID] = r
	x.all.Go(func() { r.run(p) })
	return nil
}

// EndTurn implements bus.Handler.
func (x *Executor) EndTurn(turn string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.endedTurns = append(x.endedTurns, turn)
	delete(x.windows, turn)
}

// EndedTurns are the turns that were ended so far.
func (x *Executor) EndedTurns() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.endedTurns)
}

// Cancel implements bus.Handler.
func (x *Executor) Cancel(ctx context.Context, traceID string) error {
	x.mu.Lock()
	r := x.runs[traceID]
	x.mu.Unlock()
	if r == nil {
		return fault.New(fault.NotFound, "not here")
	}
	r.cancel(errCancelled)
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// window returns how many windows of its turn's sandbox begin with a job: none ends here.
func (x *Executor) window(job *execution.Job) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if job.Window == 0 || x.windows[job.Turn] {
		return 0
	}
	x.windows[job.Turn] = true
	return 1
}

func (r *Run) run(p Program) {
	defer r.cancel(nil)
	timer := time.AfterFunc(r.Timeout, func() { r.cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	started := time.Now().UTC()
	code := p(r)

	end := execution.Result{ExitCode: code, Status: execution.Success}
	if r.Result != nil {
		end = *r.Result
	}
	switch cause := context.Cause(r.Context); {
	case r.Result != nil:
	case errors.Is(cause, errCancelled):
		end.Status, end.ExitCode, end.Error = execution.Cancelled, -1, "Cancelled by user"
	case cause != nil:
		end.Status, end.ExitCode, end.Error = execution.Timeout, -1, fmt.Sprintf("execution timed out after %ds", r.Timeout/time.Second)
	case code != 0:
		end.Status = execution.Failed
	}
	if end.Start == "" && !end.NotStarted {
		end.Start = execution.StartCold // a real executor always says how a run started
	}
	end.Windows = r.x.window(&r.Job)
	end.TraceID, end.StartedAt, end.CompletedAt, end.LastSeq = r.TraceID, started, time.Now().UTC(), r.seq
	r.keep(&end)
	if err := r.x.log.Finish(context.Background(), end); err != nil {
		r.x.t.Errorf("finish %s: %v", r.TraceID, err)
	}
	r.x.mu.Lock()
	delete(r.x.runs, r.TraceID)
	r.x.mu.Unlock()
	close(r.ended)
	r.x.on.Release(r.TraceID)
}

// keep puts the output where executors put it.
func (r *Run) keep(end *execution.Result) {
	stdout, stderr := r.out[execution.Stdout], r.out[execution.Stderr]
	end.Kept = int64(len(stdout) + len(stderr))
	end.StdoutBytes, end.StderrBytes = int64(len(stdout)), int64(len(stderr))
	end.StdoutTruncated, end.StderrTruncated = end.StdoutBytes > r.MaxOutput, end.StderrBytes > r.MaxOutput
	if len(stdout)+len(stderr) <= execution.InlineOutput {
		end.Stdout, end.Stderr = stdout, stderr
		return
	}
	end.Stored = true
	for s, data := range map[execution.Stream][]byte{execution.Stdout: stdout, execution.Stderr: stderr} {
		if err := r.x.blobs.Put(context.Background(), execution.OutputName(r.Tenant, r.TraceID, s), bytes.NewReader(data)); err != nil {
			r.x.t.Errorf("keep the output of %s: %v", r.TraceID, err)
		}
	}
}

// Print writes a line.
func (r *Run) Print(s execution.Stream, line string) {
	r.out[s] = append(r.out[s], line...)
	r.Append(execution.Event{Stream: s, Data: []byte(line)})
}

// Append logs events, which get the next seqs.
func (r *Run) Append(events ...execution.Event) {
	for i := range events {
		r.seq++
		events[i].Seq = r.seq
	}
	if err := r.x.log.Append(r.TraceID, events); err != nil {
		r.x.t.Errorf("append to %s: %v", r.TraceID, err)
	}
}

// Shorten gives every job less time than it asked for.
func (x *Executor) Shorten(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timeout = d
}
