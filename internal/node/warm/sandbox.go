package warm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/infra/trace"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/pool"
)

var _ pool.Item = (*Sandbox)(nil)

// Sandbox is a sandbox whose interpreter waits for its program. It can run
// others after it, one at a time.
type Sandbox struct {
	maker    *Maker
	instance runtime.Instance
	guest    *initclient.Client
	env      map[string]string // what its programs find, a request's own left out
	unfit    error             // why it must not run a caller's code
	kills    int               // for want of memory, before the program that runs now
	shared   Key               // what MakeShared was asked for
	memory   int64             // bytes it took when it was ready; 0 if that was not measured
}

// ID names the sandbox.
func (s *Sandbox) ID() runtime.ID { return s.instance.ID() }

// Check reports what keeps the sandbox from running a caller's code.
func (s *Sandbox) Check() error {
	select {
	case <-s.instance.Done():
		return errLost
	case <-s.guest.Done():
		return errors.New("the guest does not answer")
	default:
		return s.unfit
	}
}

// Done implements pool.Item.
func (s *Sandbox) Done() <-chan struct{} { return s.instance.Done() }

// Memory is how many bytes of memory the sandbox took when it was ready, 0 if that was
// not measured. Files of the image that it shares with others are left out.
func (s *Sandbox) Memory() int64 { return s.memory }

// Destroy implements pool.Item.
func (s *Sandbox) Destroy(ctx context.Context) error {
	return errors.Join(s.guest.Close(), s.instance.Destroy(ctx), s.maker.removeShared(s.ID()))
}

// Detach lets go of the sandbox without ending it. What its program goes on to
// write waits for Maker.Open.
func (s *Sandbox) Detach() error {
	s.guest.Leave()
	return s.instance.Detach()
}

func (s *Sandbox) command(in image.Interpreter, env map[string]string) initclient.Command {
	l := language.Get(in.Language)
	return initclient.Command{
		Language: string(in.Language),
		Path:     in.Path,
		Argv:     []string{l.Programs[0], l.File},
		Env:      environ(env),
		Dir:      runtime.Home,
		Limits:   initclient.Limits{Processes: s.maker.cfg.Limits.Processes, OpenFiles: s.maker.cfg.Limits.OpenFiles},
	}
}

// environ returns a process's variables as NAME=VALUE. Executions and environments allow only
// uppercase names, but programs such as curl read only http_proxy. environ therefore adds a
// lowercase copy of each proxy variable unless one is set.
func environ(env map[string]string) []string {
	all := maps.Clone(env)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"} {
		lower := strings.ToLower(name)
		if value, ok := env[name]; ok {
			if _, own := env[lower]; !own {
				all[lower] = value
			}
		}
	}
	list := make([]string, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		list = append(list, k+"="+all[k])
	}
	return list
}

var (
	errLost    = errors.New("the sandbox ended")
	errStalled = errors.New("the guest did not end the program in time")
)

// stallTime is how long after a program's time-out the guest may take to report
// its end before the sandbox is taken for dead.
const stallTime = 5 * time.Second

// Run runs a program to its end. An error means that it never started, or is
// execution.ErrLetGo: ctx ended with that cause, and the program goes on. With
// any other cause the program is killed.
func (s *Sandbox) Run(ctx context.Context, p execution.Program, sink execution.Sink) (execution.Outcome, error) {
	if p.Input.Tool {
		return s.run(ctx, p, sink, initclient.RunSpec{Command: s.daemon(filetool.Command), Stdin: []byte(p.Code)})
	}
	in, ok := s.maker.cfg.Image.Interpreter(p.Language)
	if !ok {
		return execution.Outcome{}, s.maker.noInterpreter(p.Language)
	}
	env := maps.Clone(s.env)
	maps.Copy(env, p.Env)
	if p.Input.Helper {
		return s.run(ctx, p, sink, s.helper(in, env, &p))
	}
	spec := initclient.RunSpec{Command: s.command(in, env), Stdin: p.Input.Stdin, Warm: !s.readAtStart(p.Language, p.Env), Port: p.Port, Serve: p.Serve}
	spec.Argv = append(spec.Argv, p.Input.Args...)
	return s.run(ctx, p, sink, spec)
}

