package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// task is a job that was taken on, until its Result is stored. But for the first
// paragraph it is its goroutine's.
type task struct {
	x      *Executor
	job    execution.Job
	ctx    context.Context // its end, with a cause, ends the run
	cancel context.CancelCauseFunc
	span   trace.Span          // ctx's: all that is done for the job here
	origin map[string][]string // headers of the trace that the job came with

	done      chan struct{} // closed when the Result is stored, or nothing more happens here
	created   time.Time
	started   time.Time
	start     execution.StartReason
	isolation execution.Isolation // of the sandbox
	reused    bool                // an earlier job of the turn had made the sandbox
	window    window              // of the turn's sandbox, as the job found or began it
	windows   int                 // 1 if it began it
	turn      *turn               // nil for a sandbox that is used once
	sandbox   Claimed             // from when it is the task's until it was given up
	home      Home                // of the job's thread; likewise
	told      bool                // the Result is stored
	letGo     bool                // the next process has the run
	waits     bool                // it is in the file of waiting jobs

	skills []execution.SkillFile // that the turn's sandbox has not yet

	retried  bool // see again
	homeAway bool // the home is where the sandbox finds it
}

// run takes a task from its place in line to its Result.
func (t *task) run() {
	defer t.x.line.leave(t.job.Tenant)
	if t.turn != nil {
		defer t.leaveTurn()
	}
	release, err := t.wait()
	if err != nil {
		t.refuse(err)
		return
	}
	defer release()
	defer t.dropHome() // nil by then, unless nothing of it counts
	if err := t.takeHome(); err != nil {
		t.refuse(err)
		return
	}
	if t.turn != nil {
		if t.reused = t.reuse(); t.reused {
			t.start = execution.StartTurn
		}
	}
	if err := t.loadSkills(); err != nil {
		if t.turn != nil {
			t.turn.sandbox, t.sandbox = t.sandbox, nil
		}
		t.refuse(err)
		return
	}
	if t.sandbox == nil {
		if err := t.claim(); err != nil {
			t.refuse(err)
			return
		}
	}
	t.execute()
}

// wait waits for the job's turn, if it has one, and for a slot.
func (t *task) wait() (release func(), err error) {
	_, span := trace.Start(t.ctx, "execution.wait")
	defer func() {
		span.Fail(err)
		span.End()
	}()
	give := func() {}
	if t.turn != nil {
		if err := t.turn.take(t.ctx); err != nil {
			return nil, err
		}
		give = t.turn.give
		if err := t.x.takeRoom(t.ctx, t.turn); err != nil {
			give()
			return nil, err
		}
	}
	slot, err := t.x.line.slot(t.ctx, t.job.Tenant)
	if err == nil && t.ctx.Err() != nil { // both came at once
		slot()
		err = context.Cause(t.ctx)
	}
	if err != nil {
		give()
		return nil, err
	}
	return func() { slot(); give() }, nil
}

// claim gets the job a sandbox.
func (t *task) claim() (err error) {
	ctx, span := trace.Start(t.ctx, "sandbox.claim")
	t.sandbox, t.start, err = t.x.cfg.Sandboxes.Claim(ctx, &t.job)
	span.Set(trace.String("atoll.start", string(t.start.Start())), trace.String("atoll.start_reason", string(t.start)))
	span.Fail(err)
	span.End()
	t.isolation = execution.IsolationRun
	if s, ok := t.sandbox.(Shared); ok {
		t.isolation = s.Isolation()
	}
	return err
}

// execute runs the job in its sandbox, or in another one if nothing was run because the
// kernel that it was to share had broken.
func (t *task) execute() {
	for why := t.attempt(); why != nil; why = t.attempt() {
		t.x.cfg.Log.Warn("a shared kernel broke; the job gets another one", "trace_id", t.job.TraceID, "error", why)
		t.retried = true
		t.discard()
		if err := t.claim(); err != nil {
			t.refuse(err)
			return
		}
	}
}

// retries reports whether the job may have another sandbox, once.
func (t *task) retries() bool {
	_, shared := t.sandbox.(Shared)
	return shared && !t.retried && t.ctx.Err() == nil
}

