package executor_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/test/atolltest"
)

// openBus opens the bus of a folder, which the end of the test closes.
func openBus(t testing.TB, dir string) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Config{Dir: filepath.Join(dir, "bus"), Name: "here", Log: slog.New(slog.DiscardHandler)})
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

// follow reads a log to its Result.
func follow(t testing.TB, b *bus.Bus, traceID string) (stdout string, r *execution.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	seq := int64(1)
	r, err := b.Log().Follow(ctx, traceID, 0, func(events []execution.Event) error {
		for _, e := range events {
			if seq++; e.Seq != seq {
				t.Errorf("event %d where %d follows", e.Seq, seq)
			}
			if e.Stream == execution.Stdout {
				out.Write(e.Data)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), r
}

func TestRunsOverTheBus(t *testing.T) {
	dir := folderFor(t)
	b := openBus(t, dir)
	m := start(t, dir, options{bus: b, poolSize: 1})
	j := job("for i in range(100000): print(i)")
	if err := b.Runner().Start(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	stdout, r := follow(t, b, j.TraceID)
	if strings.Count(stdout, "\n") != 100000 || !strings.HasSuffix(stdout, "\n99999\n") || r.Status != execution.Success || !r.Stored {
		t.Errorf("%d bytes came, and %+v", len(stdout), r)
	}

	j = job("import time\nprint('begun', flush=True)\ntime.sleep(60)")
	if err := b.Runner().Start(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	err := b.Runner().Cancel(t.Context(), j.TraceID)
	if _, r := follow(t, b, j.TraceID); err != nil || r.Status != execution.Cancelled {
		t.Errorf("a cancelled run ended as %+v: %v", r, err)
	}
	for i, want := range []string{"1", "2"} {
		j := job("import os\nn = len(os.listdir('.'))\nprint(n)\nopen('file', 'w').close()")
		j.Turn = "turn"
		if err := b.Runner().Start(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if stdout, r := follow(t, b, j.TraceID); stdout != want+"\n" || r.Reused != (i > 0) {
			t.Errorf("call %d of a turn found %q: %+v", i, stdout, r)
		}
	}
	m.EndTurn("turn")
}

func TestRunsStayOnTheBusThroughARestart(t *testing.T) {
	dir := folderFor(t)
	b := openBus(t, dir)
	first, err := open(t.Context(), dir, options{bus: b, detach: true})
	if err != nil {
		t.Fatal(err)
	}
	j := job("import time\nfor i in range(300):\n    print(i, flush=True); time.sleep(0.01)")
	if err := b.Runner().Start(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	written := errors.New("the program has written")
	if _, err := b.Log().Follow(t.Context(), j.TraceID, 50, func([]execution.Event) error { return written }); !errors.Is(err, written) {
		t.Fatal(err)
	}
	if err := first.close(0); err != nil {
		t.Fatal(err)
	}
	start(t, dir, options{bus: b})
	if alive, err := b.Runner().Alive(t.Context(), j.TraceID); !alive || err != nil {
		t.Error("a run that was taken over is not alive:", err)
	}
	stdout, r := follow(t, b, j.TraceID)
	if strings.Count(stdout, "\n") != 300 || r.Status != execution.Success {
		t.Errorf("%d lines came, and %+v", strings.Count(stdout, "\n"), r)
	}
}

// BenchmarkTiny measures what lies between a job and its Result for a program
// that does next to nothing: "bare" without log and journal, "bus" with them.
func BenchmarkTiny(b *testing.B) {
	for _, name := range []string{"bare", "bus"} {
		b.Run(name, func(b *testing.B) { benchmarkTiny(b, name == "bus") })
	}
}

func benchmarkTiny(b *testing.B, overBus bool) {
	dir := b.TempDir()
	nats := openBus(b, dir)
	m, err := open(b.Context(), dir, options{bus: nats, poolSize: 2})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := m.close(time.Second); err != nil {
			b.Error(err)
		}
	}()
	var took []time.Duration
	for b.Loop() {
		// Callers come so far apart that the pool has refilled.
		atolltest.Until(b, time.Minute, "the pool was filled", func() bool {
			return m.engine.Ready(b.Context()) == nil && m.count(b, "atoll_pool_idle") >= m.count(b, "atoll_pool_target")
		})
		j := job("print(1)")
		begun := time.Now()
		if overBus {
			w := nats.Await(j.TraceID)
			if err := m.Start(b.Context(), j); err != nil {
				b.Fatal(err)
			}
			<-w.Result()
			took = append(took, time.Since(begun))
			w.Close(true)
		} else {
			if err := m.local(j); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/p50")
	b.ReportMetric(float64(took[len(took)/10].Microseconds())/1000, "ms/p10")
}
