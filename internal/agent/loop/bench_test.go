package loop

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// BenchmarkToken is what a token costs on its way from a provider to a reader: 100 answers
// with 100 tokens a second each.
func BenchmarkToken(b *testing.B) {
	const answers, every = 100, 10 * time.Millisecond
	each := max(1, b.N/answers)
	turn := scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Text: strings.SplitAfter(strings.Repeat("word ", each), " ")}}, Usage: &model.Usage{Input: 10, Output: 5}}
	events := frames(turn.Stream("openai"))
	paced := lie{body: func(context.Context) io.Reader {
		in, out := io.Pipe()
		go func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for _, e := range events {
				<-tick.C
				if _, err := out.Write([]byte(e)); err != nil {
					return
				}
			}
			_ = out.Close()
		}()
		return in
	}}
	k := newKit(b, nil)
	l := New(Config{
		Store: k.store, Models: lied{"openai", liar{"m": paced}, model.DefaultBounds}, Events: k.bus.RunEvents(storetest.Box(b)),
		Log: slog.New(slog.DiscardHandler), Holder: "a",
	})
	if err := l.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.Stop)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range answers {
		r := &run.Run{ID: run.NewID(), Tenant: owner}
		q := request("hello")
		q.Tools = nil
		if _, err := l.Begin(b.Context(), r, q, 0, nil); err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			n := 0
			err := l.Follow(b.Context(), owner, r.ID, func(events []run.Event) error { n += len(events); return nil })
			if err != nil || n < each {
				b.Error(fmt.Errorf("%d events: %w", n, err))
			}
		})
	}
	wg.Wait()
}