// attempt runs the job in its sandbox. An error is why that is to be done in another one.
func (t *task) attempt() error {
	out, err := t.prepare()
	if err != nil && t.retries() {
		return err
	}
	if err != nil {
		t.x.cfg.Log.Error("a sandbox was unusable", "trace_id", t.job.TraceID, "error", err)
		t.discard()
		t.store(execution.Result{Status: execution.Blocked, Error: "provisioning: " + shown(err), NotStarted: true, Kind: fault.KindOf(err)})
		return nil
	}
	defer out.close()
	if may, err := t.mayStart(); err != nil || !may {
		if t.reused { // the turn's next job finds it as this one did
			t.turn.sandbox, t.sandbox = t.sandbox, nil
		} else {
			t.discard()
		}
		if err != nil {
			t.refuse(err)
		} else {
			t.drop()
		}
		return nil
	}
	t.started = time.Now()
	t.openWindow()
	r := jobRecord{
		Job: t.job, Run: rand.Uint64() | 1, Created: t.created, Started: t.started, Start: t.start, Reused: t.reused, Isolation: t.isolation,
		Window: t.window, Windows: t.windows, Trace: t.origin,
	}
	if t.turn != nil {
		r.Skills = t.turn.skills
	}
	j, err := newJournal(t.sandbox.Folder(), r)
	if err != nil {
		t.discard()
		t.refuse(fmt.Errorf("begin the journal: %w", err))
		return nil
	}
	t.begun()
	if t.turn != nil {
		t.turn.noted = false
	}
	out.start(j)
	outcome, err := t.runProgram(r.Run, out)
	if err != nil && !errors.Is(err, execution.ErrLetGo) && t.retries() && j.clear() == nil {
		return err
	}
	t.settle(out, outcome, err)
	return nil
}

// mayStart reports whether the job still counts: a gateway may have told its caller that
// it is lost or cancelled, while this process did not run or the job was on its way.
func (t *task) mayStart() (bool, error) {
	now := time.Now()
	if t.x.cfg.Starts == nil || !t.job.Doubtful(now) {
		return true, nil
	}
	if ahead := t.job.StartBy.Sub(now); ahead > 0 {
		t.x.clocks.Do(func() {
			t.x.cfg.Log.Warn("this machine's clock is behind a gateway's, which delays each start; synchronize the clocks", "seconds", (ahead - execution.StartTime).Seconds())
		})
	}
	ctx, cancel := context.WithTimeout(t.ctx, confirmTime)
	defer cancel()
	may, err := t.x.cfg.Starts.Begin(ctx, t.job.TraceID)
	if err != nil {
		return false, fault.Wrap(fault.Unavailable, err, "this server cannot confirm that the execution is still wanted; nothing was run. Retry in a few seconds")
	}
	return may, nil
}

// confirmTime bounds the wait for a decision of Starts.
const confirmTime = 10 * time.Second

// drop ends a job whose caller knows already how it ended: nothing is run or stored.
func (t *task) drop() {
	t.x.cfg.Log.Warn("did not start a job that a gateway has concluded", "trace_id", t.job.TraceID)
	t.x.metrics.dropped.Inc()
	t.dropHome()
	t.begun()
	t.told = true
}

// runProgram runs the program, in its thread's home if it has one.
func (t *task) runProgram(run uint64, out *output) (execution.Outcome, error) {
	if err := t.enterHome(); err != nil {
		return execution.Outcome{}, err
	}
	defer t.watchHome()()
	outcome, err := t.sandbox.Run(t.ctx, t.program(run, t.job.Timeout), out.write)
	if err == nil {
		t.placed()
	}
	return outcome, err
}

// begun notes that the job waits no more: its journal has it, or its Result.
func (t *task) begun() {
	if !t.waits {
		return
	}
	t.waits = false
	if err := t.x.waiting.remove(t.job.TraceID); err != nil {
		t.x.cfg.Log.Error("cannot record the start of a job", "trace_id", t.job.TraceID, "error", err)
	}
}

// prepare checks everything that must hold before a caller's code runs.
func (t *task) prepare() (*output, error) {
	if err := t.sandbox.Check(); err != nil {
		return nil, err
	}
	return t.x.newOutput(&t.job, t.sandbox.Folder(), func() { t.cancel(errInternal) })
}

