package bus

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/test/atolltest"
)

// TestAReaderThatComesWithAnEvent: a message on its way into the stream is neither heard by one
// who begins to listen behind it, nor stored when that one looks. It is told all the same, and
// not only with the next one, which may be long in coming.
func TestAReaderThatComesWithAnEvent(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, time.Minute)
		enough := errors.New("heard")
		room := make(chan struct{}, 16)
		var all sync.WaitGroup
		for i := range atolltest.Count(400, 4000) {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				id := fmt.Sprintf("trc_%d", i)
				var both sync.WaitGroup
				both.Go(func() {
					if err := b.Log().Append(id, []execution.Event{line(2)}); err != nil {
						t.Error(err)
					}
				})
				begun := time.Now()
				_, err := b.Log().followLog(ctx, id, 0, true, func([]execution.Event) error { return enough })
				if !errors.Is(err, enough) {
					t.Errorf("%s: %v", id, err)
				}
				if d := time.Since(begun); d > 5*time.Second {
					t.Errorf("%s: heard after %v", id, d)
				}
				both.Wait()
			})
		}
		all.Wait()
	})
}
