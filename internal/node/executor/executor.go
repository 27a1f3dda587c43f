// Package executor runs jobs on one machine: a job takes its place in line, gets
// a sandbox, and its output goes, covered and cut into lines, to a log, until
// one Result ends it.
//
// A process that dies takes no run along. What a program writes is in a journal
// beside its sandbox before the sandbox may forget it, so the next process goes
// on with the same log at the same place.
package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/infra/trace"
	"github.com/atoll-run/atoll/internal/node/cleanup"
)

// Claimed is a sandbox that belongs to one execution, or to one turn.
type Claimed interface {
	// Check reports what a sandbox lacks before it may run a caller's code.
	Check() error
	// Run runs the program to its end. An error means that the program never
	// started. The end of ctx kills it, and the Outcome tells how that went; but
	// with execution.ErrLetGo as its cause the program is let go of, and so is
	// the error then, unless the program ended first.
	Run(ctx context.Context, p execution.Program, sink execution.Sink) (execution.Outcome, error)
	// Attach is Run for a program that an earlier process started. skip are the
	// bytes of stdout and stderr that are known. execution.ErrNoRun says that
	// nothing is known of the program.
	Attach(ctx context.Context, p execution.Program, skip [2]int64, sink execution.Sink) (execution.Outcome, error)
	// Enter makes the home directory that was moved to HomePath the programs';
	// fill says that it is new, and begins as the image has it. It may be called
	// again.
	Enter(ctx context.Context, fill bool) error
	// Done is closed when the sandbox has ended by itself.
	Done() <-chan struct{}
	// Folder is on the host and goes with the sandbox.
	Folder() string
	Destroy(ctx context.Context) error
	// Detach lets go of the sandbox without ending it.
	Detach() error
}

// Flusher is a Claimed that writes to what it has mounted later than its program
// does.
type Flusher interface {
	// Flush stores all that the program has written. It is called when the program
	// has ended, before its Result is.
	Flush(ctx context.Context) error
}

// Shared is a Claimed whose kernel other executions of its key had before, or get after
// it was destroyed.
type Shared interface {
	Isolation() execution.Isolation
	// Spoil has no other execution get the kernel.
	Spoil()
}

// Rester is a Claimed that need not be destroyed at once.
type Rester interface {
	// Rest returns when a used sandbox is to be destroyed: once that takes the processors
	// from no program, or ctx has ended. done is called afterwards.
	Rest(ctx context.Context) (done func())
}

// Binder is a Claimed whose secrets that are bound to hosts can be replaced.
type Binder interface {
	Bind([]execution.BoundSecret) error
}

// Sandboxes gives sandboxes, from a pool or newly made.
type Sandboxes interface {
	// Claim returns a sandbox as the job wants it, and why it was ready or not.
	Claim(ctx context.Context, job *execution.Job) (Claimed, execution.StartReason, error)
	// Left returns the folders of the sandboxes with a journal that an earlier
	// process left, and Open takes one of them over.
	Left(ctx context.Context) ([]string, error)
	Open(ctx context.Context, folder string, job *execution.Job) (Claimed, error)
	// OpenIdle is Open for a sandbox that runs nothing: its turn's next job is to find it
	// as job, the last one, did.
	OpenIdle(ctx context.Context, folder string, job *execution.Job) (Claimed, error)
	// Fragile reports whether a job's program cannot go on without this process,
	// because that is the other end of what it has mounted.
	Fragile(job *execution.Job) bool
	// HomePath is where the sandbox of a folder finds a home directory that it is
	// to have.
	HomePath(folder string) string
	// EndHome ends everything in that sandbox, so that no process writes to its home
	// directory any more, and takes the program's own file out of it. The folder
	// stays.
	EndHome(ctx context.Context, folder string, p execution.Program) error
	// Remove ends a sandbox that cannot be taken over.
	Remove(ctx context.Context, folder string) error
}

// Writer is where output and results go. An error of Append says that the log
// takes no more of the run's output.
type Writer interface {
	execution.LogWriter
	// Stored returns the seq of the last event that this process has appended
	// and that the end of no process can lose, 1 if there is none.
	Stored(traceID string) int64
}

// Blobs keeps what is too long for a Result.
type Blobs interface {
	Put(ctx context.Context, name string, r io.Reader) error
}

// Presence makes runs and turns reachable, as the bus does for a Handler. What
// comes by Start is reachable without Hold.
type Presence interface {
	Hold(traceID, tenant string) error
	Release(traceID string) // after Finish
	HoldTurn(ctx context.Context, turn string) error
	ReleaseTurn(turn string)
	Drain() // no more jobs come
}

