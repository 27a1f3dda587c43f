package bus

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// cpu is the processor time this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// instant takes a job on and ends it at once, with one line of output.
type instant struct {
	b *Bus
	x *Executor
}

func (h *instant) Start(_ context.Context, job execution.Job) error {
	go func() {
		_ = h.b.Log().Append(job.TraceID, []execution.Event{{Seq: 2, Stream: execution.Stdout, Data: []byte("1\n")}})
		_ = h.b.Log().Finish(context.Background(), execution.Result{
			TraceID: job.TraceID, Status: execution.Success, Stdout: []byte("1\n"), StdoutBytes: 2, LastSeq: 2,
			StartedAt: time.Now(), CompletedAt: time.Now(),
		})
		h.x.Release(job.TraceID)
	}()
	return nil
}

func (h *instant) Cancel(context.Context, string) error { return nil }
func (h *instant) EndTurn(string)                       {}

// BenchmarkRun is the bus's part of print(1): start, one line, result.
func BenchmarkRun(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			bus := embedded(b)
			h := &instant{b: bus}
			var err error
			if h.x, err = bus.Serve("x1", h); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(h.x.Close)
			results(b, bus, func(context.Context, execution.Result) error { return nil })
			var n atomic.Int64
			var mu sync.Mutex
			var accepted, ended []time.Duration
			began := cpu()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for n.Add(1) <= int64(b.N) {
						id := execution.NewTraceID()
						t0 := time.Now()
						w := bus.Await(id)
						if err := bus.Runner().Start(context.Background(), job(id)); err != nil {
							b.Error(err)
							return
						}
						t1 := time.Now()
						<-w.Result()
						t2 := time.Now()
						w.Close(true)
						mu.Lock()
						accepted = append(accepted, t1.Sub(t0))
						ended = append(ended, t2.Sub(t0))
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N), "cpu-µs/op")
			slices.Sort(accepted)
			slices.Sort(ended)
			b.ReportMetric(float64(accepted[len(accepted)/2].Microseconds()), "p50-accepted-µs")
			b.ReportMetric(float64(ended[len(ended)/2].Microseconds()), "p50-result-µs")
			b.ReportMetric(float64(ended[len(ended)*99/100].Microseconds()), "p99-result-µs")
		})
	}
}

