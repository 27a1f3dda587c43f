package execution

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Program is what a claimed sandbox is asked to run.
type Program struct {
	TraceID  string
	Language Language
	Code     string
	Env      map[string]string // the request's variables, over the environment's
	Timeout  time.Duration
	MaxBytes int64 // bytes of each stream handed to the sink; what is over is counted and dropped
	Detach   bool  // ctx ending leaves the program running, unheard, until its time is up
}

// Outcome is how a program ended, as far as the sandbox can tell.
type Outcome struct {
	ExitCode                 int // 128+n when signal n ended it; -1 when none was seen
	StdoutBytes, StderrBytes int64
	TimedOut                 bool
	Lost                     bool // the sandbox ended before the program was seen to
	OOM                      bool // the memory limit ended the program or the sandbox
	DiskFull                 bool // a failed program left one of its file systems full
	ProcessesFull            bool // a failed program left its process limit reached
	PeakMemory               int64
}

// Claimed is a sandbox that belongs to one execution.
type Claimed interface {
	// Run runs the program to its end; ctx ending kills it, or lets go of it
	// with Detach. An error means that the program never started.
	Run(ctx context.Context, p Program, sink Sink) (Outcome, error)
	Destroy(ctx context.Context) error
	// Detach lets go of the sandbox without ending it.
	Detach() error
}

// Source gives sandboxes, from a pool or newly made. Code is given so that it
// can tell which modules to have imported ahead.
type Source interface {
	Claim(ctx context.Context, language Language, code string) (c Claimed, warm bool, err error)
}

// Config of a Service.
type Config struct {
	Source      Source
	Limits      sandbox.Limits // for messages
	MaxOutput   int64          // bytes of stdout and of stderr that are kept, each
	Concurrency int            // executions at the same time
	Queue       int            // executions that may wait for their turn
	Detach      bool           // executions whose context ends go on, unheard, until the next start's sweep
	Log         *slog.Logger
	Observe     func(*Execution) // told of each end; may be nil
}

// Service is the Executor of one machine.
type Service struct {
	cfg     Config
	slots   chan struct{}  // one token per running execution
	line    chan struct{}  // one token per running or waiting execution
	cleanup sync.WaitGroup // destructions under way
}

var _ Executor = (*Service)(nil)

// NewService returns a Service.
func NewService(cfg Config) *Service {
	return &Service{
		cfg:   cfg,
		slots: make(chan struct{}, cfg.Concurrency),
		line:  make(chan struct{}, cfg.Concurrency+cfg.Queue),
	}
}

// Execute implements Executor.
func (s *Service) Execute(ctx context.Context, req Request, sink Sink) (*Execution, error) {
	created := time.Now()
	select {
	case s.line <- struct{}{}:
		defer func() { <-s.line }()
	default:
		return nil, fault.New(fault.Unavailable, "this server is at its limit of %d executions running and %d waiting; retry after a moment", s.cfg.Concurrency, s.cfg.Queue)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, context.Cause(ctx), "the execution was given up before it started")
	}

	claimed, warm, err := s.cfg.Source.Claim(ctx, req.Language, req.Code)
	if err != nil {
		if errors.As(err, new(*fault.Error)) {
			return nil, err
		}
		return nil, fault.Wrap(fault.Unavailable, err, "no sandbox could be made; nothing was run, retry after a moment")
	}
	defer s.release(ctx, req.TraceID, claimed)

	e := &Execution{
		TraceID: req.TraceID, Language: req.Language, Status: Running, Metadata: req.Metadata,
		CreatedAt: created, Warm: warm, ExitCode: -1,
	}
	out, err := claimed.Run(ctx, Program{
		TraceID: req.TraceID, Language: req.Language, Code: req.Code, Env: req.Env,
		Timeout: req.Timeout, MaxBytes: s.cfg.MaxOutput, Detach: s.cfg.Detach,
	}, func(stream Stream, p []byte) {
		e.collect(stream, p, s.cfg.MaxOutput)
		if sink != nil {
			sink(stream, p)
		}
	})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the sandbox could not start the program; nothing was run, retry after a moment")
	}
	e.CompletedAt = time.Now()
	s.conclude(ctx, e, req.Timeout, out)
	if s.cfg.Observe != nil {
		s.cfg.Observe(e)
	}
	return e, nil
}