func (t *task) program(run uint64, timeout time.Duration) execution.Program {
	p := execution.Program{
		TraceID: t.job.TraceID, ID: run, Language: t.job.Language, Code: t.job.Code, Env: t.job.Env, Input: t.job.Input,
		Timeout: timeout, MaxBytes: t.job.StoreOutput, Skills: t.skills,
	}
	if t.job.Web != nil && t.x.cfg.Web != nil {
		t.offerWeb(&p)
	}
	return p
}

// settle deals with the end of a program, or with having let go of it.
func (t *task) settle(out *output, outcome execution.Outcome, err error) {
	if errors.Is(err, execution.ErrLetGo) {
		if out.journal != nil {
			t.detach()
			return
		}
		outcome, err = execution.Outcome{Lost: true, StdoutBytes: out.raw[0], StderrBytes: out.raw[1]}, nil
		t.cancel(errShutdown) // means nothing but for decide
	}
	if err != nil {
		if out.journal != nil {
			_ = out.journal.clear() // nothing was run, and nothing is to be
		}
		t.discard()
		t.refuse(execution.NotStarted(err))
		return
	}
	e := decide(&t.job, outcome, context.Cause(t.ctx))
	t.flush(&e)
	t.collect(out, &e, outcome.Lost)
	e.CompletedAt = time.Now()
	t.conclude(out, e, outcome.Lost)
}

// flush stores what the program wrote to its mounts. What cannot be stored is a
// failure of the run, whatever the program made of it.
func (t *task) flush(e *endRecord) {
	f, ok := t.sandbox.(Flusher)
	if !ok || len(t.job.Mounts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.x.cfg.FlushTime)
	defer cancel()
	err := f.Flush(ctx)
	if err == nil {
		return
	}
	t.x.cfg.Log.Error("cannot store what a program wrote to its storage", "trace_id", t.job.TraceID, "error", err)
	msg := "some files that the program wrote to its storage could not be stored"
	if known, ok := errors.AsType[*fault.Error](err); ok {
		msg = "storage: " + known.Msg
	}
	e.fail(msg)
}

// conclude stores the Result of a program that has ended so.
func (t *task) conclude(out *output, e endRecord, lost bool) {
	t.note(out, e)
	if e.Counts && !e.Saved && t.job.Thread != nil {
		if t.saveHome(&e); !e.Saved {
			t.detach()
			return
		}
		t.note(out, e)
	}
	if e.Thread != nil {
		t.returnHome()
	}
	r := execution.Result{
		Status: e.Status, ExitCode: e.ExitCode, Error: e.Error, StdoutBytes: e.Bytes[0], StderrBytes: e.Bytes[1],
		CompletedAt: e.CompletedAt, PeakMemory: e.PeakMemory, Traffic: e.Traffic, Thread: e.Thread, Files: e.Files,
		Windows: t.closeWindow(e.CompletedAt),
	}
	out.finish(trace.Carry(t.x.stopped, t.ctx), t.x.cfg.Blobs, &t.job, &r)
	if !t.store(r) {
		t.detach()
		return
	}
	keeps := t.turn != nil && !lost
	noted, err := t.closeJournal(out.journal, keeps)
	if err != nil {
		t.x.cfg.Log.Warn("cannot clear a journal", "trace_id", t.job.TraceID, "error", err)
		keeps = false // not to be used again
		t.spoil()
	}
	if err := out.answer.remove(); err != nil {
		t.x.cfg.Log.Warn("cannot remove an output", "trace_id", t.job.TraceID, "error", err)
	}
	if !keeps {
		t.discard()
		return
	}
	t.turn.sandbox, t.turn.noted, t.sandbox = t.sandbox, noted, nil
}

// closeJournal closes the journal of a run that is over and told. If keeps, the turn keeps the
// sandbox; noted says that the journal tells the next process so, which can take it over.
func (t *task) closeJournal(j *journal, keeps bool) (noted bool, err error) {
	switch {
	case j == nil:
		return false, nil
	case keeps && t.x.cfg.Detach && !t.x.cfg.Sandboxes.Fragile(&t.job) && !t.turnEnded():
		return true, j.rest(idleRecord{Job: t.job, Window: t.turn.window, Trusts: t.turn.trusts, Skills: t.turn.skills})
	}
	return false, j.clear()
}