// Config of an Executor.
type Config struct {
	Sandboxes Sandboxes
	Writer    Writer               // nil for Local
	Starts    execution.StartGuard // nil where no gateway counts jobs as lost
	Blobs     Blobs                // nil for Local
	Homes     Homes                // nil where there are no threads
	Web       execution.Web        // makes the calls of programs that may make some; nil for none
	Skills    execution.Skills     // nil where no job has any
	Uploads   execution.Uploads    // likewise
	Log       *slog.Logger
	Registry  prometheus.Registerer

	// HomeFree is how many bytes of the homes' disk stay free: a program that
	// fills it further through its thread's home is ended.
	HomeFree int64

	// Waiting is the path of the file that keeps the jobs that were taken on and
	// have no sandbox yet; "" loses them with the process. WaitFor is how old one
	// may be that the next process runs, 0 for any age: where there are other
	// executors it is less than what gateways wait for one.
	Waiting string
	WaitFor time.Duration

	// Mark is a file beside the sandboxes, by which the next process knows that what it
	// finds there is all that this one left; "" where it never knows that.
	Mark string

	// Outputs is the folder of outputs that are too long for memory, until they
	// are in Blobs; "" is each sandbox's own. Nothing else may be in it.
	Outputs string

	Concurrency int // runs at the same time; 0 is 8 a processor
	Queue       int // jobs that may wait for their turn

	Turns    int           // sandboxes of turns at the same time; 0 is 4 times Concurrency. More turns wait
	TurnKeep time.Duration // how long after its last job a turn's sandbox is not given up for another's
	TurnIdle time.Duration // how long one is kept for the next job; 0 is 10 minutes

	// FlushTime is how long what a program wrote to its mounts may take to be
	// stored; 0 is 5 minutes.
	FlushTime time.Duration

	// Detach leaves running programs to the next process when this one ends;
	// otherwise they are ended as failed.
	Detach bool
}

// Executor takes jobs. Recover must be called before it does.
type Executor struct {
	cfg     Config
	line    *line
	sets    redact.Sets
	metrics *metrics
	waiting *waiting

	retries *cleanup.Queue // of what a start or an end left behind
	tasks   sync.WaitGroup // jobs under way
	cleanup sync.WaitGroup // destructions under way

	// stopped ends what would otherwise be tried for ever; what is not done by
	// then is left to the next process.
	stopped context.Context
	stop    context.CancelFunc

	// drained ends when no more jobs are taken, so that used sandboxes need not wait.
	drained context.Context
	drain   context.CancelFunc

	complete time.Time // see Complete; set by Recover
	clocks   sync.Once // warns that clocks differ

	mu       sync.Mutex
	open     bool             // guarded by mu; takes jobs
	presence Presence         // guarded by mu
	live     map[string]*task // guarded by mu; by trace id
	recent   recent           // guarded by mu; trace ids that have ended
	turns    map[string]*turn // guarded by mu
	rooms    int              // guarded by mu; turns that may have a sandbox

	roomLine chan struct{} // has a token while a turn looks for room
}

const (
	defaultTurnIdle  = 10 * time.Minute
	defaultFlushTime = 5 * time.Minute
)

// New returns an Executor that takes no jobs yet.
func New(cfg Config) (*Executor, error) {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 8 * runtime.NumCPU()
	}
	if cfg.Turns == 0 {
		cfg.Turns = 4 * cfg.Concurrency
	}
	if cfg.TurnIdle == 0 {
		cfg.TurnIdle = defaultTurnIdle
	}
	if cfg.FlushTime == 0 {
		cfg.FlushTime = defaultFlushTime
	}
	m, err := newMetrics(cfg.Registry)
	if err != nil {
		return nil, err
	}
	retries, err := cleanup.New(cfg.Log, cfg.Registry)
	if err != nil {
		return nil, err
	}
	x := &Executor{
		cfg: cfg, retries: retries, line: newLine(cfg.Concurrency, cfg.Queue), metrics: m,
		live: map[string]*task{}, turns: map[string]*turn{}, waiting: &waiting{}, roomLine: make(chan struct{}, 1),
	}
	x.stopped, x.stop = context.WithCancel(context.Background())
	x.drained, x.drain = context.WithCancel(x.stopped)
	return x, nil
}

