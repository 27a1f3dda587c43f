package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	goleak.VerifyTestMain(m)
}

var discard = slog.New(slog.DiscardHandler)

func open(t testing.TB, cfg Config) *Bus {
	t.Helper()
	cfg.Log = discard
	if testing.Verbose() {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	b, err := Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func embedded(t testing.TB) *Bus { return open(t, Config{Dir: t.TempDir(), Name: "gw"}) }

// handler is an executor that holds its jobs until told.
type handler struct {
	x    *Executor
	log  *Log
	room int

	mu      sync.Mutex
	jobs    map[string]execution.Job
	starts  int
	ended   []string // turns
	starter func(context.Context, execution.Job) error
}

func serve(t testing.TB, b *Bus, id string, room int) *handler {
	t.Helper()
	h := &handler{log: b.Log(), room: room, jobs: map[string]execution.Job{}}
	x, err := b.Serve(id, h)
	if err != nil {
		t.Fatal(err)
	}
	h.x = x
	t.Cleanup(x.Close)
	return h
}

func (h *handler) Start(ctx context.Context, job execution.Job) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.starter != nil {
		if err := h.starter(ctx, job); err != nil {
			return err
		}
	}
	if len(h.jobs) >= h.room {
		return fault.New(fault.Unavailable, "this executor is full")
	}
	h.jobs[job.TraceID] = job
	h.starts++
	return nil
}

// end ends a job the way an executor does.
func (h *handler) end(ctx context.Context, r execution.Result) error {
	h.mu.Lock()
	_, ok := h.jobs[r.TraceID]
	delete(h.jobs, r.TraceID)
	h.mu.Unlock()
	if !ok {
		return fault.New(fault.NotFound, "no such run")
	}
	if err := h.log.Finish(ctx, r); err != nil {
		return err
	}
	h.x.Release(r.TraceID)
	return nil
}

func (h *handler) Cancel(ctx context.Context, traceID string) error {
	return h.end(ctx, execution.Result{TraceID: traceID, Status: execution.Cancelled, ExitCode: -1, LastSeq: 1})
}

func (h *handler) EndTurn(turn string) {
	h.mu.Lock()
	h.ended = append(h.ended, turn)
	h.mu.Unlock()
	h.x.ReleaseTurn(turn)
}

// stay has the executor not come back by itself once it is full.
func (h *handler) stay() {
	h.x.mu.Lock()
	defer h.x.mu.Unlock()
	h.x.back.Stop()
	h.x.back = time.AfterFunc(pause, func() {})
}

func (h *handler) has(traceID string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.jobs[traceID]
	return ok
}

func job(id string) execution.Job { return execution.Job{TraceID: id, Code: "print(1)"} }

func done(id string) execution.Result {
	return execution.Result{TraceID: id, Status: execution.Success, LastSeq: 1}
}

func deadline(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func wantFault(t testing.TB, err error, kind fault.Kind, text string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != kind || !strings.Contains(f.Msg, text) {
		t.Errorf("got %T %v, want a fault of kind %d with %q", err, err, kind, text)
	}
}

// everywhere runs a test with the server in the process and with one that is a
// process of its own.
func everywhere(t *testing.T, test func(t *testing.T, b *Bus)) {
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t)) })
	t.Run("remote", func(t *testing.T) {
		s := startServer(t)
		test(t, open(t, Config{URL: s.url(), Name: "gw"}))
	})
}

func TestOneRun(t *testing.T) {
	everywhere(t, testOneRun)
}

func testOneRun(t *testing.T, b *Bus) {
	ctx := deadline(t, 20*time.Second)
	h := serve(t, b, "x1", 1)
	w := b.Await("trc_1")
	defer w.Close(true)
	if err := b.Runner().Start(ctx, job("trc_1")); err != nil {
		t.Fatal(err)
	}
	if alive, err := b.Runner().Alive(ctx, "trc_1"); err != nil || !alive {
		t.Fatalf("alive: %v, %v", alive, err)
	}
	if err := b.Log().Append("trc_1", []execution.Event{{Seq: 2, Stream: execution.Stdout, Data: []byte("1\n")}}); err != nil {
		t.Fatal(err)
	}
	want := done("trc_1")
	want.LastSeq, want.Stdout = 2, []byte("1\n")
	if err := h.end(ctx, want); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-w.Result():
		if r.Status != execution.Success || string(r.Stdout) != "1\n" || r.OutputTruncated {
			t.Errorf("result %+v", r)
		}
	case <-ctx.Done():
		t.Fatal("no result")
	}
	if alive, err := b.Runner().Alive(ctx, "trc_1"); err != nil || alive {
		t.Errorf("alive after its end: %v, %v", alive, err)
	}
	if err := b.Runner().Cancel(ctx, "trc_1"); err != nil {
		t.Errorf("cancelling what has just ended: %v", err)
	}
	wantFault(t, b.Runner().Cancel(ctx, "trc_2"), fault.NotFound, "no executor has this execution")
	events, r, err := read(ctx, b, "trc_1", 0)
	if err != nil || len(events) != 1 || r.LastSeq != 2 {
		t.Errorf("log: %+v, %+v, %v", events, r, err)
	}
}