func (s *Sandbox) run(ctx context.Context, p execution.Program, sink execution.Sink, spec initclient.RunSpec) (execution.Outcome, error) {
	spec.ID, spec.Files, spec.Timeout, spec.OutputLimit = initclient.RunID(p.ID), files(&p), p.Timeout, p.MaxBytes
	return s.follow(ctx, p, [2]int64{}, sink, func(ctx context.Context, sink initclient.Sink) (initclient.Result, error) {
		return s.guest.Run(ctx, spec, sink)
	})
}

// Attach is Run for a program that an earlier process started; skip are the bytes
// of stdout and stderr that are known. It fails with execution.ErrNoRun when the
// guest has no such program.
func (s *Sandbox) Attach(ctx context.Context, p execution.Program, skip [2]int64, sink execution.Sink) (execution.Outcome, error) {
	known := map[initclient.Stream]int64{initclient.Stdout: skip[0], initclient.Stderr: skip[1]}
	return s.follow(ctx, p, skip, sink, func(ctx context.Context, sink initclient.Sink) (initclient.Result, error) {
		return s.guest.Attach(ctx, initclient.RunID(p.ID), known, sink, p.Serve)
	})
}

// follow watches over a program that call begins or takes over. counted are the
// bytes that are known of it.
func (s *Sandbox) follow(ctx context.Context, p execution.Program, counted [2]int64, sink execution.Sink,
	call func(context.Context, initclient.Sink) (initclient.Result, error),
) (execution.Outcome, error) {
	ctx, span := trace.StartKind(ctx, "guest.run", trace.Client,
		trace.String(trace.TraceID, p.TraceID), trace.String("atoll.sandbox_id", string(s.ID())))
	defer span.End()
	w := s.watch(ctx, p)
	result, err := call(w.ctx, func(stream initclient.Stream, b []byte) {
		counted[stream&1] += int64(len(b))
		if stream == initclient.Stdout {
			sink(execution.Stdout, b)
		} else {
			sink(execution.Stderr, b)
		}
	})
	w.stop()
	switch {
	case errors.Is(err, initclient.ErrNotStarted):
		return execution.Outcome{}, err
	case errors.Is(err, initclient.ErrNoRun):
		return execution.Outcome{}, execution.ErrNoRun
	}
	if err != nil && w.letGo {
		return execution.Outcome{}, execution.ErrLetGo
	}
	out := execution.Outcome{
		ExitCode: result.ExitCode, StdoutBytes: result.StdoutBytes, StderrBytes: result.StderrBytes, TimedOut: result.TimedOut,
		DiskFull: result.DiskFull, ProcessesFull: result.TasksFull, Blocked: result.Blocked,
	}
	if err != nil {
		out.ExitCode, out.Lost = -1, true
		out.TimedOut = errors.Is(err, errStalled)
		out.StdoutBytes, out.StderrBytes = counted[0], counted[1]
	}
	s.account(ctx, &out, w.oom)
	if s.shared != (Key{}) && !out.OOM {
		out.PeakMemory = result.PeakRSS // the group's is that of all its programs
	}
	span.Set(trace.Int("atoll.exit_code", int64(out.ExitCode)), trace.Int("atoll.stdout_bytes", out.StdoutBytes), trace.Int("atoll.stderr_bytes", out.StderrBytes),
		trace.Bool("atoll.warmed", result.Warm), trace.Int("atoll.cpu_ms", result.CPU.Milliseconds()), trace.Bool("atoll.timed_out", out.TimedOut), trace.Bool("atoll.out_of_memory", out.OOM), trace.Bool("atoll.lost", out.Lost))
	return out, nil
}