// note writes down how the program ended, or what came of it since.
func (t *task) note(out *output, e endRecord) {
	if out.journal == nil {
		return
	}
	out.mu.Lock() // a keepalive may be on its way
	defer out.mu.Unlock()
	if err := out.journal.end(e); err != nil {
		t.x.cfg.Log.Warn("cannot record the end of a program", "trace_id", t.job.TraceID, "error", err)
	}
}

// store fills in r and stores it, however often that has to be tried; false says
// that the executor was closed first.
func (t *task) store(r execution.Result) bool {
	t.dropHome() // the thread's next job may come as soon as it is told
	r.TraceID, r.StartedAt, r.Reused = t.job.TraceID, t.started, t.reused
	if r.CompletedAt.IsZero() {
		r.CompletedAt = time.Now()
	}
	if r.StartedAt.IsZero() {
		r.StartedAt = r.CompletedAt
	}
	r.LastSeq = max(r.LastSeq, 1)
	if r.NotStarted {
		r.ExitCode = -1
	} else {
		r.Start, r.Isolation = t.start.Start(), t.isolation
	}
	t.span.Set(trace.String("atoll.status", string(r.Status)), trace.Int("atoll.exit_code", int64(r.ExitCode)),
		trace.String("atoll.start", string(r.Start)), trace.Bool("atoll.reused", r.Reused))
	if r.NotStarted {
		t.span.Fail(fault.New(r.Kind, "nothing was run"))
	}
	ctx, span := trace.StartKind(trace.Carry(t.x.stopped, t.ctx), "execution.finish", trace.Producer)
	defer span.End()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := t.x.cfg.Writer.Finish(ctx, r)
		if err == nil {
			break
		}
		t.x.cfg.Log.Error("cannot store a result; trying again", "trace_id", r.TraceID, "error", err)
		if !pause(t.x.stopped, wait) {
			return false
		}
	}
	t.told = true
	t.begun()
	t.ended(&r)
	return true
}

// ended tells operators of a Result that is stored.
func (t *task) ended(r *execution.Result) {
	t.x.metrics.ended(&t.job, r, t.start, t.created)
	attrs := []slog.Attr{
		slog.String("trace_id", r.TraceID), slog.String("language", string(t.job.Language)), slog.String("status", string(r.Status)),
		slog.Int64("duration_ms", r.CompletedAt.Sub(t.created).Milliseconds()),
	}
	if r.Start != "" {
		attrs = append(attrs, slog.String("start", string(r.Start)), slog.String("start_reason", string(t.start)))
	}
	t.x.cfg.Log.LogAttrs(t.ctx, slog.LevelInfo, "execution finished", attrs...)
}

// refuse stores the Result of a job of which nothing was run.
func (t *task) refuse(err error) {
	if t.waits && errors.Is(context.Cause(t.ctx), execution.ErrLetGo) {
		t.letGo = true // the next process runs it
		return
	}
	r := execution.Result{Status: execution.Failed, NotStarted: true, Kind: fault.Unavailable}
	switch cause := context.Cause(t.ctx); {
	case errors.Is(cause, errCancelled):
		r.Status, r.Error = execution.Cancelled, cancelledText
	case cause != nil:
		r.Error = errShutdown.Error() + "; nothing was run"
	default:
		if f, ok := errors.AsType[*fault.Error](err); ok {
			r.Kind, r.Error = f.Kind, f.Msg
		} else {
			r.Error = "no sandbox could be made; nothing was run. Retry in a few seconds"
		}
		t.x.cfg.Log.Error("cannot run a job", "trace_id", t.job.TraceID, "error", err)
	}
	t.store(r)
}

// shown is what a caller may be told of an error.
func shown(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Msg
	}
	return "the sandbox is not as it should be; nothing was run"
}

// discard ends the sandbox.
func (t *task) discard() {
	noted := t.turn != nil && t.turn.noted
	if noted {
		t.turn.noted = false
	}
	t.x.destroy(t.job.TraceID, t.sandbox, noted)
	t.sandbox = nil
}