// collect appends output up to the cut.
func (e *Execution) collect(stream Stream, p []byte, most int64) {
	buf := &e.Stdout
	if stream == Stderr {
		buf = &e.Stderr
	}
	if room := most - int64(len(*buf)); int64(len(p)) > room {
		p = p[:max(0, room)]
	}
	*buf = append(*buf, p...)
}

// conclude decides what the end of a program means. Order matters: a program
// that ran out of memory just as its time ran out was ended by the clock.
func (s *Service) conclude(ctx context.Context, e *Execution, timeout time.Duration, out Outcome) {
	e.ExitCode = out.ExitCode
	e.StdoutBytes, e.StderrBytes = out.StdoutBytes, out.StderrBytes
	e.StdoutTruncated = out.StdoutBytes > int64(len(e.Stdout))
	e.StderrTruncated = out.StderrBytes > int64(len(e.Stderr))
	l := s.cfg.Limits
	switch {
	case out.TimedOut:
		e.Status, e.ExitCode = Timeout, -1
		e.Error = fmt.Sprintf("execution timed out after %ds", int(timeout/time.Second))
	case ctx.Err() != nil && (out.Lost || out.ExitCode != 0):
		e.Status, e.ExitCode = Cancelled, -1
		e.Error = "the execution was cancelled before it was done"
		if s.cfg.Detach {
			e.Error = "the server has stopped; the program runs on until it ends or its time is up, and nobody hears of it"
		}
	case out.OOM:
		e.Status, e.ExitCode = OOM, 137
		e.Error = fmt.Sprintf("memory limit of %s exceeded", sandbox.FormatBytes(l.Memory))
	case out.Lost:
		e.Status, e.ExitCode = Failed, -1
		e.Error = "the sandbox ended unexpectedly; the program's exit status is not known"
	case out.ExitCode == 0:
		e.Status = Success
	default:
		e.Status = Failed
		switch {
		case out.ProcessesFull:
			e.Error = fmt.Sprintf("process limit of %d reached", l.Processes)
		case out.DiskFull:
			e.Error = fmt.Sprintf("disk limit reached: / holds %s of new files, /tmp %s, /dev/shm %s",
				sandbox.FormatBytes(l.Root), sandbox.FormatBytes(l.Tmp), sandbox.FormatBytes(l.Shm))
		}
	}
}

// destroyTimeout is how long the end of a sandbox may take before it is given
// up and left to the next start's sweep.
const destroyTimeout = 30 * time.Second

// respite is how long a used sandbox outlives its execution: taking it down
// occupies a core, which the answer on its way to the caller needs more.
const respite = 5 * time.Millisecond

// release ends a used sandbox without making its caller wait, or lets go of it.
func (s *Service) release(ctx context.Context, traceID string, c Claimed) {
	if s.cfg.Detach && ctx.Err() != nil {
		if err := c.Detach(); err != nil {
			s.cfg.Log.Error("cannot let go of a sandbox", "trace_id", traceID, "error", err)
		}
		return
	}
	s.cleanup.Go(func() {
		time.Sleep(respite)
		ctx, cancel := context.WithTimeout(context.Background(), destroyTimeout)
		defer cancel()
		if err := c.Destroy(ctx); err != nil {
			s.cfg.Log.Error("cannot destroy a used sandbox", "trace_id", traceID, "error", err)
		}
	})
}

// Wait returns when every used sandbox is gone. Call it once no Execute is
// under way.
func (s *Service) Wait() { s.cleanup.Wait() }
