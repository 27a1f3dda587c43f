package bus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/infra/seal"
)

func TestToken(t *testing.T) {
	want := regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	for c := range 256 {
		for _, n := range []int{0, 1, 80, 81} {
			s := string(slices.Repeat([]byte{byte(c)}, n))
			if isToken(s) != want.MatchString(s) {
				t.Errorf("%q", s)
			}
		}
	}
}

// Whatever acknowledgements are late, and whatever readers miss, a log and its readers have
// each event once, and readers of runs only what is stored.
func TestLateAndMissed(t *testing.T) {
	b := embedded(t)
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ctx := deadline(t, time.Minute)
	events, r := b.RunEvents(box), &run.Run{ID: "run_1", Tenant: "acme"}
	const n = 2000
	errEnough := errors.New("enough")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			next := 0
			err := events.Follow(ctx, r.Tenant, r.ID, func(some []run.Event) error {
				if stored := b.log.Stored(string(r.ID)); stored < int64(next+len(some)+1) {
					return fmt.Errorf("event %d is shown, and %d stored", next+len(some)+1, stored)
				}
				for _, e := range some {
					if want := fmt.Sprint(next, " "); e.Delta == nil || e.Delta.Text != want {
						return fmt.Errorf("%+v in place of %q", e.Delta, want)
					}
					if next++; next == n {
						return errEnough
					}
				}
				return nil
			})
			if !errors.Is(err, errEnough) {
				t.Errorf("after %d: %v", next, err)
			}
		})
	}
	for i := range n {
		if err := events.Publish(ctx, r, []run.Event{{Delta: &run.Delta{Kind: model.Said, Text: fmt.Sprint(i, " ")}}}); err != nil {
			t.Fatal(err)
		}
		switch i % 100 {
		case 33:
			b.log.ground(time.Now().Add(time.Hour))
		case 66:
			b.log.missed()
		case 99:
			time.Sleep(time.Millisecond) // the queue is empty at times
		}
	}
	wg.Wait()
	if b.log.mu.Lock(); len(b.log.readers) != 0 {
		t.Errorf("%d logs have readers still", len(b.log.readers))
	}
	b.log.mu.Unlock()
	if b.log.attending.Lock(); len(b.log.subs) != 0 {
		t.Errorf("%d subscriptions are left", len(b.log.subs))
	}
	b.log.attending.Unlock()
	var all []execution.Event
	follow, stop := context.WithCancel(ctx)
	_, err = b.Log().Follow(follow, "run_1", 1, func(some []execution.Event) error {
		if all = append(all, some...); len(all) >= n {
			stop()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) && !errors.Is(err, ErrNoLog) || len(all) != n || all[n-1].Seq != n+1 {
		t.Errorf("%d events are stored, %v", len(all), err)
	}
}
