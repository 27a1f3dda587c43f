package executor

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// ephemeral is a sandbox of which nothing is left.
type ephemeral struct{ Claimed }

func (ephemeral) Destroy(context.Context) error { return nil }

// TestTurnsWaitForRoom: a turn for whose sandbox there is no room waits, in its order, and
// takes that of a turn that has not been used for a while.
func TestTurnsWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, err := New(Config{Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Turns: 1, TurnKeep: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.retries.Close)
		began := time.Now()
		join := func(name string) *turn {
			x.mu.Lock()
			defer x.mu.Unlock()
			joined, err := x.join(&execution.Job{Turn: name, Tenant: "ten"})
			if err != nil {
				t.Fatal(err)
			}
			return joined
		}
		leave := func(used *turn) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.leave(used)
		}
		first := join("first")
		if err := x.takeRoom(t.Context(), first); err != nil || time.Since(began) > 0 {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
		first.sandbox = ephemeral{}
		got := make(chan string, 2)
		for _, name := range []string{"second", "third"} {
			go func() {
				other := join(name)
				if err := x.takeRoom(t.Context(), other); err != nil {
					t.Error(err)
				}
				got <- name
				leave(other) // without a sandbox
			}()
			synctest.Wait()
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := x.takeRoom(gone, join("cancelled")); err == nil {
			t.Error("a cancelled turn gets room")
		}
		time.Sleep(time.Minute)
		if again := join("first"); again != first || x.takeRoom(t.Context(), again) != nil {
			t.Error("a turn waits for what it has")
		} else {
			leave(again)
		}
		leave(first)
		idle := time.Now()
		if name := <-got; name != "second" || time.Since(idle) < 10*time.Second || time.Since(idle) > 11*time.Second {
			t.Errorf("%s gets room after %s", name, time.Since(idle))
		}
		if name := <-got; name != "third" {
			t.Errorf("then %s gets room", name)
		}
		x.cleanup.Wait()
	})
}