// account reads the group before it goes: all of it where memory may have been
// what ended the program, else what is cheap.
func (s *Sandbox) account(ctx context.Context, out *execution.Outcome, oom bool) {
	if peak, ok := s.instance.(interface{ PeakMemory() int64 }); ok && (out.ExitCode == 0 || out.TimedOut) {
		out.PeakMemory = peak.PeakMemory()
		return
	}
	u, _ := s.instance.Usage(context.WithoutCancel(ctx))
	out.PeakMemory = u.PeakMemory
	if out.ExitCode != 0 && !out.TimedOut {
		out.OOM = oom || u.OOMKills > s.kills
	}
	s.kills = u.OOMKills
}

// readAtStart reports whether a variable of the request is one that the
// interpreter reads as it starts, so that the waiting one never saw it.
func (s *Sandbox) readAtStart(l execution.Language, env map[string]string) bool {
	for name, value := range env {
		if known, ok := s.env[name]; ok && known == value {
			continue
		}
		if language.Get(l).ReadsAtStart(name) {
			return true
		}
	}
	return false
}

// watcher ends a run that the guest cannot: because its sandbox died, because
// memory ran out, because the caller gave up.
type watcher struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	oom    bool // read after stop
	letGo  bool // likewise
}

// memoryInterval is how often memory is looked at. A program at its limit does
// not always get killed by the host: see the runtime's headroom.
const memoryInterval = 50 * time.Millisecond

// drainTime is how long a dead sandbox's last output may take to be read.
const drainTime = 500 * time.Millisecond

func (s *Sandbox) watch(ctx context.Context, p execution.Program) *watcher {
	// The guest goes on when its caller does not: a cancelled run is killed, and
	// its end awaited.
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w := &watcher{ctx: runCtx, cancel: cancel, done: make(chan struct{})}
	go s.guard(ctx, w, p)
	return w
}

// stop ends the watch.
func (w *watcher) stop() {
	w.cancel(nil)
	<-w.done
}

func (s *Sandbox) guard(caller context.Context, w *watcher, p execution.Program) {
	defer close(w.done)
	id := initclient.RunID(p.ID)
	stalled := time.NewTimer(p.Timeout + stallTime)
	defer stalled.Stop()
	memory := time.NewTicker(memoryInterval)
	defer memory.Stop()
	given := caller.Done()
	killed := false // by us, before its time was up
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-s.instance.Done():
			// What the guest had written is still in the FIFO.
			t := time.NewTimer(drainTime)
			defer t.Stop()
			select {
			case <-w.ctx.Done():
			case <-t.C:
				w.cancel(errLost)
			}
			return
		case <-stalled.C:
			if killed {
				w.cancel(errLost) // not the clock ended it
			} else {
				w.cancel(errStalled)
			}
			return
		case <-given:
			given = nil
			if errors.Is(context.Cause(caller), execution.ErrLetGo) {
				w.letGo = true
				s.guest.Leave()
				return
			}
			s.kill(w, id)
			killed = true
			stalled.Reset(stallTime)
		case <-memory.C:
			u, err := s.instance.Usage(w.ctx)
			if err != nil || w.oom || u.OOMKills <= s.kills && u.Memory < s.maker.cfg.Limits.Memory {
				continue
			}
			w.oom = true
			s.kill(w, id)
			killed = true
			stalled.Reset(stallTime)
		}
	}
}

// killTime is how long the guest may take to kill; one that is short of memory
// itself may not answer at all.
const killTime = 3 * time.Second

func (s *Sandbox) kill(w *watcher, id initclient.RunID) {
	ctx, cancel := context.WithTimeout(w.ctx, killTime)
	defer cancel()
	err := s.guest.Kill(ctx, id, syscall.SIGKILL)
	if err == nil {
		return
	}
	if _, refused := errors.AsType[*initclient.Error](err); refused {
		<-ctx.Done() // no such run: it was not begun, or its end is on its way
	}
	w.cancel(errLost) // means nothing once the end has come
}

// Usage is what the sandbox has used so far.
func (s *Sandbox) Usage(ctx context.Context) (runtime.Usage, error) { return s.instance.Usage(ctx) }
