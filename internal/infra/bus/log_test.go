package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
)

func line(seq int64) execution.Event {
	return execution.Event{Seq: seq, Stream: execution.Stdout, Data: fmt.Appendf(nil, "line %d\n", seq)}
}

// consumers is how many readers the server knows.
func consumers(t testing.TB, b *Bus) int {
	t.Helper()
	info, err := b.log.stream.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Consumers
}

func TestFollow(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 60*time.Second)
		h := serve(t, b, "x1", 10)
		if err := b.Runner().Start(ctx, job("trc_1")); err != nil {
			t.Fatal(err)
		}
		const n = 3000
		var wg sync.WaitGroup
		var begin [8]chan struct{} // before, during and after the writing
		for i := range begin {
			begin[i] = make(chan struct{})
			after := int64(i * n / 8)
			wg.Go(func() {
				<-begin[i]
				next := max(2, after+1)
				r, err := b.Log().Follow(ctx, "trc_1", after, func(events []execution.Event) error {
					for _, e := range events {
						if want := line(next); e.Seq != next || !bytes.Equal(e.Data, want.Data) || e.Stream != execution.Stdout {
							return fmt.Errorf("got event %d %q, want %d", e.Seq, e.Data, next)
						}
						next++
					}
					return nil
				})
				if err != nil || r.LastSeq != n+1 || next != n+2 {
					t.Errorf("after %d: at %d, %+v, %v", after, next, r, err)
				}
			})
		}
		for i := int64(2); i <= n+1; i++ {
			if written := i - 2; written%(n/7) == 0 {
				close(begin[written/(n/7)])
			}
			if err := b.Log().Append("trc_1", []execution.Event{line(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.end(ctx, execution.Result{TraceID: "trc_1", LastSeq: n + 1}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		for _, after := range []int64{0, 1, 2, 1000, n, n + 1, n + 50} {
			events, r, err := read(ctx, b, "trc_1", after)
			want := max(0, n+1-int(max(after, 1)))
			if err != nil || r == nil || len(events) != want || want > 0 && events[0].Seq != max(2, after+1) {
				t.Errorf("after %d: %d events of %d, %v", after, len(events), want, err)
			}
		}
		if c := consumers(t, b); c != 0 {
			t.Errorf("%d readers are left", c)
		}
		if last, err := b.Log().Last(ctx, "trc_1"); err != nil || last != n+1 {
			t.Errorf("last %d, %v", last, err)
		}
		if err := b.Log().stream.Purge(ctx, jetstream.WithPurgeSubject(b.names.log+"trc_1")); err != nil { // as its age does
			t.Fatal(err)
		}
		if _, _, err := read(ctx, b, "trc_1", 0); !errors.Is(err, ErrNoLog) {
			t.Errorf("following a log that has gone: %v", err)
		}
		if last, err := b.Log().Last(ctx, "trc_1"); err != nil || last != 1 {
			t.Errorf("last of a log that has gone: %d, %v", last, err)
		}
	})
}

func TestFollowEndsWithItsCaller(t *testing.T) {
	b := embedded(t)
	h := serve(t, b, "x1", 10)
	if err := b.Runner().Start(context.Background(), job("trc_1")); err != nil {
		t.Fatal(err)
	}
	if err := b.Log().Append("trc_1", []execution.Event{line(2)}); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	if _, err := b.Log().Follow(context.Background(), "trc_1", 0, func([]execution.Event) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	if _, err := b.Log().Follow(ctx, "trc_1", 0, func([]execution.Event) error { cancel(stop); return nil }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if _, _, err := read(context.Background(), b, "trc_none", 0); !errors.Is(err, ErrNoLog) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Log().Result(context.Background(), "trc_1"); !errors.Is(err, ErrNoLog) {
		t.Errorf("the result of a run that continues: %v", err)
	}
	if c := consumers(t, b); c != 0 {
		t.Errorf("%d readers are left", c)
	}
	if err := h.end(context.Background(), done("trc_1")); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Log().Result(context.Background(), "trc_1"); err != nil || r.Status != execution.Success {
		t.Errorf("result: %+v, %v", r, err)
	}
}

func TestAppendRefuses(t *testing.T) {
	b := embedded(t)
	for _, events := range [][]execution.Event{
		{{Seq: 1}},
		{line(2), line(4)},
		{{Seq: 2, Data: make([]byte, execution.MaxChunk+1)}},
	} {
		if err := b.Log().Append("trc_1", events); err == nil {
			t.Errorf("events from %d were taken", events[0].Seq)
		}
	}
	if err := b.Log().Append("trc.*", []execution.Event{line(2)}); err == nil {
		t.Error("a trace id with a wildcard was taken")
	}
	if err := b.Log().Append("trc_1", []execution.Event{line(2)}); err != nil {
		t.Error(err)
	}
	if err := b.Log().Append("trc_1", []execution.Event{line(4)}); err == nil {
		t.Error("a gap was taken")
	}
}

// Bytes beyond an execution's share drive out its own oldest, and the result
// says so.
func TestLogIsBounded(t *testing.T) {
	const most = 2 << 20
	b := open(t, Config{Dir: t.TempDir(), Name: "gw", MaxRunBytes: most})
	ctx := deadline(t, 60*time.Second)
	if err := b.Log().Append("trc_other", []execution.Event{line(2)}); err != nil {
		t.Fatal(err)
	}
	n := int64(100)
	for i := int64(2); i <= n+1; i++ {
		if err := b.Log().Append("trc_1", []execution.Event{{Seq: i, Stream: execution.Stderr, Data: make([]byte, execution.MaxChunk)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Log().Finish(ctx, execution.Result{TraceID: "trc_1", LastSeq: n + 1}); err != nil {
		t.Fatal(err)
	}
	for _, after := range []int64{0, 40, 95} {
		events, r, err := read(ctx, b, "trc_1", after)
		if err != nil || !r.OutputTruncated {
			t.Fatalf("%+v, %v", r, err)
		}
		kept := int64(len(events)) * execution.MaxChunk
		if after == 95 && len(events) != 6 || after != 95 && (kept > most || kept < most/2) {
			t.Errorf("after %d: %d bytes are kept of %d", after, kept, most)
		}
		for i, e := range events {
			if e.Seq != n+1-int64(len(events)-1-i) {
				t.Fatalf("event %d at %d of %d", e.Seq, i, len(events))
			}
		}
	}
	if last, err := b.Log().Last(ctx, "trc_other"); err != nil || last != 2 {
		t.Errorf("another log: %d, %v", last, err)
	}
}

// More messages than the reconnect buffer holds drive out the oldest.
func TestLogCountIsBounded(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 60*time.Second)
	const n = execution.MaxEvents + 500
	for i := int64(2); i <= n+1; i++ {
		if err := b.Log().Append("trc_1", []execution.Event{line(i)}); err != nil {
			t.Fatal(err)
		}
		for b.Log().Stored("trc_1") < i { // a message for each
			runtime.Gosched()
		}
	}
	if err := b.Log().Finish(ctx, execution.Result{TraceID: "trc_1", LastSeq: n + 1}); err != nil {
		t.Fatal(err)
	}
	events, r, err := read(ctx, b, "trc_1", 0)
	if err != nil || !r.OutputTruncated || len(events) != execution.MaxEvents-1 || events[len(events)-1].Seq != n+1 {
		t.Errorf("%d events, %+v, %v", len(events), r, err)
	}
}

// A run taken over goes on in the same log; what is appended twice is read
// once.
func TestLogIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	ctx := deadline(t, 30*time.Second)
	first, err := Open(ctx, Config{Dir: dir, Name: "gw", Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	for i := int64(2); i < 12; i++ {
		if err := first.Log().Append("trc_1", []execution.Event{line(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	b := open(t, Config{Dir: dir, Name: "gw"})
	h := serve(t, b, "x1", 1)
	if err := h.x.Hold("trc_1", ""); err != nil {
		t.Fatal(err)
	}
	h.jobs["trc_1"] = job("trc_1")
	if last, err := b.Log().Last(ctx, "trc_1"); err != nil || last != 11 {
		t.Fatalf("last %d, %v", last, err)
	}
	if err := b.Log().Append("trc_1", []execution.Event{line(10), line(11), line(12)}); err != nil {
		t.Fatal(err)
	}
	w := b.Await("trc_1") // a gateway that waits again does not know where the run is
	defer w.Close(true)
	if alive, err := b.Runner().Alive(ctx, "trc_1"); err != nil || !alive {
		t.Fatalf("alive: %v, %v", alive, err)
	}
	if err := h.end(ctx, execution.Result{TraceID: "trc_1", LastSeq: 12}); err != nil {
		t.Fatal(err)
	}
	if r := <-w.Result(); r.LastSeq != 12 || r.OutputTruncated {
		t.Errorf("result %+v", r)
	}
	events, _, err := read(ctx, b, "trc_1", 0)
	if err != nil || len(events) != 11 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// A reader who stops reading holds up neither the writer nor other readers,
// and costs a bounded amount of memory.
func TestSlowReader(t *testing.T) {
	b := open(t, Config{Dir: t.TempDir(), Name: "gw", MaxRunBytes: 512 << 20})
	ctx := deadline(t, 60*time.Second)
	serve(t, b, "x1", 1)
	if err := b.Runner().Start(ctx, job("trc_1")); err != nil {
		t.Fatal(err)
	}
	const n = 640 // 40 MiB
	release := make(chan struct{})
	var slow, fast atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, err := b.Log().Follow(ctx, "trc_1", 0, func(e []execution.Event) error {
				<-release
				slow.Add(int64(len(e)))
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	quick := make(chan struct{})
	go func() {
		defer close(quick)
		if _, err := b.Log().Follow(ctx, "trc_1", 0, func(e []execution.Event) error { fast.Add(int64(len(e))); return nil }); err != nil {
			t.Error(err)
		}
	}()
	data := []byte(strings.Repeat("x", execution.MaxChunk))
	for i := int64(2); i <= n+1; i++ {
		if err := b.Log().Append("trc_1", []execution.Event{{Seq: i, Data: data, Stream: execution.Stdout}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Log().Finish(ctx, execution.Result{TraceID: "trc_1", LastSeq: n + 1}); err != nil {
		t.Fatal(err)
	}
	<-quick
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("heap %d MiB with four readers that stand still", m.HeapAlloc>>20)
	if m.HeapAlloc > 100<<20 {
		t.Errorf("heap is %d MiB", m.HeapAlloc>>20)
	}
	close(release)
	wg.Wait()
	if fast.Load() != n || slow.Load() != 4*n {
		t.Errorf("fast reader got %d, slow ones %d, of %d", fast.Load(), slow.Load(), n)
	}
	if c := consumers(t, b); c != 0 {
		t.Errorf("%d readers are left", c)
	}
}