// Start takes a job on and returns; from then on exactly one Result follows. A
// job that it has, or had, is taken for the same one.
func (x *Executor) Start(ctx context.Context, job execution.Job) error {
	t := &task{x: x, job: job, created: time.Now(), origin: trace.Header(ctx), done: make(chan struct{})}
	record, err := x.waiting.encode(jobRecord{Job: job, Created: t.created, Trace: t.origin})
	if err != nil {
		return fmt.Errorf("note a job: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.live[job.TraceID] != nil || x.recent.has(job.TraceID) {
		return nil
	}
	if !x.open {
		return fault.New(fault.Unavailable, "this server is starting or shutting down; retry in a few seconds")
	}
	if err := x.checkThread(&job); err != nil {
		return err
	}
	if job.Turn != "" {
		if t.turn, err = x.join(&job); err != nil {
			return err
		}
	}
	err = x.line.enter(job.Tenant)
	if err == nil {
		if err = x.waiting.add(job.TraceID, record); err != nil {
			x.line.leave(job.Tenant)
			err = fault.Wrap(fault.Unavailable, err, "this server cannot write to its disk; nothing was started. Retry in a few seconds")
		}
	}
	if err != nil {
		if t.turn != nil {
			x.leave(t.turn)
		}
		return err
	}
	t.waits = true
	x.begin(ctx, t, t.run)
	return nil
}

// begin runs a task in a goroutine that Close waits for. ctx has the trace that
// the task is part of. x.mu is held.
func (x *Executor) begin(ctx context.Context, t *task, run func()) {
	ctx, t.span = trace.StartKind(context.WithoutCancel(ctx), "execution.run", trace.Consumer,
		trace.String(trace.TraceID, t.job.TraceID), trace.String("atoll.language", string(t.job.Language)))
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	x.live[t.job.TraceID] = t
	x.tasks.Go(func() {
		defer t.end()
		run()
	})
}

// errCancelled and errShutdown are why a program is killed.
var (
	errCancelled = errors.New("cancelled by its caller")
	errShutdown  = errors.New("the server is shutting down")
)

// Cancel ends a run at once and returns when its Result is stored.
func (x *Executor) Cancel(ctx context.Context, traceID string) error {
	x.mu.Lock()
	t := x.live[traceID]
	x.mu.Unlock()
	if t == nil {
		return fault.New(fault.NotFound, "no execution %s is running here", traceID)
	}
	t.cancel(errCancelled)
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Alive reports whether the executor has the job, waiting or running.
func (x *Executor) Alive(traceID string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.live[traceID] != nil
}

// Drain refuses further jobs.
func (x *Executor) Drain() {
	x.mu.Lock()
	x.open = false
	p := x.presence
	x.drain() // takeUp looks at it
	x.mu.Unlock()
	if p != nil {
		p.Drain()
	}
}

// lastWords is how long runs that are told to end, and their Results, may take.
const lastWords = 20 * time.Second

// Close refuses further jobs and waits for those it has, until ctx ends. Then it
// lets go of their programs or ends them, as Config.Detach says. It returns when
// nothing of them is left in this process.
func (x *Executor) Close(ctx context.Context) error {
	x.Drain()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		x.tasks.Wait()
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		cause := errShutdown
		if x.cfg.Detach {
			cause = execution.ErrLetGo
		}
		x.mu.Lock()
		for _, t := range x.live {
			if x.cfg.Sandboxes.Fragile(&t.job) {
				t.cancel(errShutdown)
			} else {
				t.cancel(cause)
			}
		}
		x.mu.Unlock()
		late := time.AfterFunc(lastWords, x.stop)
		<-idle
		late.Stop()
	}
	x.endTurns()
	x.cleanup.Wait()
	x.retries.Close()
	x.stop()
	return x.waiting.close()
}

// destroyTimeout bounds the first attempt to destroy a used sandbox. The cleanup queue
// retries it, as does the next start.
const destroyTimeout = 30 * time.Second

// respite is how long a used sandbox outlives its execution at least: taking it down
// occupies a core, which the answer on its way to the caller needs more.
const respite = 5 * time.Millisecond

// destroy ends a used sandbox without making its caller wait. noted says that its journal
// has the next process take it over.
func (x *Executor) destroy(traceID string, c Claimed, noted bool) {
	x.cleanup.Go(func() {
		if noted {
			if err := forget(c.Folder()); err != nil {
				x.cfg.Log.Warn("cannot clear a journal", "trace_id", traceID, "error", err)
			}
		}
		time.Sleep(respite)
		if r, ok := c.(Rester); ok && !HasJob(c.Folder()) { // else the next process would take it over
			defer r.Rest(x.drained)()
		}
		ctx, cancel := context.WithTimeout(context.Background(), destroyTimeout)
		defer cancel()
		if err := c.Destroy(ctx); err != nil {
			x.cfg.Log.Error("cannot destroy a used sandbox", "trace_id", traceID, "error", err)
			folder := c.Folder()
			x.retries.Later(cleanup.Sandbox, filepath.Base(folder), err, func(ctx context.Context) error { return x.cfg.Sandboxes.Remove(ctx, folder) })
		}
	})
}