// spoil has no other execution get the sandbox's kernel.
func (t *task) spoil() {
	if s, ok := t.sandbox.(Shared); ok {
		s.Spoil()
	}
}

// detach leaves the sandbox, with the run's journal, to the next process.
func (t *task) detach() {
	t.letGo = true
	if err := t.sandbox.Detach(); err != nil {
		t.x.cfg.Log.Error("cannot release a sandbox", "trace_id", t.job.TraceID, "error", err)
	}
	t.sandbox = nil
}

// end is what happens last, however the task went.
func (t *task) end() {
	x := t.x
	if v := recover(); v != nil {
		x.cfg.Log.Error("a job panicked", "trace_id", t.job.TraceID, "panic", v, "stack", string(debug.Stack()))
		if t.sandbox != nil {
			t.spoil() // its journal may have the job
			t.discard()
		}
		if !t.told && !t.letGo {
			t.store(execution.Result{Status: execution.Failed, ExitCode: -1, Error: internalText})
		}
	}
	if t.letGo {
		t.span.Event("released for the next process")
	}
	t.span.End()
	t.cancel(nil)
	x.mu.Lock()
	delete(x.live, t.job.TraceID)
	x.recent.add(t.job.TraceID)
	p := x.presence
	x.mu.Unlock()
	if p != nil && t.told {
		p.Release(t.job.TraceID)
	}
	close(t.done)
}

// What a caller is told of ends that are not the program's.
const (
	cancelledText = "Cancelled by user"
	internalText  = "the server failed while the program ran; how it ended is not known"
)

var errInternal = errors.New("the way of the output broke down")

// decide says what the end of a program means. Order matters: a program that
// ran out of memory just as its time ran out was ended by the clock.
func decide(job *execution.Job, out execution.Outcome, cause error) endRecord {
	e := endRecord{
		ExitCode: out.ExitCode, Bytes: [2]int64{out.StdoutBytes, out.StderrBytes}, PeakMemory: out.PeakMemory, Traffic: out.Traffic, Counts: !out.Lost,
	}
	l := job.Limits
	switch {
	case out.TimedOut:
		e.Status, e.ExitCode = execution.Timeout, -1
		e.Error = fmt.Sprintf("execution timed out after %ds", int(job.Timeout/time.Second))
	case cause != nil && !errors.Is(cause, execution.ErrLetGo) && (out.Lost || out.ExitCode != 0):
		e.Status, e.ExitCode, e.Counts = execution.Cancelled, -1, false
		full, over := errors.AsType[*homeError](cause)
		switch {
		case errors.Is(cause, errCancelled):
			e.Error = cancelledText
		case over:
			e.Status, e.Error = execution.Failed, full.Error()
		case errors.Is(cause, errShutdown):
			e.Status, e.Error = execution.Failed, errShutdown.Error()
		case errors.Is(cause, errInternal):
			e.Status, e.Error = execution.Failed, internalText
		default:
			e.Error = "the execution was cancelled before it was done"
		}
	case out.Blocked != "":
		e.Status, e.Error = execution.Blocked, fmt.Sprintf("blocked by the environment's permissions: %s", out.Blocked)
	case out.OOM:
		e.Status, e.ExitCode = execution.OOM, 137
		e.Error = fmt.Sprintf("memory limit of %s exceeded", runtime.FormatBytes(l.Memory))
	case out.Lost:
		e.Status, e.ExitCode = execution.Failed, -1
		e.Error = "the sandbox ended unexpectedly; the program's exit status is not known"
	case out.ExitCode == 0:
		e.Status = execution.Success
	default:
		e.Status = execution.Failed
		switch {
		case out.ProcessesFull:
			e.Error = fmt.Sprintf("process limit of %d reached", l.Processes)
		case out.DiskFull:
			e.Error = fmt.Sprintf("disk limit reached: / holds %s of new files, /tmp %s, /dev/shm %s",
				runtime.FormatBytes(l.Root), runtime.FormatBytes(l.Tmp), runtime.FormatBytes(l.Shm))
		}
	}
	return e
}
