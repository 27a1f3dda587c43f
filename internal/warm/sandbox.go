package warm

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/execution"
	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/image"
	"github.com/atoll-run/atoll/internal/pool"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var (
	_ pool.Item         = (*Sandbox)(nil)
	_ execution.Claimed = (*Sandbox)(nil)
)

// Sandbox is a sandbox whose interpreter waits for its one program.
type Sandbox struct {
	maker       *Maker
	key         Key
	interpreter image.Interpreter
	instance    sandbox.Instance
	guest       *guest.Client
}

// Done implements pool.Item.
func (s *Sandbox) Done() <-chan struct{} { return s.instance.Done() }

// Destroy implements pool.Item.
func (s *Sandbox) Destroy(ctx context.Context) error {
	return errors.Join(s.guest.Close(), s.instance.Destroy(ctx))
}

// Detach implements execution.Claimed.
func (s *Sandbox) Detach() error {
	return errors.Join(s.guest.Close(), s.instance.Detach())
}

// scripts are the names programs run under, and how interpreters are called.
var scripts = map[execution.Language]struct{ interpreter, file string }{
	execution.Python: {"python3", "main.py"},
	execution.Node:   {"node", "main.js"},
	execution.Bash:   {"bash", "main.sh"},
}

func (s *Sandbox) command(env map[string]string) guest.Command {
	script := scripts[s.key.Language]
	return guest.Command{
		Language: string(s.key.Language),
		Path:     s.interpreter.Path,
		Argv:     []string{script.interpreter, script.file},
		Env:      environ(env),
		Dir:      sandbox.Home,
		Limits:   guest.Limits{Processes: s.maker.cfg.Limits.Processes, OpenFiles: s.maker.cfg.Limits.OpenFiles},
	}
}

func environ(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

var (
	errLost    = errors.New("the sandbox ended")
	errLetGo   = errors.New("the caller let go of the program")
	errStalled = errors.New("the guest did not end the program in time")
)

// stallTime is how long after a program's time-out the guest may take to report
// its end before the sandbox is taken for dead.
const stallTime = 5 * time.Second

// Run implements execution.Claimed.
func (s *Sandbox) Run(ctx context.Context, p execution.Program, sink execution.Sink) (execution.Outcome, error) {
	env := maps.Clone(s.maker.env)
	maps.Copy(env, p.Env)
	spec := guest.RunSpec{
		ID:      guest.NewRunID(),
		Command: s.command(env),
		Files: []guest.File{{
			Path: path.Join(sandbox.Home, scripts[s.key.Language].file), Mode: 0o644, Data: []byte(p.Code),
		}},
		Warm:        !s.readAtStart(p.Env),
		Timeout:     p.Timeout,
		OutputLimit: p.MaxBytes,
	}
	var counted [2]int64
	w := s.watch(ctx, spec.ID, p)
	result, err := s.guest.Run(w.ctx, spec, func(stream guest.Stream, b []byte) {
		counted[stream&1] += int64(len(b))
		if stream == guest.Stdout {
			sink(execution.Stdout, b)
		} else {
			sink(execution.Stderr, b)
		}
	})
	oom := w.stop()
	if errors.Is(err, guest.ErrNotStarted) {
		return execution.Outcome{}, err
	}
	out := execution.Outcome{
		ExitCode: result.ExitCode, StdoutBytes: result.StdoutBytes, StderrBytes: result.StderrBytes, TimedOut: result.TimedOut,
		DiskFull: result.DiskFull, ProcessesFull: result.TasksFull,
	}
	if err != nil {
		out.ExitCode, out.Lost = -1, true
		out.TimedOut = errors.Is(err, errStalled)
		out.StdoutBytes, out.StderrBytes = counted[0], counted[1]
	}
	if out.ExitCode != 0 && !out.TimedOut {
		// The group is read before it goes.
		u, _ := s.instance.Usage(context.WithoutCancel(ctx))
		out.PeakMemory = u.PeakMemory
		out.OOM = oom || u.OOMKills > 0
	}
	return out, nil
}

// readAtStart reports whether a variable of the request is one that the
// interpreter reads as it starts, so that the waiting one never saw it.
func (s *Sandbox) readAtStart(env map[string]string) bool {
	for name, value := range env {
		if known, ok := s.maker.env[name]; ok && known == value {
			continue
		}
		if guest.ReadAtStart(string(s.key.Language), name) {
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
	oom    bool // read after done
}

// memoryInterval is how often memory is looked at. A program at its limit does
// not always get killed by the host: see the runtime's headroom.
const memoryInterval = 50 * time.Millisecond

// drainTime is how long a dead sandbox's last output may take to be read.
const drainTime = 50 * time.Millisecond

func (s *Sandbox) watch(ctx context.Context, id guest.RunID, p execution.Program) *watcher {
	// The guest goes on when its caller does not: a cancelled run is killed, and
	// its end awaited.
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w := &watcher{ctx: runCtx, cancel: cancel, done: make(chan struct{})}
	go s.follow(ctx, w, id, p)
	return w
}

// stop ends the watch and reports whether memory ran out.
func (w *watcher) stop() (oom bool) {
	w.cancel(nil)
	<-w.done
	return w.oom
}

func (s *Sandbox) follow(caller context.Context, w *watcher, id guest.RunID, p execution.Program) {
	defer close(w.done)
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
			if p.Detach {
				w.cancel(errLetGo)
				return
			}
			s.kill(w, id)
			killed = true
			stalled.Reset(stallTime)
		case <-memory.C:
			u, err := s.instance.Usage(w.ctx)
			if err != nil || w.oom || u.OOMKills == 0 && u.Memory < s.maker.cfg.Limits.Memory {
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
const killTime = time.Second

func (s *Sandbox) kill(w *watcher, id guest.RunID) {
	ctx, cancel := context.WithTimeout(w.ctx, killTime)
	defer cancel()
	err := s.guest.Kill(ctx, id, syscall.SIGKILL)
	if err == nil {
		return
	}
	if _, refused := errors.AsType[*guest.Error](err); refused {
		<-ctx.Done() // no such run: it was not begun, or its end is on its way
	}
	w.cancel(errLost) // means nothing once the end has come
}

// Usage is what the sandbox has used so far.
func (s *Sandbox) Usage(ctx context.Context) (sandbox.Usage, error) { return s.instance.Usage(ctx) }