// BenchmarkFollow is what a streaming client costs beside its run.
func BenchmarkFollow(b *testing.B) {
	bus := embedded(b)
	ctx := context.Background()
	if err := bus.Log().Append("trc_1", []execution.Event{line(2)}); err != nil {
		b.Fatal(err)
	}
	if err := bus.Log().Finish(ctx, execution.Result{TraceID: "trc_1", LastSeq: 2}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bus.Log().Follow(ctx, "trc_1", 0, func([]execution.Event) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func rss(b testing.TB) int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// BenchmarkThroughput writes 1 GiB of lines of 1 KiB, 64 KiB at a time, to
// readers who keep up; with the default bound of a log, as far as they do.
func BenchmarkThroughput(b *testing.B) {
	for _, c := range []struct {
		readers int
		bound   int64
	}{{1, 2 << 30}, {4, 2 << 30}, {1, 0}} {
		readers := c.readers
		b.Run(fmt.Sprintf("readers=%d,bound=%dMiB", readers, c.bound>>20), func(b *testing.B) {
			const total = 1 << 30
			b.SetBytes(total)
			text := append(bytes.Repeat([]byte("x"), 1023), '\n')
			for b.Loop() {
				bus := open(b, Config{Dir: b.TempDir(), Name: "gw", MaxRunBytes: c.bound})
				h := serve(b, bus, "x1", 1)
				ctx := context.Background()
				if err := bus.Runner().Start(ctx, job("trc_1")); err != nil {
					b.Fatal(err)
				}
				stop := make(chan struct{})
				var peak int64
				var wg sync.WaitGroup
				wg.Go(func() {
					for {
						peak = max(peak, rss(b))
						select {
						case <-stop:
							return
						case <-time.After(50 * time.Millisecond):
						}
					}
				})
				var readersDone sync.WaitGroup
				for range readers {
					readersDone.Go(func() {
						var got, first, last int64
						_, err := bus.Log().Follow(ctx, "trc_1", 0, func(events []execution.Event) error {
							if first == 0 {
								first = events[0].Seq
							}
							last = events[len(events)-1].Seq
							for i := range events {
								got += int64(len(events[i].Data))
							}
							return nil
						})
						if c.bound == 0 {
							b.ReportMetric(100-100*float64(got)/total, "evicted-%")
						} else if got != total {
							b.Errorf("got %d bytes", got)
						}
						if err != nil || first != 2 || last != 1+total/1024 {
							b.Errorf("got %d bytes, events %d to %d, %v", got, first, last, err)
						}
					})
				}
				before := cpu()
				events := make([]execution.Event, 64)
				seq := int64(2)
				for range total / execution.MaxChunk {
					for i := range events {
						events[i] = execution.Event{Seq: seq, Stream: execution.Stdout, Data: text}
						seq++
					}
					if err := bus.Log().Append("trc_1", events); err != nil {
						b.Fatal(err)
					}
				}
				if err := h.end(ctx, execution.Result{TraceID: "trc_1", LastSeq: seq - 1}); err != nil {
					b.Fatal(err)
				}
				readersDone.Wait()
				close(stop)
				wg.Wait()
				b.ReportMetric(float64(peak>>20), "peak-rss-MiB")
				b.ReportMetric((cpu() - before).Seconds(), "cpu-s")
			}
		})
	}
}

// BenchmarkStreams is 40 readers of 50 lines a second each: how long a line
// takes from Append to yield.
func BenchmarkStreams(b *testing.B) {
	const streams, rate, seconds = 40, 50, 5
	bus := embedded(b)
	h := serve(b, bus, "x1", streams)
	ctx := context.Background()
	for b.Loop() {
		var mu sync.Mutex
		var delays []time.Duration
		var wg sync.WaitGroup
		before := cpu()
		for s := range streams {
			id := execution.NewTraceID()
			if err := bus.Runner().Start(ctx, job(id)); err != nil {
				b.Fatal(err)
			}
			wg.Go(func() {
				next := int64(2)
				var mine []time.Duration
				_, err := bus.Log().Follow(ctx, id, 0, func(events []execution.Event) error {
					now := time.Now()
					for _, e := range events {
						at, err := strconv.ParseInt(strings.TrimSpace(string(e.Data)), 10, 64)
						if err != nil || e.Seq != next {
							return fmt.Errorf("event %d %q, want %d", e.Seq, e.Data, next)
						}
						next++
						mine = append(mine, now.Sub(time.Unix(0, at)))
					}
					return nil
				})
				if err != nil || next != 2+rate*seconds {
					b.Errorf("at %d: %v", next, err)
				}
				mu.Lock()
				delays = append(delays, mine...)
				mu.Unlock()
			})
			wg.Go(func() {
				time.Sleep(time.Duration(s) * time.Second / rate / streams) // the load: they do not write in step
				tick := time.NewTicker(time.Second / rate)
				defer tick.Stop()
				for seq := int64(2); seq < 2+rate*seconds; seq++ {
					<-tick.C
					ev := execution.Event{Seq: seq, Stream: execution.Stdout, Data: fmt.Appendf(nil, "%d\n", time.Now().UnixNano())}
					if err := bus.Log().Append(id, []execution.Event{ev}); err != nil {
						b.Error(err)
					}
				}
				if err := h.end(ctx, execution.Result{TraceID: id, LastSeq: 1 + rate*seconds}); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		slices.Sort(delays)
		b.ReportMetric(float64(delays[len(delays)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds()), "p99-µs")
		b.ReportMetric(float64(delays[len(delays)-1].Microseconds()), "max-µs")
		b.ReportMetric((cpu()-before).Seconds()/seconds*100, "cpu-%")
	}
}

// BenchmarkReplay reads 100 MiB of a log that has ended.
func BenchmarkReplay(b *testing.B) {
	const total = 100 << 20
	bus := open(b, Config{Dir: b.TempDir(), Name: "gw", MaxRunBytes: 1 << 30})
	text := append(bytes.Repeat([]byte("x"), execution.MaxChunk-1), '\n')
	for seq := int64(2); seq < 2+total/execution.MaxChunk; seq++ {
		if err := bus.Log().Append("trc_1", []execution.Event{{Seq: seq, Data: text, Stream: execution.Stdout}}); err != nil {
			b.Fatal(err)
		}
	}
	if err := bus.Log().Finish(context.Background(), execution.Result{TraceID: "trc_1", LastSeq: 1 + total/execution.MaxChunk}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(total)
	for b.Loop() {
		got := 0
		_, err := bus.Log().Follow(context.Background(), "trc_1", 0, func(events []execution.Event) error {
			got += len(events[0].Data)
			return nil
		})
		if err != nil || got != total {
			b.Fatalf("got %d, %v", got, err)
		}
	}
}