// read follows a log to its end.
func read(ctx context.Context, b *Bus, id string, after int64) (events []execution.Event, r *execution.Result, err error) {
	r, err = b.Log().Follow(ctx, id, after, func(e []execution.Event) error {
		events = append(events, e...)
		return nil
	})
	return events, r, err
}

func TestStartRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 20*time.Second)
		wantFault(t, b.Runner().Start(ctx, job("trc_0")), fault.Unavailable, "no executor has room; nothing was run")
		h := serve(t, b, "x1", 1)
		h.stay()
		h.starter = func(_ context.Context, j execution.Job) error {
			if j.Code == "bad" {
				return fault.New(fault.Forbidden, "not here")
			}
			return nil
		}
		wantFault(t, b.Runner().Start(ctx, execution.Job{TraceID: "trc_1", Code: "bad"}), fault.Forbidden, "not here")
		if err := b.Runner().Start(ctx, job("trc_2")); err != nil {
			t.Fatal(err)
		}
		wantFault(t, b.Runner().Start(ctx, job("trc_3")), fault.Unavailable, "this executor is full")
		wantFault(t, b.Runner().Start(ctx, job("trc_4")), fault.Unavailable, "no executor has room")
		if err := h.end(ctx, done("trc_2")); err != nil {
			t.Fatal(err)
		}
		if err := b.Runner().Start(ctx, job("trc_5")); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
}

// An executor that lacked something else than a place is asked again by and by.
func TestExecutorComesBack(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 10*time.Second)
	h := serve(t, b, "x1", 1)
	short := true
	h.starter = func(context.Context, execution.Job) error {
		if short {
			short = false
			return fault.New(fault.Unavailable, "no disk space")
		}
		return nil
	}
	wantFault(t, b.Runner().Start(ctx, job("trc_1")), fault.Unavailable, "no disk space")
	atolltest.Until(t, 10*time.Second, "the executor comes back", func() bool {
		err := b.Runner().Start(ctx, job("trc_1"))
		if err != nil {
			wantFault(t, err, fault.Unavailable, "no executor has room")
		}
		return err == nil
	})
}

// A stopping executor refuses what arrives, and goes on with what it has.
func TestDrain(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 10*time.Second)
	h := serve(t, b, "x1", 10)
	if err := b.Runner().Start(ctx, turnJob("trc_1", "T")); err != nil {
		t.Fatal(err)
	}
	h.x.Drain()
	wantFault(t, b.Runner().Start(ctx, job("trc_2")), fault.Unavailable, "nothing was run")
	wantFault(t, b.Runner().Start(ctx, turnJob("trc_3", "T")), fault.Unavailable, "")
	if err := b.Runner().Cancel(ctx, "trc_1"); err != nil {
		t.Error(err)
	}
	if r, err := b.Log().Result(ctx, "trc_1"); err != nil || r.Status != execution.Cancelled {
		t.Errorf("%+v, %v", r, err)
	}
}

// Every place of every executor is found, and no job starts twice.
func TestStartFindsRoom(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 30*time.Second)
		var hs []*handler
		for i := range 5 {
			hs = append(hs, serve(t, b, fmt.Sprintf("x%d", i), i+1)) // 15 places
		}
		var wg sync.WaitGroup
		errs := make([]error, 15)
		for i := range errs {
			wg.Go(func() { errs[i] = b.Runner().Start(ctx, job(fmt.Sprintf("trc_%d", i))) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		wantFault(t, b.Runner().Start(ctx, job("trc_x")), fault.Unavailable, "")
		for i, h := range hs {
			if h.starts != i+1 {
				t.Errorf("executor %d has %d jobs", i, h.starts)
			}
		}
	})
}
